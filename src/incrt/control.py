"""The control law: computed torque with scheduled gains, the box P they live in, and the squashing into it."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import BenchConfig
from incrt.plant import Robot, Target, make_plant, mass_times


class Gains(NamedTuple):
    """theta_ctrl = (K_d, Lambda, eta). K_d and Lambda have shape (n,), eta (blocks, n): one row a feature of Phi."""

    k_d: Array
    lam: Array
    eta: Array


class Box(NamedTuple):
    """P: the compact box of gains (section 3.3)."""

    lower: Gains
    upper: Gains

    def from_unit(self, action: Array) -> Gains:
        """The gains at a point of [-1, 1]^dim; the order is K_d, Lambda, eta."""
        n = self.lower.k_d.shape[-1]
        parts = Gains(action[:n], action[n : 2 * n], action[2 * n :].reshape(self.lower.eta.shape))
        gains: Gains = jax.tree.map(
            lambda low, high, x: low + 0.5 * (x + 1) * (high - low), self.lower, self.upper, parts
        )
        return gains

    def to_unit(self, gains: Gains) -> Array:
        """Inverse of :meth:`from_unit`; an edge of no width maps to its middle."""

        def position(low: Array, high: Array, x: Array) -> Array:
            width = high - low
            return jnp.where(width > 0, 2 * (x - low) / jnp.where(width > 0, width, 1) - 1, 0).ravel()

        return jnp.concatenate(jax.tree.leaves(jax.tree.map(position, self.lower, self.upper, gains)))

    def clip(self, gains: Gains) -> Gains:
        """The nearest gains inside the box."""
        inside: Gains = jax.tree.map(jnp.clip, gains, self.lower, self.upper)
        return inside


def squash(box: Box, raw: Array) -> Gains:
    """The output mapping, eqs. (15)-(17): sigmoid for K_d and Lambda, tanh for eta.

    An actor that ends in tanh does the same: sigmoid(a) = (tanh(a/2) + 1)/2, so this is ``box.from_unit`` of tanh with
    the first two parts of ``raw`` halved.
    """
    n = box.lower.k_d.shape[-1]
    return box.from_unit(jnp.concatenate([jnp.tanh(raw[: 2 * n] / 2), jnp.tanh(raw[2 * n :])]))


class Law(NamedTuple):
    """What the computed-torque law believes and may do."""

    model: Robot
    payload: Array
    box: Box
    tanh_velocity: Array
    torque_limit: Array

    def mass(self, q: Array) -> Array:
        """M_hat: the mass matrix at the payload the law believes in."""
        return self.model.mass(q, self.payload)


def features(name: str, law: Law, dq: Array) -> Array:
    """Phi, one row of joint-wise factors for each feature, shape (blocks, n)."""
    if name == "identity":
        return jnp.ones_like(dq)[None]
    return jnp.stack([jnp.tanh(dq / law.tanh_velocity), dq])


def feed_forward(phi: Array, eta: Array) -> Array:
    """phi_ff = Phi eta."""
    return (phi * eta).sum(0)


class TrackingError(NamedTuple):
    """e = q_d - q, its derivative, and the sliding variable s = de + Lambda e."""

    e: Array
    de: Array
    s: Array


def tracking_error(target: Target, q: Array, dq: Array, lam: Array) -> TrackingError:
    """The tracking error of a state."""
    e, de = target.q - q, target.dq - dq
    return TrackingError(e, de, de + lam * e)


def computed_torque(law: Law, target: Target, q: Array, dq: Array, gains: Gains, phi: Array) -> Array:
    """tau = M_hat (ddq_d + Lambda de) + C_hat dq + G_hat + K_d (de + Lambda e) + Phi eta, eq. (7), in its limits."""
    error = tracking_error(target, q, dq, gains.lam)
    torque = (
        mass_times(law.mass(q), target.ddq + gains.lam * error.de)
        + law.model.coriolis(q, dq, law.payload)
        + law.model.gravity(q, law.payload)
        + gains.k_d * error.s
        + feed_forward(phi, gains.eta)
    )
    return jnp.clip(torque, -law.torque_limit, law.torque_limit)


def make_law(config: BenchConfig, dtype: jnp.dtype = jnp.float32) -> Law:
    """The law with the numbers of a configuration."""
    n, blocks = config.dof, config.feature_blocks

    def corner(side: int) -> Gains:
        sign = -1 if side == 0 else 1
        return Gains(
            k_d=jnp.full(n, config.k_d_range[side], dtype),
            lam=jnp.full(n, config.lam_range[side], dtype),
            eta=sign * jnp.tile(jnp.asarray(config.eta_max, dtype), (blocks, 1)),
        )

    limit = config.torque_limit if config.torque_limit is not None else (math.inf,) * n
    return Law(
        model=make_plant(config, dtype).robot,
        payload=jnp.asarray(config.payload_nominal, dtype),
        box=Box(corner(0), corner(1)),
        tanh_velocity=jnp.asarray(config.tanh_velocity, dtype),
        torque_limit=jnp.asarray(limit, dtype),
    )
