"""Robots: the rigid-body terms of eq. (1), M(q) ddq + C(q, dq) dq + G(q) = torque - friction.

A robot of one's own is a record of arrays, a NamedTuple for example, with the members of :class:`Robot`. It is given to
a task as an object or as a reference ``my_arm.py:NAME``; :func:`make_robot` checks it before anything is built on it.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.config import ROBOTS, TaskConfig
from incrt.config.registry import as_array, as_arrays, refusing, try_compiling
from incrt.config.rules import COUNT


class Robot(Protocol):
    """A serial arm of n joints. Its numbers are a pytree of arrays, so a batch of robots is one more ``vmap``.

    It may also have ``home``, a posture of shape (n,) at which its mass matrix is checked, zero if it has none; and
    ``torque_limit`` [N m], shape (n,), unlimited if it has none.
    """

    @property
    def dof(self) -> int:
        """n: number of joints."""

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        """M(q) and C(q, dq) dq + G(q), with a payload [kg] at the tool.

        M is the matrix (n, n), or its diagonal (n,) where the joints are decoupled; the second has shape (n,).
        """


class DecoupledArm(NamedTuple):
    """Diagonal mass matrix, gravity compensated, any number of joints: with two, the paper's planar arm."""

    inertia: Array
    payload_inertia: Array

    @property
    def dof(self) -> int:
        return self.inertia.shape[-1]

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        return self.inertia + payload * self.payload_inertia, jnp.zeros_like(dq)


@ROBOTS.register("two_link")
def two_link(config: TaskConfig, dtype: Any) -> DecoupledArm:
    """The paper's arm, with the inertias of a configuration."""
    return DecoupledArm(as_array(config.inertia, dtype), as_array(config.payload_inertia, dtype))


def home_of(robot: Robot, dtype: Any) -> Array:
    """The posture at which a robot is checked."""
    return as_array(getattr(robot, "home", np.zeros(robot.dof)), dtype)


def torque_limit_of(robot: Robot, dtype: Any) -> Array:
    """Largest torque of each joint."""
    return as_array(getattr(robot, "torque_limit", np.full(robot.dof, np.inf)), dtype)


def make_robot(field: str, config: TaskConfig, dtype: Any = jnp.float32) -> Robot:
    """The robot that a field of a configuration stands for, in the given precision; one that cannot be is refused."""
    value = getattr(config, field)
    is_named = isinstance(value, str) and value in ROBOTS
    robot: Robot = ROBOTS[value](config, dtype) if is_named else as_arrays(field, ROBOTS.find(field, value), dtype)
    with refusing(field):
        _check(field, robot, config, dtype)
    return robot


def check_along(field: str, robot: Robot, postures: Array, payload: Array) -> None:
    """Refuse a robot that is not a number in one of these postures, shape (postures, n)."""
    with refusing(field):
        found = _masses_and_biases(robot, postures, payload)
    for name, arrays in zip(("mass matrix", "bias"), map(np.asarray, found), strict=True):
        finite = np.isfinite(arrays).reshape(len(postures), -1).all(-1)
        if not finite.all():
            at = int(np.argmin(finite))
            where = f"q = {np.round(postures[at], 4).tolist()} rad, at home or along the trajectory"
            raise ValueError(f"the {field} must give finite numbers; at {where}, its {name} is {arrays[at].tolist()}")


@jax.jit
def _masses_and_biases(robot: Robot, postures: Array, payload: Array) -> tuple[Array, Array]:
    """Of an arm at rest in each of these postures."""
    return jax.vmap(lambda q: robot.mass_and_bias(q, jnp.zeros_like(q), payload))(postures)


def _check(field: str, robot: Robot, config: TaskConfig, dtype: Any) -> None:
    """Refuse a robot that has other joints than the task, or a mass matrix that no body has."""
    if COUNT(f"dof of the {field}", getattr(robot, "dof", None)) != config.dof:
        raise ValueError(f"{field} has {robot.dof} joints, but eta_max has {config.dof} entries, one a joint")
    n = robot.dof
    home = home_of(robot, dtype)
    for name, shape in {"home": home.shape, "torque_limit": torque_limit_of(robot, dtype).shape}.items():
        if shape != (n,):
            raise ValueError(f"{name} of the {field} must have shape ({n},), got {shape}")
    limit = torque_limit_of(robot, dtype)
    if not np.all(np.asarray(limit) > 0):
        raise ValueError(f"torque_limit of the {field} must hold numbers > 0, got {limit}")
    still = as_array(np.zeros(n), dtype)
    try_compiling(field, robot.mass_and_bias, home, still, as_array(0, dtype))
    for payload in config.payload_range:
        found = robot.mass_and_bias(home, still, as_array(payload, dtype))
        is_pair = isinstance(found, tuple) and len(found) == 2  # an array of two rows could be unpacked as well
        if not is_pair or not all(isinstance(each, Array | np.ndarray) for each in found):
            raise ValueError(f"mass_and_bias of the {field} must give a pair of arrays, M and bias; got {found!r}")
        mass, bias = found
        if np.shape(mass) not in {(n,), (n, n)} or np.shape(bias) != (n,):
            wanted = f"a mass matrix of shape ({n}, {n}) or ({n},) and a bias of shape ({n},)"
            raise ValueError(f"mass_and_bias of the {field} must give {wanted}, got {np.shape(mass)}, {np.shape(bias)}")
        whole = np.diag(mass) if np.ndim(mass) == 1 else np.asarray(mass)
        is_symmetric = bool(np.all(np.isfinite(whole))) and np.allclose(whole, whole.T, rtol=1e-4, atol=1e-6)
        if not is_symmetric or np.linalg.eigvalsh(whole).min() <= 0:
            raise ValueError(
                f"the mass matrix of the {field} must be symmetric and positive definite; at home with a payload of "
                f"{payload:g} kg it is {np.round(whole, 4).tolist()}"
            )
        if not np.all(np.isfinite(bias)):
            raise ValueError(f"mass_and_bias of the {field} must give finite numbers, got {bias} for the bias at home")
