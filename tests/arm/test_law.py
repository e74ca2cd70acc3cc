"""The control law, the box and the squashing against their formulas."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_robots import Pendulum
from scipy.linalg import expm
from scipy.special import expit
from tasks import preset_task

from incrt.arm.law import Box, Gains, Law, computed_torque, make_law
from incrt.arm.robots import DecoupledArm, make_robot
from incrt.arm.task import make_task
from incrt.arm.trajectories import Target
from incrt.config import TaskConfig
from incrt.controllers.classical import Constant
from incrt.controllers.evaluation import rollout
from incrt.controllers.tuning import reference_controller

VECTORS = st.lists(st.floats(-6, 6, width=32), min_size=6, max_size=6).map(lambda x: np.asarray(x, np.float32))


def law_of(config: TaskConfig) -> Law:
    """The law of a configuration."""
    return make_law(config, make_robot("robot", config))


def squashed(box: Box, raw: np.ndarray) -> Gains:
    """Eqs. (15)-(17): what the paper makes of the numbers that a policy's last layer gives."""
    k_d, lam, eta = np.split(raw, 3)
    low, high = box
    return Gains(
        k_d=low.k_d + expit(k_d) * (high.k_d - low.k_d),
        lam=low.lam + expit(lam) * (high.lam - low.lam),
        eta=high.eta * np.tanh(eta),
    )


