"""The evaluation: fixed payloads, three rollouts each, and the metrics that describe them."""

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

from incrt.arm.law import Gains
from incrt.arm.task import Params, State, Task, make_task
from incrt.config import SUCCESS_RMSE, TaskConfig
from incrt.config.registry import as_arrays, refusing
from incrt.controllers.base import Controller, ControllerInput
from incrt.heads.context import first_context, next_context

Policy: TypeAlias = Callable[[npt.NDArray[np.float32]], npt.ArrayLike]


class Rollout(NamedTuple):
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
    """The metrics of one controller over all rollouts; angles in rad, torques in N m."""

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
    """Share of joint-steps with the feed-forward at its bound."""
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


def controller_input(task: Task, params: Params, state: State) -> ControllerInput:
    """What a controller is shown in this state."""
    return ControllerInput(
        observation=task.observe(state, params),
        q=state.measured_q,
        dq=state.measured_dq,
        payload_estimate=state.payload_estimate,
        target=task.target(state, params),
        torque=state.torque,
        truth=state,
    )


def rollout(task: Task, params: Params, controller: Controller, key: Array, payload: Array) -> Rollout:
    """One episode of a controller."""
    return remembered_rollout(task, params, controller, key, payload)[0]


def remembered_rollout(
    task: Task, params: Params, controller: Controller, key: Array, payload: Array
) -> tuple[Rollout, Any]:
    """One episode of a controller, and its memory after each step."""
    start_key, noise_key = jax.random.split(key)
    _, state = task.start(start_key, params, payload)
    memory = controller.start(params, controller_input(task, params, state))

    def step(carry: tuple[State, Any], _: None) -> tuple[tuple[State, Any], tuple[Rollout, Any]]:
        state, memory = carry
        command, memory = controller.act(params, memory, controller_input(task, params, state))
        state, record = _recorded_step(task, params, noise_key, state, command)
        return (state, memory), (record, memory)

    return jax.lax.scan(step, (state, memory), length=task.horizon)[1]


def _recorded_step(
    task: Task, params: Params, noise_key: Array, state: State, command: Gains | Array
) -> tuple[State, Rollout]:
    state, result = task.apply(jax.random.fold_in(noise_key, state.time), state, command, params)
    return state, Rollout(
        time=state.time * params.plant.dt,
        q=state.plant.q,
        q_d=state.plant.q + result.e,
        e=result.e,
        z=state.plant.z,
        torque=result.torque,
        gains=result.shield.gains,
        shield_active=result.shield.active,
        shield_feasible=result.shield.feasible,
    )


@partial(jax.jit, static_argnames="task")
def rollouts(task: Task, params: Params, controller: Controller, keys: Array, payloads: Array) -> Rollout:
    """A batch of episodes, one for each key and payload."""
    return jax.vmap(partial(rollout, task, params, controller))(keys, payloads)


def evaluation_draws(config: TaskConfig) -> tuple[Array, Array]:
    """Keys and payloads of the evaluation: eval_rollouts episodes for each of eval_payloads."""
    payloads = jnp.repeat(jnp.asarray(config.eval_payloads), config.eval_rollouts)
    return jax.random.split(jax.random.key(config.eval_seed), payloads.shape[0]), payloads


def rmse(e: Array) -> Array:
    """sqrt(mean_t |e|^2) of each rollout."""
    return jnp.sqrt(jnp.mean(jnp.sum(e**2, -1), -1))


def evaluate(config: TaskConfig, controller: Controller) -> tuple[Evaluation, Rollout]:
    """Evaluate a controller as the configuration says; also gives the rollouts behind the metrics."""
    task, params = make_task(config)
    keys, payloads = evaluation_draws(config)
    recorded = rollouts(task, params, make_controller(task, params, controller), keys, payloads)
    return summarise(config, recorded, params.law.torque_limit), recorded


def with_arrays(params: Params, controller: Controller) -> Controller:
    """A controller with its numbers as arrays of the task's precision; what cannot be one is refused."""
    if not all(callable(getattr(controller, name, None)) for name in ("start", "act")):
        raise ValueError(
            "controller must have start and act and be a pytree of arrays, such as a NamedTuple "
            f"(see incrt.controllers.base.Controller); got {type(controller).__name__}"
        )
    cast: Controller = as_arrays("controller", controller, params.plant.dt.dtype)
    return cast


