"""The plant: an Euler-Lagrange system whose friction has memory, eqs. (1)-(4) of the paper.

Pure functions of one state; ``jax.vmap`` makes many. A record such as :class:`Plant` is a pytree of arrays, so its
numbers may differ from run to run in one batch, and its dtype decides the precision.

The integrator is implicit Euler in the velocity. Dry friction is a set-valued force, so its sign is part of the
solution: a joint sticks exactly, and nothing chatters at a 10 ms control interval; only its size is taken at the old
velocity. Viscous friction and the memory that builds up within the substep are taken at the new velocity too, which
makes the friction dissipative at any step size.
"""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import REFERENCES, BenchConfig

_SWEEPS = 50
"""Gauss-Seidel sweeps that sort the joints of a coupled robot into sticking and sliding ones."""


class Robot(Protocol):
    """The rigid-body terms of eq. (1). A real robot is plugged in by writing these three functions."""

    def mass(self, q: Array, payload: Array) -> Array:
        """M(q): the matrix (n, n), or its diagonal (n,) where the joints are decoupled."""

    def coriolis(self, q: Array, dq: Array, payload: Array) -> Array:
        """C(q, dq) dq, shape (n,)."""

    def gravity(self, q: Array, payload: Array) -> Array:
        """G(q), shape (n,)."""


class DecoupledArm(NamedTuple):
    """Diagonal mass matrix, gravity compensated, any number of joints: with two, the paper's planar arm."""

    inertia: Array
    payload_inertia: Array

    def mass(self, q: Array, payload: Array) -> Array:
        return self.inertia + payload * self.payload_inertia

    def coriolis(self, q: Array, dq: Array, payload: Array) -> Array:
        return jnp.zeros_like(dq)

    def gravity(self, q: Array, payload: Array) -> Array:
        return jnp.zeros_like(q)


class Friction(NamedTuple):
    """F = sign(dq) dry_level(dq) + sigma dq + z, eq. (3), and dz/dt = -z/tau_z + lambda_z dq, eq. (4)."""

    coulomb: Array
    breakaway: Array
    stribeck_velocity: Array
    viscous: Array
    memory_gain: Array
    tau_z: Array

    def dry_level(self, dq: Array) -> Array:
        """F_c + (F_s - F_c) exp(-(dq/v_s)^2): the size of the dry part, F_s at rest and F_c when sliding fast."""
        return self.coulomb + (self.breakaway - self.coulomb) * jnp.exp(-((dq / self.stribeck_velocity) ** 2))

    def memory_over(self, h: Array) -> tuple[Array, Array]:
        """(a, b) such that z(t+h) = a z(t) + b dq solves eq. (4) exactly while dq is constant."""
        a = jnp.exp(-h / self.tau_z)
        b = -self.memory_gain * self.tau_z * jnp.expm1(-h / self.tau_z)
        return a, b


class Plant(NamedTuple):
    """Everything eq. (1) needs besides the state."""

    robot: Robot
    friction: Friction
    dt: Array


class PlantState(NamedTuple):
    """Joint positions, joint velocities and the memory that no sensor sees."""

    q: Array
    dq: Array
    z: Array


def substep(plant: Plant, state: PlantState, torque: Array, payload: Array, h: Array) -> PlantState:
    """Advance eq. (1) by h under a constant torque."""
    q, dq, z = state
    robot, friction = plant.robot, plant.friction
    mass = robot.mass(q, payload)
    a, b = friction.memory_over(h)
    # M (v - dq) = h (torque - C - G - a z - (sigma + b) v - dry), with v the new velocity: what multiplies v acts
    # like additional mass.
    momentum = mass_times(mass, dq) + h * (torque - robot.coriolis(q, dq, payload) - robot.gravity(q, payload) - a * z)
    v = _stick_or_slip(_plus_diagonal(mass, h * (friction.viscous + b)), momentum, h * friction.dry_level(dq))
    return PlantState(q + h * v, v, a * z + b * v)


