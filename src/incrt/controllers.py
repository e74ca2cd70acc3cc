"""Reference controllers: what a control engineer would hold against a learned policy.

All of them choose gains inside the box P and act through the same law and shield as a policy does. A controller is a
record of numbers with two functions, so that a batch of controllers is one more ``vmap``.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from incrt.bench import Params, State
from incrt.control import Gains, computed_torque
from incrt.plant import Target, control_step, mass_times


class Sight(NamedTuple):
    """What a controller is shown at a control step."""

    observation: Array
    q: Array
    dq: Array
    payload_estimate: Array
    target: Target
    torque: Array
    """The torque applied during the step before."""
    phi: Array
    """Phi at the measured state, shape (blocks, n)."""
    truth: State
    """The whole state, z and payload included. Only the clairvoyant may look."""


class Controller(Protocol):
    """Chooses the gains.

    A controller is a pytree of arrays, such as a NamedTuple, and so is whatever it remembers between two steps.
    """

    def start(self, params: Params, sight: Sight) -> Any:
        """The memory at the start of an episode."""

    def act(self, params: Params, memory: Any, sight: Sight) -> tuple[Gains, Any]:
        """The gains for this step and the memory for the next."""


class Constant(NamedTuple):
    """The same gains at every step: the baseline, and the best constant point of the box."""

    gains: Gains

    def start(self, params: Params, sight: Sight) -> None:
        return None

    def act(self, params: Params, memory: None, sight: Sight) -> tuple[Gains, None]:
        return self.gains, None


class FeedForward(NamedTuple):
    """A friction model without memory: eta = coulomb tanh(dq_d/v0) + viscous dq_d, along the reference.

    What a policy does better than this need not be memory: it also sees payload, errors and the time.
    """

    gains: Gains
    coulomb: Array
    viscous: Array

    def start(self, params: Params, sight: Sight) -> None:
        return None

    def act(self, params: Params, memory: None, sight: Sight) -> tuple[Gains, None]:
        dq_d = sight.target.dq
        friction = self.coulomb * jnp.tanh(dq_d / params.law.tanh_velocity) + self.viscous * dq_d
        return self.gains._replace(eta=allocate(params, sight.phi, friction)), None


class OpenLoop(NamedTuple):
    """Plays a feed-forward by the clock: eta of each control step, the last one from then on.

    Where every episode has the same reference and nearly the same start, the hidden state is nearly a function of time;
    then this needs no memory, and knows nothing of any other reference.
    """

    gains: Gains
    eta: Array
    """Of each control step, shape (steps, blocks, n)."""

    def start(self, params: Params, sight: Sight) -> Array:
        return jnp.zeros((), int)

    def act(self, params: Params, memory: Array, sight: Sight) -> tuple[Gains, Array]:
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

    def start(self, params: Params, sight: Sight) -> AdaptiveMemory:
        zero = jnp.zeros_like(sight.q)
        return AdaptiveMemory(sight.payload_estimate - params.law.payload, zero, zero, zero, zero)

    def act(self, params: Params, memory: AdaptiveMemory, sight: Sight) -> tuple[Gains, AdaptiveMemory]:
        law, dt = params.law, params.plant.dt
        lam = self.gains.lam
        e, de = sight.target.q - sight.q, sight.target.dq - sight.dq
        s, dq_r, ddq_r = de + lam * e, sight.target.dq + lam * e, sight.target.ddq + lam * de
        one = jnp.ones_like(law.payload)
        per_kilogram = mass_times(law.model.mass(sight.q, one) - law.model.mass(sight.q, 0 * one), ddq_r)
        direction = jnp.tanh(dq_r / law.tanh_velocity)
        wanted = (
            per_kilogram * memory.payload
            + direction * memory.coulomb
            + dq_r * memory.viscous
            + memory.filtered * memory.memory_gain
        )
        eta = allocate(params, sight.phi, wanted)
        learning = jnp.where(_saturated(params, eta), 0, s)
        low, high = params.payload_range - law.payload
        decay = jnp.exp(-dt / self.filter_time)
        memory = AdaptiveMemory(
            payload=jnp.clip(memory.payload + dt * self.rate_payload * jnp.sum(per_kilogram * learning), low, high),
            coulomb=jnp.maximum(memory.coulomb + dt * self.rate_coulomb * direction * learning, 0),
            viscous=jnp.maximum(memory.viscous + dt * self.rate_viscous * dq_r * learning, 0),
            memory_gain=jnp.maximum(memory.memory_gain + dt * self.rate_memory * memory.filtered * learning, 0),
            filtered=decay * memory.filtered + self.filter_time * (1 - decay) * sight.dq,
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

    def start(self, params: Params, sight: Sight) -> ObserverMemory:
        mass = params.law.model.mass(sight.q, sight.payload_estimate)
        return ObserverMemory(jnp.zeros_like(sight.q), mass_times(mass, sight.dq))

    def act(self, params: Params, memory: ObserverMemory, sight: Sight) -> tuple[Gains, ObserverMemory]:
        law, dt, q, dq, payload = params.law, params.plant.dt, sight.q, sight.dq, sight.payload_estimate
        mass = law.model.mass(q, payload)
        momentum = mass_times(mass, dq)
        surprise = memory.coasting + dt * sight.torque - momentum
        disturbance = memory.disturbance - jnp.expm1(-self.bandwidth * dt) * surprise / dt
        rigid = law.model.coriolis(q, dq, payload) + law.model.gravity(q, payload)
        coasting = momentum - dt * (rigid + disturbance)
        ddq_r = sight.target.ddq + self.gains.lam * (sight.target.dq - dq)
        eta = allocate(params, sight.phi, disturbance + mass_times(mass - law.mass(q), ddq_r))
        return self.gains._replace(eta=eta), ObserverMemory(disturbance, coasting)


class Clairvoyant(NamedTuple):
    """Knows z, the payload and the plant, and inverts it over one control interval, as one implicit step.

    The feed-forward brings the velocity to dq_d + approach * e at the end of the interval, as far as the box allows.
    Where torques are delayed it first runs the plant through those still pending. It cancels the feedback on noisy
    measurements as well; with noise it need not be the best that can be done.
    """

    gains: Gains
    approach: Array

    def start(self, params: Params, sight: Sight) -> None:
        return None

    def act(self, params: Params, memory: None, sight: Sight) -> tuple[Gains, None]:
        plant, truth = params.plant, sight.truth
        robot, friction, dt = plant.robot, plant.friction, plant.dt
        now = truth.time + len(truth.pending)
        q, dq, z = jax.lax.scan(
            lambda state, torque: (control_step(plant, state, torque, truth.payload, substeps=1), None),
            truth.plant,
            truth.pending,
        )[0]
        e = params.reference.at(now * dt).q - q
        v = params.reference.at((now + 1) * dt).dq + self.approach * e
        mass = robot.mass(q, truth.payload)
        a, b = friction.memory_over(dt)
        needed = (
            mass_times(mass, v - dq) / dt
            + robot.coriolis(q, dq, truth.payload)
            + robot.gravity(q, truth.payload)
            + a * z
            + (friction.viscous + b) * v
            + jnp.sign(v) * friction.dry_level(dq)
        )
        without = self.gains._replace(eta=jnp.zeros_like(self.gains.eta))
        unlimited = params.law._replace(torque_limit=jnp.full_like(q, jnp.inf))
        feedback = computed_torque(unlimited, sight.target, sight.q, sight.dq, without, sight.phi)
        return self.gains._replace(eta=allocate(params, sight.phi, needed - feedback)), None


def allocate(params: Params, phi: Array, torque: Array) -> Array:
    """The smallest eta with Phi eta = torque, cut to the box."""
    strength = jnp.sum(phi**2, 0)
    eta = phi * torque / jnp.where(strength > 0, strength, 1)
    return jnp.clip(eta, params.law.box.lower.eta, params.law.box.upper.eta)


def _saturated(params: Params, eta: Array) -> Array:
    """Which joints have a feed-forward weight at its bound."""
    return jnp.any(jnp.abs(eta) >= params.law.box.upper.eta, axis=0)
