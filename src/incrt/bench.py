"""The bench as a functional environment: gains -> shield -> torque -> plant -> measurements.

It follows gymnax's calling convention, with pure functions, explicit state and step-observations; the caller keeps the
window (:func:`first_context`, :func:`next_context`). Whatever is a number sits in :class:`Params` and may differ
between the runs of one ``vmap``; whatever shapes the program sits in the configuration.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import BenchConfig
from incrt.control import Gains, Law, computed_torque, features, make_law, tracking_error
from incrt.plant import Plant, PlantState, Reference, Robot, Target, control_step, make_plant, make_reference
from incrt.shield import Shield, Verdict, make_shield, shielded

FRICTION_REGIME = 0.2
"""mu_hat: the friction-regime estimate, which the paper holds constant."""


class Params(NamedTuple):
    """The numbers of a bench."""

    plant: Plant
    reference: Reference
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


class Outcome(NamedTuple):
    """What happened in one control step."""

    verdict: Verdict
    torque: Array
    """The torque the law computed, within its limits."""
    e: Array
    """True tracking error after the step."""
    reward: Array


@dataclass(frozen=True)
class Space:
    """A box of vectors."""

    low: float
    high: float
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, key: Array) -> Array:
        """A uniform draw; the space must be bounded."""
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: Array) -> Array:
        return jnp.all((x >= self.low) & (x <= self.high))


@dataclass(frozen=True)
class Bench:
    """The functional environment: what of a configuration shapes the program, and nothing else.

    Two configurations that differ in numbers alone give equal benches, so they share compiled programs and may share
    a batch. :func:`make_bench` gives the bench together with its numbers.
    """

    dof: int
    horizon: int
    substeps: int
    delay: int
    features: str
    feature_blocks: int
    shield: bool
    noisy: bool

    @property
    def name(self) -> str:
        return "Stribeck-v0"

    @property
    def num_actions(self) -> int:
        return (2 + self.feature_blocks) * self.dof

    def observation_space(self, params: Params) -> Space:
        return Space(-math.inf, math.inf, (4 * self.dof + 3,), params.plant.dt.dtype)

    def action_space(self, params: Params) -> Space:
        return Space(-1.0, 1.0, (self.num_actions,), params.plant.dt.dtype)

    # --- gymnax's five functions ------------------------------------------------------------------------------

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: Array, params: Params) -> tuple[Array, State]:
        """Start an episode."""
        return self.reset_env(key, params)

    @partial(jax.jit, static_argnames="self")
    def step(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Array]]:
        """One control step; a finished episode is followed by a new one.

        At the end of an episode ``info["final_observation"]`` is the observation that the new episode's replaces.
        """
        step_key, reset_key = jax.random.split(key)
        final_observation, next_state, reward, terminated, info = self.step_env(step_key, state, action, params)
        truncated = self.is_truncated(next_state, params)
        done = terminated | truncated
        observation, next_state = jax.tree.map(
            partial(jnp.where, done), self.reset_env(reset_key, params), (final_observation, next_state)
        )
        info = {**info, "terminated": terminated, "truncated": truncated, "final_observation": final_observation}
        return observation, next_state, reward, done, info

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
        gains = params.law.box.from_unit(jnp.clip(action, -1, 1))
        state, outcome = self.apply(key, state, gains, params)
        info = {
            "discount": jnp.ones_like(outcome.reward),
            "e": outcome.e,
            "torque": outcome.torque,
            "shield_distance": outcome.verdict.distance,
            "shield_active": outcome.verdict.active,
            "shield_feasible": outcome.verdict.feasible,
        }
        return self.observe(state, params), state, outcome.reward, jnp.zeros((), bool), info

    def is_truncated(self, state: State, params: Params) -> Array:
        """Whether the time limit is reached."""
        return state.time >= self.horizon

    # --- what the environment is made of ----------------------------------------------------------------------

    def start(self, key: Array, params: Params, payload: Array) -> tuple[Array, State]:
        """Start an episode with the given payload, at rest near the start of the reference."""
        n, dtype = self.dof, params.plant.dt.dtype
        estimate_key, position_key, noise_key = jax.random.split(key, 3)
        zero = jnp.zeros(n, dtype)
        q = params.reference.at(jnp.zeros((), dtype)).q
        q = q + params.initial_std * jax.random.normal(position_key, (n,), dtype)
        payload = jnp.asarray(payload, dtype)
        measured_q, measured_dq = self._measure(noise_key, q, zero, params)
        state = State(
            plant=PlantState(q, zero, zero),
            payload=payload,
            payload_estimate=payload + params.payload_std * jax.random.normal(estimate_key, (), dtype),
            measured_q=measured_q,
            measured_dq=measured_dq,
            pending=jnp.zeros((self.delay, n), dtype),
            torque=zero,
            time=jnp.zeros((), jnp.int32),
        )
        return self.observe(state, params), state

    def target(self, state: State, params: Params) -> Target:
        """The reference at the current step."""
        return params.reference.at(state.time * params.plant.dt)

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
        gains = params.law.box.from_unit(action)
        phi = features(self.features, params.law, dq)
        return shielded(params.shield, params.law, target, q, dq, gains, phi).distance

    def apply(self, key: Array, state: State, gains: Gains, params: Params) -> tuple[State, Outcome]:
        """One control step with the given gains, cut to the box."""
        q, dq, law = state.measured_q, state.measured_dq, params.law
        gains = law.box.clip(gains)
        target = self.target(state, params)
        phi = features(self.features, law, dq)
        if self.shield:
            verdict = shielded(params.shield, law, target, q, dq, gains, phi)
        else:
            verdict = Verdict(gains, jnp.zeros((), q.dtype), jnp.zeros((), bool), jnp.ones((), bool))
        torque = computed_torque(law, target, q, dq, verdict.gains, phi)
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
        e, de, _ = tracking_error(self.target(state, params), plant.q, plant.dq, verdict.gains.lam)
        reward = -(params.reward_error * jnp.sum(e**2) + params.reward_velocity * jnp.sum(de**2))
        return state, Outcome(verdict, torque, e, reward)

    def _measure(self, key: Array, q: Array, dq: Array, params: Params) -> tuple[Array, Array]:
        """Joint positions and velocities as the sensors give them."""
        if not self.noisy:
            return q, dq
        noise = jax.random.normal(key, (2, *q.shape), q.dtype)
        return q + params.noise_position * noise[0], dq + params.noise_velocity * noise[1]


def make_bench(config: BenchConfig, dtype: Any = jnp.float32, robot: Robot | None = None) -> tuple[Bench, Params]:
    """The environment of a configuration and its numbers, in the given precision.

    ``robot`` takes the place of the paper's arm, in the plant and in the law's model of it.
    """

    def array(value: Any) -> Array:
        return jnp.asarray(value, dtype)

    bench = Bench(
        dof=config.dof,
        horizon=config.horizon,
        substeps=config.substeps,
        delay=config.delay,
        features=config.features,
        feature_blocks=config.feature_blocks,
        shield=config.shield,
        noisy=config.noise_position > 0 or config.noise_velocity > 0,
    )
    plant, law = make_plant(config, dtype), make_law(config, dtype)
    if robot is not None:
        plant, law = plant._replace(robot=robot), law._replace(model=robot)
    params = Params(
        plant=plant,
        reference=make_reference(config, dtype),
        law=law,
        shield=make_shield(config, dtype),
        payload_range=array(config.payload_range),
        payload_std=array(config.payload_std),
        initial_std=array(config.initial_std),
        reward_error=array(config.reward_error),
        reward_velocity=array(config.reward_velocity),
        noise_position=array(config.noise_position),
        noise_velocity=array(config.noise_velocity),
    )
    return bench, params


def first_context(observation: Array, window: int) -> Array:
    """c(0): at the start of an episode its first observation fills the window, shape (W, d_c)."""
    return jnp.tile(observation, (window, 1))


def next_context(context: Array, observation: Array) -> Array:
    """c(t): the last W observations, the newest last, eq. (9)."""
    return jnp.concatenate([context[1:], observation[None]])
