"""Trajectories: their derivatives, splines against SciPy, files, and families that differ from episode to episode."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.interpolate import CubicSpline

from incrt.arm.task import make_task
from incrt.arm.trajectories import Target, make_trajectory, read_csv, spline
from incrt.config import TRAJECTORIES, TaskConfig
from incrt.controllers.classical import Constant
from incrt.controllers.evaluation import evaluate

TIMES = (0.0, 0.4, 1.0, 1.1, 2.0)
POINTS = ((0.0, 0.1), (0.5, -0.2), (0.2, 0.3), (0.25, 0.3), (0.0, 0.0))


@pytest.mark.parametrize("name", list(TRAJECTORIES))
def test_derivatives_are_the_derivatives(name: str) -> None:
    trajectory = make_trajectory(TaskConfig(trajectory=name))
    for time in (0.0, 0.7, 4.2):
        target = trajectory.at((), jnp.asarray(time))
        np.testing.assert_allclose(target.dq, jax.jacfwd(lambda t: trajectory.at((), t).q)(time), atol=1e-5)
        np.testing.assert_allclose(target.ddq, jax.jacfwd(lambda t: trajectory.at((), t).dq)(time), atol=1e-5)


def test_the_papers_trajectory_is_the_papers() -> None:
    target = make_trajectory(TaskConfig()).at((), jnp.asarray(1.3))
    np.testing.assert_allclose(target.q, [0.5 * np.sin(1.3), 0.3 * np.sin(1.5 * 1.3)], rtol=1e-6)


# --- through given points ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("float64")
def test_a_spline_is_scipys_and_rests_after_its_end() -> None:
    found = spline(TIMES, POINTS)
    expected = CubicSpline(TIMES, POINTS, bc_type="clamped")
    for time in np.linspace(0, 2, 41):
        target = found.at((), jnp.asarray(time))
        for order, array in enumerate(target):
            np.testing.assert_allclose(array, expected(time, order), atol=1e-9)
    np.testing.assert_allclose(found.at((), jnp.asarray(0.0)).dq, 0, atol=1e-12)
    after = found.at((), jnp.asarray(7.0))
    np.testing.assert_allclose(after.q, POINTS[-1], atol=1e-12)
    np.testing.assert_array_equal([after.dq, after.ddq], 0)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["time,joint 1,joint 2", *lines]))
    return path


def test_a_file_is_a_trajectory(tmp_path: Path) -> None:
    lines = [f"{time},{first},{second}" for time, (first, second) in zip(TIMES, POINTS, strict=True)]
    path = write(tmp_path / "points.csv", *lines[:3], "", *lines[3:])
    jax.tree.map(np.testing.assert_array_equal, read_csv(path), spline(TIMES, POINTS))
    config = TaskConfig(trajectory=str(path), initial_std=0.0)
    task, params = make_task(config)
    observation, state = jax.jit(task.reset_env)(jax.random.key(0), params)
    np.testing.assert_allclose(observation[4:6], POINTS[0], atol=1e-6)
    state = state._replace(time=jnp.asarray(100))
    np.testing.assert_allclose(task.target(state, params).q, POINTS[2], atol=1e-6)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "at least two points"),
        (("0,1,2",), "at least two points"),
        (("0,1,2", "1,nan,2"), "must hold finite numbers; point 2 is 1, nan, 2"),
        (("0,1,2", "inf,1,2"), "must hold finite numbers; point 2"),
        (("0,1,2", "2,1,2", "1,1,2"), "the times of a trajectory must rise; point 3 is at 1 s, after 2 s"),
        (("0,1,2", "0,1,2"), "the times of a trajectory must rise; point 2"),
        (("1,1,2", "2,1,2"), "the times of a trajectory must start at 0 s, got 1 s"),
        (("0,1,2", "1,1"), "line 3 must have 3 numbers between commas; it is 1,1"),
        (("0,1,2", "1,one,2"), "line 3 must have 3 numbers between commas; it is 1,one,2"),
        (("0,1,2", '1,"' + 200_000 * "1" + '",2'), "field larger than field limit"),
    ],
    ids=range(10),
)
def test_a_file_that_holds_no_trajectory_is_refused_by_its_name(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    path = write(tmp_path / "points.csv", *lines)
    with pytest.raises(ValueError, match=f"points.csv holds no trajectory: .*{message}"):
        make_task(TaskConfig(trajectory=str(path)))


def test_a_file_without_headings_is_refused_and_does_not_lose_its_first_point(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("0,0.1,0.2\n1,0.3,0.4\n2,0.5,0.6\n")
    with pytest.raises(ValueError, match=r"its first line must be headings, such as t,q1,q2; it is 0,0\.1,0\.2"):
        read_csv(path)


def test_files_without_lines_or_that_are_not_there_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("empty.csv", "binary.csv", "absent.csv"):
        with pytest.raises(ValueError, match=f"{name} holds no trajectory"):
            read_csv(tmp_path / name)


@pytest.mark.parametrize(
    ("times", "points", "message"),
    [
        ([0.0], [[1.0, 2.0]], "at least two points"),
        ([0.0, 1.0], [1.0, 2.0], r"got \(2,\) and \(2,\)"),
        ([0.0, 1.0, 2.0], [[1.0, 2.0]] * 2, r"got \(3,\) and \(2, 2\)"),
        ([0.0, np.nan], [[1.0, 2.0]] * 2, "must hold finite numbers; point 2"),
    ],
)
def test_points_of_the_wrong_shape_are_refused(times: Any, points: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spline(times, points)


# --- of a user's own -----------------------------------------------------------------------------------------------


class Shifted(NamedTuple):
    """Sines whose phase is drawn for each episode."""

    amplitude: Array

    def draw(self, key: Array) -> Array:
        return jax.random.uniform(key, (2,), maxval=2 * jnp.pi)

    def at(self, drawn: Array, time: Array) -> Target:
        sine, cosine = self.amplitude * jnp.sin(time + drawn), self.amplitude * jnp.cos(time + drawn)
        return Target(sine, cosine, -sine)


class Given(NamedTuple):
    """Gives whatever it is given."""

    found: Any

    def draw(self, key: Array) -> tuple[()]:
        return ()

    def at(self, drawn: tuple[()], time: Array) -> Any:
        return self.found


def test_a_family_of_trajectories_differs_between_episodes_and_leaves_other_draws_as_they_are() -> None:
    family, fixed = Shifted(jnp.array([0.3, 0.2])), TaskConfig()
    keys = jax.random.split(jax.random.key(3), 50)
    found = {}
    for name, config in {"family": fixed.replace(trajectory=family), "fixed": fixed}.items():
        task, params = make_task(config)
        _, found[name] = jax.jit(jax.vmap(task.reset_env, in_axes=(0, None)))(keys, params)
    phases = np.asarray(found["family"].drawn)
    assert len(np.unique(phases, axis=0)) == 50
    for field in ("payload", "payload_estimate"):
        np.testing.assert_array_equal(getattr(found["family"], field), getattr(found["fixed"], field))
    starts = np.asarray(family.amplitude) * np.sin(phases)
    offset = np.asarray(found["family"].plant.q) - starts
    np.testing.assert_allclose(offset, found["fixed"].plant.q, atol=1e-6)  # the paper's starts at zero


def test_within_an_episode_the_draw_stays() -> None:
    config = TaskConfig(trajectory=Shifted(jnp.array([0.3, 0.2])), horizon=30, eval_payloads=(0.5,), eval_rollouts=4)
    _, params = make_task(config)
    _, recorded = evaluate(config, Constant(params.law.box.upper))
    q_d = np.asarray(recorded.q_d)
    assert np.ptp(q_d[:, 0], axis=0).min() > 0.05
    # Sines of frequency 1 satisfy q'' = -q, whatever their phase, as long as that does not change.
    second = (q_d[:, 2:] - 2 * q_d[:, 1:-1] + q_d[:, :-2]) / config.dt**2
    np.testing.assert_allclose(second, -q_d[:, 1:-1], atol=5e-3)


PAIR = jnp.zeros(2)


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        (Given(Target(PAIR, jnp.array([0.0, jnp.nan]), PAIR)), "must give finite numbers, got .* for dq at 0 s"),
        (Given(Target(jnp.zeros(3), PAIR, PAIR)), r"shape \(2,\), one entry a joint; q has \(3,\)"),
        (Given(Target(PAIR, PAIR, jnp.zeros(()))), r"one entry a joint; ddq has \(\)"),
        (Given((PAIR, PAIR, PAIR)), r"must give Target\(q, dq, ddq\) at a time, got \("),
        (Shifted(jnp.ones(3)), r"the trajectory cannot be used \(TypeError: "),
        (spline([0, 1], [[0.0], [1.0]]), r"shape \(2,\), one entry a joint; q has \(1,\)"),
    ],
)
def test_a_trajectory_that_does_not_fit_is_refused(trajectory: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task(TaskConfig(trajectory=trajectory))


def test_a_trajectory_that_cannot_be_compiled_is_refused_before_training() -> None:
    class Stopping(Shifted):
        def at(self, drawn: Any, time: Array) -> Target:
            return super().at(drawn, time if time < 1 else jnp.ones(()))

    with pytest.raises(ValueError, match=r"the trajectory cannot be compiled: .* by if, while"):
        make_task(TaskConfig(trajectory=Stopping(jnp.ones(2))))
