"""Reference controllers and the evaluation: the required figures, and who is better than whom."""

import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import differential_evolution

from incrt import tuning
from incrt.bench import Params, make_bench
from incrt.config import BenchConfig, preset
from incrt.control import Gains
from incrt.controllers import Clairvoyant, Constant, Controller, Observer, Sight
from incrt.evaluation import (
    Evaluation,
    Trajectory,
    delta_pct,
    evaluate,
    evaluate_policy,
    evaluation_draws,
    headroom_closed,
    rollouts,
    see,
    summarise,
)
from incrt.search import minimise
from incrt.tuning import CONTROLLERS, reference_controller

REGIMES = (1.0, 2.0, 5.0)


@cache
def result(preset_name: str, tau_z: float, controller: str) -> Evaluation:
    config = preset(preset_name, tau_z=tau_z)
    return evaluate(config, reference_controller(controller, config))[0]


def change(preset_name: str, tau_z: float, controller: str) -> float:
    return delta_pct(result(preset_name, tau_z, controller).rmse, result(preset_name, tau_z, "baseline").rmse)


@pytest.mark.parametrize("tau_z", REGIMES)
def test_baseline_error(tau_z: float) -> None:
    assert result("memory", tau_z, "baseline").rmse == pytest.approx(0.130, abs=0.005)
    assert not result("memory", tau_z, "baseline").success


@pytest.mark.parametrize("tau_z", REGIMES)
def test_halving_the_substep_hardly_moves_the_baseline(tau_z: float) -> None:
    config = preset("memory", tau_z=tau_z, substeps=4)
    halved = evaluate(config, reference_controller("baseline", config))[0].rmse
    assert halved == pytest.approx(result("memory", tau_z, "baseline").rmse, rel=0.02)


@pytest.mark.parametrize("preset_name", ["memory", "paper"])
@pytest.mark.parametrize("tau_z", REGIMES)
def test_best_constant(preset_name: str, tau_z: float) -> None:
    assert change(preset_name, tau_z, "best_constant") == pytest.approx(-34, abs=2)


@pytest.mark.parametrize("tau_z", REGIMES)
def test_clairvoyant(tau_z: float) -> None:
    assert change("paper", tau_z, "clairvoyant") <= -58
    assert change("memory", tau_z, "clairvoyant") <= -95


# The table of docs/bench.md: a slip in a controller that costs a fraction of a point is still a slip.
MEASURED = {
    ("memory", 1.0): (-35.72, -97.87, -97.17, -99.08),
    ("memory", 2.0): (-35.00, -97.48, -96.96, -98.33),
    ("memory", 5.0): (-34.33, -96.22, -95.85, -96.74),
    ("paper", 1.0): (-35.72, -61.16, -61.16, -61.20),
    ("paper", 2.0): (-35.00, -59.21, -59.22, -59.26),
    ("paper", 5.0): (-34.33, -58.41, -58.40, -58.46),
}


@pytest.mark.parametrize(("preset_name", "tau_z"), MEASURED)
def test_each_reference_controller_is_as_good_as_measured(preset_name: str, tau_z: float) -> None:
    found = [change(preset_name, tau_z, name) for name in CONTROLLERS[1:]]
    np.testing.assert_allclose(found, MEASURED[preset_name, tau_z], atol=0.05)
    best_constant, adaptive, observer, clairvoyant = found
    assert clairvoyant < min(adaptive, observer) < max(adaptive, observer) < best_constant


@pytest.mark.parametrize("preset_name", ["memory", "paper"])
@pytest.mark.parametrize("tau_z", REGIMES)
@pytest.mark.parametrize("controller", ["baseline", "clairvoyant"])
def test_the_shield_leaves_them_alone(preset_name: str, tau_z: float, controller: str) -> None:
    found = result(preset_name, tau_z, controller)
    assert found.shield_active_pct <= 1.0
    assert found.shield_infeasible_pct == 0.0


