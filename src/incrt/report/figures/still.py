"""Charts as PNG and SVG files."""

import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from incrt.report.figures.chart import SYMBOL, Chart, Heatmap, Panel, Series
from incrt.report.figures.style import SCALE

STILLS = (".png", ".svg")
"""How the files of a chart end."""
_WORTH_A_PROCESS = 10
"""Drawing fewer charts takes no longer than starting one."""
_LINE = 0.18
"""Of a legend, in inches; a long one is not to take the panels' room."""
_STYLE: dict[Any, Any] = (
    {"font.size": 8.5, "axes.titlesize": 9, "axes.linewidth": 0.6, "legend.frameon": False}
    | {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True}
    | {"grid.color": "#dddddd", "grid.linewidth": 0.5, "hatch.linewidth": 0.6}
    | {"svg.fonttype": "none", "svg.hashsalt": "incrt"}
)
_DASHES: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_DASHES |= {"longdash": (0, (6.5, 3)), "longdashdot": (0, (8, 2, 1.5, 2))}
_MARKERS = dict(
    zip(("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"), "osD^vPX", strict=True)
)
_MAP = LinearSegmentedColormap.from_list("incrt", SCALE)


def write_all_stills(charts: Mapping[Path, Sequence[Chart]]) -> None:
    """The charts of each folder, drawn by as many processes as there are cores."""
    drawn = [(chart, folder) for folder, found in charts.items() for chart in found]
    workers = min(os.cpu_count() or 1, -(-len(drawn) // _WORTH_A_PROCESS))
    if workers <= 1:
        for chart, folder in drawn:
            write_stills(chart, folder)
        return
    try:
        # Not forked: the threads of JAX would be lost in the middle of what they do.
        context, deaf = multiprocessing.get_context("spawn"), (signal.SIGINT, signal.SIG_IGN)
        others = set(multiprocessing.active_children())
        with ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=deaf) as pool:
            try:
                for done in [pool.submit(write_stills, chart, folder) for chart, folder in drawn]:
                    done.result()
            except BaseException:  # an interrupt too: nobody waits for what is not done
                for worker in set(multiprocessing.active_children()) - others:
                    worker.terminate()
                pool.shutdown(cancel_futures=True)
                raise
    except BrokenProcessPool:  # killed, or started by a script that cannot be started twice
        for chart, folder in drawn:
            write_stills(chart, folder)


def write_stills(chart: Chart, folder: Path) -> list[Path]:
    """The chart as ``name.png`` and ``name.svg``; the same chart makes the same files."""
    paths = [folder / f"{chart.name}{ending}" for ending in STILLS]
    with mpl.rc_context(_STYLE):
        figure = _draw(chart)
        # Not by savefig, which draws everything once more to find out how large it is.
        FigureCanvasAgg(figure).print_png(paths[0])
        figure.set_layout_engine("none")  # the places are found; finding them takes as long as drawing
        FigureCanvasSVG(figure).print_svg(paths[1], metadata={"Date": None})
    return paths


def write_png(chart: Chart, path: Path) -> None:
    """The chart as one file."""
    with mpl.rc_context(_STYLE):
        FigureCanvasAgg(_draw(chart)).print_png(path)


def _draw(chart: Chart) -> Figure:
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    names = [_plain(series.label) for series in chart.legend]
    across = max(1, min(len(names), 130 // (8 + max((len(each.label) for each in chart.legend), default=0))))
    lines = -(-len(names) // across)
    height = 0.7 + (2.9 if rows == 1 else 2.1) * rows + _LINE * max(0, lines - 3)
    figure = Figure(figsize=(9.0 if columns > 1 else 7.5, height), dpi=120, layout="constrained")
    alike = len({(panel.x_title, panel.x_ticks, panel.heatmap is None) for panel in chart.panels}) == 1
    places = list(figure.subplots(rows, columns, squeeze=False, sharex="col" if alike else "none").flat)
    for index, (axes, panel) in enumerate(zip(places, chart.panels, strict=False)):
        _panel(axes, panel)
        if alike:
            lowest = index + columns >= len(chart.panels)
            axes.tick_params(labelbottom=lowest)
            axes.xaxis.label.set_visible(lowest)
    for axes in places[len(chart.panels) :]:
        axes.remove()
    figure.suptitle(_plain(chart.title), x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    if names:
        figure.legend([_sample(each) for each in chart.legend], names, loc="outside lower center", ncols=across)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    if panel.heatmap is not None:
        _heat(axes, panel.heatmap)
    for series in panel.series:
        _series(axes, series)
    axes.set_title(_plain(panel.title), loc="left")
    axes.set_xlabel(_plain(panel.x_title))
    axes.set_ylabel(_plain(panel.y_title))
    if panel.x_ticks:
        names = [_plain(name) for _, name in panel.x_ticks]
        leaning = sum(map(len, names)) > 45 or len(names) > 8
        turn: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if leaning else {}
        axes.set_xticks([place for place, _ in panel.x_ticks], names, **turn)
        axes.grid(visible=False, axis="x")
    elif axes.get_xlim()[1] >= 10_000:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
    if panel.y_whole:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    if panel.x_range:
        axes.set_xlim(*panel.x_range)
    if panel.y_range:
        axes.set_ylim(*panel.y_range)


def _heat(axes: Axes, heat: Heatmap) -> None:
    mesh = axes.pcolormesh(heat.x, heat.y, heat.z, cmap=_MAP, shading="nearest", rasterized=True)
    axes.grid(visible=False)
    for axis, places in ((axes.xaxis, heat.x), (axes.yaxis, heat.y)):
        if (np.asarray(places) % 1 == 0).all():  # it counts
            axis.set_major_locator(MaxNLocator(integer=True))
    axes.figure.colorbar(mesh, ax=axes, label=_plain(heat.label))


def _series(axes: Axes, series: Series) -> None:
    ends = None if series.low is None or series.high is None else (series.low, series.high)
    if series.kind == "band" and ends is not None:
        axes.fill_between(series.x, *ends, color=series.colour, alpha=series.opacity, lw=0)
    elif series.kind in {"line", "step"}:
        drawn = "steps-post" if series.kind == "step" else "default"
        axes.plot(series.x, series.y, drawstyle=drawn, **_look(series))
    elif series.kind == "bar":
        axes.bar(series.x, series.y, series.width, **_look(series))
    else:
        axes.plot(series.x, series.y, **_look(series))
    if ends is not None and series.kind in {"bar", "points"}:
        errors = np.array([series.y - ends[0], ends[1] - series.y])
        colour = series.colour if series.kind == "points" else "#333333"
        axes.errorbar(series.x, series.y, errors, fmt="none", ecolor=colour, elinewidth=1.1, capsize=2.5)


def _look(series: Series) -> dict[str, Any]:
    colour, alpha = series.colour, series.opacity
    if series.kind in {"line", "step"}:
        line = {"linestyle": _DASHES[series.dash], "linewidth": 1.3, "solid_capstyle": "butt"}
        return {"color": colour, "alpha": alpha, **line}
    if series.kind == "bar" and series.hollow:
        return {"facecolor": "none", "edgecolor": colour, "hatch": "/////", "linewidth": 0.8}
    if series.kind in {"bar", "band"}:
        return {"facecolor": colour, "edgecolor": "none", "alpha": alpha}
    edge = {"markeredgecolor": colour, "markeredgewidth": 1.0 if series.hollow else 0.0, "alpha": alpha}
    face = {"markersize": series.size * 0.75, "markerfacecolor": "none" if series.hollow else colour}
    return {"marker": _MARKERS[series.marker], "linestyle": "none", **face, **edge}


def _sample(series: Series) -> Patch | Line2D:
    """What stands before the series' name in the legend."""
    return Patch(**_look(series)) if series.kind in {"bar", "band"} else Line2D([], [], **_look(series))


def _plain(words: str) -> str:
    """Matplotlib takes what is between dollars for mathematics: symbols are to be, what the user wrote is not."""
    return SYMBOL.sub(r"$\\mathregular{\1_{\2}}$", words.replace("$", r"\$"))
