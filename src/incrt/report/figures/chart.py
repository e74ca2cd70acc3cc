"""What a figure shows, said once: the stills and the page are both drawn from it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from incrt.storage.records import Floats

Kind = Literal["line", "step", "band", "bar", "points"]
Dash = Literal["solid", "dash", "longdash", "longdashdot", "dot", "dashdot"]
Marker = Literal["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"]
Range = tuple[float, float]
SYMBOL = re.compile(r"\b(τ|K)_(z|max|d)\b")
"""Names in texts whose second part is set below the line, wherever that can be done."""


@dataclass(frozen=True)
class Series:
    """Points that belong together. What it is about, if it is about one thing only, is what filters look at."""

    kind: Kind
    x: Floats
    y: Floats
    """Of a band: its middle, which is not drawn."""
    colour: str
    label: str = ""
    """In the legend; the same label stands there once. Empty: it is not there."""
    low: Floats | None = None
    high: Floats | None = None
    """Ends of the error bars, or of the band."""
    width: float = 0.8
    """Of a bar, on the axis."""
    dash: Dash = "solid"
    marker: Marker = "circle"
    size: float = 7.0
    """Of a mark, in points."""
    opacity: float = 1.0
    hollow: bool = False
    """For numbers that are not ours: hatched bars, empty marks."""
    notes: tuple[str, ...] = ()
    """Of each point, for who points at it."""
    tau_z: float | None = None
    variant: str = ""


@dataclass(frozen=True)
class Heatmap:
    """A value for each cell; rows from below."""

    x: Floats
    y: Floats
    z: Floats
    """(y, x)."""
    label: str
    """What the value is."""
    variant: str = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...] = ()
    heatmap: Heatmap | None = None
    x_ticks: tuple[tuple[float, str], ...] = ()
    """Names of places on the axis; without them it is an axis of numbers."""
    x_range: Range | None = None
    y_range: Range | None = None
    y_whole: bool = False
    """The vertical axis counts."""
    tau_z: float | None = None
    """If the whole panel is about one regime."""


@dataclass(frozen=True)
class Chart:
    """A figure."""

    name: str
    """Of its files."""
    title: str
    caption: str
    preset: str
    studies: tuple[str, ...]
    """Whose runs it shows."""
    panels: tuple[Panel, ...]
    columns: int
    """Panels in a row, where there is room."""

    @property
    def series(self) -> Iterator[Series]:
        """Of all panels."""
        return (series for panel in self.panels for series in panel.series)

    @property
    def legend(self) -> tuple[Series, ...]:
        """The series that stand for the labels, one each, in the order of their first appearance."""
        first: dict[str, Series] = {}
        for series in self.series:
            if series.label:
                first.setdefault(series.label, series)
        return tuple(first.values())


def slug(words: str) -> str:
    """Words as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unnamed"
