"""A figure while it is drawn, and as PNG and SVG."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from incrt.report.figures.style import STYLE

SYMBOL = re.compile(r"\b(τ|K)_(z|max|d)\b")
"""Names in texts whose second part is set below the line, wherever that can be done."""
_LINE = 0.18
"""Of a legend, in inches; a long one is not to take the panels' room."""
_NAMED_BY_MATPLOTLIB = ("_child", "_container", "_nolegend")
_COORDINATES = re.compile(r'(?<= [dxy]=")[^"]+')


@dataclass(frozen=True)
class Panel:
    """One pair of axes. Marks are drawn on them directly; a mark's label is its name in the figure's legend."""

    axes: Axes
    title: str
    x_title: str
    y_title: str
    numbers: list[tuple[str, str | None]] = field(default_factory=list)
    """What marks stand for and their values, for a table beside the figure."""

    @property
    def description(self) -> str:
        """What can be seen, in words."""
        axes = " over ".join(filter(None, (self.y_title, self.x_title)))
        return f"{self.title}: {axes}" if self.title else axes


class Picture(NamedTuple):
    """A figure that is done."""

    png: bytes
    svg: bytes
    width: int
    """In pixels of a screen."""
    height: int


class Drawing:
    """Panels in rows, with one legend for all. What is drawn by style must be drawn within ``rc_context(STYLE)``."""

    def __init__(self, title: str, columns: int = 1, *, share_x: bool = True) -> None:
        self.title = title
        self.panels: list[Panel] = []
        self._figure = Figure(dpi=120, layout="constrained")
        self._columns = columns
        self._share_x = share_x

    def panel(self, title: str = "", x_title: str = "", y_title: str = "", names: Sequence[str] = ()) -> Panel:
        """The next panel of the row, or the first of a new one. Names stand at 0, 1, … of the horizontal axis."""
        above = self.panels[-self._columns].axes if self._share_x and len(self.panels) >= self._columns else None
        axes = self._figure.add_subplot(sharex=above)
        axes.grid(visible=True, solid_capstyle="projecting")  # up to the frame, which curves are not to touch
        axes.set_title(_plain(title), loc="left")
        axes.set_xlabel(_plain(x_title))
        axes.set_ylabel(_plain(y_title))
        if names:
            leaning = sum(map(len, names)) > 45 or len(names) > 8
            turn: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if leaning else {}
            axes.set_xticks(range(len(names)), [*map(_plain, names)], **turn)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.grid(visible=False, axis="x")
        self.panels.append(Panel(axes, title, x_title, y_title))
        return self.panels[-1]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was drawn."""
        return not any(panel.axes.has_data() for panel in self.panels)

    @property
    def legend(self) -> dict[str, Any]:
        """What stands for each label, in the order of their first appearance; bars come first in their panel."""
        found: dict[str, Any] = {}
        artists: list[Any] = []
        for axes in (panel.axes for panel in self.panels):
            artists += [*axes.containers, *axes.lines, *axes.collections]
        for artist in artists:
            label = str(artist.get_label() or "")
            if label and not label.startswith(_NAMED_BY_MATPLOTLIB):
                found.setdefault(label, artist)
        return found

    def arrange(self) -> GridSpec:
        """Give every panel its place; needed before a panel shares its place with a scale of colours."""
        columns = min(self._columns, len(self.panels))
        grid = self._figure.add_gridspec(-(-len(self.panels) // columns), columns)
        for index, panel in enumerate(self.panels):
            panel.axes.set_subplotspec(grid[index])
        return grid

    @cached_property
    def picture(self) -> Picture:
        """The finished figure; the same figure makes the same bytes."""
        figure, png, svg = self._figure, io.BytesIO(), io.StringIO()
        with mpl.rc_context(STYLE):
            self._finish()
            # Not by savefig, which draws everything once more to find out how large it is.
            FigureCanvasAgg(figure).print_png(png)
            figure.set_layout_engine("none")  # the places are found; finding them takes as long as drawing
            FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
        width, height = (round(96 * inches) for inches in figure.get_size_inches())
        return Picture(png.getvalue(), _compact(svg.getvalue()).encode(), width, height)

    def _finish(self) -> None:
        """Give the figure its size, title and legend, and the axes the labels that they need where they are."""
        grid = self.arrange()
        for index, axes in enumerate(panel.axes for panel in self.panels):
            if self._share_x:
                is_lowest = index + grid.ncols >= len(self.panels)
                axes.tick_params(labelbottom=is_lowest)
                axes.xaxis.label.set_visible(is_lowest)
            if axes.get_xlim()[1] >= 10_000:
                axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
        legend = self.legend
        across = max(1, min(len(legend), 130 // (8 + max(map(len, legend), default=0))))
        lines = -(-len(legend) // across)
        height = 0.7 + (2.9 if grid.nrows == 1 else 2.1) * grid.nrows + _LINE * max(0, lines - 3)
        self._figure.set_size_inches(9.0 if grid.ncols > 1 else 7.5, height)
        self._figure.suptitle(_plain(self.title), x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        if legend:
            names = [*map(_plain, legend)]
            self._figure.legend([*legend.values()], names, loc="outside lower center", ncols=across)


def _plain(words: str) -> str:
    """Matplotlib takes what is between dollars for mathematics: symbols are to be, what the user wrote is not."""
    return SYMBOL.sub(r"$\\mathregular{\1_{\2}}$", words.replace("$", r"\$"))


def _compact(svg: str) -> str:
    """A quarter less to store, the same to see: a hundredth of a point is enough, and nobody reads the lines."""
    svg = _COORDINATES.sub(lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found.group()), svg)
    return re.sub(r"\s*\n\s*", " ", svg)
