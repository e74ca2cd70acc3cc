"""Reference controllers: what a control engineer would hold against a learned policy.

All of them choose gains inside the box P and act through the same law and shield as a policy does.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.arm.law import Gains, computed_torque
from incrt.arm.plant import control_step, mass_times
from incrt.arm.task import Params
from incrt.controllers.base import ControllerInput


class Constant(NamedTuple):
    """The same gains at every step: the baseline, and the best constant point of the box."""

    gains: Gains

    def start(self, params: Params, seen: ControllerInput) -> None:
        return None

    def act(self, params: Params, memory: None, seen: ControllerInput) -> tuple[Gains, None]:
        return self.gains, None


class FeedForward(NamedTuple):
    """A friction model without memory: eta = coulomb tanh(dq_d/v0) + viscous dq_d, along the trajectory.

    What a policy does better than this need not be memory: it also sees payload, errors and the time.
    """

    gains: Gains
    coulomb: Array
    viscous: Array

    def start(self, params: Params, seen: ControllerInput) -> None:
        return None

    def act(self, params: Params, memory: None, seen: ControllerInput) -> tuple[Gains, None]:
        dq_d = seen.target.dq
        friction = self.coulomb * jnp.tanh(dq_d / params.law.tanh_velocity) + self.viscous * dq_d
        return self.gains._replace(eta=cut(params, friction)), None


class OpenLoop(NamedTuple):
    """Plays a feed-forward by the clock: eta of each control step, the last one from then on.

    Where every episode has the same trajectory and nearly the same start, the hidden state is nearly a function of
    time; then this needs no memory, and knows nothing of any other trajectory.
    """

    gains: Gains
    eta: Array
    """Of each control step, shape (steps, n)."""

    def start(self, params: Params, seen: ControllerInput) -> Array:
        return jnp.zeros((), int)

    def act(self, params: Params, memory: Array, seen: ControllerInput) -> tuple[Gains, Array]:
        return self.gains._replace(eta=self.eta[jnp.minimum(memory, len(self.eta) - 1)]), memory + 1


class AdaptiveMemory(NamedTuple):
    """Estimates of the adaptive controller, and the filtered velocity that stands in for z."""

    payload: Array
    coulomb: Array
    viscous: Array
    memory_gain: Array
    filtered: Array


class Adaptive(NamedTuple):
    """Slotine-Li: the feed-forward is linear in unknown parameters, which follow the sliding variable.

    eta = dM/dp ddq_r p + F_c tanh(dq_r/v0) + sigma dq_r + lambda w, with dq_r = dq_d + Lambda e. The column w is the
    velocity passed through a first-order filter: eq. (4) with a guessed horizon, so the memory is in the regressor too.
    A joint whose feed-forward is at its bound does not learn (anti-windup).
    """

    gains: Gains
    rate_payload: Array
    rate_coulomb: Array
    rate_viscous: Array
    rate_memory: Array
    filter_time: Array

    def start(self, params: Params, seen: ControllerInput) -> AdaptiveMemory:
        zero = jnp.zeros_like(seen.q)
        return AdaptiveMemory(seen.payload_estimate - params.law.payload, zero, zero, zero, zero)

    def act(self, params: Params, memory: AdaptiveMemory, seen: ControllerInput) -> tuple[Gains, AdaptiveMemory]:
        law, dt = params.law, params.plant.dt
        lam = self.gains.lam
        e, de = seen.target.q - seen.q, seen.target.dq - seen.dq
        s, dq_r, ddq_r = de + lam * e, seen.target.dq + lam * e, seen.target.ddq + lam * de
        one = jnp.ones_like(law.payload)
        heavy, light = (law.model.mass_and_bias(seen.q, 0 * seen.dq, payload)[0] for payload in (one, 0 * one))
        per_kilogram = mass_times(heavy - light, ddq_r)
        direction = jnp.tanh(dq_r / law.tanh_velocity)
        wanted = (
            per_kilogram * memory.payload
            + direction * memory.coulomb
            + dq_r * memory.viscous
            + memory.filtered * memory.memory_gain
        )
        eta = cut(params, wanted)
        learning = jnp.where(_saturated(params, eta), 0, s)
        low, high = params.payload_range - law.payload
        decay = jnp.exp(-dt / self.filter_time)
        memory = AdaptiveMemory(
            payload=jnp.clip(memory.payload + dt * self.rate_payload * jnp.sum(per_kilogram * learning), low, high),
            coulomb=jnp.maximum(memory.coulomb + dt * self.rate_coulomb * direction * learning, 0),
            viscous=jnp.maximum(memory.viscous + dt * self.rate_viscous * dq_r * learning, 0),
            memory_gain=jnp.maximum(memory.memory_gain + dt * self.rate_memory * memory.filtered * learning, 0),
            filtered=decay * memory.filtered + self.filter_time * (1 - decay) * seen.dq,
        )
        return self.gains._replace(eta=eta), memory


class ObserverMemory(NamedTuple):
    """The disturbance torque as estimated, and the momentum to be measured next if no torque were applied."""

    disturbance: Array
    coasting: Array


class Observer(NamedTuple):
    """A momentum observer whose estimate of the disturbance torque is fed forward.

    What the momentum M dq does beyond the applied torque is the disturbance; it is smoothed with the given bandwidth.
    For a constant mass matrix: with M(q) the momentum also changes by C'dq, which would count as disturbance.
    """

    gains: Gains
    bandwidth: Array

    def start(self, params: Params, seen: ControllerInput) -> ObserverMemory:
        mass, _ = params.law.model.mass_and_bias(seen.q, seen.dq, seen.payload_estimate)
        return ObserverMemory(jnp.zeros_like(seen.q), mass_times(mass, seen.dq))

    def act(self, params: Params, memory: ObserverMemory, seen: ControllerInput) -> tuple[Gains, ObserverMemory]:
        law, dt, q, dq, payload = params.law, params.plant.dt, seen.q, seen.dq, seen.payload_estimate
        mass, bias = law.model.mass_and_bias(q, dq, payload)
        momentum = mass_times(mass, dq)
        surprise = memory.coasting + dt * seen.torque - momentum
        disturbance = memory.disturbance - jnp.expm1(-self.bandwidth * dt) * surprise / dt
        coasting = momentum - dt * (bias + disturbance)
        ddq_r = seen.target.ddq + self.gains.lam * (seen.target.dq - dq)
        eta = cut(params, disturbance + mass_times(mass - law.mass(q), ddq_r))
        return self.gains._replace(eta=eta), ObserverMemory(disturbance, coasting)


class Clairvoyant(NamedTuple):
    """Knows z, the payload and the plant, and inverts it over one control interval, as one implicit step.

    The feed-forward brings the velocity to dq_d + approach * e at the end of the interval, as far as the box allows.
    Where torques are delayed it first runs the plant through those still pending. It cancels the feedback on noisy
    measurements as well; with noise it need not be the best that can be done.
    """

    gains: Gains
    approach: Array

    def start(self, params: Params, seen: ControllerInput) -> None:
        return None

    def act(self, params: Params, memory: None, seen: ControllerInput) -> tuple[Gains, None]:
        plant, truth = params.plant, seen.truth
        robot, friction, dt = plant.robot, plant.friction, plant.dt
        now = truth.time + len(truth.pending)
        q, dq, z = jax.lax.scan(
            lambda state, torque: (control_step(plant, state, torque, truth.payload, substeps=1), None),
            truth.plant,
            truth.pending,
        )[0]
        e = params.trajectory.at(truth.drawn, now * dt).q - q
        v = params.trajectory.at(truth.drawn, (now + 1) * dt).dq + self.approach * e
        mass, bias = robot.mass_and_bias(q, dq, truth.payload)
        terms = friction.terms(dq, z, dt)
        needed = mass_times(mass, v - dq) / dt + bias + terms.offset + terms.damping * v + jnp.sign(v) * terms.dry
        without = self.gains._replace(eta=jnp.zeros_like(self.gains.eta))
        unlimited = params.law._replace(torque_limit=jnp.full_like(q, jnp.inf))
        feedback = computed_torque(unlimited, seen.target, seen.q, seen.dq, without)
        return self.gains._replace(eta=cut(params, needed - feedback)), None


def cut(params: Params, torque: Array) -> Array:
    """The feed-forward nearest to a torque that the box allows."""
    return jnp.clip(torque, params.law.box.lower.eta, params.law.box.upper.eta)


def _saturated(params: Params, eta: Array) -> Array:
    """Which joints have a feed-forward at its bound."""
    return jnp.abs(eta) >= params.law.box.upper.eta
