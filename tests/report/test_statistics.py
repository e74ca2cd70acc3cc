"""Statistics over seeds: the paper's own intervals, textbook formulas, hand-made examples, and coverage."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from incrt.report.paper import CELLS, Printed
from incrt.report.statistics import compare, rate, spread_p, summarise

DELTAS = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=1, max_size=30)


@pytest.mark.parametrize("cell", [cell for cell in CELLS.values() if cell.std is not None])
def test_the_papers_intervals_follow_from_its_spreads(cell: Printed) -> None:
    assert cell.std is not None
    assert cell.half_width is not None
    factor = float(stats.t.ppf(0.975, cell.n - 1)) / math.sqrt(cell.n)
    # Both figures are rounded to 0.01: at K_max = 16 the rounded spread gives 12.79, where 12.78 is printed.
    assert cell.half_width == pytest.approx(factor * cell.std, abs=0.005 * (1 + factor))


def test_a_sample_with_the_papers_spread_has_the_papers_interval() -> None:
    ranks = np.arange(10) - 4.5
    summary = summarise(-45.82 + 9.91 * ranks / ranks.std(ddof=1))
    assert summary.half_width == pytest.approx(7.09, abs=0.005)
    assert summary.mean == pytest.approx(-45.82)
    assert summary.std == pytest.approx(9.91)


def test_a_hand_made_sample() -> None:
    summary = summarise([8.0, 1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 107.0])
    assert (summary.n, summary.mean, summary.median) == (8, 17.0, 4.5)
    assert summary.iqm == (3 + 4 + 5 + 6) / 4
    assert summary.iqm_low is not None
    assert summary.iqm_high is not None
    assert 1 <= summary.iqm_low < summary.iqm < summary.iqm_high <= 107


def test_intervals_agree_with_scipys_other_ways_to_them() -> None:
    random = np.random.default_rng(3)
    one, other = random.normal(size=12), random.normal(1.0, 3.0, size=7)
    summary, comparison = summarise(one), compare(one, other)
    expected = stats.t.interval(0.95, 11, np.mean(one), stats.sem(one))
    assert (summary.t_low, summary.t_high) == pytest.approx(expected)
    a, b = np.var(one, ddof=1) / 12, np.var(other, ddof=1) / 7
    free = (a + b) ** 2 / (a**2 / 11 + b**2 / 6)
    welch = stats.t.interval(0.95, free, np.mean(one) - np.mean(other), math.sqrt(a + b))
    assert (comparison.low, comparison.high) == pytest.approx(welch)
    wide = compare(one, other, 0.99)
    assert wide.low is not None
    assert comparison.low is not None
    assert wide.low < comparison.low


@given(st.integers(0, 60), st.integers(0, 60))
def test_wilson_by_its_formula(one: int, two: int) -> None:
    count, n = min(one, two), max(one, two)
    found = rate(count, n)
    if n == 0:
        assert (found.value, found.low, found.high) == (None, None, None)
        return
    z, share = float(stats.norm.ppf(0.975)), count / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert found.value == share
    assert found.low == pytest.approx(middle - half, abs=1e-9)
    assert found.high == pytest.approx(middle + half, abs=1e-9)


@pytest.mark.parametrize(("count", "n"), [(3, 2), (-1, 5), (1, 0)])
def test_a_count_that_cannot_be_is_refused(count: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"count must be from 0 to n = {n}, got {count}"):
        rate(count, n)


def test_mann_whitney_by_hand() -> None:
    # Of the 9 pairs the first sample wins one (3 > 2). Of the 20 ways to choose 3 ranks of 6, two give U <= 1.
    found = compare([0.0, 1.0, 3.0], [2.0, 4.0, 5.0])
    assert found.p == pytest.approx(2 * 2 / 20)


def test_cohens_d_by_hand() -> None:
    # Variances 1 and 4 with 2 and 2 degrees of freedom pool to 2.5; the means are 2 and 6.
    assert compare([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]).cohens_d == pytest.approx(-4 / math.sqrt(2.5))
    # Unequal sizes: (1 * 2 + 3 * 20/3) / 4 = 5.5, means 1 and 3.
    assert compare([0.0, 2.0], [0.0, 2.0, 4.0, 6.0]).cohens_d == pytest.approx(-2 / math.sqrt(5.5))


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0, 3.0]])
def test_what_cannot_be_said_of_a_sample_is_none(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.n == len(values)
    assert summary.mean == (3.0 if values else None)
    assert summary.std == (0.0 if len(values) > 1 else None)
    assert summary.half_width is None
    assert (summary.t_low, summary.t_high, summary.iqm_low, summary.iqm_high) == (None,) * 4


def test_what_cannot_be_said_of_two_samples_is_none() -> None:
    nothing, single, equal = compare([], [1.0, 2.0]), compare([1.0], [2.0, 3.0]), compare([1.0, 1.0], [1.0, 1.0])
    assert (nothing.difference, nothing.low, nothing.p, nothing.cohens_d) == (None,) * 4
    assert (single.difference, single.low, single.cohens_d) == (-1.5, None, None)
    assert single.p is not None
    assert (equal.difference, equal.low, equal.p, equal.cohens_d) == (0.0, None, None, None)
    assert compare([1.0, 1.0], [2.0, 4.0]).low is not None  # one spread is enough


def test_spreads_are_told_apart_about_the_medians() -> None:
    narrow, wide = [-1.0, 0.0, 1.0] * 10, [-9.0, 0.0, 9.0] * 10
    p = spread_p(narrow, wide)
    assert p is not None
    assert p < 1e-6
    assert spread_p(narrow, [value + 50 for value in narrow]) == pytest.approx(1.0)
    # Levene's test is an analysis of variance of the distances from the medians; of two samples, a t test.
    one, other = np.array([1.0, 0.0, 1.0]), np.array([4.0, 0.0, 9.0])
    assert spread_p([1.0, 2.0, 3.0], [1.0, 5.0, 14.0]) == pytest.approx(stats.ttest_ind(one, other).pvalue)
    assert spread_p([1.0, 2.0], [1.0, 5.0, 9.0]) is None
    assert spread_p([1.0] * 3, [2.0] * 3) is None


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="finite numbers only"):
        summarise([1.0, math.nan])
    with pytest.raises(ValueError, match="finite numbers only"):
        compare([1.0], [math.inf])


@given(DELTAS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values: list[float], random: Random) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert summarise(shuffled) == summarise(values)


@given(DELTAS, st.floats(-50, 50), st.floats(0.1, 10))
def test_shift_and_scale_carry_over(values: list[float], shift: float, scale: float) -> None:
    summary, moved = summarise(values), summarise([scale * value + shift for value in values])
    for name in ("mean", "median", "iqm", "t_low", "t_high"):
        before, after = getattr(summary, name), getattr(moved, name)
        if before is not None and after is not None:  # a scale may make nearly equal values equal
            assert after == pytest.approx(scale * before + shift, abs=1e-6)
    if summary.std is not None:
        assert moved.std == pytest.approx(scale * summary.std, abs=1e-6)


@given(DELTAS)
def test_intervals_lie_about_what_they_are_of(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.mean is not None
    assert summary.iqm is not None
    if len(values) % 4 == 0:  # else what is left out is less than a quarter on each side
        low, high = np.sort(values)[[len(values) // 4, -len(values) // 4 - 1]]
        assert low - 1e-9 <= summary.iqm <= high + 1e-9
    assert min(values) - 1e-9 <= summary.iqm <= max(values) + 1e-9
    if summary.t_low is not None and summary.t_high is not None:
        assert summary.t_low <= summary.mean <= summary.t_high
    if summary.iqm_low is not None and summary.iqm_high is not None:
        assert min(values) - 1e-9 <= summary.iqm_low <= summary.iqm_high <= max(values) + 1e-9


@given(DELTAS, DELTAS)
def test_a_comparison_turned_round_is_its_mirror(one: list[float], other: list[float]) -> None:
    assume(len({*one, *other}) > 1)
    found, turned = compare(one, other), compare(other, one)
    assert found.difference is not None
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.p == pytest.approx(found.p)
    if found.low is not None:
        assert turned.high == pytest.approx(-found.low)


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    random, repeats = np.random.default_rng(11), 250
    student, bca, welch, wilson = 0, 0, 0, 0
    for _ in range(repeats):
        one, other = random.normal(-50, 10, size=10), random.normal(-40, 20, size=10)
        summary, comparison, found = summarise(one), compare(one, other), rate(int(random.binomial(30, 0.3)), 30)
        assert summary.t_low is not None
        assert summary.t_high is not None
        student += summary.t_low <= -50 <= summary.t_high
        assert summary.iqm_low is not None
        assert summary.iqm_high is not None
        bca += summary.iqm_low <= -50 <= summary.iqm_high
        assert comparison.low is not None
        assert comparison.high is not None
        welch += comparison.low <= -10 <= comparison.high
        assert found.low is not None
        assert found.high is not None
        wilson += found.low <= 0.3 <= found.high
    for hits in (student, welch, wilson):  # 0.95 less four standard errors
        assert 0.895 <= hits / repeats <= 1
    assert 0.87 <= bca / repeats <= 1  # at n = 10 the bootstrap's are a little narrow: benchmarks/coverage.py
