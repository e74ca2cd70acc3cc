"""The evaluation: metrics, conditions, policies, refusals."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import preset_task

from incrt.arm.law import Gains
from incrt.arm.task import Params, make_task
from incrt.config import TaskConfig
from incrt.controllers.base import ControllerInput
from incrt.controllers.classical import Constant
from incrt.controllers.evaluation import (
    Rollout,
    evaluate,
    evaluate_policy,
    headroom_closed,
    summarise,
)
from incrt.controllers.tuning import reference_controller


def test_metrics_on_a_trajectory_made_by_hand() -> None:
    config = TaskConfig(eval_payloads=(0.0, 1.0), eval_rollouts=1, horizon=4)
    e = jnp.stack([jnp.full((4, 2), 0.3), jnp.array([[0.0, 0.0], [0.6, 0.8], [0.0, 0.0], [0.0, 0.0]])])
    torque = jnp.zeros((2, 4, 2)).at[0, :, 0].set(jnp.array([0.0, 2.0, -1.0, -1.0]))
    eta = jnp.zeros((2, 4, 2)).at[0, 0, 0].set(-25.0)
    flags = jnp.zeros((2, 4), bool).at[0, 0].set(True)
    nothing = jnp.zeros(())
    recorded = Rollout(
        time=nothing,
        q=nothing,
        q_d=nothing,
        e=e,
        z=nothing,
        torque=torque,
        gains=Gains(nothing, nothing, eta),
        shield_active=flags,
        shield_feasible=~flags,
    )
    found = summarise(config, recorded, jnp.array([2.0, 9.0]))
    assert found.per_payload == pytest.approx({"0.0": 0.3 * math.sqrt(2), "1.0": 0.5})
    assert found.rmse == pytest.approx((0.3 * math.sqrt(2) + 0.5) / 2)
    assert found.max_error == pytest.approx(1.0)
    assert found.torque_tv == pytest.approx((2 + 3 + 0) / 2)
    assert found.torque_rms == pytest.approx(math.sqrt((4 + 1 + 1) / 4) / 2)
    assert found.torque_saturation_pct == pytest.approx(100 / 16)
    assert found.eta_saturation_pct == pytest.approx(100 / 16)
    assert found.shield_active_pct == pytest.approx(100 / 8)
    assert found.shield_infeasible_pct == pytest.approx(100 / 8)


def test_a_diverged_rollout_is_infinitely_bad_and_no_success() -> None:
    config = TaskConfig(eval_payloads=(0.0,), eval_rollouts=2, horizon=3)
    _, recorded = evaluate(config, reference_controller("baseline", config))
    found = summarise(config, recorded._replace(e=recorded.e.at[0, 1].set(jnp.nan)), jnp.full(2, jnp.inf))
    assert found.rmse == math.inf
    assert not found.success


def test_evaluation_is_repeatable_and_its_rollouts_differ() -> None:
    config = preset_task("memory")
    controller = reference_controller("baseline", config)
    first, recorded = evaluate(config, controller)
    assert evaluate(config, controller)[0] == first
    starts = np.asarray(recorded.q[:, 0])
    assert len(np.unique(starts, axis=0)) == 15


@pytest.mark.parametrize(
    "scenario",
    [
        {"eval_payloads": (3.0,)},
        {"trajectory": "fast"},
        {"trajectory": "shifted"},
        {"noise_position": 0.01, "noise_velocity": 0.05},
        {"delay": 3},
        {"torque_limit": (20.0, 12.0)},
    ],
)
def test_other_conditions_change_the_result(scenario: dict[str, Any]) -> None:
    config = preset_task("memory")
    controller = reference_controller("baseline", config)
    nominal, other = evaluate(config, controller)[0], evaluate(config.replace(**scenario), controller)[0]
    assert math.isfinite(other.rmse)
    assert other.rmse != pytest.approx(nominal.rmse, rel=1e-4)


def test_any_function_of_contexts_is_evaluated_on_the_same_rollouts() -> None:
    config = preset_task("memory", noise_velocity=0.05, window=4, horizon=60)
    params = make_task(config)[1]
    action = np.linspace(-1, 1, 6, dtype=np.float32)
    seen = []

    def policy(contexts: np.ndarray) -> np.ndarray:
        seen.append(contexts)
        return np.tile(action, (15, 1))

    expected, recorded = evaluate(config, Constant(params.law.box.from_unit(jnp.asarray(action))))
    found, by_policy = evaluate_policy(config, policy)
    assert found.rmse == pytest.approx(expected.rmse, rel=1e-5)
    np.testing.assert_allclose(by_policy.e, recorded.e, atol=1e-5)
    assert seen[0].shape == (15, 4, 11)
    np.testing.assert_array_equal(seen[0][:, 0], seen[0][:, -1])
    np.testing.assert_array_equal(seen[5][:, 1:], seen[6][:, :-1])


def test_a_policy_with_wrong_actions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"policy must give actions of shape \(15, 6\), got \(15, 5\)"):
        evaluate_policy(preset_task("memory"), lambda _: np.zeros((15, 5)))


class NotAPytree:
    """Has the functions but no leaves that JAX knows."""

    def start(self, params: Params, seen: ControllerInput) -> None:
        """Remember nothing."""

    def act(self, params: Params, memory: None, seen: ControllerInput) -> tuple[Gains, None]:
        return params.law.box.lower, None


@pytest.mark.parametrize("controller", ["baseline", NotAPytree(), (jnp.zeros(6),)])
def test_what_is_no_controller_is_refused_in_words(controller: Any) -> None:
    with pytest.raises(ValueError, match=r"controller must (have start and act and )?be a pytree of arrays"):
        evaluate(preset_task("memory"), controller)


def test_gains_outside_the_box_are_cut_to_it() -> None:
    """A controller of one's own may propose anything; with and without shield the box holds."""
    for shield in (True, False):
        config = preset_task("memory", shield=shield, horizon=50)
        box = make_task(config)[1].law.box
        wild = Gains(jnp.full(2, 90.0), jnp.full(2, 20.0), jnp.full(2, -99.0))
        for low, high, values in zip(box.lower, box.upper, evaluate(config, Constant(wild))[1].gains, strict=True):
            assert np.all((values >= low) & (values <= high))


def test_delay_shifts_the_applied_torque() -> None:
    config = preset_task("memory", delay=2)
    task, params = make_task(config)
    _, state = task.start(jax.random.key(0), params, jnp.asarray(0.5))
    gains = params.law.box.upper
    computed, applied = [], []
    for _ in range(6):
        state, outcome = task.apply(jax.random.key(0), state, gains, params)
        computed.append(outcome.torque)
        applied.append(state.torque)
    np.testing.assert_array_equal(np.asarray(applied[:2]), 0)
    np.testing.assert_array_equal(np.asarray(applied[2:]), np.asarray(computed[:-2]))


def test_headroom() -> None:
    assert headroom_closed(0.08, 0.08, 0.02) == 0.0
    assert headroom_closed(0.02, 0.08, 0.02) == 1.0
    assert headroom_closed(0.05, 0.08, 0.02) == pytest.approx(0.5)
    assert math.isnan(headroom_closed(0.05, 0.08, 0.08))
