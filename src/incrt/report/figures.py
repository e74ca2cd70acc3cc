"""Figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from incrt.controllers.evaluation import Rollout

_COLOURS = {
    "baseline": "tab:red",
    "best_constant": "tab:orange",
    "feedforward": "tab:purple",
    "open_loop": "tab:pink",
    "adaptive": "tab:olive",
    "observer": "tab:cyan",
    "clairvoyant": "tab:green",
    "policy": "tab:blue",
}


def tracking_figure(title: str, rollouts_by_name: Mapping[str, Rollout], path: Path) -> None:
    """Position, error and torque of one rollout of each controller over time, one column a joint."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    joints = next(iter(rollouts_by_name.values())).q.shape[-1]
    axes = figure.subplots(3, joints, sharex=True, squeeze=False)
    for joint in range(joints):
        position, error, torque = axes[:, joint]
        for name, rollout in rollouts_by_name.items():
            style = {"color": _COLOURS.get(name), "linewidth": 1.2, "label": name.replace("_", " ")}
            time = np.asarray(rollout.time)
            position.plot(time, rollout.q[:, joint], **style)
            error.plot(time, rollout.e[:, joint], **style)
            torque.plot(time, rollout.torque[:, joint], **style)
        position.plot(time, rollout.q_d[:, joint], "k--", linewidth=1, label="reference")
        position.set_title(f"joint {joint + 1}")
        torque.set_xlabel("time [s]")
        for axis in (position, error, torque):
            axis.grid(visible=True, alpha=0.3)
    for axis, label in zip(axes[:, 0], ("position [rad]", "error [rad]", "torque [N m]"), strict=True):
        axis.set_ylabel(label)
    figure.suptitle(title)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=120)


def heads_figure(
    title: str,
    heads_at_end: int,
    checks: Sequence[Mapping[str, Any]],
    stretches: Sequence[Mapping[str, Any]],
    path: Path,
) -> None:
    """K(t) with its events and the rank that asks for growth, and the return; from a run's events and metrics."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    ended = [stretch for stretch in stretches if stretch["return"] is not None]
    heads, *below = figure.subplots(2 if ended else 1, 1, sharex=True, squeeze=False)[:, 0]
    steps = [0, *(check["step"] for check in checks), *(stretch["step"] for stretch in stretches[-1:])]
    counts = [*(check["k"] for check in checks), heads_at_end]
    heads.step(steps, [_heads_before(checks, heads_at_end), *counts][: len(steps)], where="post", label="K(t)")
    for action, marker in (("grow", "^"), ("prune", "v")):
        found = [check for check in checks if check["action"] == action]
        if found:
            heads.plot([check["step"] for check in found], [check["k"] for check in found], marker, label=action)
    heads.set(ylabel="heads K", ylim=(0, 1 + max(counts)))
    heads.yaxis.set_major_locator(MaxNLocator(integer=True))
    ranks = heads.twinx()
    measured = [check for check in checks if check["rank"] is not None]
    ranks.plot([check["step"] for check in measured], [check["rank"] for check in measured], ".", color="tab:gray")
    ranks.set_ylabel("effective rank (dots)", color="tab:gray")
    ranks.set_ylim(0, 1.1 * max((check["rank"] for check in measured), default=1))
    heads.legend(loc="lower right", fontsize="small")
    for returns in below:
        returns.plot([stretch["step"] for stretch in ended], [stretch["return"] for stretch in ended])
        returns.set_ylabel("return of an episode")
    for axis in (heads, *below):
        axis.grid(visible=True, alpha=0.3)
    (heads, *below)[-1].set_xlabel("environment steps")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def _heads_before(checks: Sequence[Mapping[str, Any]], heads_at_end: int) -> int:
    """K before the first check."""
    change = {"noop": 0, "grow": 1, "prune": -1}
    return int(checks[0]["k"] - change[checks[0]["action"]]) if checks else heads_at_end
