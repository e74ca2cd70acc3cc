"""Figures of single runs, which commands draw."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from incrt.report.figures.chart import Chart, Panel, Series
from incrt.report.figures.still import write_png

_COLOURS = {"baseline": "#d62728", "best_constant": "#ff7f0e", "feedforward": "#9467bd", "open_loop": "#e377c2"}
_COLOURS |= {"adaptive": "#bcbd22", "observer": "#17becf", "clairvoyant": "#2ca02c", "policy": "#1f77b4"}
_OTHER = "#7f8488"


def tracking_figure(title: str, rollouts: Mapping[str, Any], path: Path) -> None:
    """Position, error and torque of each controller over time, one column a joint; of a batch of rollouts the first."""
    rollouts = {
        name: jax.tree.map(lambda part: part[0], each) if np.ndim(each.time) > 1 else each
        for name, each in rollouts.items()
    }
    joints = range(next(iter(rollouts.values())).q.shape[-1])
    rows = (("position [rad]", "q"), ("error [rad]", "e"), ("torque [N m]", "torque"))
    panels = []
    for label, part in rows:
        for joint in joints:
            series = [
                _line(each.time, getattr(each, part)[:, joint], _COLOURS.get(name, _OTHER), name.replace("_", " "))
                for name, each in rollouts.items()
            ]
            if part == "q":
                first = next(iter(rollouts.values()))
                series.append(_line(first.time, first.q_d[:, joint], "#000000", "trajectory", dash="dash"))
            panels.append(Panel(f"joint {joint + 1}", "time [s]", label, tuple(series)))
    write_png(Chart("", title, "", "", (), tuple(panels), len(joints)), path)


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
    series = [Series("step", np.array(steps, float), np.array(counts, float), "#1f77b4", "K(t)")]
    for action, marker in (("grow", "triangle-up"), ("prune", "triangle-down")):
        found = [check for check in checks if check["action"] == action]
        if found:
            series.append(_line(*_columns(found, "k"), "#cf8804", action, kind="points", marker=marker))
    measured = [check for check in checks if check["rank"] is not None]
    ended = [stretch for stretch in stretches if stretch["return"] is not None]
    top = 1.0 + max([*counts, heads_at_end])
    panels = [Panel("", "environment steps", "heads K", tuple(series), y_whole=True, y_range=(0.0, top))]
    if measured:
        dots = _line(*_columns(measured, "rank"), _OTHER, "", kind="points", size=4.0)
        panels.append(Panel("", "environment steps", "effective rank", (dots,)))
    if ended:
        line = _line(*_columns(ended, "return"), _OTHER, "")
        panels.append(Panel("", "environment steps", "return of an episode", (line,)))
    write_png(Chart("", title, "", "", (), tuple(panels), 1), path)


def _columns(rows: Sequence[Mapping[str, Any]], part: str) -> tuple[Any, Any]:
    return [row["step"] for row in rows], [row[part] for row in rows]


def _line(x: Any, y: Any, colour: str, label: str, **others: Any) -> Series:
    kind = others.pop("kind", "line")
    return Series(kind, np.asarray(x, float), np.asarray(y, float), colour, label, **others)