def make_controller(task: Task, params: Params, controller: Controller) -> Controller:
    """A controller with its numbers as arrays; one that gives something else than gains or a torque is refused."""
    controller = with_arrays(params, controller)

    def act(key: Array) -> Any:
        _, state = task.reset_env(key, params)
        seen = controller_input(task, params, state)
        memory = controller.start(params, seen)
        return memory, controller.act(params, memory, seen)

    name = type(controller).__name__
    with refusing(f"controller {name}"):
        memory, found = jax.eval_shape(act, jax.random.key(0))
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(f"act of {name} must give a command and the memory for the next step, got {found}")
    command, after = found
    n = task.dof
    parts = command._asdict() if isinstance(command, Gains) else {"torque": command}
    for part, array in parts.items():
        if getattr(array, "shape", None) != (n,) or not jnp.issubdtype(array.dtype, jnp.floating):
            given = f"{array.shape} {array.dtype}" if hasattr(array, "shape") else type(array).__name__
            raise ValueError(
                f"act of {name} must give Gains or a torque with numbers of shape ({n},); {part} has {given}"
            )
    kinds = [
        (jax.tree.structure(each), [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(each)])
        for each in (memory, after)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"start and act of {name} must give memories of the same types and arrays, got {memory} and {after}"
        )
    return controller


def evaluate_policy(config: TaskConfig, policy: Policy) -> tuple[Evaluation, Rollout]:
    """Evaluate any function from contexts to actions on the rollouts of :func:`evaluate`.

    ``policy`` is called once a control step with the contexts of all rollouts, shape (rollouts, W, d_c), and returns
    their actions in [-1, 1], shape (rollouts, dim). For a model of Stable-Baselines3 it is
    ``lambda contexts: model.predict(contexts, deterministic=True)[0]``.
    """
    task, params = make_task(config)
    keys, payloads = evaluation_draws(config)
    start_keys, noise_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    observations, states = jax.vmap(task.start, in_axes=(0, None, 0))(start_keys, params, payloads)
    contexts = jax.vmap(partial(first_context, window=config.window))(observations)

    @jax.jit
    @jax.vmap
    def step(key: Array, state: State, context: Array, action: Array) -> tuple[State, Array, Rollout]:
        state, record = _recorded_step(task, params, key, state, params.law.box.from_unit(action))
        return state, next_context(context, task.observe(state, params)), record

    records = []
    for _ in range(config.horizon):
        actions = np.asarray(policy(np.asarray(contexts)), np.float32)
        if actions.shape != (len(keys), config.action_dim):
            raise ValueError(f"policy must give actions of shape {(len(keys), config.action_dim)}, got {actions.shape}")
        states, contexts, record = step(noise_keys, states, contexts, jnp.asarray(actions))
        records.append(record)
    recorded = jax.tree.map(lambda *rows: jnp.stack(rows, axis=1), *records)
    return summarise(config, recorded, params.law.torque_limit), recorded


def summarise(config: TaskConfig, recorded: Rollout, torque_limit: Array) -> Evaluation:
    """The metrics of a batch of rollouts, ordered as :func:`evaluation_draws` orders them."""
    e, torque = np.asarray(recorded.e, float), np.asarray(recorded.torque, float)
    eta, bound = np.asarray(recorded.gains.eta), np.asarray(config.eta_max)
    each = np.asarray(rmse(recorded.e), float)
    each = np.where(np.isfinite(each), each, math.inf)
    by_payload = each.reshape(len(config.eval_payloads), config.eval_rollouts).mean(1)
    limit = np.asarray(torque_limit, torque.dtype)
    mean_rmse = float(each.mean())
    return Evaluation(
        rmse=mean_rmse,
        success=mean_rmse < SUCCESS_RMSE,
        max_error=float(np.linalg.norm(e, axis=-1).max()),
        torque_rms=float(np.sqrt((torque**2).sum(-1).mean(-1)).mean()),
        torque_tv=float(np.abs(np.diff(torque, axis=1)).sum((1, 2)).mean()),
        torque_saturation_pct=_percent(np.abs(torque) >= limit * (1 - 1e-6)),
        eta_saturation_pct=_percent(np.abs(eta) >= bound * (1 - 1e-6)),
        shield_active_pct=_percent(np.asarray(recorded.shield_active)),
        shield_infeasible_pct=_percent(~np.asarray(recorded.shield_feasible)),
        per_payload={str(p): float(r) for p, r in zip(config.eval_payloads, by_payload, strict=True)},
    )


def _percent(flags: np.ndarray[Any, Any]) -> float:
    return float(100.0 * flags.mean())
