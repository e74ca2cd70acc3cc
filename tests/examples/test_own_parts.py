"""The examples of what users bring run, on tasks that are small, and do what they say."""

import re
import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from incrt.arm.task import make_task
from incrt.cli.train import Train

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL: dict[str, Any] = {"horizon": 40, "eval_payloads": (0.5,), "eval_rollouts": 1}


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"own_{name}.py"))


def printed_rmse(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The RMSE of each controller that an example printed."""
    lines = re.findall(r"^(.*?) +RMSE ([0-9.]+) rad", capsys.readouterr().out, re.MULTILINE)
    return {name: float(rmse) for name, rmse in lines}


@pytest.mark.parametrize("name", ["robot", "friction", "controller", "trajectory", "trigger"])
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / f"own_{name}.py").read_text().splitlines()) <= 60


def test_a_robot_is_tuned_trained_evaluated_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = example("robot")
    small = {**SMALL, "horizon": 10, "substeps": 1, "window": 4}
    names = ("baseline", "best_constant")  # one search, and one program for both
    found["main"](tmp_path, 120, names, **small)
    assert set(printed_rmse(capsys)) == {*names, "policy"}
    assert (tmp_path / "tracking.png").stat().st_size > 10_000


def test_the_mass_matrix_of_the_robot_is_that_of_its_kinetic_energy() -> None:
    """Against the positions of its masses, differentiated by hand: M dq dq = sum m v^2."""
    arm = example("robot")["ARM"]
    q, dq = jnp.array([0.3, -0.7, 1.1]), jnp.array([0.5, 0.2, -0.4])
    mass, bias = arm.mass_and_bias(q, dq, jnp.asarray(0.5))
    angle, rate = np.cumsum(q), np.cumsum(dq)
    velocity = np.cumsum(
        np.asarray(arm.length)[:, None] * rate[:, None] * np.stack([-np.sin(angle), np.cos(angle)], 1), 0
    )
    energy = np.sum(np.asarray(arm.mass.at[-1].add(0.5)) * (velocity**2).sum(1)) + np.sum(np.asarray(arm.rotor) * dq**2)
    np.testing.assert_allclose(dq @ mass @ dq, energy, rtol=1e-5)
    step = 1e-3  # a free arm keeps its energy: ddq = -M^-1 bias
    turned = arm.mass_and_bias(q + step * dq, dq, jnp.asarray(0.5))[0]
    slowed = dq - step * jnp.linalg.solve(mass, bias)
    np.testing.assert_allclose(slowed @ turned @ slowed, energy, rtol=1e-4)


def test_bristles_hold_a_joint_and_let_it_slide(capsys: pytest.CaptureFixture[str]) -> None:
    found = example("friction")
    friction, h = found["LUGRE"], jnp.asarray(1e-3)
    sliding = jnp.array([0.5, -0.5])
    z = friction.start(2)
    for _ in range(2000):
        terms = friction.terms(sliding, z, h)
        z = terms.keep * z + terms.feed * sliding
    torque = terms.damping * sliding + terms.offset
    level = jnp.sign(sliding) * (friction.coulomb + friction.viscous * jnp.abs(sliding))
    np.testing.assert_allclose(torque, level, rtol=0.02)  # the steady torque of the LuGre model
    found["main"](("baseline",), **{**SMALL, "substeps": 2})
    assert set(printed_rmse(capsys)) == {"baseline"}


def test_a_pid_stands_beside_the_observer(capsys: pytest.CaptureFixture[str]) -> None:
    example("controller")["main"](**SMALL)
    found = printed_rmse(capsys)
    assert set(found) == {"PID", "baseline", "observer"}
    assert found["PID"] < found["baseline"]


def test_a_family_of_trajectories_differs_between_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    found = example("trajectory")
    family = found["RandomSines"](jnp.array([0.5, 0.3]), jnp.array([0.5, 0.8]), jnp.array([1.5, 2.0]))
    one, other = (family.at(family.draw(jax.random.key(seed)), jnp.asarray(1.0)).q for seed in (0, 1))
    assert not np.allclose(one, other)
    found["main"](("baseline",), **SMALL)
    assert set(printed_rmse(capsys)) == {"CSV file: baseline", "random family: baseline"}


def test_the_command_line_takes_parts_of_ones_own(tmp_path: Path) -> None:
    reference = f"{EXAMPLES / 'own_friction.py'}:LUGRE"
    task = Train(out=tmp_path, friction=reference, set=("task.dt=0.005",)).config().task
    assert (task.friction, task.dt) == (reference, 0.005)
    friction: Any = make_task(task)[1].plant.friction
    np.testing.assert_allclose(friction.stiffness, [900, 700])
