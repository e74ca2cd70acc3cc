"""The evaluation: fixed payloads, three rollouts each, and the figures that describe them."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from incrt.bench import Bench, Params, State, first_context, make_bench, next_context
from incrt.config import SUCCESS_RMSE, BenchConfig
from incrt.control import Gains, features
from incrt.controllers import Controller, Sight
from incrt.plant import Robot

Policy: TypeAlias = Callable[[npt.NDArray[np.float32]], npt.ArrayLike]


class Trajectory(NamedTuple):
    """One rollout; every array has one row per control step. A batch has one more axis in front."""

    time: Array
    q: Array
    q_d: Array
    e: Array
    z: Array
    torque: Array
    gains: Gains
    shield_active: Array
    shield_feasible: Array


@dataclass(frozen=True)
class Evaluation:
    """The figures of one controller over all rollouts; angles in rad, torques in N m."""

    rmse: float
    """sqrt(mean |e|^2) of a rollout, mean over the rollouts."""
    success: bool
    """Whether rmse is below 0.10 rad."""
    max_error: float
    """Largest |e| of all rollouts."""
    torque_rms: float
    """Effort: sqrt(mean |torque|^2) of a rollout, mean over the rollouts."""
    torque_tv: float
    """Total variation of the torque over a rollout, summed over the joints, mean over the rollouts."""
    torque_saturation_pct: float
    """Share of joint-steps at the torque limit."""
    eta_saturation_pct: float
    """Share of weight-steps with the feed-forward at its bound."""
    shield_active_pct: float
    """Share of steps at which the shield changed the gains."""
    shield_infeasible_pct: float
    """Share of steps at which no gains of the box were admissible."""
    per_payload: dict[str, float]
    """RMSE of each payload."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def delta_pct(rmse: float, baseline_rmse: float) -> float:
    """Delta%: relative change of the RMSE against the baseline, eq. (29)."""
    return 100.0 * (rmse / baseline_rmse - 1.0)


def headroom_closed(rmse: float, best_constant_rmse: float, clairvoyant_rmse: float) -> float:
    """How much of the way from the best constant gains to the clairvoyant a policy goes; NaN if there is no way."""
    way = best_constant_rmse - clairvoyant_rmse
    return (best_constant_rmse - rmse) / way if way > 0 else math.nan


def see(bench: Bench, params: Params, state: State) -> Sight:
    """What a controller is shown in this state."""
    return Sight(
        observation=bench.observe(state, params),
        q=state.measured_q,
        dq=state.measured_dq,
        payload_estimate=state.payload_estimate,
        target=bench.target(state, params),
        torque=state.torque,
        phi=features(bench.features, params.law, state.measured_dq),
        truth=state,
    )


def rollout(bench: Bench, params: Params, controller: Controller, key: Array, payload: Array) -> Trajectory:
    """One episode of a controller."""
    return remembered_rollout(bench, params, controller, key, payload)[0]


def remembered_rollout(
    bench: Bench, params: Params, controller: Controller, key: Array, payload: Array
) -> tuple[Trajectory, Any]:
    """One episode of a controller, and its memory after each step."""
    start_key, noise_key = jax.random.split(key)
    _, state = bench.start(start_key, params, payload)
    memory = controller.start(params, see(bench, params, state))

    def step(carry: tuple[State, Any], _: None) -> tuple[tuple[State, Any], tuple[Trajectory, Any]]:
        state, memory = carry
        gains, memory = controller.act(params, memory, see(bench, params, state))
        state, record = _recorded_step(bench, params, noise_key, state, gains)
        return (state, memory), (record, memory)

    return jax.lax.scan(step, (state, memory), length=bench.horizon)[1]


def _recorded_step(
    bench: Bench, params: Params, noise_key: Array, state: State, gains: Gains
) -> tuple[State, Trajectory]:
    state, outcome = bench.apply(jax.random.fold_in(noise_key, state.time), state, gains, params)
    return state, Trajectory(
        time=state.time * params.plant.dt,
        q=state.plant.q,
        q_d=state.plant.q + outcome.e,
        e=outcome.e,
        z=state.plant.z,
        torque=outcome.torque,
        gains=outcome.verdict.gains,
        shield_active=outcome.verdict.active,
        shield_feasible=outcome.verdict.feasible,
    )


@partial(jax.jit, static_argnames="bench")
def rollouts(bench: Bench, params: Params, controller: Controller, keys: Array, payloads: Array) -> Trajectory:
    """A batch of episodes, one for each key and payload."""
    return jax.vmap(partial(rollout, bench, params, controller))(keys, payloads)


