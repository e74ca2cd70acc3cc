"""Reference controllers: the required figures, what each knows, who is better than whom."""

from collections.abc import Iterator
from functools import cache, partial
from inspect import unwrap
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.optimize import differential_evolution
from tasks import preset_task

from incrt.arm.law import Gains
from incrt.arm.task import Params, make_task
from incrt.config import TaskConfig
from incrt.controllers import tuning
from incrt.controllers.base import Controller, ControllerInput
from incrt.controllers.classical import Clairvoyant, Constant, FeedForward, Observer, OpenLoop
from incrt.controllers.evaluation import (
    Evaluation,
    controller_input,
    delta_pct,
    evaluate,
    evaluation_draws,
    rollouts,
)
from incrt.controllers.tuning import CONTROLLERS, _scores, reference_controller

REGIMES = (1.0, 2.0, 5.0)


optimised = partial(jax.jit, compiler_options={"xla_backend_optimization_level": "1"})
"""Searches compute for so long that optimising their programs pays, other than in most tests."""


@pytest.fixture(scope="module", autouse=True)
def optimised_searches() -> Iterator[None]:
    """Those of the tuning too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "_scores", optimised(unwrap(_scores), static_argnums=(0, 1)))
        yield


@cache
def result(preset_name: str, tau_z: float, controller: str) -> Evaluation:
    config = preset_task(preset_name, tau_z=tau_z)
    return evaluate(config, reference_controller(controller, config))[0]


def change(preset_name: str, tau_z: float, controller: str) -> float:
    return delta_pct(result(preset_name, tau_z, controller).rmse, result(preset_name, tau_z, "baseline").rmse)


@pytest.mark.parametrize("tau_z", REGIMES)
def test_baseline_error(tau_z: float) -> None:
    assert result("memory", tau_z, "baseline").rmse == pytest.approx(0.130, abs=0.005)
    assert not result("memory", tau_z, "baseline").success


@pytest.mark.parametrize("tau_z", REGIMES)
def test_halving_the_substep_hardly_moves_the_baseline(tau_z: float) -> None:
    config = preset_task("memory", tau_z=tau_z, substeps=4)
    halved = evaluate(config, reference_controller("baseline", config))[0].rmse
    assert halved == pytest.approx(result("memory", tau_z, "baseline").rmse, rel=0.02)


# One regime of one preset; the searches of the others take as long.
TASKS = [
    pytest.param(name, tau_z, marks=() if (name, tau_z) == ("memory", 5) else pytest.mark.slow)
    for name in ("memory", "paper")
    for tau_z in REGIMES
]


@pytest.mark.parametrize(("preset_name", "tau_z"), TASKS)
def test_best_constant(preset_name: str, tau_z: float) -> None:
    assert change(preset_name, tau_z, "best_constant") == pytest.approx(-34, abs=2)


@pytest.mark.parametrize(("preset_name", "tau_z"), TASKS)
def test_clairvoyant(preset_name: str, tau_z: float) -> None:
    assert change(preset_name, tau_z, "clairvoyant") <= {"paper": -58, "memory": -95}[preset_name]


# The table of docs/task.md: a slip in a controller that costs a fraction of a point is still a slip.
MEASURED = {
    ("memory", 1.0): (-35.72, -86.90, -98.33, -97.87, -97.17, -99.08),
    ("memory", 2.0): (-35.00, -81.09, -97.79, -97.48, -96.96, -98.33),
    ("memory", 5.0): (-34.33, -76.40, -96.36, -96.22, -95.85, -96.74),
    ("paper", 1.0): (-35.72, -61.19, -61.20, -61.16, -61.16, -61.20),
    ("paper", 2.0): (-35.00, -59.25, -59.26, -59.21, -59.22, -59.26),
    ("paper", 5.0): (-34.33, -58.38, -58.45, -58.41, -58.40, -58.46),
}


@pytest.mark.parametrize(("preset_name", "tau_z"), TASKS)
def test_each_reference_controller_is_as_good_as_measured(preset_name: str, tau_z: float) -> None:
    found = [change(preset_name, tau_z, name) for name in CONTROLLERS[1:]]
    np.testing.assert_allclose(found, MEASURED[preset_name, tau_z], atol=0.05)
    best_constant, *between, clairvoyant = found
    assert clairvoyant < min(between) < max(between) < best_constant
    if preset_name == "paper":  # no memory is needed there (docs/task.md)
        assert found[CONTROLLERS[1:].index("feedforward")] < clairvoyant + 0.1


@pytest.mark.parametrize(("preset_name", "tau_z"), TASKS)
@pytest.mark.parametrize("controller", ["baseline", "clairvoyant"])
def test_the_shield_leaves_them_alone(preset_name: str, tau_z: float, controller: str) -> None:
    found = result(preset_name, tau_z, controller)
    assert found.shield_active_pct <= 1.0
    assert found.shield_infeasible_pct == 0.0


def test_the_best_constant_is_not_beaten_by_scipys_global_optimiser() -> None:
    config = preset_task("memory", tau_z=5.0)
    task, params = make_task(config)
    keys, payloads = evaluation_draws(config)

    @optimised
    def score(points: jnp.ndarray) -> jnp.ndarray:
        def one(point: jnp.ndarray) -> jnp.ndarray:
            e = rollouts(task, params, Constant(params.law.box.from_unit(point)), keys, payloads).e
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
    assert result("memory", 5.0, "best_constant").rmse <= found.fun * 1.0005


def test_where_tuning_ends_without_noise() -> None:
    """The stiffest gains of the box, and an observer as fast as allowed."""
    config = preset_task("memory", tau_z=5.0)
    constant, observer = reference_controller("best_constant", config), reference_controller("observer", config)
    assert isinstance(constant, Constant)
    assert isinstance(observer, Observer)
    np.testing.assert_allclose([*constant.gains.k_d, *constant.gains.lam], [40, 40, 6, 6])
    assert float(observer.bandwidth) == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize(("preset_name", "tau_z"), TASKS)
def test_every_reference_stays_inside_the_box(preset_name: str, tau_z: float) -> None:
    config = preset_task(preset_name, tau_z=tau_z)
    box = make_task(config)[1].law.box
    for name in CONTROLLERS:
        gains = evaluate(config, reference_controller(name, config))[1].gains
        for low, high, values in zip(box.lower, box.upper, gains, strict=True):
            assert np.all((values >= low - 1e-5) & (values <= high + 1e-5)), name


class Blindfold(NamedTuple):
    """Another controller that is shown a false truth."""

    controller: Controller

    @staticmethod
    def _hide(seen: ControllerInput) -> ControllerInput:
        truth = seen.truth
        return seen._replace(
            truth=truth._replace(plant=truth.plant._replace(z=truth.plant.z + 5), payload=truth.payload + 1)
        )

    def start(self, params: Params, seen: ControllerInput) -> Any:
        return self.controller.start(params, self._hide(seen))

    def act(self, params: Params, memory: Any, seen: ControllerInput) -> tuple[Gains | Array, Any]:
        return self.controller.act(params, memory, self._hide(seen))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_only_the_clairvoyant_profits_from_the_truth(name: str) -> None:
    config = preset_task("memory", tau_z=5.0)
    controller = reference_controller(name, config)
    seeing, blind = evaluate(config, controller)[0], evaluate(config, Blindfold(controller))[0]
    if name == "clairvoyant":
        assert blind.rmse > 1.01 * seeing.rmse
    else:
        assert blind == seeing


def test_the_feedforward_is_a_friction_model_of_the_reference_and_nothing_else() -> None:
    """Neither what is measured nor the payload nor z changes its feed-forward, and it remembers nothing."""
    task, params = make_task(preset_task("memory", tau_z=2.0))
    coulomb, viscous = jnp.array([12.0, 30.0]), jnp.array([4.0, -3.0])
    controller = FeedForward(params.law.box.upper, coulomb, viscous)
    _, state = task.start(jax.random.key(0), params, jnp.asarray(0.3))
    for time in (0, 60, 150, 310):
        state = state._replace(time=jnp.asarray(time, state.time.dtype))
        seen = controller_input(task, params, state)
        assert controller.start(params, seen) is None
        gains, memory = controller.act(params, None, seen)
        friction = coulomb * np.tanh(seen.target.dq / 0.05) + viscous * seen.target.dq
        bound = params.law.box.upper.eta
        np.testing.assert_allclose(gains.eta, np.clip(friction, -bound, bound), rtol=1e-5, atol=1e-5)
        moved = state._replace(
            plant=jax.tree.map(lambda x: x + 0.7, state.plant),
            payload=state.payload + 1,
            payload_estimate=state.payload_estimate + 1,
            measured_q=state.measured_q - 0.4,
            measured_dq=-state.measured_dq - 0.9,
            torque=state.torque + 20,
        )
        again, _ = controller.act(params, None, controller_input(task, params, moved))
        assert jax.tree.all(jax.tree.map(np.array_equal, gains, again))
        assert memory is None


def test_the_open_loop_plays_by_the_clock_and_knows_one_trajectory() -> None:
    """Where every episode is the same the clock is all the memory that is needed; elsewhere it is worth nothing."""
    config = preset_task("memory", tau_z=5.0)
    controller = reference_controller("open_loop", config)
    assert isinstance(controller, OpenLoop)
    task, params = make_task(config)
    for seed in (0, 1):  # whatever it is shown
        _, state = task.start(jax.random.key(seed), params, jnp.asarray(0.9 * seed))
        seen = controller_input(task, params, state)
        memory = controller.start(params, seen)
        for step in range(3):
            gains, memory = controller.act(params, memory, seen)
            np.testing.assert_array_equal(gains.eta, controller.eta[step])
        after, _ = controller.act(params, jnp.asarray(10_000), seen)
        np.testing.assert_array_equal(after.eta, controller.eta[-1])
    assert change("memory", 5.0, "open_loop") < -96
    other = config.replace(trajectory="fast")
    baseline = evaluate(other, reference_controller("baseline", config))[0].rmse
    assert delta_pct(evaluate(other, controller)[0].rmse, baseline) > -10


@pytest.mark.parametrize("delay", [0, 2])
def test_with_enough_torque_the_clairvoyant_reaches_its_velocity_in_one_step(delay: int) -> None:
    """It inverts the plant: hidden memory, true payload, friction, and torques still on their way."""
    config = preset_task("memory", eta_max=(1e4, 1e4), shield=False, substeps=1, delay=delay, initial_std=0.05)
    task, params = make_task(config)
    controller = Clairvoyant(params.law.box.upper, approach=jnp.asarray(20.0))
    _, state = task.start(jax.random.key(0), params, jnp.asarray(1.4))
    state = state._replace(plant=state.plant._replace(z=jnp.array([9.0, -6.0])), pending=jnp.full((delay, 2), 15.0))
    errors = []
    for step in range(4 + delay):
        gains, _ = controller.act(params, None, controller_input(task, params, state))
        before = task.target(state, params).q - state.plant.q
        state, _ = task.apply(jax.random.key(1), state, gains, params)
        wanted = task.target(state, params).dq + 20.0 * before
        if step >= delay:  # from here on its own torques are applied
            errors.append(np.abs(np.asarray(state.plant.dq - wanted)).max())
    assert max(errors) < 1e-3


@pytest.mark.parametrize("delay", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_the_clairvoyant_knows_what_is_pending(delay: int) -> None:
    config = preset_task("memory", tau_z=5.0, delay=delay, eval_payloads=(0.3,), eval_rollouts=1)
    rmse = {name: evaluate(config, reference_controller(name, config))[0].rmse for name in ("observer", "clairvoyant")}
    assert rmse["clairvoyant"] < rmse["observer"] < 0.02


def test_unknown_controller_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"controller must be one of baseline, .*clairvoyant; got 'pid'"):
        reference_controller("pid", TaskConfig())
