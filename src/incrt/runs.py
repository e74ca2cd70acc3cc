"""Trained runs on disk: what they were, how good they are, and what stands beside them."""

import contextlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from incrt.config import RunConfig, TaskConfig
from incrt.config.earlier import describes_task, read_settings
from incrt.controllers.evaluation import Evaluation, Rollout, delta_pct, evaluate, headroom_closed
from incrt.controllers.tuning import reference_controller
from incrt.engine import policy
from incrt.storage.json import finite, read_json, write_json

COMPARED = ("baseline", "best_constant", "clairvoyant")
"""What stands beside every learned result."""


class UncheckedRun(RunConfig):
    """What another library has trained: the engine may not be able to, with a smaller buffer for example."""

    def check_relations(self) -> None:
        """Each part is checked by itself."""


class TrainedRun(NamedTuple):
    """A run of the task that is over."""

    folder: Path
    seed: int | None
    """None if whoever trained it chose none."""
    config: RunConfig
    """Its seed is that of the preset where whoever trained it chose none."""
    algorithm: str | None
    """Who trained it, if it was not the engine."""
    conclusion: dict[str, Any]
    """What training came to: steps, heads, events, certificates, or the cause of a failure."""
    changed: tuple[str, ...] = ()
    """Files that its task is made of and that have changed since it was trained: they may make another task now."""


def find_runs(path: Path) -> list[TrainedRun]:
    """The run in this folder, or all runs in the folders below it that are over."""
    if (path / "config.json").exists():
        return [_read(path)]
    folders = [each.parent for each in path.glob("*/config.json")]
    if not folders:
        raise ValueError(f"{path} holds no run: neither it nor a folder in it has a config.json")
    over = [_read(folder) for folder in folders if is_over(folder)]
    if not over:
        raise ValueError(f"no run in {path} is trained to its end; incrt train goes on with them")
    return sorted(over, key=lambda run: (run.seed is None, run.seed, run.folder))


def is_over(folder: Path) -> bool:
    """Whether a run has been trained to its end."""
    return (folder / "conclusion.json").exists()


def _read(folder: Path) -> TrainedRun:
    about = read_json(folder / "config.json")
    if not isinstance(about, dict) or not describes_task(about):
        raise ValueError(f"{folder} holds no run of an arm: its config.json describes no task")
    if not is_over(folder):
        raise ValueError(f"{folder} is not trained to its end; incrt train with the same options goes on with it")
    try:
        seed = about["seed"]
        kind = RunConfig if about.get("algorithm") is None else UncheckedRun
        config = read_settings(about, kind) if seed is None else read_settings(about, kind, seed=seed)
        before = about.get("files", {})
        changed = tuple(name for name, digest in config.task.files().items() if before.get(name, digest) != digest)
        concluded = _concluded(folder / "conclusion.json")
        return TrainedRun(folder, seed, config, about.get("algorithm"), concluded, changed)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / 'config.json'} does not describe a run: {error}") from None


def _concluded(path: Path) -> dict[str, Any]:
    with _naming_the_cure(path.parent):
        found = read_json(path)
        if not isinstance(found, dict) or not {"heads", "failure", "guarantees"} <= found.keys():
            raise ValueError(f"{path} does not say what a run came to")
        return found


@contextlib.contextmanager
def _naming_the_cure(folder: Path) -> Iterator[None]:
    """What a run came to can be made again from its last checkpoint."""
    try:
        yield
    except ValueError as error:
        cure = f"remove {folder / 'conclusion.json'}, and the command that trained the run makes its results anew"
        raise ValueError(f"{error}; {cure}") from None


def evaluate_run(run: TrainedRun, **conditions: Any) -> tuple[dict[str, Any], Rollout]:
    """The metrics of a run beside those of the reference controllers, and its rollouts.

    ``conditions`` are fields of the task that differ from training; the references stay tuned for the training's.
    """
    config = run.config.task.replace(**conditions)
    with _naming_the_cure(run.folder):
        learned = policy.load(run.folder)
    found, recorded = evaluate(config, learned)
    beside = {name: reference_rmse(name, run.config.task, config) for name in COMPARED}
    metrics = {
        "delta_pct": delta_pct(found.rmse, beside["baseline"]),
        "headroom_closed": headroom_closed(found.rmse, beside["best_constant"], beside["clairvoyant"]),
        **{f"{name}_rmse": rmse for name, rmse in beside.items()},
        **found.to_dict(),
    }
    return dict(finite({"seed": run.seed, "tau_z": config.tau_z, **metrics, "training": run.conclusion})), recorded


def write_evaluation(run: TrainedRun, metrics: dict[str, Any]) -> None:
    """Keep the metrics as the run's eval.json."""
    write_json(run.folder / "eval.json", metrics)


def reference_evaluation(name: str, tuned_for: TaskConfig, config: TaskConfig) -> tuple[Evaluation, Rollout]:
    """A reference controller, tuned for one task and tested on another."""
    return _evaluated(name, tuned_for, config, tuple({**tuned_for.files(), **config.files()}.items()))


@cache
def _evaluated(
    name: str, tuned_for: TaskConfig, config: TaskConfig, files: tuple[tuple[str, str], ...]
) -> tuple[Evaluation, Rollout]:
    del files  # one that was changed since makes another task
    return evaluate(config, reference_controller(name, tuned_for))


def reference_rmse(name: str, tuned_for: TaskConfig, config: TaskConfig) -> float:
    """Its RMSE."""
    return reference_evaluation(name, tuned_for, config)[0].rmse


def reference_rows(tested: Mapping[str, Any], found: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    """One row a controller, with what it was tested on; baseline, best constant and clairvoyant are among them."""

    def headroom(evaluation: Evaluation) -> float:
        return headroom_closed(evaluation.rmse, found["best_constant"].rmse, found["clairvoyant"].rmse)

    return [
        finite(
            {
                "controller": name,
                **tested,
                "delta_pct": delta_pct(evaluation.rmse, found["baseline"].rmse),
                "headroom_closed": headroom(evaluation),
                **evaluation.to_dict(),
            }
        )
        for name, evaluation in found.items()
    ]
