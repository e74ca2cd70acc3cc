"""What the heads do while they grow: the rank that asks for them, and their shares."""

from dataclasses import replace

import numpy as np

from incrt.report.curves import mean_curve
from incrt.report.data import History
from incrt.report.figures.chart import Chart, Panel, Series
from incrt.report.figures.parts import STEPS, View, regime_name
from incrt.report.figures.style import GREY, SCALE, ordered_colours
from incrt.report.schema import Row
from incrt.report.selection import representative
from incrt.storage.records import Floats


def head_charts(view: View) -> list[Chart | None]:
    """Those for which there are runs."""
    place = view.growing()
    return [_rank(view, *place), _shares(view, *place)] if place else []


def _rank(view: View, study: str, variant: str) -> Chart | None:
    return view.chart(
        "rank",
        "Effective rank and heads while training",
        f"Mean over the seeds ({variant} of study {study}); the bands reach from the smallest to the largest run. A "
        "head grows where the rank asks for more heads than there are.",
        (study,),
        (_rank_panel(view, study, variant, tau_z) for tau_z in view.regimes(study)),
        3,
    )


def _rank_panel(view: View, study: str, variant: str, tau_z: float) -> Panel:
    found = view.sound(study, variant, tau_z)
    histories, last = view.histories(found), max(found["steps"].to_list(), default=0)
    measured = [(history.check_steps, history.ranks) for history in histories if len(history.check_steps)]
    counted = [_heads_over_time(last, history) for history in histories]
    series: list[Series] = []
    for label, curves, colour in (("effective rank", measured, GREY), ("heads K", counted, view.look(variant).colour)):
        if (curve := mean_curve(curves)) is not None:
            line = Series("line", curve.x, curve.mean, colour, label, tau_z=tau_z, variant=variant)
            series += [replace(line, kind="band", label="", low=curve.least, high=curve.most, opacity=0.2), line]
    return Panel(regime_name(tau_z), STEPS, "rank, heads", tuple(series), tau_z=tau_z)


def _heads_over_time(last: int, history: History) -> tuple[Floats, Floats]:
    """K at the end of each hundredth of the run."""
    steps = np.linspace(0, last, 101)[1:]
    counts = np.concatenate([[history.k_init], history.event_heads])
    return steps, counts[np.searchsorted(history.event_steps, steps, side="right")].astype(float)


def _shares(view: View, study: str, variant: str) -> Chart | None:
    cells = (view.with_history(view.sound(study, variant, tau_z), shares=True) for tau_z in view.regimes(study))
    return view.chart(
        "shares",
        "Shares of the heads while training",
        f"Of each regime the seed with the median Δ% ({variant} of study {study}). A head's share is its part of the "
        "attention output; the shares of all active heads are stacked, the first head lowest.",
        (study,),
        (_shares_panel(run, view.dataset.histories[run["folder"]]) for run in map(representative, cells) if run),
        3,
    )


def _shares_panel(run: Row, history: History) -> Panel:
    tops = np.cumsum(history.shares, axis=1)
    heads = np.flatnonzero(history.shares.any(axis=0))
    series = []
    for head, colour in zip(heads, ordered_colours(len(heads), SCALE), strict=True):
        low, high = tops[:, head] - history.shares[:, head], tops[:, head]
        band = Series("band", history.check_steps, high, colour, f"head {head + 1}", low=low, high=high, opacity=0.85)
        series.append(replace(band, variant=run["variant"]))
    title = f"{regime_name(run['tau_z'])}, seed {run['seed']}"
    return Panel(title, STEPS, "share, stacked", tuple(series), y_range=(0.0, 1.0), tau_z=run["tau_z"])
