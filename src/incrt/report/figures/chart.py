"""What the page needs to know of a figure, and the runs that figures are drawn from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from incrt.report.data import Dataset
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.style import Look, looks
from incrt.report.selection import Runs, groups

STEPS = "environment steps"


@dataclass(frozen=True)
class Chart:
    """A figure of the report, and what it shows, by which the page filters."""

    name: str
    """Of its files."""
    caption: str
    drawing: Drawing
    preset: str
    studies: Sequence[str]
    variants: Sequence[str]
    regimes: Sequence[float]

    @property
    def description(self) -> str:
        """For who cannot see it."""
        panels = "; ".join(panel.description for panel in self.drawing.panels)
        return f"{self.drawing.title}. {panels}"

    @property
    def numbers(self) -> list[tuple[str | None, ...]]:
        """What the marks of all panels stand for: what, measured by what, and how much."""
        panels = self.drawing.panels
        return list(dict.fromkeys((what, panel.y_title, value) for panel in panels for what, value in panel.numbers))


class View(Runs):
    """The runs of one preset, and how their variants are drawn."""

    def __init__(self, dataset: Dataset, preset: str) -> None:
        super().__init__(dataset, preset)
        # The looks are those of all presets: a variant is drawn the same wherever it is.
        self._looks = looks(list(groups(study).values()) for study in dataset.studies)

    def look(self, variant: str) -> Look:
        return self._looks[variant]


def regime_name(tau_z: float) -> str:
    """A regime in texts."""
    return f"τ_z = {tau_z:g} s"


def slug(words: str) -> str:
    """Words as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unnamed"
