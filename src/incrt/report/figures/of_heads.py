"""What the heads do while they grow: the rank that asks for them, and their shares."""

import numpy as np

from incrt.report.curves import mean_curve
from incrt.report.data import History
from incrt.report.figures.chart import STEPS, Chart, View, regime_name
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.style import GREY, SCALE, ordered_colours
from incrt.report.selection import representative
from incrt.storage.records import Floats


def head_charts(view: View) -> list[Chart]:
    """Of the study and variant whose heads are shown."""
    place = view.growing()
    return [_rank(view, *place), _shares(view, *place)] if place else []


def _rank(view: View, study: str, variant: str) -> Chart:
    drawing = Drawing("Effective rank and heads while training", columns=3)
    regimes = view.regimes(study)
    for tau_z in regimes:
        found = view.sound(study, variant, tau_z)
        histories, last = view.histories(found), max(found["steps"].to_list(), default=0)
        ranks = mean_curve([(each.check_steps, each.ranks) for each in histories if len(each.check_steps)])
        heads = mean_curve([_heads_over_time(last, each) for each in histories])
        curves = [("effective rank", ranks, GREY), ("heads K", heads, view.look(variant).colour)]
        drawn = [(label, curve, colour) for label, curve, colour in curves if curve is not None]
        if not drawn:
            continue
        axes = drawing.panel(regime_name(tau_z), STEPS, "rank, heads").axes
        for label, curve, colour in drawn:
            axes.fill_between(curve.x, curve.least, curve.most, color=colour, alpha=0.2, lw=0)
            axes.plot(curve.x, curve.mean, color=colour, label=label)
    caption = (
        f"Mean over the seeds ({variant} of study {study}); the bands reach from the smallest to the largest run. A "
        "head grows where the rank asks for more heads than there are."
    )
    return Chart("rank", caption, drawing, view.preset, [study], [variant], regimes)


def _heads_over_time(last: int, history: History) -> tuple[Floats, Floats]:
    """K at the end of each hundredth of the run."""
    steps = np.linspace(0, last, 101)[1:]
    counts = np.concatenate([[history.k_init], history.event_heads])
    return steps, counts[np.searchsorted(history.event_steps, steps, side="right")].astype(float)


def _shares(view: View, study: str, variant: str) -> Chart:
    drawing = Drawing("Shares of the heads while training", columns=3)
    regimes = view.regimes(study)
    for tau_z in regimes:
        run = representative(view.with_history(view.sound(study, variant, tau_z), shares=True))
        if run is None:
            continue
        history = view.dataset.histories[run["folder"]]
        axes = drawing.panel(f"{regime_name(tau_z)}, seed {run['seed']}", STEPS, "share, stacked").axes
        tops = np.cumsum(history.shares, axis=1)
        heads = np.flatnonzero(history.shares.any(axis=0))
        for head, colour in zip(heads, ordered_colours(len(heads), SCALE), strict=True):
            low, high = tops[:, head] - history.shares[:, head], tops[:, head]
            label = f"head {head + 1}"
            axes.fill_between(history.check_steps, low, high, color=colour, alpha=0.85, lw=0, label=label)
        axes.set_ylim(0, 1)
    caption = (
        f"Of each regime the seed with the median Δ% ({variant} of study {study}). A head's share is its part of the "
        "attention output; the shares of all active heads are stacked, the first head lowest."
    )
    return Chart("shares", caption, drawing, view.preset, [study], [variant], regimes)
