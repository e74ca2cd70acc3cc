"""The plant: an Euler-Lagrange system whose friction has memory, eqs. (1)-(4) of the paper.

Pure functions of one state; ``jax.vmap`` makes many. A record such as :class:`Plant` is a pytree of arrays, so its
numbers may differ from run to run in one batch, and its dtype decides the precision.

The integrator is implicit Euler in the velocity. Dry friction is a set-valued force, so its sign is part of the
solution: a joint sticks exactly, and nothing chatters at a 10 ms control interval; only its size is taken at the old
velocity. Viscous friction and the memory that builds up within the substep are taken at the new velocity too, which
makes the friction dissipative at any step size.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.arm.friction import Friction, make_friction
from incrt.arm.robots import Robot, make_robot
from incrt.config import TaskConfig
from incrt.config.registry import as_array

_SWEEPS = 50
"""Gauss-Seidel sweeps that sort the joints of a coupled robot into sticking and sliding ones."""


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
    mass, bias = plant.robot.mass_and_bias(q, dq, payload)
    terms = plant.friction.terms(dq, z, h)
    # M (v - dq) = h (torque - bias - offset - damping v - dry), with v the new velocity: what multiplies v acts like
    # additional mass.
    momentum = mass_times(mass, dq) + h * (torque - bias - terms.offset)
    v = _stick_or_slip(_plus_diagonal(mass, h * terms.damping), momentum, h * terms.dry)
    return PlantState(q + h * v, v, terms.keep * z + terms.feed * v)


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


def make_plant(config: TaskConfig, dtype: Any = jnp.float32) -> Plant:
    """The plant of a configuration."""
    return Plant(make_robot("robot", config, dtype), make_friction(config, dtype), as_array(config.dt, dtype))
