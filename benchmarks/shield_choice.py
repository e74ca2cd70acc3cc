"""The figures behind the shield's constants: how large the disturbance is, and what each slack does.

Run with ``python benchmarks/shield_choice.py``; about a minute.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import incrt
from incrt.arm.shield import slack_needed
from incrt.arm.task import Params, State, Task, make_task
from incrt.config import TaskConfig
from incrt.controllers.evaluation import delta_pct, rmse

REGIMES = (1.0, 2.0, 5.0)
SLACKS = (17.0, 20.0, 24.0, 30.0, 40.0)


def largest_disturbance(config: TaskConfig, controller: str) -> np.ndarray:
    """max |tau - M_hat ddq| of each joint over the evaluation: what friction and unknown payload do to the law."""
    recorded = incrt.evaluate(config, incrt.reference_controller(controller, config))[1]
    q, torque = np.asarray(recorded.q, float), np.asarray(recorded.torque, float)
    acceleration = np.diff(q, n=2, axis=1) / config.dt**2
    mass = np.asarray(config.inertia) + config.payload_nominal * np.asarray(config.payload_inertia)
    largest: np.ndarray = np.abs(torque[:, 2:] - mass * acceleration).max((0, 1))
    return largest


@partial(jax.jit, static_argnames="task")
def open_loop(task: Task, params: Params, actions: Array) -> tuple[Array, Array]:
    """Share of shielded steps and RMSE of episodes with prescribed actions, shape (episodes, steps, dim)."""

    def episode(key: Array, actions: Array) -> tuple[Array, Array]:
        def step(state: State, action: Array) -> tuple[State, tuple[Array, Array]]:
            _, state, _, _, info = task.step_env(key, state, action, params)
            return state, (info["shield_active"], info["e"])

        _, (active, e) = jax.lax.scan(step, task.reset_env(key, params)[1], actions)
        return active.mean(), rmse(e)

    active, error = jax.vmap(episode)(jax.random.split(jax.random.key(0), len(actions)), actions)
    return active.mean(), error.mean()


def main() -> None:
    """Print the disturbance, then one line for each slack."""
    print("largest disturbance [N m], joint 1 and 2")
    for name in ("memory", "paper"):
        for controller in ("baseline", "clairvoyant"):
            configs = [incrt.preset(name, task={"tau_z": tau_z}).task for tau_z in REGIMES]
            found = [largest_disturbance(config, controller) for config in configs]
            print(f"  {name:7s} {controller:12s}", np.max(found, axis=0).round(1))
    config = TaskConfig(tau_z=1.0)
    _, params = make_task(config)
    enough = slack_needed(params.shield, params.law, jnp.zeros((1, 2)), jnp.asarray(config.by_joint("baseline_k_d")))
    print(f"slack from which the baseline gains are admissible in every state: {enough:.1f}")

    shape = (64, config.horizon, config.action_dim)
    random = jax.random.uniform(jax.random.key(1), shape, minval=-1, maxval=1)
    worst = jnp.broadcast_to(jnp.array([-1.0, -1.0, -1.0, -1.0, 1.0, 1.0]), shape)
    print("\npreset memory, tau_z = 1; shielded: share of the steps at which the shield changes the gains")
    print("slack   best constant  shielded   random gains shielded   softest gains, eta at its bound")
    for slack in (*SLACKS, None):
        config = config.replace(shield=slack is not None, shield_slack=30.0 if slack is None else slack)
        task, params = make_task(config)
        baseline = incrt.evaluate(config, incrt.reference_controller("baseline", config))[0]
        best = incrt.evaluate(config, incrt.reference_controller("best_constant", config))[0]
        active, _ = open_loop(task, params, random)
        _, error = open_loop(task, params, worst)
        print(
            f"{'none' if slack is None else format(slack, '4.0f')} {delta_pct(best.rmse, baseline.rmse):15.1f} %"
            f" {best.shield_active_pct:8.1f} % {100 * active:20.1f} % {error:24.3f} rad"
        )
    print("\nshare of random gains that is shielded at the slack of the presets")
    for name in ("memory", "paper"):
        shares = [open_loop(*make_task(incrt.preset(name, task={"tau_z": tau_z}).task), random)[0] for tau_z in REGIMES]
        print(f"  {name:7s}", *(f"{100 * share:6.2f} %" for share in shares))


if __name__ == "__main__":
    main()