def control_step(plant: Plant, state: PlantState, torque: Array, payload: Array, substeps: int) -> PlantState:
    """Hold the torque for one control interval."""
    h = plant.dt / substeps

    def one(_: int, state: PlantState) -> PlantState:
        return substep(plant, state, torque, payload, h)

    after: PlantState = jax.lax.fori_loop(0, substeps, one, state, unroll=min(substeps, 4))
    return after


def _stick_or_slip(mass: Array, momentum: Array, level: Array) -> Array:
    """The velocity v that solves mass v + level sign(v) = momentum, where sign(0) is any value in [-1, 1]."""

    def one_joint(mass: Array, momentum: Array, level: Array) -> Array:
        return jnp.sign(momentum) * jnp.maximum(jnp.abs(momentum) - level, 0.0) / mass

    if mass.ndim == 1:
        return one_joint(mass, momentum, level)

    # Coupled joints: v minimises 1/2 v'Mv - momentum'v + sum level |v|, strictly convex, so Gauss-Seidel finds which
    # joints stick and which way the others slide; what then remains is a linear system.
    def sweep(_: int, v: Array) -> Array:
        for i in range(v.shape[0]):
            others = momentum[i] - mass[i] @ v + mass[i, i] * v[i]
            v = v.at[i].set(one_joint(mass[i, i], others, level[i]))
        return v

    rough = jax.lax.fori_loop(0, _SWEEPS, sweep, jnp.linalg.solve(mass, momentum))
    slides = rough != 0
    system = jnp.where(slides[:, None] & slides[None, :], mass, jnp.eye(len(rough), dtype=mass.dtype))
    exact = jnp.linalg.solve(system, jnp.where(slides, momentum - level * jnp.sign(rough), 0))
    return jnp.where(jnp.all(jnp.sign(exact) == jnp.sign(rough)), exact, rough)


def mass_times(mass: Array, vector: Array) -> Array:
    """M v, whether the mass matrix is given whole or by its diagonal."""
    return mass * vector if mass.ndim == 1 else mass @ vector


def _plus_diagonal(mass: Array, diagonal: Array) -> Array:
    return mass + diagonal if mass.ndim == 1 else mass + jnp.diag(diagonal)


class Target(NamedTuple):
    """The reference at one instant."""

    q: Array
    dq: Array
    ddq: Array


class Reference(NamedTuple):
    """q_d(t): for each joint a sum of sines; every array has shape (joints, sines)."""

    amplitude: Array
    omega: Array
    phase: Array

    def at(self, time: Array) -> Target:
        angle = self.omega * time + self.phase
        sine, cosine = self.amplitude * jnp.sin(angle), self.amplitude * jnp.cos(angle)
        return Target(
            q=sine.sum(-1),
            dq=(self.omega * cosine).sum(-1),
            ddq=-(self.omega**2 * sine).sum(-1),
        )


def make_plant(config: BenchConfig, dtype: jnp.dtype = jnp.float32) -> Plant:
    """The paper's plant with the numbers of a configuration."""

    def array(value: float | tuple[float, ...]) -> Array:
        return jnp.asarray(value, dtype)

    return Plant(
        robot=DecoupledArm(array(config.inertia), array(config.payload_inertia)),
        friction=Friction(
            coulomb=array(config.coulomb),
            breakaway=array(config.breakaway),
            stribeck_velocity=array(config.stribeck_velocity),
            viscous=array(config.viscous),
            memory_gain=array(config.memory_gain),
            tau_z=array(config.tau_z),
        ),
        dt=array(config.dt),
    )


def make_reference(config: BenchConfig, dtype: jnp.dtype = jnp.float32) -> Reference:
    """The reference that the configuration names; an arm with more than two joints repeats the first two."""
    sines = REFERENCES[config.reference]
    joints = [sines[joint % len(sines)] for joint in range(config.dof)]
    amplitude, omega, phase = jnp.moveaxis(jnp.asarray(joints, dtype), -1, 0)
    return Reference(amplitude, omega, phase)