def test_the_best_constant_is_not_beaten_by_scipys_global_optimiser() -> None:
    config = preset("memory", tau_z=2.0)
    bench, params = make_bench(config)
    keys, payloads = evaluation_draws(config)

    @jax.jit
    def score(points: jnp.ndarray) -> jnp.ndarray:
        def one(point: jnp.ndarray) -> jnp.ndarray:
            e = rollouts(bench, params, Constant(params.law.box.from_unit(point)), keys, payloads).e
            return jnp.mean(jnp.sqrt(jnp.mean(jnp.sum(e**2, -1), -1)))

        return jax.vmap(one)(points)

    found = differential_evolution(
        lambda x: np.asarray(score(jnp.asarray(x.T, jnp.float32)), float),
        [(-1, 1)] * 6,
        vectorized=True,
        updating="deferred",
        popsize=8,
        maxiter=40,
        polish=False,
        rng=np.random.default_rng(0),
    )
    assert result("memory", 2.0, "best_constant").rmse <= found.fun * 1.0005


def test_where_tuning_ends_without_noise() -> None:
    """The stiffest gains of the box, and an observer as fast as allowed."""
    config = preset("memory", tau_z=2.0)
    constant, observer = reference_controller("best_constant", config), reference_controller("observer", config)
    assert isinstance(constant, Constant)
    assert isinstance(observer, Observer)
    np.testing.assert_allclose([*constant.gains.k_d, *constant.gains.lam], [40, 40, 6, 6])
    assert float(observer.bandwidth) == pytest.approx(1000, rel=1e-3)


def test_every_reference_stays_inside_the_box() -> None:
    config = preset("paper", tau_z=5.0)
    box = make_bench(config)[1].law.box
    for name in CONTROLLERS:
        gains = evaluate(config, reference_controller(name, config))[1].gains
        for low, high, values in zip(box.lower, box.upper, gains, strict=True):
            assert np.all((values >= low - 1e-5) & (values <= high + 1e-5)), name


class Blindfold(NamedTuple):
    """Another controller that is shown a false truth."""

    controller: Controller

    @staticmethod
    def _hide(sight: Sight) -> Sight:
        truth = sight.truth
        return sight._replace(
            truth=truth._replace(plant=truth.plant._replace(z=truth.plant.z + 5), payload=truth.payload + 1)
        )

    def start(self, params: Params, sight: Sight) -> Any:
        return self.controller.start(params, self._hide(sight))

    def act(self, params: Params, memory: Any, sight: Sight) -> tuple[Gains, Any]:
        return self.controller.act(params, memory, self._hide(sight))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_only_the_clairvoyant_profits_from_the_truth(name: str) -> None:
    config = preset("memory", tau_z=1.0)
    controller = reference_controller(name, config)
    seeing, blind = evaluate(config, controller)[0], evaluate(config, Blindfold(controller))[0]
    if name == "clairvoyant":
        assert blind.rmse > 1.05 * seeing.rmse
    else:
        assert blind == seeing


def test_references_work_with_the_other_feature_matrix() -> None:
    config = preset("memory", features="tanh_viscous", horizon=40, eval_payloads=(0.75,), eval_rollouts=1)
    rmse = {name: evaluate(config, reference_controller(name, config))[0].rmse for name in CONTROLLERS}
    assert rmse["clairvoyant"] < rmse["best_constant"] < rmse["baseline"]


def test_a_constant_eta_is_enough_with_velocity_features() -> None:
    """Why Phi = I: with [tanh, viscous] constant gains already remove most of the error (docs/bench.md)."""
    config = preset("memory", tau_z=1.0, features="tanh_viscous")
    constant = Constant(Gains(jnp.full(2, 40.0), jnp.full(2, 6.0), jnp.array([[13.0, 8.5], [15.0, 12.0]])))
    found = evaluate(config, constant)[0].rmse
    assert delta_pct(found, result("memory", 1.0, "baseline").rmse) < -70


# --- the evaluation itself -----------------------------------------------------------------------------------------


