"""Parts that many charts are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from incrt.controllers.tuning import CONTROLLERS
from incrt.report.charts.chart import Series
from incrt.report.charts.colours import GREY, REFERENCE_DASHES, Look
from incrt.report.charts.view import View
from incrt.report.outcomes import Floats, Outcome
from incrt.report.selection import deltas, diverged
from incrt.report.statistics import summarise
from incrt.report.wording import interval_text, number, plus_minus

STEPS = "environment steps"
Measure = Literal["delta_pct", "headroom_closed"]
MEASURES: dict[Measure, str] = {"delta_pct": "Δ% of the RMSE", "headroom_closed": "headroom closed"}
_GOLDEN = 0.6180339887


@dataclass(frozen=True)
class Place:
    """Where a mark stands, and what it is about."""

    x: float
    width: float
    tau_z: float
    variant: str


def at(*values: float) -> Floats:
    """Points given one by one."""
    return np.array(values, float)


def regime_name(tau_z: float) -> str:
    """A regime in texts."""
    return f"τ_z = {tau_z:g} s"


def values_of(outcomes: Iterable[Outcome], measure: Measure) -> list[float]:
    """Those that are known."""
    found = (getattr(outcome, measure) for outcome in outcomes)
    return [value for value in found if value is not None]


def mean_mark(
    kind: Literal["bar", "points"], sample: Sequence[float], look: Look, label: str, place: Place
) -> list[Series]:
    """The mean of a sample with Student's interval; nothing of an empty sample."""
    found = summarise(sample)
    if found.mean is None:
        return []
    low, high = (None, None) if found.t_low is None or found.t_high is None else (at(found.t_low), at(found.t_high))
    words = (
        f"{label}, {regime_name(place.tau_z)}: {interval_text(found.mean, found.t_low, found.t_high)}, n = {found.n}"
    )
    return [
        Series(
            kind,
            at(place.x),
            at(found.mean),
            look.colour,
            label,
            low=low,
            high=high,
            width=place.width,
            marker=look.marker,
            size=9.0,
            notes=(words,),
            tau_z=place.tau_z,
            variant=place.variant,
        )
    ]


def seed_dots(
    outcomes: Sequence[Outcome], measure: Measure, colour: str, place: Place, size: float = 4.0
) -> list[Series]:
    """A dot a seed, spread over the width so that they can be told apart."""
    shown = [outcome for outcome in outcomes if getattr(outcome, measure) is not None]
    if not shown:
        return []
    spread = 0.7 * place.width * (((np.arange(len(shown)) + 1) * _GOLDEN) % 1 - 0.5)
    return [
        Series(
            "points",
            np.asarray(place.x + spread, float),
            np.array(values_of(shown, measure)),
            colour,
            size=size,
            opacity=0.75,
            notes=tuple(f"{each.variant}, seed {each.seed}: {number(getattr(each, measure))}" for each in shown),
            tau_z=place.tau_z,
            variant=place.variant,
        )
    ]


def reference_lines(
    view: View,
    studies: Sequence[str],
    tau_z: float,
    left: float,
    right: float,
    measure: Measure = "delta_pct",
    condition: str = "",
) -> list[Series]:
    """What the reference controllers reach, from left to right. The baseline is where Δ% is 0.

    Where each variant has a task of its own there is no one line for all: the tables have them.
    """
    dashes = dict(zip(CONTROLLERS[1:], REFERENCE_DASHES, strict=True))
    lines = []
    for reference in view.runs.beside(studies, tau_z, condition):
        value = getattr(reference, measure)
        if reference.controller in dashes and value is not None and not reference.variant:
            name = reference.controller.replace("_", " ")
            note = f"{name}, {regime_name(tau_z)}: {number(value)}"
            dash, ends = dashes[reference.controller], at(left, right)
            lines.append(Series("line", ends, at(value, value), GREY, name, dash=dash, notes=(note, note), tau_z=tau_z))
    return lines


def paper_mark(
    kind: Literal["bar", "points"],
    value: float,
    half_width: float | None,
    colour: str,
    label: str,
    place: Place,
) -> Series:
    """A figure of the paper's, with its interval where it gives one."""
    return Series(
        kind,
        at(place.x),
        at(value),
        colour,
        label,
        low=None if half_width is None else at(value - half_width),
        high=None if half_width is None else at(value + half_width),
        width=place.width,
        marker="diamond",
        size=9.0,
        hollow=True,
        notes=(f"{label}, {regime_name(place.tau_z)}: {plus_minus(value, half_width)}",),
        tau_z=place.tau_z,
        variant=place.variant,
    )


def beside(group: int, index: int, count: int) -> tuple[float, float]:
    """Where the index-th of ``count`` marks of a group stands, and how wide it may be."""
    width = 0.84 / count
    return group + (index - (count - 1) / 2) * width, width


def counted(cells: Iterable[Sequence[Outcome]]) -> str:
    """How many seeds, said once: n = 10, or n = 8 to 10; and how many runs diverged, which are in none of it."""
    known = [cell for cell in cells if cell]
    found = sorted({len(deltas(cell)) for cell in known})
    if not found:
        return "no runs"
    words = f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]} to {found[-1]}"
    lost = sum(map(diverged, known))
    return f"{words}; {lost} diverged and left out" if lost else words
