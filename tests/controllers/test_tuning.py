"""The search and the cache of tuned controllers."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import preset_task

from incrt.controllers import tuning
from incrt.controllers.search import minimise
from incrt.controllers.tuning import reference_controller
from incrt.storage.cache import cache_folder


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
    config = preset_task("memory", horizon=20, eval_payloads=(0.5,), eval_rollouts=1)
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
    for path in cache_folder().iterdir():
        path.write_text(damage)
    damaged = reference_controller("best_constant", config)
    assert len(searches) == 4
    assert jax.tree.all(jax.tree.map(np.array_equal, first, damaged))
