"""Figures."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from incrt.evaluation import Trajectory

_COLOURS = {
    "baseline": "tab:red",
    "best_constant": "tab:orange",
    "adaptive": "tab:olive",
    "observer": "tab:cyan",
    "clairvoyant": "tab:green",
}


def tracking_figure(title: str, trajectories: Mapping[str, Trajectory], path: Path) -> None:
    """Position, error and torque of one rollout of each controller over time, one column a joint."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    joints = next(iter(trajectories.values())).q.shape[-1]
    axes = figure.subplots(3, joints, sharex=True, squeeze=False)
    for joint in range(joints):
        position, error, torque = axes[:, joint]
        for name, rollout in trajectories.items():
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
