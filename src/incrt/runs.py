"""Trained runs on disk: what they were, how good they are, and what stands beside them."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from incrt.config import BenchConfig, EncoderConfig, RuntimeConfig, SacConfig
from incrt.evaluation import Evaluation, Trajectory, delta_pct, evaluate, headroom_closed
from incrt.files import write_whole
from incrt.jsonable import finite
from incrt.sac import policy
from incrt.tuning import reference_controller

REFERENCES = ("baseline", "best_constant", "clairvoyant")
"""What stands beside every learned result."""


class Trained(NamedTuple):
    """A run of the bench that is over."""

    folder: Path
    seed: int | None
    """None if whoever trained it chose none."""
    bench: BenchConfig
    encoder: EncoderConfig
    runtime: RuntimeConfig
    sac: SacConfig
    algorithm: str | None
    """Who trained it, if it was not the engine."""
    conclusion: dict[str, Any]
    """What training came to: steps, heads, events, certificates, or the cause of a failure."""


def find_runs(path: Path) -> list[Trained]:
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


def _read(folder: Path) -> Trained:
    about = read_json(folder / "config.json")
    if not isinstance(about, dict) or "bench" not in about:
        raise ValueError(f"{folder} holds no run of the bench")
    if not is_over(folder):
        raise ValueError(f"{folder} is not trained to its end; incrt train with the same options goes on with it")
    try:
        return Trained(
            folder,
            about["seed"],
            BenchConfig(**about["bench"]),
            EncoderConfig(**about["encoder"]),
            RuntimeConfig(**about["runtime"]),
            SacConfig(**about["sac"]),
            about.get("algorithm"),
            _concluded(folder / "conclusion.json"),
        )
    except (KeyError, TypeError) as error:
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


def read_json(path: Path) -> Any:
    """What a file holds; one that cannot be read is refused."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What a log holds, of which each line is JSON; one that cannot be read is refused."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def evaluate_run(run: Trained, **conditions: Any) -> tuple[dict[str, Any], Trajectory]:
    """The figures of a run beside those of the references, and its rollouts.

    ``conditions`` are fields of the bench that differ from training; the references stay tuned for the training's.
    """
    config = run.bench.replace(**conditions)
    with _naming_the_cure(run.folder):
        learned = policy.load(run.folder)
    found, trajectory = evaluate(config, learned)
    beside = {name: reference_rmse(name, run.bench, config) for name in REFERENCES}
    figures = {
        "delta_pct": delta_pct(found.rmse, beside["baseline"]),
        "headroom_closed": headroom_closed(found.rmse, beside["best_constant"], beside["clairvoyant"]),
        **{f"{name}_rmse": rmse for name, rmse in beside.items()},
        **found.to_dict(),
    }
    return dict(finite({"seed": run.seed, "tau_z": config.tau_z, **figures, "training": run.conclusion})), trajectory


def write_evaluation(run: Trained, figures: dict[str, Any]) -> None:
    """Keep the figures as the run's eval.json."""
    write_whole(run.folder / "eval.json", (json.dumps(figures, indent=2, allow_nan=False) + "\n").encode())


@cache
def reference_evaluation(name: str, tuned_for: BenchConfig, config: BenchConfig) -> tuple[Evaluation, Trajectory]:
    """A reference controller, tuned for one bench and tested on another."""
    return evaluate(config, reference_controller(name, tuned_for))


def reference_rmse(name: str, tuned_for: BenchConfig, config: BenchConfig) -> float:
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
