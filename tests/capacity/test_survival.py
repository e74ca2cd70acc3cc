"""Steps until a task is solved, against the definitions."""

import math

import numpy as np
import pytest
from capacity_runs import outcome
from hypothesis import given
from hypothesis import strategies as st

from incrt.capacity.survival import logrank, median_steps, ratio_of_medians, survival

times = st.lists(st.integers(1, 200), min_size=1, max_size=30)


@given(times, st.integers(1, 200))
def test_without_censoring_the_curve_is_the_fraction_left(solved: list[int], step: int) -> None:
    steps, left = survival([outcome(solved_at=each) for each in solved])
    index = np.searchsorted(steps, step, side="right") - 1
    expected = np.mean(np.array(solved) > step)
    assert (left[index] if index >= 0 else 1.0) == pytest.approx(expected)


@given(times)
def test_the_median_is_that_of_the_times_if_all_solve_the_task(solved: list[int]) -> None:
    found = median_steps([outcome(solved_at=each) for each in solved])
    assert found == sorted(solved)[(len(solved) - 1) // 2]


@given(times, st.integers(0, 30))
def test_the_median_is_where_scipys_curve_reaches_one_half(solved: list[int], never: int) -> None:
    runs = [outcome(solved_at=each) for each in solved] + [outcome(solved_at=None, steps=100)] * never
    steps, left = survival(runs)
    reached = steps[left <= 0.5 + 1e-9]
    assert median_steps(runs) == (reached[0] if len(reached) else math.inf)


def test_the_ratio_of_medians_tells_twice_as_long_from_as_long() -> None:
    generator = np.random.default_rng(0)
    soon = [outcome(solved_at=int(each)) for each in generator.integers(90, 110, 20)]
    late = [outcome(solved_at=int(each)) for each in generator.integers(180, 220, 20)]
    never = [outcome(solved_at=None)] * 20
    ratio = ratio_of_medians(late, soon)
    assert ratio.value == pytest.approx(2, rel=0.1)
    assert ratio.low is not None
    assert ratio.high is not None
    assert 1.8 < ratio.low < ratio.high < 2.2
    assert ratio_of_medians(soon, soon).value == 1
    assert ratio_of_medians(never, soon) == (math.inf, math.inf, math.inf)
    assert ratio_of_medians(soon, never).value is None


def test_the_log_rank_test_sees_who_never_solves_the_task() -> None:
    soon = [outcome(solved_at=each) for each in range(50, 60)]
    never = [outcome(solved_at=None)] * 10
    small, large = logrank(soon, never), logrank(soon, soon)
    assert small is not None
    assert large is not None
    assert small < 1e-3
    assert large > 0.9
    assert logrank(never, never) is None
