"""Controllers of a user's own: gains or a torque, whatever memory, and those of the wrong shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.integrate import solve_ivp

from incrt.arm.law import Gains
from incrt.arm.robots import DecoupledArm
from incrt.arm.task import Params, make_task
from incrt.config import TaskConfig
from incrt.controllers.base import ControllerInput
from incrt.controllers.evaluation import evaluate, rollout
from incrt.controllers.tuning import tune

SHORT = TaskConfig(horizon=40, eval_payloads=(0.5,), eval_rollouts=2)


class PD(NamedTuple):
    """A torque of its own, without model, law and shield."""

    stiffness: Array
    damping: Array

    def start(self, params: Params, seen: ControllerInput) -> None:
        return None

    def act(self, params: Params, memory: None, seen: ControllerInput) -> tuple[Array, None]:
        return self.stiffness * (seen.target.q - seen.q) + self.damping * (seen.target.dq - seen.dq), None


class Made(NamedTuple):
    """Gives whatever it is given."""

    first: Any
    command: Any
    after: Any

    def start(self, params: Params, seen: ControllerInput) -> Any:
        return self.first

    def act(self, params: Params, memory: Any, seen: ControllerInput) -> Any:
        return self.command, self.after


class Integral(NamedTuple):
    """Remembers the sum of its errors, as a dictionary; the feed-forward follows it."""

    rate: Array

    def start(self, params: Params, seen: ControllerInput) -> dict[str, Array]:
        return {"sum": jnp.zeros_like(seen.q)}

    def act(self, params: Params, memory: dict[str, Array], seen: ControllerInput) -> tuple[Gains, dict[str, Array]]:
        total = memory["sum"] + seen.target.q - seen.q
        return params.law.box.upper._replace(eta=self.rate * total), {"sum": total}


@pytest.mark.usefixtures("float64")
def test_a_torque_of_ones_own_moves_the_arm_as_its_equation_says(without_friction: dict[str, Any]) -> None:
    """M ddq = k_p e + k_d de, against SciPy; the shield, the box and the law's model have no part in it."""
    config = TaskConfig(dt=1e-3, horizon=300, initial_std=0.0, **without_friction)
    task, params = make_task(config, jnp.float64)
    found = rollout(
        task, params, PD(jnp.array([40.0, 30.0]), jnp.array([6.0, 5.0])), jax.random.key(0), jnp.asarray(1.0)
    )
    mass = np.asarray(config.inertia) + np.asarray(config.payload_inertia)

    def equations(t: float, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        q_d, dq_d = (
            np.array([0.5 * np.sin(t), 0.3 * np.sin(1.5 * t)]),
            np.array([0.5 * np.cos(t), 0.45 * np.cos(1.5 * t)]),
        )
        torque = np.array([40.0, 30.0]) * (q_d - x[:2]) + np.array([6.0, 5.0]) * (dq_d - x[2:])
        return np.concatenate([x[2:], torque / mass])

    exact = solve_ivp(equations, (0, 0.3), np.zeros(4), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.q[-1], exact.y[:2, -1], atol=2e-4)
    assert np.all(np.isnan(found.gains.k_d))  # there are no gains
    assert not np.any(found.shield_active)


def test_a_torque_is_cut_to_the_limits_and_counted_as_at_them() -> None:
    controller = PD(jnp.array([1e5, 1e5]), jnp.zeros(2))
    config = SHORT.replace(torque_limit=(7.0, 4.0), initial_std=0.0)
    figures, recorded = evaluate(config, controller)
    assert np.abs(np.asarray(recorded.torque)).max((0, 1)).tolist() == [7.0, 4.0]
    assert figures.torque_saturation_pct > 50
    assert (figures.eta_saturation_pct, figures.shield_active_pct, figures.shield_infeasible_pct) == (0, 0, 0)


def test_the_limits_of_a_robot_count_where_the_task_has_none() -> None:
    class Limited(DecoupledArm):
        @property
        def torque_limit(self) -> Array:
            return jnp.array([7.0, 4.0])

    controller = PD(jnp.array([1e5, 1e5]), jnp.zeros(2))
    config = SHORT.replace(robot=Limited(jnp.ones(2), jnp.ones(2)), initial_std=0.0)
    figures, recorded = evaluate(config, controller)
    at_limit = np.abs(np.asarray(recorded.torque)) == np.array([7.0, 4.0])
    assert figures.torque_saturation_pct == pytest.approx(100 * at_limit.mean())
    assert figures.torque_saturation_pct > 50


def test_a_memory_may_be_any_tree_of_arrays() -> None:
    config = SHORT.replace(initial_std=0.0)
    _, recorded = evaluate(config, Integral(jnp.asarray(0.5)))
    e = np.asarray(recorded.e)
    expected = 0.5 * np.cumsum(e, axis=1)[:, :-1]  # after a step the error of its end joins the sum
    np.testing.assert_allclose(recorded.gains.eta[:, 1:], expected, atol=1e-4)


class Pair(NamedTuple):
    """Equal to the tuple of the same arrays, and to JAX another type."""

    first: Array
    second: Array


GAINS = Gains(jnp.full(2, 30.0), jnp.full(2, 5.0), jnp.zeros(2))
PAIR = jnp.zeros(2)


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        (Made(PAIR, jnp.zeros(3), PAIR), r"act of Made must give Gains or a torque .* \(2,\); torque has \(3,\)"),
        (Made(PAIR, jnp.zeros(()), PAIR), r"torque has \(\)"),
        (Made(PAIR, GAINS._replace(eta=jnp.zeros((1, 2))), PAIR), r"\(2,\); eta has \(1, 2\)"),
        (Made(PAIR, GAINS._replace(k_d=jnp.asarray(30.0)), PAIR), r"\(2,\); k_d has \(\)"),
        (Made(PAIR, (PAIR, PAIR), PAIR), r"\(2,\); torque has tuple"),
        (Made(PAIR, GAINS, jnp.zeros(3)), "start and act of Made must give memories of the same types and arrays"),
        (Made(PAIR, GAINS, jnp.zeros(2, int)), "start and act of Made must give memories of the same types and arrays"),
        (
            Made({"a": PAIR}, GAINS, {"b": PAIR}),
            "start and act of Made must give memories of the same types and arrays",
        ),
        (Made(None, GAINS, PAIR), "start and act of Made must give memories of the same types and arrays"),
        (
            Made(Pair(PAIR, PAIR), GAINS, (PAIR, PAIR)),
            "start and act of Made must give memories of the same types and arrays",
        ),
    ],
)
def test_a_controller_of_the_wrong_shape_is_refused_before_any_rollout(controller: Made, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(SHORT, controller)


@pytest.mark.parametrize("number", [100.0, np.array(100.0), np.array([100.0, 100.0])])
def test_numbers_of_a_controller_become_arrays(number: Any) -> None:
    given = evaluate(SHORT, PD(number, damping=10.0))[0]  # type: ignore[arg-type]
    assert given == evaluate(SHORT, PD(jnp.full(2, 100.0), damping=jnp.asarray(10.0)))[0]
    tuned = tune(SHORT, lambda _, point: PD(number, damping=10.0 + point[0]), dim=1)
    assert all(isinstance(leaf, Array) for leaf in jax.tree.leaves(tuned))


def test_a_controller_that_gives_no_pair_is_refused() -> None:
    class Lone(NamedTuple):
        gains: Gains

        def start(self, params: Params, seen: ControllerInput) -> None:
            return None

        def act(self, params: Params, memory: None, seen: ControllerInput) -> Any:
            return self.gains

    with pytest.raises(ValueError, match="act of Lone must give a command and the memory for the next step"):
        evaluate(SHORT, Lone(GAINS))
