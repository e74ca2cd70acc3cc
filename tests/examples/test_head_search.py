"""The search over heads and windows, with tiny runs: it counts what is there, and trains no pair twice."""

from pathlib import Path

import pytest
from by_path import load
from small_runs import RUN

import incrt

# Optuna warns of its own journal, which is new.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

example = load("examples/head_search.py")
TINY = RUN.replace(encoder={"encoder": "static", "k_max": 2}, sac={"steps": 30})


def test_a_search_goes_on_where_it_was_and_its_best_is_what_the_policy_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "WINDOWS", (3, 4))
    first = example.done(example.search(tmp_path / "new", 1, TINY))
    assert len(first) == 1
    trained = {path: path.stat().st_mtime_ns for path in tmp_path.glob("new/*/policy.safetensors")}
    again = example.done(example.search(tmp_path / "new", 2, TINY))
    assert len(again) == 2
    assert {path: path.stat().st_mtime_ns for path in trained} == trained
    best = again[0]
    assert best.values[0] == min(each.values[0] for each in again)
    folder = tmp_path / "new" / f"K{best.params['K']}-W{best.params['W']}"
    task = TINY.task.replace(window=best.params["W"])
    assert best.values[0] == pytest.approx(incrt.evaluate(task, incrt.load_policy(folder))[0].rmse, rel=1e-6)
    assert example.done(example.search(tmp_path / "new", 1, TINY)) == again  # enough is there
