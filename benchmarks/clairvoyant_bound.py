"""How far is the clairvoyant from the best that any gains of the box can do?

The clairvoyant looks one control step ahead. Here all gains of all steps of each evaluation rollout are optimised at
once, by gradient descent through the plant, starting from the clairvoyant's own. What this gains is an estimate of what
the one-step clairvoyant leaves on the table. Run with ``python benchmarks/clairvoyant_bound.py``; a few minutes.
"""

import argparse
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import optax
from jax import Array

import incrt
from incrt.arm.task import Params, State, Task, make_task
from incrt.controllers.evaluation import delta_pct, evaluation_draws, rmse

Carry: TypeAlias = tuple[Array, optax.OptState, Array]


@partial(jax.jit, static_argnames=("task", "iterations"))
def optimise(
    task: Task, params: Params, actions: Array, keys: Array, payloads: Array, iterations: int
) -> tuple[Array, Array]:
    """RMSE of each rollout before and after optimising its actions, shape (rollouts, steps, dim)."""

    def errors(actions: Array, key: Array, payload: Array) -> Array:
        _, state = task.start(jax.random.split(key)[0], params, payload)

        def step(state: State, action: Array) -> tuple[State, Array]:
            state, outcome = task.apply(key, state, params.law.box.from_unit(action), params)
            return state, outcome.e

        return jax.lax.scan(step, state, actions)[1]

    def losses(actions: Array) -> Array:
        return rmse(jax.vmap(errors)(actions, keys, payloads))

    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, iterations))

    def improve(carry: Carry, _: None) -> tuple[Carry, None]:
        actions, state, best = carry
        gradient, each = jax.grad(lambda a: (jnp.sum(losses(a)), losses(a)), has_aux=True)(actions)
        updates, state = optimiser.update(jnp.nan_to_num(gradient), state)
        moved = jnp.clip(optax.apply_updates(actions, updates), -1, 1)
        return (moved, state, jnp.minimum(best, each)), None

    start = losses(actions)
    (actions, _, best), _ = jax.lax.scan(improve, (actions, optimiser.init(actions), start), length=iterations)
    return start, jnp.minimum(best, losses(actions))


def main() -> None:
    """Print one line a preset and regime."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=300)
    iterations = parser.parse_args().iterations
    print("preset   tau_z   clairvoyant   all gains optimised")
    for name in ("memory", "paper"):
        for tau_z in (1.0, 2.0, 5.0):
            # Without the shield: the bound asked for is that of the box.
            config = incrt.preset(name, task={"tau_z": tau_z, "shield": False}).task
            task, params = make_task(config)
            baseline = incrt.evaluate(config, incrt.reference_controller("baseline", config))[0].rmse
            found = incrt.evaluate(config, incrt.reference_controller("clairvoyant", config))[1]
            actions = jax.vmap(jax.vmap(params.law.box.to_unit))(found.gains)
            keys, payloads = evaluation_draws(config)
            before, after = optimise(task, params, actions, keys, payloads, iterations)
            figures = [delta_pct(float(x.mean()), baseline) for x in (before, after)]
            print(f"{name:8s} {tau_z:5.0f} {figures[0]:+12.2f} % {figures[1]:+18.2f} %", flush=True)


if __name__ == "__main__":
    main()
