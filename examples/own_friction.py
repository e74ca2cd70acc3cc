"""A friction of one's own: the LuGre model, whose bristles bend before a joint slides, on the paper's arm.

A friction is a record of arrays with ``start`` and ``terms`` (incrt.arm.friction.Friction). On the command line it is
``incrt baselines --friction examples/own_friction.py:LUGRE``. Run with ``python examples/own_friction.py``.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

import incrt
from incrt.arm.friction import FrictionTerms


class LuGre(NamedTuple):
    """Torque sigma_0 z + sigma_1 dz/dt + sigma_2 v of bristles bent by z, with dz/dt = v - sigma_0 |v|/g(v) z."""

    stiffness: Array
    damping: Array
    viscous: Array
    coulomb: Array
    breakaway: Array
    stribeck_velocity: Array

    def start(self, dof: int) -> Array:
        """Bristles that are not bent."""
        return jnp.zeros(dof)

    def terms(self, dq: Array, z: Array, h: Array) -> FrictionTerms:
        """At the old velocity the bristles fade at a known rate, so they are integrated exactly for the new one."""
        level = self.coulomb + (self.breakaway - self.coulomb) * jnp.exp(-((dq / self.stribeck_velocity) ** 2))
        rate = self.stiffness * jnp.abs(dq) / level
        keep = jnp.exp(-rate * h)
        feed = jnp.where(rate * h > 1e-6, -jnp.expm1(-rate * h) / jnp.maximum(rate, 1e-9), h)
        bend = self.stiffness - self.damping * rate  # sigma_1 dz/dt is sigma_1 v less sigma_1 rate z
        return FrictionTerms(
            dry=jnp.zeros_like(dq),
            damping=bend * feed + self.damping + self.viscous,
            offset=bend * keep * z,
            keep=keep,
            feed=feed,
        )


LUGRE = LuGre(*jnp.array([[900.0, 700.0], [20.0, 15.0], [3.1, 2.1], [12.4, 8.3], [18.6, 12.4], [0.1, 0.1]]))


def main(names: tuple[str, ...] = ("baseline", "observer", "clairvoyant"), **changes: Any) -> None:
    """How the reference controllers do, tuned on this friction; half of them know nothing of bristles."""
    task = incrt.preset("memory", task={"friction": LUGRE, "substeps": 10, **changes}).task
    for name in names:
        metrics, _ = incrt.evaluate(task, incrt.reference_controller(name, task))
        print(f"{name:12s} RMSE {metrics.rmse:.4f} rad, largest error {metrics.max_error:.3f} rad")


if __name__ == "__main__":
    main()
