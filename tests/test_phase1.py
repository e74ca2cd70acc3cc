"""Phase 1: the surrogate's gradient against finite differences, and the search against known landscapes."""

import builtins
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from incrt.bench import State, make_bench
from incrt.config import BenchConfig, preset
from incrt.evaluation import evaluation_draws, see
from incrt.phase1 import Surrogate, _window_gradients, search, surrogate
from incrt.tuning import reference_controller


def small(**changes: Any) -> BenchConfig:
    return preset("memory", tau_z=2.0, horizon=30, window=6, eval_payloads=(0.0, 1.5), eval_rollouts=2, **changes)


@pytest.mark.usefixtures("float64")
def test_gradients_are_those_of_finite_differences() -> None:
    """The cost of one window, rolled out step by step with the memory nudged, by central differences."""
    config = small()
    bench, params = make_bench(config, dtype=jnp.float64)
    keys, payloads = evaluation_draws(config)
    baseline = jax.tree.map(lambda x: x.astype(jnp.float64), reference_controller("baseline", config))
    found = _window_gradients(bench, config.window, params, baseline, keys, payloads)
    assert found.shape == (4, 25, 6, 2)
    rollout, begin = 3, 17

    @jax.jit
    def cost(pushes: jax.Array) -> jax.Array:
        """Of the window, reached from the start of the episode."""
        _, first = bench.start(jax.random.split(keys[rollout])[0], params, payloads[rollout])

        def step(state: State, push: jax.Array) -> tuple[State, jax.Array]:
            state = state._replace(plant=state.plant._replace(z=state.plant.z + push))
            gains, _ = baseline.act(params, None, see(bench, params, state))
            state, outcome = bench.apply(keys[0], state, gains, params)
            return state, -outcome.reward

        return jnp.sum(jax.lax.scan(step, first, jnp.concatenate([jnp.zeros((begin, 2)), pushes]))[1][begin:])

    for step in range(6):
        for joint in range(2):
            nudge = jnp.zeros((6, 2)).at[step, joint].set(1e-4)
            expected = float(cost(nudge) - cost(-nudge)) / 2e-4
            assert float(found[rollout, begin, step, joint]) == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert float(jnp.max(jnp.abs(found[:, :, 0]))) > 0


def test_the_choice_is_the_energy_of_the_autocovariance() -> None:
    config = small()
    bench, params = make_bench(config)
    keys, payloads = evaluation_draws(config)
    baseline = reference_controller("baseline", config)
    gradients = np.asarray(_window_gradients(bench, 6, params, baseline, keys, payloads), float).reshape(-1, 12)
    centred = gradients - gradients.mean(0)
    sigma = np.linalg.svd(centred.T @ centred, compute_uv=False)
    part = sigma / sigma.sum()
    for alpha in (0.5, 0.95, 0.9999):
        found = surrogate(config, alpha)
        np.testing.assert_allclose(found.spectrum, part, atol=1e-9)
        assert found.rank == next(k for k in range(1, 13) if part[:k].sum() >= alpha)
        assert found.k == min(found.rank, 8)
    assert surrogate(config, 0.9999, k_max=2).k == 2
    assert surrogate(config, 0.9999, k_max=2).rank > 2


def test_on_the_papers_bench_one_direction_a_joint_is_enough() -> None:
    for tau_z, window in ((1.0, 20), (2.0, 50), (5.0, 20)):
        found = surrogate(preset("memory", tau_z=tau_z, window=window))
        assert found.k == 2
        assert len(found.spectrum) == 2 * window


def test_a_cost_that_does_not_depend_on_the_memory_needs_one_head() -> None:
    found = surrogate(small(reward_error=0.0, reward_velocity=0.0))
    assert found == Surrogate((0.0,) * 12, 1, 1)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"alpha": 1.5}, "alpha must be a number > 0 and < 1, got 1.5"),
        ({}, {"k_max": 0}, "k_max must be a whole number >= 1"),
        ({"window": 31}, {}, "window must be at most horizon = 30, got 31"),
        ({"dt": 1.0, "horizon": 100, "shield": False, "viscous": (0.0, 0.0)}, {}, "the baseline diverges"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        surrogate(small().replace(**changes), **options)


# --- the search ---------------------------------------------------------------------------------------------------


class Landscape:
    """A training whose outcome is known, and which counts what is asked of it."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.stop_after = stop_after

    def __call__(self, k: int, window: int) -> float:
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((k, window))
        return float("nan") if k == 8 else (k - 5) ** 2 + abs(window - 20) / 10


def test_the_search_finds_the_best_pair_and_trains_none_twice() -> None:
    train = Landscape()
    found = search(train, k_max=8, windows=(10, 20, 50), trials=24)
    assert (found.k, found.window, found.value) == (5, 20, 0.0)
    assert sorted(train.asked) == sorted((k, w) for k in range(1, 9) for w in (10, 20, 50))
    assert found.tried[8, 20] == float("inf")


def test_the_search_is_better_than_chance_and_repeats_itself() -> None:
    found = [search(Landscape(), k_max=30, windows=(5, 10, 20, 30, 40, 50), trials=25, seed=seed) for seed in range(5)]
    assert np.median([each.value for each in found]) <= 1.0  # 5 of 180 pairs are as good
    assert all(len(each.tried) == 25 for each in found)
    assert search(Landscape(), k_max=30, windows=(5, 10, 20, 30, 40, 50), trials=25, seed=3) == found[3]


def test_an_interrupted_search_goes_on_from_its_journal(tmp_path: Path) -> None:
    journal, first, second = tmp_path / "new" / "phase1.log", Landscape(stop_after=7), Landscape()
    with pytest.raises(KeyboardInterrupt):
        search(first, trials=15, journal=journal)
    found = search(second, trials=15, journal=journal)
    assert len(second.asked) == 8
    assert not set(first.asked) & set(second.asked)
    assert set(found.tried) == set(first.asked) | set(second.asked)
    assert search(Landscape(stop_after=0), trials=15, journal=journal) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": ()}, "windows must hold at least one window"),
        ({"windows": (0,)}, "windows must be a whole number >= 1"),
        ({"trials": 0}, "trials must be a whole number >= 1"),
        ({"k_max": 2.5}, "k_max must be a whole number >= 1"),
        ({"journal": Path("/proc/no/journal")}, "journal cannot be written"),
    ],
)
def test_bad_options_of_the_search_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search(Landscape(), **options)


def test_without_optuna_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("optuna"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"pip install incrt\[search\]"):
        search(Landscape())
