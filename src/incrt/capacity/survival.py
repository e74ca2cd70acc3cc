"""Steps until a task is solved, where some runs never solve it: those are censored at their last step."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from incrt.capacity.outcomes import Outcome

_RESAMPLES = 9999
_LEVEL = 0.95


class Ratio(NamedTuple):
    """How many times as many steps one variant takes as the other, by medians, with a bootstrap interval.

    Infinite where the one has no median, since too few of its runs solve the task; None where the other has none.
    """

    value: float | None
    low: float | None
    high: float | None


def censored(outcomes: Sequence[Outcome]) -> stats.CensoredData:
    """The steps as SciPy has them."""
    return stats.CensoredData(
        uncensored=[each.solved_at for each in outcomes if each.solved_at is not None],
        right=[each.steps for each in outcomes if each.solved_at is None],
    )


def survival(outcomes: Sequence[Outcome]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Kaplan and Meier's curve: steps, and the fraction of runs that has not solved the task by then."""
    found = stats.ecdf(censored(outcomes)).sf
    return found.quantiles, found.probabilities


def median_steps(outcomes: Sequence[Outcome]) -> float:
    """The step by which half of the runs have solved the task, by that curve; infinite if they never do."""
    return _median(*_times(outcomes))


def logrank(one: Sequence[Outcome], other: Sequence[Outcome]) -> float | None:
    """p of the log-rank test that both solve the task equally soon; None where too few of them do."""
    if not any(each.solved_at is not None for each in (*one, *other)):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        p = float(stats.logrank(censored(one), censored(other)).pvalue)
    return None if np.isnan(p) else p


def ratio_of_medians(one: Sequence[Outcome], other: Sequence[Outcome]) -> Ratio:
    """Median steps of the one over those of the other, runs drawn again and again for the interval."""
    generator = np.random.default_rng(0)

    def draw(outcomes: Sequence[Outcome]) -> npt.NDArray[np.float64]:
        times, solved = _times(outcomes)
        rows = generator.integers(len(times), size=(_RESAMPLES, len(times)))
        return np.array([_median(times[row], solved[row]) for row in rows])

    value = _quotient(median_steps(one), median_steps(other))
    with np.errstate(invalid="ignore"):
        drawn = draw(one) / draw(other)
    known = drawn[~np.isnan(drawn)]
    if value is None or len(known) < len(drawn) / 2:
        return Ratio(value, None, None)
    # Not interpolated: between a number and infinity there is nothing.
    low, high = np.quantile(known, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], method="nearest")
    return Ratio(value, float(low), float(high))


def _quotient(one: float, other: float) -> float | None:
    return None if np.isinf(other) else float(one / other)


def _times(outcomes: Sequence[Outcome]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    solved = np.array([each.solved_at is not None for each in outcomes])
    return np.array([each.steps if each.solved_at is None else each.solved_at for each in outcomes], float), solved


def _median(times: npt.NDArray[np.float64], solved: npt.NDArray[np.bool_]) -> float:
    """Where Kaplan and Meier's curve reaches one half."""
    order = np.lexsort((~solved, times))  # of equal times those that solve the task come first
    at_risk = len(times) - np.arange(len(times))
    left = np.cumprod(np.where(solved[order], 1 - 1 / at_risk, 1.0))
    reached = np.flatnonzero(left <= 0.5 + 1e-12)
    return float(times[order][reached[0]]) if len(reached) else float("inf")