def test_metrics_on_a_trajectory_made_by_hand() -> None:
    config = BenchConfig(eval_payloads=(0.0, 1.0), eval_rollouts=1, horizon=4, torque_limit=(2.0, 9.0))
    e = jnp.stack([jnp.full((4, 2), 0.3), jnp.array([[0.0, 0.0], [0.6, 0.8], [0.0, 0.0], [0.0, 0.0]])])
    torque = jnp.zeros((2, 4, 2)).at[0, :, 0].set(jnp.array([0.0, 2.0, -1.0, -1.0]))
    eta = jnp.zeros((2, 4, 1, 2)).at[0, 0, 0, 0].set(-25.0)
    flags = jnp.zeros((2, 4), bool).at[0, 0].set(True)
    nothing = jnp.zeros(())
    trajectory = Trajectory(
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
    found = summarise(config, trajectory)
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
    config = BenchConfig(eval_payloads=(0.0,), eval_rollouts=2, horizon=3)
    _, trajectory = evaluate(config, reference_controller("baseline", config))
    found = summarise(config, trajectory._replace(e=trajectory.e.at[0, 1].set(jnp.nan)))
    assert found.rmse == math.inf
    assert not found.success


def test_evaluation_is_repeatable_and_its_rollouts_differ() -> None:
    config = preset("memory")
    controller = reference_controller("baseline", config)
    first, trajectory = evaluate(config, controller)
    assert evaluate(config, controller)[0] == first
    starts = np.asarray(trajectory.q[:, 0])
    assert len(np.unique(starts, axis=0)) == 15


@pytest.mark.parametrize(
    "scenario",
    [
        {"eval_payloads": (3.0,)},
        {"reference": "fast"},
        {"reference": "shifted"},
        {"noise_position": 0.01, "noise_velocity": 0.05},
        {"delay": 3},
        {"torque_limit": (20.0, 12.0)},
    ],
)
def test_other_conditions_change_the_result(scenario: dict[str, Any]) -> None:
    config = preset("memory")
    controller = reference_controller("baseline", config)
    nominal, other = evaluate(config, controller)[0], evaluate(config.replace(**scenario), controller)[0]
    assert math.isfinite(other.rmse)
    assert other.rmse != pytest.approx(nominal.rmse, rel=1e-4)


@pytest.mark.parametrize("delay", [0, 2])
def test_with_enough_torque_the_clairvoyant_reaches_its_velocity_in_one_step(delay: int) -> None:
    """It inverts the plant: hidden memory, true payload, friction, and torques still on their way."""
    config = preset("memory", eta_max=(1e4, 1e4), shield=False, substeps=1, delay=delay, initial_std=0.05)
    bench, params = make_bench(config)
    controller = Clairvoyant(params.law.box.upper, approach=jnp.asarray(20.0))
    _, state = bench.start(jax.random.key(0), params, jnp.asarray(1.4))
    state = state._replace(plant=state.plant._replace(z=jnp.array([9.0, -6.0])), pending=jnp.full((delay, 2), 15.0))
    errors = []
    for step in range(4 + delay):
        gains, _ = controller.act(params, None, see(bench, params, state))
        before = bench.target(state, params).q - state.plant.q
        state, _ = bench.apply(jax.random.key(1), state, gains, params)
        wanted = bench.target(state, params).dq + 20.0 * before
        if step >= delay:  # from here on its own torques are applied
            errors.append(np.abs(np.asarray(state.plant.dq - wanted)).max())
    assert max(errors) < 1e-3


@pytest.mark.parametrize("delay", [1, 3])
def test_the_clairvoyant_knows_what_is_pending(delay: int) -> None:
    config = preset("memory", tau_z=5.0, delay=delay, eval_payloads=(0.3,), eval_rollouts=1)
    rmse = {name: evaluate(config, reference_controller(name, config))[0].rmse for name in ("observer", "clairvoyant")}
    assert rmse["clairvoyant"] < rmse["observer"] < 0.02


def test_any_function_of_contexts_is_evaluated_on_the_same_rollouts() -> None:
    config = preset("memory", noise_velocity=0.05, window=4, horizon=60)
    params = make_bench(config)[1]
    action = np.linspace(-1, 1, 6, dtype=np.float32)
    seen = []

    def policy(contexts: np.ndarray) -> np.ndarray:
        seen.append(contexts)
        return np.tile(action, (15, 1))

    expected, trajectory = evaluate(config, Constant(params.law.box.from_unit(jnp.asarray(action))))
    found, by_policy = evaluate_policy(config, policy)
    assert found.rmse == pytest.approx(expected.rmse, rel=1e-5)
    np.testing.assert_allclose(by_policy.e, trajectory.e, atol=1e-5)
    assert seen[0].shape == (15, 4, 11)
    np.testing.assert_array_equal(seen[0][:, 0], seen[0][:, -1])
    np.testing.assert_array_equal(seen[5][:, 1:], seen[6][:, :-1])


def test_a_policy_with_wrong_actions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"policy must give actions of shape \(15, 6\), got \(15, 5\)"):
        evaluate_policy(preset("memory"), lambda _: np.zeros((15, 5)))


