"""Parts that many charts are made of."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from incrt.controllers.tuning import CONTROLLERS
from incrt.report.data import Dataset
from incrt.report.figures.chart import Chart, Panel, Series
from incrt.report.figures.style import GREY, REFERENCE_DASHES, Look, looks
from incrt.report.selection import Runs, deltas, diverged, groups
from incrt.report.statistics import summarise
from incrt.report.wording import interval_text, number, plus_minus
from incrt.storage.records import Floats

STEPS = "environment steps"
PAPER = "the paper: "
Metric = Literal["delta_pct", "headroom_closed"]
METRICS: dict[Metric, str] = {"delta_pct": "Δ% of the RMSE", "headroom_closed": "headroom closed"}
_GOLDEN = 0.6180339887


class View(Runs):
    """The runs of one preset, and how their variants are drawn."""

    def __init__(self, dataset: Dataset, preset: str) -> None:
        super().__init__(dataset, preset)
        # The looks are those of all presets: a variant is drawn the same wherever it is.
        self._looks = looks(list(groups(study).values()) for study in dataset.studies)

    def look(self, variant: str) -> Look:
        return self._looks[variant]

    def chart(
        self, name: str, title: str, caption: str, studies: Sequence[str], panels: Iterable[Panel], columns: int
    ) -> Chart | None:
        """A chart of those panels in which there is something; none without any."""
        shown = tuple(panel for panel in panels if panel.series or panel.heatmap)
        return Chart(name, title, caption, self.preset, tuple(studies), shown, columns) if shown else None


@dataclass(frozen=True)
class Place:
    """Where a mark stands, and what it is about."""

    x: float
    width: float
    tau_z: float
    variant: str

    def moved(self, by: float, width: float | None = None) -> "Place":
        """Beside it."""
        return replace(self, x=self.x + by, width=self.width if width is None else width)

    def series(self, kind: Literal["bar", "points"], y: float, colour: str, **others: Any) -> Series:
        """One mark there."""
        return Series(
            kind, at(self.x), at(y), colour, width=self.width, tau_z=self.tau_z, variant=self.variant, **others
        )


def at(*values: float) -> Floats:
    """Points given one by one."""
    return np.array(values, float)


def regime_name(tau_z: float) -> str:
    """A regime in texts."""
    return f"τ_z = {tau_z:g} s"


def mean_mark(
    kind: Literal["bar", "points"], sample: Sequence[float], look: Look, label: str, place: Place
) -> list[Series]:
    """The mean of a sample with Student's interval; nothing of an empty sample."""
    found = summarise(sample)
    if found.mean is None:
        return []
    low, high = (None if end is None else at(end) for end in (found.t_low, found.t_high))
    words = interval_text(found.mean, found.t_low, found.t_high)
    notes = (f"{label}, {regime_name(place.tau_z)}: {words}, n = {found.n}",)
    ends = {"low": low, "high": high}
    return [place.series(kind, found.mean, look.colour, label=label, marker=look.marker, size=9.0, notes=notes, **ends)]


def paper_mark(
    kind: Literal["bar", "points"], value: float, half_width: float | None, colour: str, label: str, place: Place
) -> Series:
    """A number of the paper's, with its interval where it gives one."""
    ends = {} if half_width is None else {"low": at(value - half_width), "high": at(value + half_width)}
    notes = (f"{label}, {regime_name(place.tau_z)}: {plus_minus(value, half_width)}",)
    return place.series(kind, value, colour, label=label, marker="diamond", size=9.0, hollow=True, notes=notes, **ends)


def seed_dots(rows: pl.DataFrame, metric: Metric, colour: str, place: Place, size: float = 4.0) -> list[Series]:
    """A dot a seed, spread over the width so that they can be told apart."""
    shown = rows.drop_nulls(metric)
    if not len(shown):
        return []
    spread = 0.7 * place.width * (((np.arange(len(shown)) + 1) * _GOLDEN) % 1 - 0.5)
    named = shown.select("variant", "seed", metric).iter_rows()
    return [
        Series(
            "points",
            np.asarray(place.x + spread, float),
            shown[metric].to_numpy(),
            colour,
            size=size,
            opacity=0.75,
            notes=tuple(f"{variant}, seed {seed}: {number(value)}" for variant, seed, value in named),
            tau_z=place.tau_z,
            variant=place.variant,
        )
    ]


def controller_lines(
    view: View,
    studies: Sequence[str],
    tau_z: float,
    left: float,
    right: float,
    metric: Metric = "delta_pct",
    condition: str = "",
) -> list[Series]:
    """What the reference controllers reach, from left to right. The baseline is where Δ% is 0.

    Where each variant has a task of its own there is no one line for all: the tables have them.
    """
    dashes = dict(zip(CONTROLLERS[1:], itertools.cycle(REFERENCE_DASHES), strict=False))
    lines = []
    for row in view.controllers(studies, tau_z, condition):
        value, dash = row[metric], dashes.get(row["controller"])
        if dash is not None and value is not None and not row["variant"]:
            name = row["controller"].replace("_", " ")
            notes = (f"{name}, {regime_name(tau_z)}: {number(value)}",) * 2
            ends = at(left, right), at(value, value)
            lines.append(Series("line", *ends, GREY, name, dash=dash, notes=notes, tau_z=tau_z))
    return lines


def beside(group: int, index: int, count: int) -> tuple[float, float]:
    """Where the index-th of ``count`` marks of a group stands, and how wide it may be."""
    width = 0.84 / count
    return group + (index - (count - 1) / 2) * width, width


def ticks(names: Iterable[str]) -> tuple[tuple[float, str], ...]:
    """Names along an axis."""
    return tuple((float(place), name) for place, name in enumerate(names))


def counted(cells: Iterable[pl.DataFrame]) -> str:
    """How many seeds, said once: n = 10, or n = 8 to 10; and how many runs diverged, which are in none of it."""
    known = [cell for cell in cells if len(cell)]
    found = sorted({len(deltas(cell)) for cell in known})
    if not found:
        return "no runs"
    words = f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]} to {found[-1]}"
    lost = sum(map(diverged, known))
    return f"{words}; {lost} diverged and left out" if lost else words
