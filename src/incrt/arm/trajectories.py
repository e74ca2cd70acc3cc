"""Trajectories: where the joints are to be at each moment, and how fast and under which acceleration.

``draw`` is asked once an episode for what is random in it, and ``at`` for the target at a time, given what was drawn.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from incrt.config import TRAJECTORIES, TaskConfig
from incrt.config.registry import as_array, as_arrays, refusing, try_compiling


class Target(NamedTuple):
    """The trajectory at one instant: q_d, dq_d, ddq_d."""

    q: Array
    dq: Array
    ddq: Array


class Trajectory(Protocol):
    """What the arm is to follow. Like a robot it is a pytree of arrays, and so is what it draws for an episode."""

    def draw(self, key: Array) -> Any:
        """What differs from episode to episode; ``()`` where nothing does."""

    def at(self, drawn: Any, time: Array) -> Target:
        """The target at a time of the episode [s]; each of its arrays has shape (n,)."""


class Sines(NamedTuple):
    """q_d(t): for each joint a sum of sines; every array has shape (joints, sines)."""

    amplitude: Array
    omega: Array
    phase: Array

    def draw(self, key: Array) -> tuple[()]:
        return ()

    def at(self, drawn: tuple[()], time: Array) -> Target:
        angle = self.omega * time + self.phase
        sine, cosine = self.amplitude * jnp.sin(angle), self.amplitude * jnp.cos(angle)
        return Target(
            q=sine.sum(-1),
            dq=(self.omega * cosine).sum(-1),
            ddq=-(self.omega**2 * sine).sum(-1),
        )


class Spline(NamedTuple):
    """Cubic pieces between given points, and rest in the last one after it."""

    times: Array
    """Of the points, shape (points,)."""
    coefficients: Array
    """Of the powers 3, 2, 1, 0 of the time since a point, shape (4, pieces, joints)."""

    def draw(self, key: Array) -> tuple[()]:
        return ()

    def at(self, drawn: tuple[()], time: Array) -> Target:
        piece = jnp.clip(jnp.searchsorted(self.times, time, side="right") - 1, 0, self.coefficients.shape[1] - 1)
        is_over = time > self.times[-1]
        s = jnp.minimum(time, self.times[-1]) - self.times[piece]
        a, b, c, d = self.coefficients[:, piece]
        dq, ddq = (3 * a * s + 2 * b) * s + c, 6 * a * s + 2 * b
        return Target(((a * s + b) * s + c) * s + d, jnp.where(is_over, 0, dq), jnp.where(is_over, 0, ddq))


# For each joint: (amplitude [rad], angular frequency [rad/s], phase [rad]) of its sines.
_SINES: Mapping[str, tuple[tuple[tuple[float, float, float], ...], ...]] = {
    # The paper's q_d(t) = (0.5 sin t, 0.3 sin 1.5 t); the others are for tests outside training.
    "paper": (((0.5, 1.0, 0.0),), ((0.3, 1.5, 0.0),)),
    "slow": (((0.5, 0.5, 0.0),), ((0.3, 0.75, 0.0),)),
    "fast": (((0.5, 2.0, 0.0),), ((0.3, 3.0, 0.0),)),
    "shifted": (((0.5, 1.0, math.pi / 2),), ((0.3, 1.5, math.pi / 2),)),
    "two_tone": (((0.35, 1.0, 0.0), (0.15, 2.7, 0.0)), ((0.2, 1.5, 0.0), (0.1, 4.1, 0.0))),
}


def _register_sines(name: str) -> None:
    @TRAJECTORIES.register(name)
    def make(config: TaskConfig, dtype: Any) -> Sines:
        """Sums of sines; an arm with more than two joints repeats the first two."""
        joints = [_SINES[name][joint % 2] for joint in range(config.dof)]
        return Sines(*(as_array(each, dtype) for each in np.moveaxis(np.asarray(joints), -1, 0)))


for _name in _SINES:
    _register_sines(_name)


def spline(times: npt.ArrayLike, positions: npt.ArrayLike) -> Spline:
    """The trajectory through given joint positions, shape (points, joints), at given times [s]; it starts from rest.

    Velocity and acceleration are continuous. Numbers that are not finite and times that do not rise are refused.
    """
    from scipy.interpolate import CubicSpline  # the core runs without SciPy, as long as no such trajectory is asked for

    t, q = np.asarray(times, float), np.asarray(positions, float)
    if t.ndim != 1 or q.ndim != 2 or len(t) != len(q) or len(t) < 2:
        raise ValueError(
            "a trajectory must have at least two points, times of shape (points,) and positions of shape (points, "
            f"joints); got {t.shape} and {q.shape}"
        )
    for row in range(len(t)):
        if not (np.isfinite(t[row]) and np.all(np.isfinite(q[row]))):
            numbers = ", ".join(f"{x:g}" for x in (t[row], *q[row]))
            raise ValueError(f"a trajectory must hold finite numbers; point {row + 1} is {numbers}")
        if row and t[row] <= t[row - 1]:
            raise ValueError(
                f"the times of a trajectory must rise; point {row + 1} is at {t[row]:g} s, after {t[row - 1]:g} s"
            )
    if t[0] != 0:
        raise ValueError(f"the times of a trajectory must start at 0 s, got {t[0]:g} s")
    found = CubicSpline(t, q, bc_type="clamped")
    return Spline(jnp.asarray(found.x), jnp.asarray(found.c))


def read_csv(path: Path | str) -> Spline:
    """The trajectory in a CSV file: a line of headings, then in each line a time [s] and one position [rad] a joint."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            points = _points([(reader.line_num, line) for line in reader if line])
        return spline([point[0] for point in points], [point[1:] for point in points])
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise ValueError(f"{path} holds no trajectory: {error}") from None