class NotAPytree:
    """Has the functions but no leaves that JAX knows."""

    def start(self, params: Params, sight: Sight) -> None:
        """Remember nothing."""

    def act(self, params: Params, memory: None, sight: Sight) -> tuple[Gains, None]:
        return params.law.box.lower, None


@pytest.mark.parametrize("controller", ["baseline", NotAPytree(), (jnp.zeros(6),)])
def test_what_is_no_controller_is_refused_in_words(controller: Any) -> None:
    with pytest.raises(ValueError, match="controller must have start and act and be a pytree"):
        evaluate(preset("memory"), controller)


def test_gains_outside_the_box_are_cut_to_it() -> None:
    """A controller of one's own may propose anything; with and without shield the box holds."""
    for shield in (True, False):
        config = preset("memory", shield=shield, horizon=50)
        box = make_bench(config)[1].law.box
        wild = Gains(jnp.full(2, 90.0), jnp.full(2, 20.0), jnp.full((1, 2), -99.0))
        for low, high, values in zip(box.lower, box.upper, evaluate(config, Constant(wild))[1].gains, strict=True):
            assert np.all((values >= low) & (values <= high))


def test_delay_shifts_the_applied_torque() -> None:
    config = preset("memory", delay=2)
    bench, params = make_bench(config)
    _, state = bench.start(jax.random.key(0), params, jnp.asarray(0.5))
    gains = params.law.box.upper
    computed, applied = [], []
    for _ in range(6):
        state, outcome = bench.apply(jax.random.key(0), state, gains, params)
        computed.append(outcome.torque)
        applied.append(state.torque)
    np.testing.assert_array_equal(np.asarray(applied[:2]), 0)
    np.testing.assert_array_equal(np.asarray(applied[2:]), np.asarray(computed[:-2]))


def test_headroom() -> None:
    assert headroom_closed(0.08, 0.08, 0.02) == 0.0
    assert headroom_closed(0.02, 0.08, 0.02) == 1.0
    assert headroom_closed(0.05, 0.08, 0.02) == pytest.approx(0.5)
    assert math.isnan(headroom_closed(0.05, 0.08, 0.08))


def test_unknown_controller_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"controller must be one of baseline, .*clairvoyant; got 'pid'"):
        reference_controller("pid", BenchConfig())


# --- tuning and its cache ------------------------------------------------------------------------------------------


def test_search_finds_the_minimum_of_a_crooked_function() -> None:
    goal = np.array([0.9, -1.0, 0.123])

    def bowl(points: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(jnp.abs(points - goal), -1) + 0.1 * jnp.any(points > 0.95, axis=-1)

    found = minimise(bowl, 3)
    np.testing.assert_allclose(found.point, goal, atol=2e-3)
    assert found == minimise(bowl, 3)


def test_search_does_not_choose_a_point_that_is_not_finite() -> None:
    found = minimise(lambda points: jnp.where(points[:, 0] < 0, jnp.nan, points[:, 0]), 1)
    assert found.value == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("damage", ['{"point": [0.1', '{"point": [NaN, 0, 0, 0, 0, 0]}', '{"point": [1]}', "[]", ""])
def test_a_search_runs_once_and_a_damaged_cache_is_searched_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCRT_CACHE", str(tmp_path))
    config = preset("memory", horizon=20, eval_payloads=(0.5,), eval_rollouts=1)
    searches = []

    def counted(*arguments: object) -> object:
        searches.append(1)
        return minimise(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tuning, "minimise", counted)
    first = reference_controller("best_constant", config)
    again = reference_controller("best_constant", config)
    assert len(searches) == 1
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    reference_controller("best_constant", config.replace(tau_z=1.0))
    assert len(searches) == 2
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_source", lambda: "another source text")
        reference_controller("best_constant", config)
    assert len(searches) == 3
    for path in tuning.cache_folder().iterdir():
        path.write_text(damage)
    damaged = reference_controller("best_constant", config)
    assert len(searches) == 4
    assert jax.tree.all(jax.tree.map(np.array_equal, first, damaged))
