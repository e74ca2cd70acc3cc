"""Robots that somebody else might plug in."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Coupled(NamedTuple):
    """A constant full mass matrix."""

    matrix: Array

    @property
    def dof(self) -> int:
        return self.matrix.shape[-1]

    @property
    def home(self) -> Array:
        return jnp.zeros(self.dof)

    @property
    def torque_limit(self) -> Array:
        return jnp.full(self.dof, jnp.inf)

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        return self.matrix * (1 + payload), jnp.zeros_like(dq)


class Pendulum(NamedTuple):
    """The textbook planar arm of two point masses under gravity, coupled and nonlinear."""

    gravity_constant: Array

    @property
    def dof(self) -> int:
        return 2

    @property
    def home(self) -> Array:
        return jnp.zeros(2)

    @property
    def torque_limit(self) -> Array:
        return jnp.full(2, jnp.inf)

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        m, c, s = 1 + payload, jnp.cos(q[1]), jnp.sin(q[1])
        mass = jnp.array([[1 + 2 * m + 2 * m * c, m + m * c], [m + m * c, m]])
        coriolis = jnp.array([-m * s * (2 * dq[0] * dq[1] + dq[1] ** 2), m * s * dq[0] ** 2])
        both = m * self.gravity_constant * jnp.sin(q[0] + q[1])
        gravity = jnp.array([(1 + m) * self.gravity_constant * jnp.sin(q[0]) + both, both])
        return mass, coriolis + gravity
