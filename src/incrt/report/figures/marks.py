"""Marks that many figures are made of."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from incrt.controllers.tuning import CONTROLLERS
from incrt.report import paper
from incrt.report.figures.chart import View, regime_name
from incrt.report.figures.drawing import Panel
from incrt.report.figures.style import GREY, REFERENCE_DASHES, Look
from incrt.report.selection import deltas, diverged
from incrt.report.statistics import summarise
from incrt.report.wording import interval_text, number, plus_minus

PAPER = "the paper: "
Metric = Literal["delta_pct", "headroom_closed"]
METRICS: dict[Metric, str] = {"delta_pct": "Δ% of the RMSE", "headroom_closed": "headroom closed"}
_GOLDEN = 0.6180339887


def mean_mark(
    panel: Panel, x: float, sample: Sequence[float], look: Look, what: str, label: str = "", width: float | None = None
) -> None:
    """The mean of a sample with Student's interval; nothing of an empty sample."""
    found = summarise(sample)
    if found.mean is not None:
        words = interval_text(found.mean, found.t_low, found.t_high)
        panel.numbers.append((what, f"{words}, n = {found.n}"))
        mark(panel, x, found.mean, found.half_width, look.colour, label, width=width, marker=look.marker)


def paper_mark(
    panel: Panel,
    x: float,
    printed: paper.Printed,
    what: str,
    label: str,
    width: float | None = None,
    colour: str = GREY,
) -> None:
    """A mean of the paper's, with its interval where it gives one."""
    panel.numbers.append((f"{label}, {what}", plus_minus(printed.mean, printed.half_width)))
    mark(panel, x, printed.mean, printed.half_width, colour, label, width=width, marker="D", hollow=True)


def mark(
    panel: Panel,
    x: float,
    y: float,
    half_width: float | None,
    colour: str,
    label: str,
    *,
    width: float | None = None,
    marker: str = "D",
    hollow: bool = False,
) -> None:
    """A number and its interval: a bar if it has a width, else a point. Hollow are numbers that are not ours."""
    if width is not None:
        fill: dict[str, Any] = {"facecolor": colour}
        if hollow:
            fill = {"facecolor": "none", "edgecolor": colour, "hatch": "/////", "linewidth": 0.8}
        ends = {"ecolor": "#333333", "elinewidth": 1.1}
        panel.axes.bar(x, y, width, yerr=half_width, label=label, error_kw=ends, **fill)
        return
    face, edge = ("none", 1.0) if hollow else (colour, 0.0)
    shape: dict[str, Any] = {"marker": marker, "markersize": 6.75, "markerfacecolor": face, "markeredgewidth": edge}
    panel.axes.plot(x, y, color=colour, linestyle="none", label=label, **shape)
    if half_width is not None:
        panel.axes.errorbar(x, y, half_width, fmt="none", ecolor=colour, elinewidth=1.1)


def seed_dots(
    panel: Panel, x: float, width: float, rows: pl.DataFrame, metric: Metric, colour: str, size: float = 3.0
) -> None:
    """A dot a seed, spread over the width so that they can be told apart."""
    shown = rows.drop_nulls(metric)
    spread = 0.7 * width * (((np.arange(len(shown)) + 1) * _GOLDEN) % 1 - 0.5)
    panel.axes.plot(x + spread, shown[metric], "o", color=colour, markersize=size, markeredgewidth=0, alpha=0.75)
    for variant, seed, tau_z, value in shown.select("variant", "seed", "tau_z", metric).iter_rows():
        panel.numbers.append((f"{variant}, seed {seed}, {regime_name(tau_z)}", number(value)))


def controller_lines(
    panel: Panel,
    view: View,
    studies: Sequence[str],
    tau_z: float,
    left: float,
    right: float,
    metric: Metric = "delta_pct",
    condition: str = "",
) -> None:
    """What the reference controllers reach, from left to right. The baseline is where Δ% is 0.

    Where each variant has a task of its own there is no one line for all: the tables have them.
    """
    dashes = dict(zip(CONTROLLERS[1:], itertools.cycle(REFERENCE_DASHES), strict=False))
    for row in view.controllers(studies, tau_z, condition):
        value, dash = row[metric], dashes.get(row["controller"])
        if dash is not None and value is not None and not row["variant"]:
            name = row["controller"].replace("_", " ")
            panel.axes.plot([left, right], [value, value], color=GREY, linestyle=dash, label=name)
            panel.numbers.append((", ".join(filter(None, (name, condition, regime_name(tau_z)))), number(value)))


def beside(group: int, index: int, count: int) -> tuple[float, float]:
    """Where the index-th of ``count`` marks of a group stands, and how wide it may be."""
    width = 0.84 / count
    return group + (index - (count - 1) / 2) * width, width


def counted(cells: Iterable[pl.DataFrame]) -> str:
    """How many seeds, said once: n = 10, or n = 8 to 10; and how many runs diverged, which are in none of it."""
    known = [cell for cell in cells if len(cell)]
    found = sorted({len(deltas(cell)) for cell in known})
    if not found:
        return "no runs"
    words = f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]} to {found[-1]}"
    lost = sum(map(diverged, known))
    return f"{words}; {lost} diverged and left out" if lost else words
