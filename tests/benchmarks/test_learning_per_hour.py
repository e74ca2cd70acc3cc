"""The comparison of learning per hour: its medians, and that it goes on where it was. Nothing is trained here."""

import math
from pathlib import Path
from typing import Any

import pytest
from by_path import load

from incrt.engine.compilation import covered

benchmark = load("benchmarks/learning_per_hour.py")


def trained(who: str, seed: int, steps: int, *changes: float) -> Any:
    """A training with an evaluation every ten seconds, three of them spent on compiling."""
    points = [benchmark.Point(1000 * i, 10.0 * i, 3.0, change) for i, change in enumerate(changes, 1)]
    return benchmark.Training(who, seed, steps, 60.0, points)


def test_who_does_not_get_there_takes_infinitely_long() -> None:
    reached = [trained("sbx", seed, 9000, *[-50.0] * seed, -85.0) for seed in range(3)]
    never = [trained("sbx", seed, 9000, -84.9, math.inf) for seed in (3, 4)]
    found = benchmark.summary(reached + never)
    assert (found["reached"], found["seeds"]) == (3, 5)
    assert found["best_delta_pct"] == -85.0
    assert found["steps"] == {"median": 3000, "min": 1000, "max": math.inf}
    assert found["seconds"] == {"median": 30, "min": 10, "max": math.inf}
    assert found["seconds_without_compiling"] == {"median": 27, "min": 7, "max": math.inf}
    text = benchmark.table([found, benchmark.summary(reached[:2] + never + never[:1])])
    assert "3/5" in text
    assert "30 (10 to never)" in text
    assert "never (10 to never)" in text


def test_the_first_evaluation_at_the_goal_counts_even_if_a_later_one_is_worse() -> None:
    found = benchmark.summary([trained("engine", 0, 9000, -84.99, -85.0, -70.0, -90.0)])
    assert found["steps"]["median"] == 2000


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    begun: list[Any] = []

    def train(who: str, seed: int, steps: int) -> Any:
        if len(begun) == 2:
            raise KeyboardInterrupt
        begun.append((who, seed, steps))
        return trained(who, seed, steps, math.inf, -60.0, -86.0)

    keys = [("engine", 1, 50), ("sbx", 1, 50), ("engine", 2, 50)]
    out = tmp_path / "trainings.jsonl"
    with pytest.raises(KeyboardInterrupt):
        benchmark.study(keys, out, train)
    assert begun == keys[:2]
    begun.clear()
    found = benchmark.study(keys, out, train)
    assert begun == keys[2:]
    assert found == [trained(*key, math.inf, -60.0, -86.0) for key in keys]
    benchmark.study([("sbx", 1, 60)], out, train)  # of another length
    assert begun == [keys[2], ("sbx", 1, 60)]


def test_a_figure_shows_who_never_gets_there_too(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.png"
    benchmark.draw(path, {"sb3": [trained("sb3", 0, 9000, 5.0, -20.0)]})
    assert path.stat().st_size > 0


def test_time_that_several_spans_cover_counts_once() -> None:
    assert covered([(1, 2), (0, 3), (5, 6), (5.5, 7)]) == 5
    assert covered([]) == 0
