"""The figures of a capacity study."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from incrt.capacity.outcomes import Outcome
from incrt.capacity.survival import survival
from incrt.report.figures.style import COLOURS, GREY, MARKERS, STYLE
from incrt.tasks.events import VALUE_VARIANCE

Curves = npt.NDArray[np.float32]


def draw_all(outcomes: Sequence[Outcome], curves: Curves, folder: Path) -> None:
    """Write every figure that the outcomes allow into a folder."""
    if not outcomes:
        raise ValueError("there is nothing to draw: no run of the study is over yet")
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        for name, figure in (
            ("found", draw_found(outcomes)),
            ("solved", draw_solved(outcomes)),
            ("errors", draw_errors(outcomes, curves)),
        ):
            figure.savefig(folder / f"{name}.png", dpi=150)


def draw_found(outcomes: Sequence[Outcome]) -> Figure:
    """K found against D: one mark a run, the diagonal is right."""
    variants = list(dict.fromkeys(each.variant for each in outcomes))
    channels = sorted({each.channels for each in outcomes})
    figure, (axes,) = _figure(1, (4.2, 3.6))
    axes.plot([channels[0] - 0.5, channels[-1] + 0.5], [channels[0] - 0.5, channels[-1] + 0.5], color=GREY, zorder=0)
    generator = np.random.default_rng(0)  # so that marks do not hide each other
    for place, variant in enumerate(variants):
        runs = [each for each in outcomes if each.variant == variant]
        apart = (place - (len(variants) - 1) / 2) * 0.5 / len(variants)
        x = [each.channels + apart + generator.uniform(-0.06, 0.06) for each in runs]
        y = [each.k_end + generator.uniform(-0.12, 0.12) for each in runs]
        axes.plot(x, y, MARKERS[place % 7], color=COLOURS[place % 7], ms=3.5, alpha=0.7, mew=0, label=variant)
    axes.set(xlabel="heads needed, D", ylabel="heads found, K at the end", xticks=channels)
    axes.set_ylim(0, None)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=7)
    return figure


def draw_solved(outcomes: Sequence[Outcome]) -> Figure:
    """The fraction of runs that have not solved the task against steps, a panel a D."""

    def draw(axes: Axes, rows: Sequence[int], colour: str, variant: str) -> None:
        runs = [outcomes[i] for i in rows]
        steps, left = survival(runs)
        last = max(each.steps for each in runs)
        axes.step(
            np.array([0, *steps, last]) / 1000,
            [1, *left, left[-1] if len(left) else 1],
            where="post",
            color=colour,
            label=variant,
        )
        axes.set_ylim(-0.02, 1.05)

    return _panels(outcomes, draw, "runs that have not solved it")


def draw_errors(outcomes: Sequence[Outcome], curves: Curves) -> Figure:
    """The error a channel against steps: median of the runs, and the range of their middle half."""

    def draw(axes: Axes, rows: Sequence[int], colour: str, variant: str) -> None:
        found = curves[rows]
        found = found[:, ~np.all(np.isnan(found[:, :, 0]), axis=0)]  # runs of other variants may be longer
        steps = np.nanmax(found[:, :, 0], axis=0) / 1000
        low, middle, high = np.nanpercentile(found[:, :, 1], [25, 50, 75], axis=0)
        axes.plot(steps, middle, color=colour, label=variant)
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set_yscale("log")
        axes.axhline(VALUE_VARIANCE, color=GREY, linewidth=0.8, linestyle=":")

    return _panels(outcomes, draw, "squared error a channel")


def _panels(outcomes: Sequence[Outcome], draw: Callable[[Axes, Sequence[int], str, str], None], label: str) -> Figure:
    channels = sorted({each.channels for each in outcomes})
    variants = list(dict.fromkeys(each.variant for each in outcomes))
    figure, panels = _figure(len(channels), (2.6 * len(channels) + 0.6, 2.8))
    for axes, number in zip(panels, channels, strict=True):
        for place, variant in enumerate(variants):
            rows = [i for i, each in enumerate(outcomes) if (each.channels, each.variant) == (number, variant)]
            if rows:
                draw(axes, rows, COLOURS[place % 7], variant)
        axes.set(title=f"D = {number}", xlabel="thousand steps")
    panels[0].set_ylabel(label)
    known = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known.keys(), fontsize=7, loc="outside lower center", ncols=len(known))
    return figure


def _figure(panels: int, size: tuple[float, float]) -> tuple[Figure, Sequence[Any]]:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, np.atleast_1d(figure.subplots(1, panels)).tolist()