@given(VECTORS)
def test_an_action_squashed_by_tanh_is_the_papers_formula(raw: np.ndarray) -> None:
    """The policy squashes by tanh for K_d and Lambda too, and sigmoid(x) = (tanh(x/2) + 1)/2."""
    box = law_of(preset_task("paper")).box
    found = box.from_unit(jnp.tanh(jnp.asarray(raw) * jnp.array([0.5] * 4 + [1.0] * 2)))
    for ours, expected in zip(found, squashed(box, raw), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@given(VECTORS.map(lambda x: np.clip(x, -1, 1)))
def test_unit_cube_and_box_map_onto_each_other(action: np.ndarray) -> None:
    box = law_of(TaskConfig()).box
    np.testing.assert_allclose(box.to_unit(box.from_unit(jnp.asarray(action))), action, atol=1e-6)


def test_corners_of_the_cube_are_corners_of_the_box() -> None:
    box = law_of(TaskConfig()).box
    for side, corner in ((-1.0, box.lower), (1.0, box.upper)):
        for found, expected in zip(box.from_unit(jnp.full(6, side)), corner, strict=True):
            np.testing.assert_allclose(found, expected)


def test_a_box_without_width_is_a_point() -> None:
    box = law_of(TaskConfig(k_d_range=(30, 30), eta_max=(0, 0))).box
    gains = box.from_unit(jnp.full(6, 0.3))
    np.testing.assert_allclose(gains.k_d, 30.0)
    assert np.all(np.isfinite(box.to_unit(gains)))


def test_torque_is_the_papers_law() -> None:
    config = TaskConfig()
    law, rng = law_of(config), np.random.default_rng(0)
    q, dq, q_d, dq_d, ddq_d, k_d, lam, eta = rng.normal(size=(8, 2))
    gains = Gains(*map(jnp.asarray, (k_d, lam, eta)))
    found = computed_torque(law, Target(*map(jnp.asarray, (q_d, dq_d, ddq_d))), jnp.asarray(q), jnp.asarray(dq), gains)
    mass = np.asarray(config.inertia) + 0.75 * np.asarray(config.payload_inertia)
    e, de = q_d - q, dq_d - dq
    np.testing.assert_allclose(found, mass * (ddq_d + lam * de) + k_d * (de + lam * e) + eta, rtol=1e-5)


def test_torque_limits_hold() -> None:
    config = TaskConfig(torque_limit=(5.0, 3.0))
    law = law_of(config)
    gains = law.box.upper
    target = Target(jnp.array([1.0, -1.0]), jnp.zeros(2), jnp.zeros(2))
    torque = computed_torque(law, target, jnp.zeros(2), jnp.zeros(2), gains)
    np.testing.assert_allclose(torque, [5.0, -3.0])


@pytest.mark.usefixtures("float64")
def test_without_friction_and_with_an_exact_model_the_error_decays_as_the_law_predicts(
    without_friction: dict[str, Any],
) -> None:
    """M ds/dt = -K_d s and de/dt = s - Lambda e, so (e, s) follows a matrix exponential."""
    config = TaskConfig(dt=1e-4, horizon=5000, substeps=1, initial_std=0.05, **without_friction)
    task, params = make_task(config, jnp.float64)
    gains = Gains(jnp.full(2, 30.0), jnp.full(2, 5.0), jnp.zeros(2))
    key = jnp.asarray([0, 7], jnp.uint32)
    found = rollout(task, params, Constant(gains), key, jnp.asarray(0.75))
    # The first recorded state is the start of the prediction.
    times = np.asarray(found.time) - float(found.time[0])
    e = np.asarray(found.e)
    de = np.gradient(e, config.dt, axis=0, edge_order=2)
    mass = np.asarray(config.inertia) + 0.75 * np.asarray(config.payload_inertia)
    for joint in range(2):
        system = np.array([[-5.0, 1.0], [0.0, -30.0 / mass[joint]]])
        start = np.array([e[0, joint], de[0, joint] + 5.0 * e[0, joint]])
        for step in (500, 2000, 4999):
            predicted = (expm(system * times[step]) @ start)[0]
            assert e[step, joint] == pytest.approx(predicted, abs=2e-3 * np.abs(e[:, joint]).max())


def test_gain_ranges_may_differ_between_the_joints() -> None:
    ranges: dict[str, Any] = {"k_d_range": ((20, 40), (5, 15)), "lam_range": ((4, 6), (1, 3))}
    config = TaskConfig(**ranges, baseline_k_d=(30, 10), baseline_lam=(5, 2), shield=False)
    box = law_of(config).box
    np.testing.assert_array_equal([box.lower.k_d, box.upper.k_d], [[20, 5], [40, 15]])
    np.testing.assert_array_equal([box.lower.lam, box.upper.lam], [[4, 1], [6, 3]])
    middle = box.from_unit(jnp.zeros(6))
    np.testing.assert_allclose([middle.k_d, middle.lam, middle.eta], [[30, 10], [5, 2], [0, 0]])
    baseline = reference_controller("baseline", config)
    assert isinstance(baseline, Constant)
    np.testing.assert_array_equal([baseline.gains.k_d, baseline.gains.lam], [[30, 10], [5, 2]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k_d_range": ((20, 40),)}, "k_d_range must be given once, or 2 times, one a joint"),
        ({"baseline_lam": (5, 5, 5)}, "baseline_lam must be given once, or 2 times, one a joint"),
        ({"k_d_range": ((20, 40), (5, 15))}, r"baseline_k_d must lie in k_d_range = \[5.0, 15.0\], got 30.0"),
        ({"baseline_k_d": (30, 50)}, r"baseline_k_d must lie in k_d_range = \[20.0, 40.0\], got 50.0"),
    ],
)
def test_gains_a_joint_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TaskConfig(**fields)


def test_the_model_of_the_law_may_be_another_than_the_arm() -> None:
    """tau = M_hat (ddq_d + Lambda de) + C_hat dq + G_hat + K_d s + eta, with the model's M_hat, C_hat and G_hat."""
    arm, model = Pendulum(jnp.asarray(9.81)), Pendulum(jnp.asarray(3.0))
    rng = np.random.default_rng(1)
    q, dq, q_d, dq_d, ddq_d, k_d, lam, eta = rng.normal(size=(8, 2)).astype(np.float32)
    m, (e, de) = 1 + 0.75, (q_d - q, dq_d - dq)
    mass = np.array([[1 + 2 * m + 2 * m * np.cos(q[1]), m + m * np.cos(q[1])], [m + m * np.cos(q[1]), m]])
    coriolis = m * np.sin(q[1]) * np.array([-(2 * dq[0] * dq[1] + dq[1] ** 2), dq[0] ** 2])
    for field, weight in ((None, 9.81), (model, 3.0)):
        law = law_of(TaskConfig(robot=arm, model=field, shield=False))
        both = m * weight * np.sin(q[0] + q[1])
        gravity = np.array([(1 + m) * weight * np.sin(q[0]) + both, both])
        expected = mass @ (ddq_d + lam * de) + coriolis + gravity + k_d * (de + lam * e) + eta
        target = Target(*map(jnp.asarray, (q_d, dq_d, ddq_d)))
        found = computed_torque(law, target, jnp.asarray(q), jnp.asarray(dq), Gains(*map(jnp.asarray, (k_d, lam, eta))))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_model_of_other_joints_is_refused_by_its_field() -> None:
    three = DecoupledArm(jnp.ones(3), jnp.ones(3))
    with pytest.raises(ValueError, match="model has 3 joints, but eta_max has 2 entries"):
        make_task(TaskConfig(model=three))