def _points(lines: Sequence[tuple[int, Sequence[str]]]) -> list[list[float]]:
    """The numbers in the lines below the headings; each line comes with its number in the file."""
    if len(lines) < 3:
        raise ValueError("it must have a line of headings and at least two points below it")
    (_, headings), *points = lines
    if all(map(_is_number, headings)):
        raise ValueError(f"its first line must be headings, such as t,q1,q2; it is {','.join(headings)}")
    for number, cells in points:
        if len(cells) != len(headings) or not all(map(_is_number, cells)):
            raise ValueError(f"line {number} must have {len(headings)} numbers between commas; it is {','.join(cells)}")
    return [[float(cell) for cell in cells] for _, cells in points]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


TRAJECTORIES.files[".csv"] = read_csv


def make_trajectory(config: TaskConfig, dtype: Any = jnp.float32) -> Trajectory:
    """The trajectory of a configuration, in the given precision; one of another number of joints is refused."""
    value = config.trajectory
    if isinstance(value, str) and value in TRAJECTORIES:
        made: Trajectory = TRAJECTORIES[value](config, dtype)
        return made
    trajectory: Trajectory = as_arrays("trajectory", TRAJECTORIES.find("trajectory", value), dtype)
    key, start = jax.random.key(0), jnp.zeros((), dtype)
    try_compiling("trajectory", lambda key, time: trajectory.at(trajectory.draw(key), time), key, start)
    with refusing("trajectory"):
        target = trajectory.at(trajectory.draw(key), start)
    if not isinstance(target, Target):
        raise ValueError(f"the trajectory must give Target(q, dq, ddq) at a time, got {target!r}")
    for name, array in target._asdict().items():
        if np.shape(array) != (config.dof,):
            wanted = f"arrays of shape ({config.dof},), one entry a joint"
            raise ValueError(f"the trajectory must give {wanted}; {name} has {np.shape(array)}")
    _check_finite(trajectory, config, dtype)
    return trajectory


def _check_finite(trajectory: Trajectory, config: TaskConfig, dtype: Any) -> None:
    """Refuse a trajectory that is not a number somewhere in an episode."""
    times = config.dt * jnp.arange(config.horizon + 1, dtype=dtype)
    with refusing("trajectory"):
        drawn = trajectory.draw(jax.random.key(0))
        targets = jax.vmap(lambda time: trajectory.at(drawn, time))(times)
    for name, arrays in targets._asdict().items():
        finite = np.all(np.isfinite(arrays), axis=-1)
        if not np.all(finite):
            at = float(times[int(np.argmin(finite))])
            found = arrays[int(np.argmin(finite))]
            raise ValueError(f"the trajectory must give finite numbers, got {found} for {name} at {at:g} s")
