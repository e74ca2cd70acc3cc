"""Statistics of samples over seeds, all from scipy but Cohen's d.

What cannot be said of a sample, because it has too few values or they are all equal, is None. What takes long, and not
every table shows, is a property.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

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

Sample = tuple[float, ...]
Interval = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True)
class Summary:
    """A sample: its mean with Student's interval, and its interquartile mean with a BCa bootstrap interval."""

    sample: Sample
    """In order."""
    mean: float | None = None
    std: float | None = None
    """With n - 1."""
    t_low: float | None = None
    t_high: float | None = None
    median: float | None = None

    @property
    def n(self) -> int:
        return len(self.sample)

    @property
    def iqm(self) -> float | None:
        """Mean without the lowest and the highest quarter; below four values nothing is left out."""
        return float(stats.trim_mean(self.sample, 0.25)) if self.sample else None

    @property
    def iqm_low(self) -> float | None:
        return _bca(self.sample)[0]

    @property
    def iqm_high(self) -> float | None:
        return _bca(self.sample)[1]

    @property
    def half_width(self) -> float | None:
        """Of the mean's interval."""
        return None if self.t_low is None or self.t_high is None else (self.t_high - self.t_low) / 2


@dataclass(frozen=True)
class Rate:
    """How many of n, with the Wilson interval of the rate."""

    count: int
    n: int
    low: float | None = None
    high: float | None = None

    @property
    def value(self) -> float | None:
        return self.count / self.n if self.n else None


@dataclass(frozen=True)
class Comparison:
    """One sample against another: positive if the first has the larger values."""

    sample: Sample
    other: Sample
    difference: float | None = None
    """Of the means."""
    low: float | None = None
    high: float | None = None
    """Welch's interval of the difference."""
    cohens_d: float | None = None

    @property
    def p(self) -> float | None:
        """Mann-Whitney's, two-sided."""
        return _mann_whitney_p(self.sample, self.other)


def summarise(values: Iterable[float]) -> Summary:
    """Sum up a sample; the same values in any order give the same numbers."""
    sample = _checked(values)
    if not sample:
        return Summary(sample)
    t_low, t_high = None, None
    if sample[0] != sample[-1]:
        with _quiet():
            t_low, t_high = _finite(stats.ttest_1samp(sample, 0.0).confidence_interval(LEVEL))
    return Summary(
        sample,
        mean=float(np.mean(sample)),
        std=float(np.std(sample, ddof=1)) if len(sample) > 1 else None,
        t_low=t_low,
        t_high=t_high,
        median=float(np.median(sample)),
    )


def rate(count: int, n: int) -> Rate:
    """How many of n, and what rates that is compatible with."""
    if not 0 <= count <= n:
        raise ValueError(f"count must be from 0 to n = {n}, got {count}")
    if n == 0:
        return Rate(0, 0)
    interval = stats.binomtest(count, n).proportion_ci(LEVEL, method="wilson")
    return Rate(count, n, float(interval.low), float(interval.high))


def compare(values: Iterable[float], others: Iterable[float], level: float = LEVEL) -> Comparison:
    """The first sample against the second; ``level`` is that of Welch's interval."""
    sample, other = _checked(values), _checked(others)
    if not sample or not other:
        return Comparison(sample, other)
    difference = float(np.mean(sample) - np.mean(other))
    low, high, cohens_d = None, None, None
    if min(len(sample), len(other)) > 1 and (sample[0] != sample[-1] or other[0] != other[-1]):
        with _quiet():
            low, high = _finite(stats.ttest_ind(sample, other, equal_var=False).confidence_interval(level))
        free = len(sample) - 1, len(other) - 1
        pooled = math.sqrt((free[0] * np.var(sample, ddof=1) + free[1] * np.var(other, ddof=1)) / sum(free))
        cohens_d = difference / pooled if pooled > 0 else None
    return Comparison(sample, other, difference, low, high, cohens_d)


def spread_p(values: Iterable[float], others: Iterable[float]) -> float | None:
    """Brown-Forsythe's test of equal spread: Levene's about the medians."""
    sample, other = _checked(values), _checked(others)
    if min(len(sample), len(other)) < 3:
        return None
    with _quiet():
        p = float(stats.levene(sample, other, center="median").pvalue)
    return p if math.isfinite(p) else None


def fisher_p(one: Rate, other: Rate) -> float:
    """Fisher's exact test of two counts."""
    return float(stats.fisher_exact([[each.count, each.n - each.count] for each in (one, other)]).pvalue)


def _checked(values: Iterable[float]) -> Sample:
    """Sorted, so that the bootstrap does not depend on the order."""
    sample = tuple(sorted(map(float, values)))
    if not all(map(math.isfinite, sample)):
        raise ValueError(f"a sample must hold finite numbers only, got {sample}")
    return sample


def _quiet() -> warnings.catch_warnings:
    """Nearly equal values make scipy warn; what comes of them is looked at instead."""
    return warnings.catch_warnings(action="ignore")


def _finite(interval: tuple[float, float]) -> Interval:
    low, high = map(float, interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def _mann_whitney_p(sample: Sample, other: Sample) -> float | None:
    distinct = {*sample, *other}
    if len(distinct) < 2 or not sample or not other:
        return None
    has_ties, fewest = len(distinct) < len(sample) + len(other), min(len(sample), len(other))
    method = stats.PermutationMethod(rng=_SEED) if has_ties and 1 < fewest < _FEWEST_WITH_TIES else "auto"
    # In one order, whichever sample is named first: random permutations would else give two values of p.
    first, second = sorted((sample, other), key=lambda each: (len(each), each))
    return float(stats.mannwhitneyu(first, second, method=method).pvalue)


@lru_cache(maxsize=1024)
def _bca(sample: Sample) -> Interval:
    """Of the interquartile mean. Kept, as several tables show the same sample."""
    if len(sample) < _FEWEST_RESAMPLED or sample[0] == sample[-1]:
        return None, None
    iqm = partial(stats.trim_mean, proportiontocut=0.25)
    with _quiet():
        found = stats.bootstrap((sample,), iqm, n_resamples=_RESAMPLES, confidence_level=LEVEL, method="BCa", rng=_SEED)
    return _finite(found.confidence_interval)
