"""How figures look: their style, and the colours and marks of the variants.

Seven colours that stay apart for the colour-blind and stand out from white; no more of them do. A mark goes with each
colour, so that nothing hangs on colour alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

STYLE: dict[Any, Any] = (
    {"font.size": 8.5, "axes.titlesize": 9, "axes.linewidth": 0.6, "legend.frameon": False}
    | {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True}
    | {"grid.color": "#dddddd", "grid.linewidth": 0.5, "hatch.linewidth": 0.6}
    | {"lines.linewidth": 1.3, "lines.solid_capstyle": "butt", "errorbar.capsize": 2.5}
    | {"svg.fonttype": "none", "svg.hashsalt": "incrt"}
)
"""Of every figure, as matplotlib has it."""
COLOURS = ("#0072b2", "#cf8804", "#af2604", "#13a5a3", "#2f4df1", "#a04055", "#a39760")
MARKERS = "osD^vPX"
GREY = "#7f8488"
"""What is not a learned variant of ours."""
SCALE = ("viridis", 0.0, 1.0)
"""Of ordered areas and of cells: a scale of matplotlib's, and the part of it that is used."""
LINES = ("plasma", 0.33, 0.67)
"""Of ordered lines: what is neither too dark nor too pale."""
Dash = str | tuple[float, tuple[float, ...]]
_LONG: Dash = (0, (6.5, 3))
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.", _LONG)
"""Of curves that have the same colour, in their order."""
REFERENCE_DASHES: tuple[Dash, ...] = ("--", _LONG, (0, (8, 2, 1.5, 2)), ":", "-.", "-")
"""Of the reference controllers but the baseline, in their order."""


@dataclass(frozen=True)
class Look:
    """How a variant is drawn, wherever it is."""

    colour: str
    marker: str


def looks(studies: Iterable[Sequence[Sequence[str]]]) -> Mapping[str, Look]:
    """A look for each variant, the same in all studies, each of which is groups of variants to be compared.

    In a group colours differ, as long as they last. A further group has the same colours in the same order, and other
    marks. ``runtime`` has the first look, whether it is there or not.
    """
    chosen = {"runtime": 0}
    for groups in studies:
        for number, group in enumerate(groups):
            for place, variant in enumerate(group):
                if variant not in chosen:
                    like = groups[0][place] if number and place < len(groups[0]) else ""
                    chosen[variant] = _choose(chosen, group, number, like)
    return {variant: _look(index) for variant, index in chosen.items()}


def _choose(chosen: Mapping[str, int], group: Sequence[str], number: int, like: str) -> int:
    """A look for a variant of a group, if possible in the colour of another variant."""
    taken = [chosen[other] % len(COLOURS) for other in group if other in chosen]
    wanted = [chosen[like] % len(COLOURS)] if like else []
    free = [colour for colour in (*wanted, *range(1, len(COLOURS))) if colour not in taken]
    return number * len(COLOURS) + free[0] if free else len(chosen)


def _look(index: int) -> Look:
    turn, colour = divmod(index, len(COLOURS))
    return Look(COLOURS[colour], MARKERS[(index + turn) % len(MARKERS)])


def ordered_colours(number: int, scale: tuple[str, float, float]) -> list[str]:
    """Colours for ordered things, from one end of a scale to the other."""
    name, first, last = scale
    return [to_hex(colour) for colour in colormaps[name](np.linspace(first, last, number))]
