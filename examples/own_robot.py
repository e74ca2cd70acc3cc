"""A robot of one's own, with three joints and a full mass matrix: tuned controllers, a short training, a figure.

It is a pytree of arrays with the members of incrt.arm.robots.Robot; the law's model of it is a tenth too light.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

import incrt
from incrt.report.figures import tracking_figure


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ThreeLink:
    """Masses at the ends of three links that move in a horizontal plane, and the inertia of the drives' rotors."""

    length: Array
    mass: Array
    rotor: Array
    dof: ClassVar[int] = 3

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        """M(q) = sum_i m_i J_i' J_i + rotors, and its Coriolis terms by differentiating the kinetic energy."""

        def inertia(q: Array) -> Array:
            turn = jnp.tri(3)  # the angle of a link is the sum of all joints before it
            j = jax.jacfwd(lambda q: turn @ (self.length * jnp.array([jnp.cos(turn @ q), jnp.sin(turn @ q)])).T)(q)
            return jnp.einsum("l,lxi,lxj->ij", self.mass.at[-1].add(payload), j, j) + jnp.diag(self.rotor)

        matrix, rate = jax.jvp(inertia, (q,), (dq,))
        return matrix, rate @ dq - 0.5 * jax.grad(lambda q: dq @ inertia(q) @ dq)(q)


ARM = ThreeLink(*jnp.array([[0.5, 0.4, 0.3], [2.0, 1.5, 0.5], [0.8, 0.6, 0.5]]))
JOINTS = {"coulomb": (12, 8, 4), "breakaway": (18, 12, 6), "viscous": (3, 2, 1), "memory_gain": (24, 20, 10)}
LAW: Any = {"eta_max": (30, 25, 15), "k_d_range": ((20, 40), (15, 35), (10, 30)), "baseline_k_d": (30, 25, 20)}


def main(folder: Path, steps: int = 3000, names: tuple[str, ...] = ("baseline", "observer"), **changes: Any) -> None:
    """Train one run, tune the reference controllers, evaluate all on the arm, and draw how they track."""
    arms, shield = {"robot": ARM, "model": replace(ARM, mass=0.9 * ARM.mass)}, {"shield_friction": (33, 20, 12)}
    task = {**arms, **JOINTS, **LAW, **shield, "shield_slack": 90, **changes}
    config = incrt.preset("memory", task=task, sac={"steps": steps})
    incrt.train([incrt.make_job(folder / "run", config)], device="cpu")
    controllers: Any = {name: incrt.reference_controller(name, config.task) for name in names}
    drawn = {}
    for name, controller in {**controllers, "policy": incrt.load_policy(folder / "run")}.items():
        metrics, drawn[name] = incrt.evaluate(config.task, controller)
        print(f"{name:10s} RMSE {metrics.rmse:.4f} rad, largest error {metrics.max_error:.3f} rad")
    tracking_figure("three joints", drawn, folder / "tracking.png")


if __name__ == "__main__":
    main(Path("own_robot"))
