"""The search over head counts and windows, on landscapes that are known."""

import builtins
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrt.head_search import search


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
    journal, first, second = tmp_path / "new" / "phase1.jsonl", Landscape(stop_after=7), Landscape()
    with pytest.raises(KeyboardInterrupt):
        search(first, trials=15, journal=journal)
    found = search(second, trials=15, journal=journal)
    assert len(second.asked) == 8
    assert not set(first.asked) & set(second.asked)
    assert set(found.tried) == set(first.asked) | set(second.asked)
    assert search(Landscape(stop_after=0), trials=15, journal=journal) == found


def test_a_journal_of_a_wider_search_lends_what_fits(tmp_path: Path) -> None:
    journal = tmp_path / "phase1.jsonl"
    wide = search(Landscape(), trials=24, journal=journal)
    narrow, train = {pair: value for pair, value in wide.tried.items() if pair[0] <= 3 and pair[1] == 20}, Landscape()
    found = search(train, k_max=3, windows=(20, 40), trials=99, journal=journal)
    assert sorted(train.asked) == [(1, 40), (2, 40), (3, 40)]
    assert {pair: value for pair, value in found.tried.items() if pair[1] == 20} == narrow
    assert (found.k, found.window) == (3, 20)


def test_a_line_that_a_crash_cut_short_costs_that_training_alone(tmp_path: Path) -> None:
    journal = tmp_path / "phase1.jsonl"
    whole = search(Landscape(), trials=6, journal=journal)
    lines = journal.read_text().splitlines()
    for cut in (1, 9, len(lines[-1]) - 1):
        journal.write_text("\n".join([*lines[:-1], lines[-1][:cut]]))
        train = Landscape()
        again = search(train, trials=6, journal=journal)
        assert len(train.asked) == 1
        assert len(again.tried) == len(whole.tried) == len(journal.read_text().splitlines())


@pytest.mark.parametrize(
    "content", ["hello world\n", "hello", '{"op_code": 0}\n', "[1]\n", '{"k": 0, "window": 1, "value": 1}\n']
)
def test_a_foreign_file_is_refused_and_left_alone(content: str, tmp_path: Path) -> None:
    journal = tmp_path / "notes.txt"
    journal.write_text(content)
    with pytest.raises(ValueError, match=r"journal .*notes.txt is not one of this search: line 1 is"):
        search(Landscape(), journal=journal)
    assert journal.read_text() == content


def test_a_search_in_which_nothing_works_says_so() -> None:
    with pytest.raises(ValueError, match="none of 3 trainings gave a finite value"):
        search(lambda k, window: math.nan * k * window, trials=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": ()}, "windows must hold at least one window"),
        ({"windows": (0,)}, "windows must be a whole number >= 1"),
        ({"trials": 0}, "trials must be a whole number >= 1"),
        ({"k_max": 2.5}, "k_max must be a whole number >= 1"),
        ({"windows": 20}, "windows must be a list of numbers, got 20"),
        ({"seed": None}, "seed must be a number"),
        ({"journal": "/proc/no/journal"}, "journal /proc/no/journal cannot be used"),
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
