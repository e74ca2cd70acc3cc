"""Friction of the joints, with a hidden state that no sensor sees: eqs. (3) and (4) of the paper.

The plant is integrated implicitly (:mod:`incrt.arm.plant`), so a friction does not give a torque. It gives the terms of
which the torque over a step, and the hidden state after it, are made once the velocity at its end is known.
"""

from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.config import FRICTIONS, TaskConfig
from incrt.config.registry import as_array, as_arrays, refusing, try_compiling


class FrictionTerms(NamedTuple):
    """What a step comes to at whose end the joints have the velocity v; every array has shape (n,).

    The torque against a joint is sign(v) dry + damping v + offset; where the rest cannot overcome ``dry``, the joint
    sticks: v is exactly zero. The hidden state is keep z + feed v afterwards.
    """

    dry: Array
    damping: Array
    offset: Array
    keep: Array
    feed: Array


class Friction(Protocol):
    """What the joints lose. Like a robot it is a pytree of arrays."""

    def start(self, dof: int) -> Array:
        """The hidden state z at the start of an episode, shape (n,)."""

    def terms(self, dq: Array, z: Array, h: Array) -> FrictionTerms:
        """The terms for a step of length h that starts at velocity dq with the hidden state z."""


class Stribeck(NamedTuple):
    """F = sign(dq) dry_level(dq) + sigma dq + z, eq. (3), and dz/dt = -z/tau_z + lambda_z dq, eq. (4)."""

    coulomb: Array
    breakaway: Array
    stribeck_velocity: Array
    viscous: Array
    memory_gain: Array
    tau_z: Array

    def start(self, dof: int) -> Array:
        return jnp.zeros(dof, self.tau_z.dtype)

    def terms(self, dq: Array, z: Array, h: Array) -> FrictionTerms:
        # z(t+h) = a z(t) + b v solves eq. (4) exactly while v is constant.
        a = jnp.exp(-h / self.tau_z)
        b = -self.memory_gain * self.tau_z * jnp.expm1(-h / self.tau_z)
        return FrictionTerms(
            dry=self.dry_level(dq),
            damping=self.viscous + b,
            offset=a * z,
            keep=jnp.broadcast_to(a, z.shape),
            feed=b,
        )

    def dry_level(self, dq: Array) -> Array:
        """F_c + (F_s - F_c) exp(-(dq/v_s)^2): the size of the dry part, F_s at rest and F_c when sliding fast."""
        return self.coulomb + (self.breakaway - self.coulomb) * jnp.exp(-((dq / self.stribeck_velocity) ** 2))


@FRICTIONS.register("stribeck")
def stribeck(config: TaskConfig, dtype: Any) -> Stribeck:
    """The paper's friction, with the numbers of a configuration."""
    return Stribeck(*(as_array(getattr(config, name), dtype) for name in Stribeck._fields))


def make_friction(config: TaskConfig, dtype: Any = jnp.float32) -> Friction:
    """The friction of a configuration, in the given precision; one that gives other shapes is refused."""
    value, n = config.friction, config.dof
    if isinstance(value, str) and value in FRICTIONS:
        made: Friction = FRICTIONS[value](config, dtype)
        return made
    friction: Friction = as_arrays("friction", FRICTIONS.find("friction", value), dtype)
    with refusing("friction"):
        z, h, still = friction.start(n), jnp.asarray(config.dt, dtype), jnp.zeros(n, dtype)
        try_compiling("friction", friction.terms, still, z, h)
        terms = friction.terms(still, z, h)
        if not isinstance(terms, FrictionTerms):
            raise ValueError(f"terms of the friction must give FrictionTerms, got {terms!r}")
        kinds = {name: jnp.result_type(array, dtype) for name, array in terms._asdict().items()}
        kinds["start"] = jnp.result_type(z)  # z goes from step to step as it is; the terms meet numbers of the task
    for name, array in {"start": z, **terms._asdict()}.items():
        if np.shape(array) != (n,):
            raise ValueError(
                f"the friction must give arrays of shape ({n},), one entry a joint; {name} has {np.shape(array)}"
            )
        if kinds[name] != dtype:
            wanted = f"numbers of type {np.dtype(dtype)}, as jnp.zeros(dof) has them"
            raise ValueError(f"the friction must give {wanted}; {name} has {kinds[name]}")
        if not np.all(np.isfinite(array)) or (name in {"dry", "damping"} and np.any(np.asarray(array) < 0)):
            wanted = "numbers >= 0" if name in {"dry", "damping"} else "finite numbers"
            raise ValueError(f"the friction must give {wanted} for {name}, got {array} at rest")
    return friction
