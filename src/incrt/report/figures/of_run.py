"""Figures of single runs, which commands draw."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from incrt.report.figures.chart import STEPS
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.style import GREY, STYLE

_COLOURS = {"baseline": "#d62728", "best_constant": "#ff7f0e", "feedforward": "#9467bd", "open_loop": "#e377c2"}
_COLOURS |= {"adaptive": "#bcbd22", "observer": "#17becf", "clairvoyant": "#2ca02c", "policy": "#1f77b4"}


def tracking_figure(title: str, rollouts: Mapping[str, Any], path: Path) -> None:
    """Position, error and torque of each controller over time, one column a joint; of a batch of rollouts the first."""
    rollouts = {
        name: jax.tree.map(lambda part: part[0], each) if np.ndim(each.time) > 1 else each
        for name, each in rollouts.items()
    }
    first = next(iter(rollouts.values()))
    joints = first.q.shape[-1]
    drawing = Drawing(title, columns=joints)
    with mpl.rc_context(STYLE):
        for label, part in (("position [rad]", "q"), ("error [rad]", "e"), ("torque [N m]", "torque")):
            for joint in range(joints):
                axes = drawing.panel(f"joint {joint + 1}", "time [s]", label).axes
                for name, each in rollouts.items():
                    line, colour = getattr(each, part)[:, joint], _COLOURS.get(name, GREY)
                    axes.plot(each.time, line, color=colour, label=name.replace("_", " "))
                if part == "q":
                    axes.plot(first.time, first.q_d[:, joint], "--", color="#000000", label="trajectory")
    path.write_bytes(drawing.picture.png)


def heads_figure(
    title: str,
    heads_at_end: int,
    checks: Sequence[Mapping[str, Any]],
    stretches: Sequence[Mapping[str, Any]],
    path: Path,
) -> None:
    """K(t) with its events, the rank that asks for growth, and the return; from a run's events and metrics."""
    change = {"noop": 0, "grow": 1, "prune": -1}
    before = checks[0]["k"] - change[checks[0]["action"]] if checks else heads_at_end
    steps = [0, *(check["step"] for check in checks), *(stretch["step"] for stretch in stretches[-1:])]
    counts = [before, *(check["k"] for check in checks), heads_at_end][: len(steps)]
    drawing = Drawing(title)
    with mpl.rc_context(STYLE):
        axes = drawing.panel("", STEPS, "heads K").axes
        axes.step(steps, counts, where="post", color="#1f77b4", label="K(t)")
        for action, marker in (("grow", "^"), ("prune", "v")):
            if found := [check for check in checks if check["action"] == action]:
                axes.plot(*_columns(found, "k"), marker, color="#cf8804", markersize=5, label=action)
        axes.set_ylim(0, 1 + max([*counts, heads_at_end]))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        for y_title, part, rows, look in (
            ("effective rank", "rank", checks, "."),
            ("return of an episode", "return", stretches, "-"),
        ):
            if known := [row for row in rows if row[part] is not None]:
                drawing.panel("", STEPS, y_title).axes.plot(*_columns(known, part), look, color=GREY)
    path.write_bytes(drawing.picture.png)


def _columns(rows: Sequence[Mapping[str, Any]], part: str) -> tuple[list[Any], list[Any]]:
    return [row["step"] for row in rows], [row[part] for row in rows]
