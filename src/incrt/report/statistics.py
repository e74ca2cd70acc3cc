"""Statistics of samples over seeds, all from scipy but Cohen's d.

What cannot be said of a sample, because it has too few values or they are all equal, is None.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

LEVEL = 0.95
"""Of all intervals, unless another one is asked for."""
_RESAMPLES = 9999
_FEWEST_RESAMPLED = 5
"""Of fewer values the bootstrap's interval covers far less than it says (benchmarks/coverage.py)."""
_FEWEST_WITH_TIES = 9
"""Of fewer values, where some are equal, the usual approximation of Mann-Whitney's p is too small."""
_SEED = 0


@dataclass(frozen=True)
class Summary:
    """A sample: its mean with Student's interval, and its interquartile mean with a BCa bootstrap interval."""

    n: int
    mean: float | None
    std: float | None
    """With n - 1."""
    t_low: float | None
    t_high: float | None
    median: float | None
    iqm: float | None
    """Mean without the lowest and the highest quarter; below four values nothing is left out."""
    iqm_low: float | None
    iqm_high: float | None

    @property
    def half_width(self) -> float | None:
        """Of the mean's interval."""
        return None if self.t_low is None or self.t_high is None else (self.t_high - self.t_low) / 2


@dataclass(frozen=True)
class Rate:
    """How many of n, with the Wilson interval of the rate."""

    count: int
    n: int
    low: float | None
    high: float | None

    @property
    def value(self) -> float | None:
        return self.count / self.n if self.n else None


@dataclass(frozen=True)
class Comparison:
    """One sample against another: positive if the first has the larger values."""

    n: int
    n_other: int
    difference: float | None
    """Of the means."""
    low: float | None
    high: float | None
    """Welch's interval of the difference."""
    u: float | None
    """Mann-Whitney's, of the first sample."""
    p: float | None
    """Of U, two-sided."""
    cohens_d: float | None


def summarise(values: Iterable[float]) -> Summary:
    """Sum up a sample; the same values in any order give the same figures."""
    sample = _checked(values)
    if not sample:
        return Summary(0, *[None] * 8)
    (t_low, t_high), (iqm_low, iqm_high) = _student(sample), _bca(sample)
    return Summary(
        n=len(sample),
        mean=float(np.mean(sample)),
        std=float(np.std(sample, ddof=1)) if len(sample) > 1 else None,
        t_low=t_low,
        t_high=t_high,
        median=float(np.median(sample)),
        iqm=_iqm(sample),
        iqm_low=iqm_low,
        iqm_high=iqm_high,
    )


def rate(count: int, n: int) -> Rate:
    """How many of n, and what rates that is compatible with."""
    if not 0 <= count <= n:
        raise ValueError(f"count must be from 0 to n = {n}, got {count}")
    if n == 0:
        return Rate(0, 0, None, None)
    interval = stats.binomtest(count, n).proportion_ci(LEVEL, method="wilson")
    return Rate(count, n, float(interval.low), float(interval.high))


def compare(values: Iterable[float], others: Iterable[float], level: float = LEVEL) -> Comparison:
    """The first sample against the second; ``level`` is that of Welch's interval."""
    sample, other = _checked(values), _checked(others)
    if not sample or not other:
        return Comparison(len(sample), len(other), *[None] * 6)
    low, high = _welch(sample, other, level)
    u, p = _mann_whitney(sample, other)
    return Comparison(
        n=len(sample),
        n_other=len(other),
        difference=float(np.mean(sample) - np.mean(other)),
        low=low,
        high=high,
        u=u,
        p=p,
        cohens_d=_cohens_d(sample, other),
    )


def spread_p(values: Iterable[float], others: Iterable[float]) -> float | None:
    """Brown-Forsythe's test of equal spread: Levene's about the medians."""
    sample, other = _checked(values), _checked(others)
    if min(len(sample), len(other)) < 3:
        return None
    with _quiet():
        p = float(stats.levene(sample, other, center="median").pvalue)
    return p if math.isfinite(p) else None


def _checked(values: Iterable[float]) -> tuple[float, ...]:
    """Sorted, so that the bootstrap does not depend on the order."""
    sample = tuple(sorted(map(float, values)))
    if not all(map(math.isfinite, sample)):
        raise ValueError(f"a sample must hold finite numbers only, got {sample}")
    return sample


def _quiet() -> warnings.catch_warnings:
    """Nearly equal values make scipy warn; what comes of them is looked at instead."""
    return warnings.catch_warnings(action="ignore")


def _student(sample: tuple[float, ...]) -> tuple[float | None, float | None]:
    if sample[0] == sample[-1]:
        return None, None
    with _quiet():
        return _finite(stats.ttest_1samp(sample, 0.0).confidence_interval(LEVEL))


def _welch(sample: tuple[float, ...], other: tuple[float, ...], level: float) -> tuple[float | None, float | None]:
    both_equal = sample[0] == sample[-1] and other[0] == other[-1]
    if min(len(sample), len(other)) < 2 or both_equal:
        return None, None
    with _quiet():
        return _finite(stats.ttest_ind(sample, other, equal_var=False).confidence_interval(level))


def fisher_p(one: Rate, other: Rate) -> float:
    """Fisher's exact test of two counts."""
    table = [[each.count, each.n - each.count] for each in (one, other)]
    return float(stats.fisher_exact(table).pvalue)


def _mann_whitney(sample: tuple[float, ...], other: tuple[float, ...]) -> tuple[float | None, float | None]:
    distinct = {*sample, *other}
    if len(distinct) < 2:
        return None, None
    has_ties, fewest = len(distinct) < len(sample) + len(other), min(len(sample), len(other))
    is_permuted = has_ties and 1 < fewest < _FEWEST_WITH_TIES
    method = stats.PermutationMethod(rng=np.random.default_rng(_SEED)) if is_permuted else "auto"
    # In one order, whichever sample is named first: random permutations would else give two values of p.
    first, second = sorted((sample, other), key=lambda each: (len(each), each))
    found = stats.mannwhitneyu(first, second, method=method)
    statistic = float(found.statistic)
    return statistic if first is sample else len(sample) * len(other) - statistic, float(found.pvalue)


def _iqm(sample: tuple[float, ...]) -> float:
    return float(stats.trim_mean(sample, 0.25))


@lru_cache(maxsize=1024)
def _bca(sample: tuple[float, ...]) -> tuple[float | None, float | None]:
    """Of the interquartile mean. Kept, as several tables show the same sample."""
    if len(sample) < _FEWEST_RESAMPLED or sample[0] == sample[-1]:
        return None, None

    def statistic(resamples: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(stats.trim_mean(resamples, 0.25, axis=axis))

    with _quiet():
        found = stats.bootstrap(
            (sample,),
            statistic,
            n_resamples=_RESAMPLES,
            confidence_level=LEVEL,
            method="BCa",
            rng=np.random.default_rng(_SEED),
        )
    return _finite(found.confidence_interval)


def _cohens_d(sample: tuple[float, ...], other: tuple[float, ...]) -> float | None:
    """Difference of the means over the pooled standard deviation."""
    if min(len(sample), len(other)) < 2:
        return None
    free = len(sample) - 1, len(other) - 1
    pooled = math.sqrt((free[0] * np.var(sample, ddof=1) + free[1] * np.var(other, ddof=1)) / sum(free))
    return float(np.mean(sample) - np.mean(other)) / pooled if pooled > 0 else None


def _finite(interval: tuple[float, float]) -> tuple[float | None, float | None]:
    low, high = map(float, interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