def evaluation_draws(config: BenchConfig) -> tuple[Array, Array]:
    """Keys and payloads of the evaluation: eval_rollouts episodes for each of eval_payloads."""
    payloads = jnp.repeat(jnp.asarray(config.eval_payloads), config.eval_rollouts)
    return jax.random.split(jax.random.key(config.eval_seed), payloads.shape[0]), payloads


def rmse(e: Array) -> Array:
    """sqrt(mean_t |e|^2) of each rollout."""
    return jnp.sqrt(jnp.mean(jnp.sum(e**2, -1), -1))


def evaluate(config: BenchConfig, controller: Controller, robot: Robot | None = None) -> tuple[Evaluation, Trajectory]:
    """Evaluate a controller as the configuration says; also gives the rollouts behind the figures.

    ``robot`` takes the place of the paper's arm, as in :func:`incrt.bench.make_bench`.
    """
    if not hasattr(controller, "act") or not all(isinstance(leaf, Array) for leaf in jax.tree.leaves(controller)):
        raise ValueError(
            "controller must have start and act and be a pytree of JAX arrays, such as a NamedTuple "
            f"(see incrt.controllers.Controller); got {type(controller).__name__}"
        )
    bench, params = make_bench(config, robot=robot)
    keys, payloads = evaluation_draws(config)
    trajectory = rollouts(bench, params, controller, keys, payloads)
    return summarise(config, trajectory), trajectory


def evaluate_policy(config: BenchConfig, policy: Policy) -> tuple[Evaluation, Trajectory]:
    """Evaluate any function from contexts to actions on the rollouts of :func:`evaluate`.

    ``policy`` is called once a control step with the contexts of all rollouts, shape (rollouts, W, d_c), and returns
    their actions in [-1, 1], shape (rollouts, dim). For a model of Stable-Baselines3 it is
    ``lambda contexts: model.predict(contexts, deterministic=True)[0]``.
    """
    bench, params = make_bench(config)
    keys, payloads = evaluation_draws(config)
    start_keys, noise_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    observations, states = jax.vmap(bench.start, in_axes=(0, None, 0))(start_keys, params, payloads)
    contexts = jax.vmap(partial(first_context, window=config.window))(observations)

    @jax.jit
    @jax.vmap
    def step(key: Array, state: State, context: Array, action: Array) -> tuple[State, Array, Trajectory]:
        gains = params.law.box.from_unit(jnp.clip(action, -1, 1))
        state, record = _recorded_step(bench, params, key, state, gains)
        return state, next_context(context, bench.observe(state, params)), record

    records = []
    for _ in range(config.horizon):
        actions = np.asarray(policy(np.asarray(contexts)), np.float32)
        if actions.shape != (len(keys), config.action_dim):
            raise ValueError(f"policy must give actions of shape {(len(keys), config.action_dim)}, got {actions.shape}")
        states, contexts, record = step(noise_keys, states, contexts, jnp.asarray(actions))
        records.append(record)
    trajectory = jax.tree.map(lambda *rows: jnp.stack(rows, axis=1), *records)
    return summarise(config, trajectory), trajectory


def summarise(config: BenchConfig, trajectory: Trajectory) -> Evaluation:
    """The figures of a batch of rollouts, ordered as :func:`evaluation_draws` orders them."""
    e, torque = np.asarray(trajectory.e, float), np.asarray(trajectory.torque, float)
    eta, bound = np.asarray(trajectory.gains.eta), np.asarray(config.eta_max)
    each = np.asarray(rmse(trajectory.e), float)
    each = np.where(np.isfinite(each), each, math.inf)
    by_payload = each.reshape(len(config.eval_payloads), config.eval_rollouts).mean(1)
    limit = np.inf if config.torque_limit is None else np.asarray(config.torque_limit, torque.dtype)
    mean_rmse = float(each.mean())
    return Evaluation(
        rmse=mean_rmse,
        success=mean_rmse < SUCCESS_RMSE,
        max_error=float(np.linalg.norm(e, axis=-1).max()),
        torque_rms=float(np.sqrt((torque**2).sum(-1).mean(-1)).mean()),
        torque_tv=float(np.abs(np.diff(torque, axis=1)).sum((1, 2)).mean()),
        torque_saturation_pct=_percent(np.abs(torque) >= limit * (1 - 1e-6)),
        eta_saturation_pct=_percent(np.abs(eta) >= bound * (1 - 1e-6)),
        shield_active_pct=_percent(np.asarray(trajectory.shield_active)),
        shield_infeasible_pct=_percent(~np.asarray(trajectory.shield_feasible)),
        per_payload={str(p): float(r) for p, r in zip(config.eval_payloads, by_payload, strict=True)},
    )


def _percent(flags: np.ndarray[Any, Any]) -> float:
    return float(100.0 * flags.mean())
