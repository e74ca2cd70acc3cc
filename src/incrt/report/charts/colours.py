"""Colours and marks of the variants.

Seven colours that stay apart for the colour-blind and stand out from white as from near black; there, no more of them
do. A mark goes with each colour, so that nothing hangs on colour alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from incrt.report.charts.chart import Dash, Marker

COLOURS = ("#0072b2", "#cf8804", "#af2604", "#13a5a3", "#2f4df1", "#a04055", "#a39760")
MARKERS: tuple[Marker, ...] = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x")
GREY = "#7f8488"
"""What is not a learned variant of ours."""
SCALE = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")
"""Of cells from least to most, and of areas (viridis)."""
LINES = ("#9c179e", "#cc4778", "#ed7953")
"""Of ordered lines: the part of plasma that is neither too dark nor too pale."""
REFERENCE_DASHES: tuple[Dash, ...] = ("dash", "longdash", "dot", "dashdot", "solid")
"""Of the reference controllers but the baseline, in their order."""


@dataclass(frozen=True)
class Look:
    """How a variant is drawn, wherever it is."""

    colour: str
    marker: Marker


def looks(variants_of_studies: Iterable[Sequence[str]]) -> Mapping[str, Look]:
    """A look for each variant, the same in all studies; in one study different ones, as long as they last.

    ``runtime`` has the first one, whether it is there or not.
    """
    chosen = {"runtime": 0}
    for variants in variants_of_studies:
        for variant in variants:
            if variant not in chosen:
                taken = [chosen[other] % len(COLOURS) for other in variants if other in chosen]
                free = [index for index in range(1, len(COLOURS)) if index not in taken]
                chosen[variant] = free[0] if free else len(chosen)
    return {
        variant: Look(COLOURS[index % len(COLOURS)], MARKERS[(index + index // len(COLOURS)) % len(MARKERS)])
        for variant, index in chosen.items()
    }


def ordered_colours(number: int, ramp: Sequence[str]) -> list[str]:
    """Colours for ordered things, from one end of a ramp to the other."""
    stops = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in ramp]
    places = [index / max(number - 1, 1) * (len(stops) - 1) for index in range(number)]
    return [_between(stops[int(place)], stops[min(int(place) + 1, len(stops) - 1)], place % 1) for place in places]


def _between(one: Sequence[int], other: Sequence[int], part: float) -> str:
    mixed = (round(a + part * (b - a)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
