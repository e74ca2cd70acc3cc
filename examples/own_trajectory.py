"""Trajectories of one's own: one from a CSV file, and a family of which every episode draws another member.

A trajectory is a record of arrays with ``draw`` and ``at`` (incrt.arm.trajectories.Trajectory). A CSV file needs no
code: ``incrt baselines --trajectory motion.csv``. Run with ``python examples/own_trajectory.py``.
"""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

import incrt
from incrt.arm.trajectories import Target

POINTS = "t,q1,q2\n0,0,0\n1.5,0.6,-0.2\n2.5,0.6,-0.2\n4,-0.3,0.4\n5,0,0\n"


class RandomSines(NamedTuple):
    """q_d(t) = a sin(w t + phase) for each joint, with a, w and the phase drawn for each episode."""

    largest: Array
    """Amplitude of each joint [rad]."""
    slowest: Array
    fastest: Array

    def draw(self, key: Array) -> Any:
        """Amplitude, angular frequency and phase of each joint."""
        size, speed, phase = jax.random.uniform(key, (3, *self.largest.shape))
        omega = self.slowest + speed * (self.fastest - self.slowest)
        return self.largest * (0.5 + 0.5 * size), omega, 2 * jnp.pi * phase

    def at(self, drawn: Any, time: Array) -> Target:
        """Position, velocity and acceleration."""
        amplitude, omega, phase = drawn
        angle = omega * time + phase
        sine, cosine = amplitude * jnp.sin(angle), amplitude * jnp.cos(angle)
        return Target(sine, omega * cosine, -(omega**2) * sine)


def main(names: tuple[str, ...] = ("baseline", "open_loop", "observer"), **changes: Any) -> None:
    """The open loop, which plays the mean of what was needed, is lost where every episode is another one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "motion.csv"
        path.write_text(POINTS)
        family = RandomSines(jnp.array([0.5, 0.3]), jnp.array([0.5, 0.8]), jnp.array([1.5, 2.0]))
        for title, trajectory in {"CSV file": str(path), "random family": family}.items():
            task = incrt.preset("memory", task={"trajectory": trajectory, **changes}).task
            for name in names:
                metrics, _ = incrt.evaluate(task, incrt.reference_controller(name, task))
                print(f"{title}: {name:10s} RMSE {metrics.rmse:.4f} rad")


if __name__ == "__main__":
    main()
