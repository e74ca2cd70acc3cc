"""The control law: computed torque with scheduled gains, and the box P that they live in."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.arm.plant import mass_times
from incrt.arm.robots import Robot, make_robot, torque_limit_of
from incrt.arm.trajectories import Target
from incrt.config import TaskConfig
from incrt.config.registry import as_array


class Gains(NamedTuple):
    """theta_ctrl = (K_d, Lambda, eta), each of shape (n,). The paper's feature matrix Phi is the identity."""

    k_d: Array
    lam: Array
    eta: Array

    def in_rows(self) -> "Gains":
        """The same with eta as a matrix of one row, one a feature of Phi.

        Law and shield compute with that: the compiler then fuses, and so rounds, as it has since the first version,
        and results of earlier runs can be made again to the bit.
        """
        return self._replace(eta=self.eta[None])


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


class Law(NamedTuple):
    """What the computed-torque law believes and may do."""

    model: Robot
    payload: Array
    box: Box
    tanh_velocity: Array
    """v0 of controllers that feed a friction model forward."""
    torque_limit: Array

    def in_rows(self) -> "Law":
        """The law for :meth:`Gains.in_rows`."""
        return self._replace(box=Box(self.box.lower.in_rows(), self.box.upper.in_rows()))

    def mass(self, q: Array) -> Array:
        """M_hat: the mass matrix at the payload the law believes in."""
        return self.model.mass_and_bias(q, jnp.zeros_like(q), self.payload)[0]


class TrackingError(NamedTuple):
    """e = q_d - q, its derivative, and the sliding variable s = de + Lambda e."""

    e: Array
    de: Array
    s: Array


def tracking_error(target: Target, q: Array, dq: Array, lam: Array) -> TrackingError:
    """The tracking error of a state."""
    e, de = target.q - q, target.dq - dq
    return TrackingError(e, de, de + lam * e)


def computed_torque(law: Law, target: Target, q: Array, dq: Array, gains: Gains) -> Array:
    """tau = M_hat (ddq_d + Lambda de) + C_hat dq + G_hat + K_d (de + Lambda e) + eta, eq. (7), in its limits."""
    error = tracking_error(target, q, dq, gains.lam)
    mass, bias = law.model.mass_and_bias(q, dq, law.payload)
    feed_forward = jnp.atleast_2d(gains.eta).sum(0)
    torque = mass_times(mass, target.ddq + gains.lam * error.de) + bias + gains.k_d * error.s + feed_forward
    return jnp.clip(torque, -law.torque_limit, law.torque_limit)


def make_law(config: TaskConfig, robot: Robot, dtype: Any = jnp.float32) -> Law:
    """The law with the numbers of a configuration, for this robot."""

    def corner(side: int) -> Gains:
        k_d, lam = ([pair[side] for pair in config.by_joint(name)] for name in ("k_d_range", "lam_range"))
        eta = np.asarray(config.eta_max)
        return Gains(*(as_array(each, dtype) for each in (k_d, lam, -eta if side == 0 else eta)))

    limit = config.torque_limit
    return Law(
        model=robot if config.model is None else make_robot("model", config, dtype),
        payload=as_array(config.payload_nominal, dtype),
        box=Box(corner(0), corner(1)),
        tanh_velocity=as_array(config.tanh_velocity, dtype),
        torque_limit=torque_limit_of(robot, dtype) if limit is None else as_array(limit, dtype),
    )
