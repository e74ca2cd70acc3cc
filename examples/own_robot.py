"""A robot of one's own: a planar arm of three joints with a full mass matrix, from its tuned controllers to a policy.

The arm is a pytree of arrays with the members of incrt.arm.robots.Robot. The law believes in another one, whose masses
are a tenth too small. Run with ``python examples/own_robot.py FOLDER``; some minutes on two cores for 3 000 steps.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

import incrt
from incrt.report.figures import tracking_figure


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ThreeLink:
    """Point masses at the ends of three links that move in a horizontal plane, and the rotors of the drives."""

    length: Array
    mass: Array
    rotor: Array
    dof: ClassVar[int] = 3
    home: ClassVar[Array] = jnp.zeros(3)
    torque_limit: ClassVar[Array] = jnp.full(3, 150.0)

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        """M(q) = sum_i m_i J_i' J_i + rotors, and its Coriolis terms by differentiating the kinetic energy."""

        def inertia(q: Array) -> Array:
            jacobian = jax.jacfwd(self._ends)(q)
            return jnp.einsum("l,lxi,lxj->ij", self.mass.at[-1].add(payload), jacobian, jacobian) + jnp.diag(self.rotor)

        matrix, rate = jax.jvp(inertia, (q,), (dq,))
        return matrix, rate @ dq - 0.5 * jax.grad(lambda q: dq @ inertia(q) @ dq)(q)

    def _ends(self, q: Array) -> Array:
        angle = jnp.cumsum(q)
        return jnp.cumsum(self.length[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1), axis=0)


LENGTH, MASS, ROTOR = jnp.array([[0.5, 0.4, 0.3], [2.0, 1.5, 0.5], [0.8, 0.6, 0.5]])
FRICTION = {"coulomb": (12, 8, 4), "breakaway": (18, 12, 6), "viscous": (3, 2, 1), "memory_gain": (24, 20, 10)}
LAW = {"eta_max": (30, 25, 15), "k_d_range": ((20, 40), (15, 35), (10, 30)), "baseline_k_d": (30, 25, 20)}
LAW |= {"shield_friction": (33, 20, 12), "shield_slack": 60}
ARMS = {"robot": ThreeLink(LENGTH, MASS, ROTOR), "model": ThreeLink(LENGTH, 0.9 * MASS, ROTOR)}


def main(folder: Path, steps: int = 3000) -> None:
    """Train one run, tune the reference controllers, evaluate all on the arm, and draw how they track."""
    config = incrt.preset("memory", task={**ARMS, **FRICTION, **LAW}, sac={"steps": steps})
    incrt.train([incrt.make_job(folder / "run", config)], device="cpu")
    tuned = {name: incrt.reference_controller(name, config.task) for name in ("baseline", "observer")}
    drawn = {}
    for name, controller in {**tuned, "policy": incrt.load_policy(folder / "run")}.items():
        metrics, rollouts = incrt.evaluate(config.task, controller)
        drawn[name] = jax.tree.map(lambda recorded: recorded[0], rollouts)
        print(f"{name:10s} RMSE {metrics.rmse:.4f} rad, largest error {metrics.max_error:.3f} rad")
    tracking_figure("three joints", drawn, folder / "tracking.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "own_robot"))
