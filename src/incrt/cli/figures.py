"""Figures that commands draw; matplotlib is loaded when the first is asked for."""

from collections.abc import Mapping
from pathlib import Path

import jax

from incrt.cli.terminal import log
from incrt.config import TaskConfig
from incrt.controllers.evaluation import Rollout
from incrt.runs import COMPARED, TrainedRun, reference_evaluation
from incrt.storage.json import read_lines


def draw_tracking(path: Path, title: str, config: TaskConfig, rollouts: Mapping[str, Rollout]) -> None:
    """One rollout of each controller, with the middle one of the payloads."""
    from incrt.report.figures import tracking_figure

    middle = len(config.eval_payloads) // 2
    rollouts = {
        name: jax.tree.map(lambda x: x[middle * config.eval_rollouts], batch) for name, batch in rollouts.items()
    }
    title = f"{title}, tau_z = {config.tau_z:g} s, payload {config.eval_payloads[middle]:g} kg"
    tracking_figure(title, rollouts, path)
    _say(path)


def draw_run(run: TrainedRun, config: TaskConfig, recorded: Rollout, folder: Path) -> None:
    """A run's tracking beside the reference controllers, and its heads over time if it has any."""
    from incrt.report.figures import heads_figure

    beside = {name: reference_evaluation(name, run.config.task, config)[1] for name in COMPARED}
    name = run.folder.resolve().name
    draw_tracking(folder / f"{name}-tracking.png", name, config, {**beside, "policy": recorded})
    paths = (run.folder / "events.jsonl", run.folder / "metrics.jsonl")
    # A policy that another library trained has no stretches.
    checks, stretches = (read_lines(each) if each.exists() else [] for each in paths)
    if not run.conclusion["heads"]:
        return
    path = folder / f"{name}-heads.png"
    heads_figure(f"{name}, tau_z = {config.tau_z:g} s", run.conclusion["heads"], checks, stretches, path)
    _say(path)


def _say(path: Path) -> None:
    log.print(f"wrote {path}", markup=False, soft_wrap=True)
