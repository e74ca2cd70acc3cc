"""The task as a functional environment: gains -> shield -> torque -> plant -> measurements.

It follows gymnax's calling convention, with pure functions, explicit state and step-observations; the caller keeps the
window (:mod:`incrt.heads.context`). Whatever is a number sits in :class:`Params` and may differ between the runs of one
``vmap``; whatever shapes the program sits in :class:`Task`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.arm.law import Gains, Law, computed_torque, make_law, tracking_error
from incrt.arm.plant import Plant, PlantState, control_step, make_plant
from incrt.arm.robots import Robot, check_along, home_of
from incrt.arm.shield import Shield, ShieldResult, make_shield, shielded
from incrt.arm.trajectories import Target, Trajectory, make_trajectory
from incrt.config import TaskConfig
from incrt.config.registry import as_array

FRICTION_REGIME = 0.2
"""mu_hat: the friction-regime estimate, which the paper holds constant."""

_POSTURES = 50
"""How many of an episode the shield is looked at in."""
_TRAJECTORY_STREAM = 7
"""Folded into an episode's key for the trajectory's draw, so that the other draws stay what they are without it."""


class Params(NamedTuple):
    """The numbers of a task."""

    plant: Plant
    trajectory: Trajectory
    law: Law
    shield: Shield
    payload_range: Array
    payload_std: Array
    initial_std: Array
    reward_error: Array
    reward_velocity: Array
    noise_position: Array
    noise_velocity: Array


class State(NamedTuple):
    """The state of one episode; only ``measured_q``, ``measured_dq`` and the payload estimate reach a policy."""

    plant: PlantState
    payload: Array
    payload_estimate: Array
    measured_q: Array
    measured_dq: Array
    pending: Array
    """Torques computed but not yet applied, shape (delay, n)."""
    torque: Array
    """The torque applied last."""
    time: Array
    """Control steps since the start of the episode."""
    drawn: Any
    """What the trajectory has drawn for this episode."""


class StepResult(NamedTuple):
    """What happened in one control step."""

    shield: ShieldResult
    torque: Array
    """The torque that was commanded, within its limits."""
    e: Array
    """True tracking error after the step."""
    reward: Array


class Space(NamedTuple):
    """A box of vectors."""

    low: float
    high: float
    shape: tuple[int, ...]
    dtype: Any = jnp.float32


@dataclass(frozen=True)
class Task:
    """The functional environment: what of a configuration shapes the program, and nothing else.

    Two configurations that differ in numbers alone give equal tasks, so they share compiled programs and may share a
    batch. :func:`make_task` gives the task together with its numbers.
    """

    dof: int
    horizon: int
    substeps: int
    delay: int
    shield: bool
    noisy: bool

    @property
    def name(self) -> str:
        return "Stribeck-v0"

    @property
    def num_actions(self) -> int:
        return 3 * self.dof

    def observation_space(self, params: Params) -> Space:
        return Space(-math.inf, math.inf, (4 * self.dof + 3,), params.plant.dt.dtype)

    def action_space(self, params: Params) -> Space:
        return Space(-1.0, 1.0, (self.num_actions,), params.plant.dt.dtype)

    # --- gymnax's functions -------------------------------------------------------------------------------------

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        """Start an episode with a payload drawn from its range."""
        payload_key, start_key = jax.random.split(key)
        low, high = params.payload_range
        payload = jax.random.uniform(payload_key, (), low.dtype, low, high)
        return self.start(start_key, params, payload)

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Array]]:
        """One control step without automatic reset. An episode only ever ends by its time limit."""
        if action.shape != (self.num_actions,):
            raise ValueError(f"action must have shape ({self.num_actions},), got {action.shape}")
        state, result = self.apply(key, state, params.law.box.from_unit(action), params)
        info = {
            "discount": jnp.ones_like(result.reward),
            "e": result.e,
            "torque": result.torque,
            "shield_distance": result.shield.distance,
            "shield_active": result.shield.active,
            "shield_feasible": result.shield.feasible,
        }
        return self.observe(state, params), state, result.reward, jnp.zeros((), bool), info

    def is_truncated(self, state: State, params: Params) -> Array:
        """Whether the time limit is reached."""
        return state.time >= self.horizon

    # --- what the environment is made of ------------------------------------------------------------------------

    def start(self, key: Array, params: Params, payload: Array) -> tuple[Array, State]:
        """Start an episode with the given payload, at rest near the start of the trajectory."""
        n, dtype = self.dof, params.plant.dt.dtype
        estimate_key, position_key, noise_key = jax.random.split(key, 3)
        drawn = params.trajectory.draw(jax.random.fold_in(key, _TRAJECTORY_STREAM))
        zero = jnp.zeros(n, dtype)
        q = params.trajectory.at(drawn, jnp.zeros((), dtype)).q
        q = q + params.initial_std * jax.random.normal(position_key, (n,), dtype)
        payload = jnp.asarray(payload, dtype)
        measured_q, measured_dq = self._measure(noise_key, q, zero, params)
        state = State(
            plant=PlantState(q, zero, params.plant.friction.start(n)),
            payload=payload,
            payload_estimate=payload + params.payload_std * jax.random.normal(estimate_key, (), dtype),
            measured_q=measured_q,
            measured_dq=measured_dq,
            pending=jnp.zeros((self.delay, n), dtype),
            torque=zero,
            time=jnp.zeros((), jnp.int32),
            drawn=drawn,
        )
        return self.observe(state, params), state

    def target(self, state: State, params: Params, ahead: int = 0) -> Target:
        """The trajectory at the current step, or so many steps ahead of it."""
        return params.trajectory.at(state.drawn, (state.time + ahead) * params.plant.dt)

    def observe(self, state: State, params: Params) -> Array:
        """o(t) = (q, dq, q_d, dq_d, p_hat, mu_hat, t/T), shape (4n + 3,)."""
        target = self.target(state, params)
        phase = state.time / self.horizon
        rest = jnp.stack([state.payload_estimate, jnp.full_like(state.payload, FRICTION_REGIME), phase])
        parts = [state.measured_q, state.measured_dq, target.q, target.dq, rest]
        return jnp.concatenate(parts, dtype=state.measured_q.dtype)

    def shield_distance(self, observation: Array, action: Array, params: Params) -> Array:
        """Distance in the unit cube from an action to the admissible ones, as the shield would see it.

        A function of what a replay buffer holds, with finite gradients: made for a penalty on the actor. Without a
        shield every action is admissible.
        """
        if not self.shield:
            return jnp.zeros((), action.dtype)
        q, dq, q_d, dq_d = jnp.split(observation[: 4 * self.dof], 4)
        target = Target(q_d, dq_d, jnp.zeros_like(q_d))
        law = params.law.in_rows()
        return shielded(params.shield, law, target, q, dq, law.box.from_unit(action)).distance

    def apply(self, key: Array, state: State, command: Gains | Array, params: Params) -> tuple[State, StepResult]:
        """One control step with the given gains, cut to the box, or with a torque, cut to its limits.

        Here alone commands are cut. A torque passes by law and shield; the gains are then not a number.
        """
        law = params.law
        if isinstance(command, Gains):
            torque, result = self._follow_law(state, command, params)
        else:
            torque = jnp.clip(command, -law.torque_limit, law.torque_limit)
            result = _passed(jax.tree.map(lambda bound: jnp.full_like(bound, jnp.nan), law.box.lower))
        queue = jnp.concatenate([state.pending, torque[None]])
        plant = control_step(params.plant, state.plant, queue[0], state.payload, self.substeps)
        measured_q, measured_dq = self._measure(key, plant.q, plant.dq, params)
        state = state._replace(
            plant=plant,
            measured_q=measured_q,
            measured_dq=measured_dq,
            pending=queue[1:],
            torque=queue[0],
            time=state.time + 1,
        )
        e, de, _ = tracking_error(self.target(state, params), plant.q, plant.dq, law.box.lower.lam)
        reward = -(params.reward_error * jnp.sum(e**2) + params.reward_velocity * jnp.sum(de**2))
        return state, StepResult(result, torque, e, reward)

    def _follow_law(self, state: State, gains: Gains, params: Params) -> tuple[Array, ShieldResult]:
        """The torque of the law with the gains that the shield makes of these."""
        law, q, dq = params.law.in_rows(), state.measured_q, state.measured_dq
        gains, target = law.box.clip(gains.in_rows()), self.target(state, params)
        result = shielded(params.shield, law, target, q, dq, gains) if self.shield else _passed(gains)
        torque = computed_torque(law, target, q, dq, result.gains)
        return torque, result._replace(gains=result.gains._replace(eta=result.gains.eta[0]))

    def _measure(self, key: Array, q: Array, dq: Array, params: Params) -> tuple[Array, Array]:
        """Joint positions and velocities as the sensors give them."""
        if not self.noisy:
            return q, dq
        noise = jax.random.normal(key, (2, *q.shape), q.dtype)
        return q + params.noise_position * noise[0], dq + params.noise_velocity * noise[1]


def _passed(gains: Gains) -> ShieldResult:
    """Gains that no shield has looked at."""
    return ShieldResult(gains, jnp.zeros((), gains.k_d.dtype), jnp.zeros((), bool), jnp.ones((), bool))


def make_task(config: TaskConfig, dtype: Any = jnp.float32) -> tuple[Task, Params]:
    """The environment of a configuration and its numbers, in the given precision.

    A robot, friction or trajectory that does not fit, and a shield that refuses the baseline's gains, are refused here.
    """
    task = Task(
        dof=config.dof,
        horizon=config.horizon,
        substeps=config.substeps,
        delay=config.delay,
        shield=config.shield,
        noisy=config.noise_position > 0 or config.noise_velocity > 0,
    )
    plant = make_plant(config, dtype)
    law = make_law(config, plant.robot, dtype)
    trajectory = make_trajectory(config, dtype)
    postures = _postures(config, plant.robot, trajectory, dtype)
    for field, robot in {"robot": plant.robot, "model": law.model}.items():
        check_along(field, robot, postures, law.payload)
    names = Params._fields[Params._fields.index("payload_range") :]
    params = Params(
        plant=plant,
        trajectory=trajectory,
        law=law,
        shield=make_shield(config, law, postures, dtype),
        **{name: as_array(getattr(config, name), dtype) for name in names},
    )
    return task, params


def _postures(config: TaskConfig, robot: Robot, trajectory: Trajectory, dtype: Any) -> Array:
    """Where the arm will be: at home, and along one episode's trajectory."""
    home, until = home_of(robot, dtype), as_array(config.horizon * config.dt, dtype)
    postures: Array = _home_and_along(home, trajectory, until)
    return postures


@jax.jit
def _home_and_along(home: Array, trajectory: Trajectory, until: Array) -> Array:
    """As one program: operation by operation there would be many to compile, at every start."""
    drawn = trajectory.draw(jax.random.key(0))
    times = jnp.linspace(0, until, _POSTURES, dtype=until.dtype)
    return jnp.concatenate([home[None], jax.vmap(lambda time: trajectory.at(drawn, time).q)(times)])
