"""Robots of a user's own: one that moves, and those that no body has."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from own_robots import Coupled, Pendulum

from incrt.arm.plant import make_plant
from incrt.arm.robots import DecoupledArm, make_robot
from incrt.arm.task import make_task
from incrt.config import TaskConfig
from incrt.config.registry import ROBOTS
from incrt.controllers.classical import Constant
from incrt.controllers.evaluation import evaluate, rollout
from incrt.controllers.tuning import reference_controller

ARM = """
import jax.numpy as jnp
from typing import NamedTuple, Any

class Arm(NamedTuple):
    inertia: Any = jnp.array([2.0, 1.0])
    dof = 2
    home = jnp.zeros(2)
    torque_limit = jnp.array([50.0, 30.0])

    def mass_and_bias(self, q, dq, payload):
        return self.inertia * (1 + payload), jnp.zeros_like(dq)
"""


class Given(NamedTuple):
    """A robot with whatever mass matrix and bias it is given."""

    mass: Array
    bias: Array
    home: Array
    torque_limit: Array

    @property
    def dof(self) -> int:
        return self.home.shape[0]

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
        return self.mass, self.bias


def given(mass: Any, bias: Any = (0.0, 0.0), home: Any = (0.0, 0.0), torque_limit: Any = (9.0, 9.0)) -> Given:
    return Given(*map(jnp.asarray, (mass, bias, home, torque_limit)))


@pytest.mark.parametrize("mass", [[2.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]])
def test_a_mass_matrix_is_given_whole_or_by_its_diagonal(mass: Any) -> None:
    robot = make_robot("robot", TaskConfig(robot=given(mass)))
    assert robot.dof == 2
    np.testing.assert_array_equal(robot.mass_and_bias(jnp.zeros(2), jnp.zeros(2), jnp.asarray(0.5))[0], mass)


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (given([[2.0, 0.5], [0.4, 1.0]]), r"must be symmetric and positive definite; at home .* it is \[\[2.0, 0.5\]"),
        (given([[1.0, 2.0], [2.0, 1.0]]), "must be symmetric and positive definite"),
        (given([2.0, 0.0]), "must be symmetric and positive definite"),
        (given([2.0, -1.0]), "must be symmetric and positive definite"),
        (given([2.0, np.nan]), "must be symmetric and positive definite"),
        (given([2.0, 1.0, 1.0]), r"must give a mass matrix of shape \(2, 2\) or \(2,\) .*, got \(3,\), \(2,\)"),
        (given([[2.0, 1.0]]), r"must give a mass matrix of shape \(2, 2\) or \(2,\)"),
        (given([2.0, 1.0], bias=0.0), r"a bias of shape \(2,\), got \(2,\), \(\)"),
        (given([2.0, 1.0], bias=[0.0, np.inf]), "must give finite numbers, got .* for the bias at home"),
        (given([2.0], home=[0.0]), "has 1 joints, but eta_max has 2 entries, one a joint"),
        (given([2.0, 1.0], home=[[0.0, 0.0]] * 2), r"home of the robot must have shape \(2,\), got \(2, 2\)"),
        (given([2.0, 1.0], torque_limit=9.0), r"torque_limit of the robot must have shape \(2,\), got \(\)"),
    ],
)
def test_a_robot_that_no_body_has_is_refused(robot: Given, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        make_task(TaskConfig(robot=robot))
    assert "\n" not in str(refusal.value)


class Returning(NamedTuple):
    """Gives whatever it is given, as it is."""

    found: Any

    @property
    def dof(self) -> int:
        return 2

    def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> Any:
        return self.found


@pytest.mark.parametrize("found", [jnp.array([[1.2, 0.1], [0.3, 0.6]]), [jnp.ones(2), jnp.zeros(2)], (jnp.ones(2),)])
def test_a_robot_that_gives_no_pair_of_arrays_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match="mass_and_bias of the robot must give a pair of arrays, M and bias; got"):
        make_robot("robot", TaskConfig(robot=Returning(found)))


def test_a_robot_may_give_constants_of_numpy() -> None:
    class Constants(DecoupledArm):
        def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Any, Any]:
            return np.diag([1.2, 0.6]), np.zeros(2)

    config = TaskConfig(robot=Constants(jnp.ones(2), jnp.ones(2)), horizon=5, eval_payloads=(0.5,), eval_rollouts=1)
    assert np.isfinite(evaluate(config, reference_controller("baseline", config))[0].rmse)


def test_the_payload_must_not_undo_a_mass_matrix() -> None:
    class Lifted(DecoupledArm):
        def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
            return self.inertia - payload, jnp.zeros_like(dq)

    with pytest.raises(ValueError, match=r"positive definite; at home with a payload of 1\.5 kg it is"):
        make_task(TaskConfig(robot=Lifted(jnp.array([2.0, 1.5]), jnp.zeros(2))))
    make_task(TaskConfig(robot=Lifted(jnp.array([2.0, 1.6]), jnp.zeros(2))))


@pytest.mark.parametrize("field", ["robot", "model"])
def test_a_robot_that_is_no_number_along_the_trajectory_is_refused_by_name(field: str) -> None:
    class Torn(DecoupledArm):
        def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
            return jnp.where(q[0] > 0.3, jnp.nan, self.inertia), jnp.zeros_like(dq)

    with pytest.raises(ValueError, match=rf"the {field} must give finite numbers; at q = \[0.3.*mass matrix is \[nan"):
        make_task(TaskConfig().replace(**{field: Torn(jnp.ones(2), jnp.ones(2))}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    home = jnp.zeros(2)", "dof of the robot must be a number, got None"),
        ("    dof, home, torque_limit = 2, jnp.zeros(2), jnp.ones(2)\n    size = undefined", "cannot be loaded"),
    ],
)
def test_a_robot_that_is_not_whole_is_refused_in_one_sentence(tmp_path: Path, body: str, message: str) -> None:
    text = f"import jax.numpy as jnp\nfrom typing import NamedTuple\nclass Arm(NamedTuple):\n{body}\n"
    (tmp_path / "arm.py").write_text(text + "    def mass_and_bias(self, q, dq, payload):\n        return q + 1, dq\n")
    with pytest.raises(ValueError, match=message) as refusal:
        make_task(TaskConfig(robot=f"{tmp_path / 'arm.py'}:Arm"))
    assert "\n" not in str(refusal.value)


def test_a_robot_from_a_file_has_its_own_torque_limits(tmp_path: Path) -> None:
    (tmp_path / "arm.py").write_text(ARM)
    config = TaskConfig(robot=f"{tmp_path / 'arm.py'}:Arm")
    _, params = make_task(config)
    np.testing.assert_array_equal(params.law.torque_limit, [50.0, 30.0])
    _, other = make_task(config.replace(torque_limit=(5, 3)))
    np.testing.assert_array_equal(other.law.torque_limit, [5.0, 3.0])


def test_robots_of_one_class_are_one_batch() -> None:
    """The numbers of a robot are leaves, so that a batch of robots is one more vmap."""
    robots = [Coupled(jnp.array([[2.0, x], [x, 1.0]])) for x in (0.0, 0.5)]
    config = TaskConfig(horizon=20, shield_slack=60.0)
    params = [make_task(config.replace(robot=robot))[1] for robot in robots]
    task = make_task(config)[0]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *params)
    run = partial(
        rollout, task, controller=Constant(params[0].law.box.upper), key=jax.random.key(0), payload=jnp.ones(())
    )
    batch = jax.jit(jax.vmap(lambda each: run(each).q))(stacked)
    for found, one in zip(batch, params, strict=True):
        np.testing.assert_allclose(found, jax.jit(lambda each: run(each).q)(one), atol=1e-5)
    assert np.abs(batch[0] - batch[1]).max() > 1e-4


def test_numbers_of_a_robot_have_the_precision_of_the_task() -> None:
    robot = make_plant(TaskConfig(robot=Pendulum(np.float64(9.81)))).robot  # type: ignore[arg-type]
    assert isinstance(robot, Pendulum)
    assert robot.gravity_constant.dtype == jnp.float32
    assert list(ROBOTS) == ["two_link"]


@pytest.mark.parametrize("body", ["np.sin(q)", "jnp.ones(2) if q[0] > 0 else jnp.ones(2)", "float(q[0]) * jnp.ones(2)"])
def test_a_robot_that_cannot_be_compiled_is_refused_before_training(tmp_path: Path, body: str) -> None:
    text = "import numpy as np, jax.numpy as jnp\nfrom typing import NamedTuple\nclass Arm(NamedTuple):\n    dof = 2\n"
    (tmp_path / "arm.py").write_text(
        f"{text}    def mass_and_bias(self, q, dq, payload):\n        return jnp.ones(2), {body}\n"
    )
    with pytest.raises(ValueError, match=r"the robot cannot be compiled: .*; accepted are functions of jax.numpy"):
        make_task(TaskConfig(robot=f"{tmp_path / 'arm.py'}:Arm"))
