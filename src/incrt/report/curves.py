"""Means over runs that were measured at different steps."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from incrt.report.statistics import LEVEL
from incrt.storage.records import Floats

_BINS = 100


@dataclass(frozen=True)
class Curve:
    """Over steps; NaN where it is not known."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    """Student's interval of the mean, where there are two values that differ."""
    least: Floats
    most: Floats
    """Of the values themselves."""


def mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> Curve | None:
    """The mean of curves, each steps and values; the axis is cut into at most a hundred parts.

    In a part, the mean is that of the curves with a value there, however many they have.
    """
    last = max((float(steps[-1]) for steps, _ in curves if len(steps)), default=0.0)
    if last <= 0:
        return None
    parts = min(_BINS, max(len(steps) for steps, _ in curves))
    values = np.array([in_parts(steps, curve, last, parts) for steps, curve in curves])
    known = np.isfinite(values)
    kept = known.any(axis=0)
    if not kept.any():
        return None
    values, counts = values[:, kept], known[:, kept].sum(axis=0)
    mean = np.nanmean(values, axis=0)
    with warnings.catch_warnings(action="ignore"):  # where there is one value
        spread = np.nanstd(values, axis=0, ddof=1)
    # As statistics.summarise has it, for many samples at once.
    half = stats.t.ppf((1 + LEVEL) / 2, np.maximum(counts - 1, 1)) * np.where(spread > 0, spread, np.nan)
    half /= np.sqrt(counts)
    x = (np.flatnonzero(kept) + 1) * last / parts
    return Curve(x, mean, mean - half, mean + half, np.nanmin(values, axis=0), np.nanmax(values, axis=0))


def in_parts(steps: Floats, values: Floats, last: float, parts: int) -> Floats:
    """The mean of the values in each part of the axis, which holds its right end."""
    part, known = _parts_of(steps, last, parts), np.isfinite(values)
    sums = np.bincount(part[known], values[known], parts)
    counts = np.bincount(part[known], minlength=parts)
    return np.asarray(np.divide(sums, counts, out=np.full(parts, np.nan), where=counts > 0), float)


def scatter_in_parts(steps: Floats, values: Floats, last: float, parts: int) -> Floats:
    """The standard deviation of the values in each part, with n - 1; NaN where there are fewer than two."""
    part, known = _parts_of(steps, last, parts), np.isfinite(values)
    found = [values[known & (part == each)] for each in range(parts)]
    return np.array([np.std(each, ddof=1) if len(each) > 1 else np.nan for each in found])


def _parts_of(steps: Floats, last: float, parts: int) -> npt.NDArray[np.intp]:
    return np.clip(np.ceil(steps / last * parts - 1e-9).astype(np.intp) - 1, 0, parts - 1)
