"""What became of the runs of a capacity study: one row a run, and its curves."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from incrt.capacity.plan import CapacityStudy, PlannedRun
from incrt.runs import is_over
from incrt.storage.atomic import write_whole
from incrt.storage.json import read_json

ROWS, CURVES = "runs.csv", "curves.npz"
_FINAL = 10
"""Evaluations at the end whose mean is the final error."""


@dataclass(frozen=True)
class Outcome:
    """A run that is over."""

    study: str
    task: str
    channels: int
    """D."""
    variant: str
    seed: int
    settings: str
    """Stands for all that decides the runs of the variant, but for the seed: rows of other settings are not kept."""
    steps: int
    """As planned; a run that failed before has not solved the task by then."""
    solved_at: int | None
    """Step of the first evaluation with an error a channel below the study's; None if there was none."""
    final_error: float | None
    """Squared error a channel, mean of the last evaluations; None for a run that ended before its time."""
    k_end: int
    grows: int
    prunes: int
    held: int
    """Events whose certificate holds."""
    largest_jump: float
    """Of the policy at a prune; 0 where there was none."""
    failure: str = ""


def read_outcome(study: CapacityStudy, run: PlannedRun) -> tuple[Outcome, npt.NDArray[np.float32]]:
    """The row of a run that is over, and its curve: of each evaluation the step, the error a channel and K."""
    config = run.job.run
    checks = {each["step"]: each for each in _lines(run.folder / "events.jsonl")}
    evaluated = [each for each in _lines(run.folder / "metrics.jsonl") if each.get("evaluation") is not None]
    fixed = config.encoder.heads_at_start
    scale = 1 / (run.horizon * run.channels)
    curve = np.array(
        [
            (each["step"], -each["evaluation"] * scale, checks[each["step"]]["k"] if checks else fixed)
            for each in evaluated
        ],
        np.float32,
    ).reshape(-1, 3)
    concluded = read_json(run.folder / "conclusion.json")
    events = [each for each in checks.values() if each["action"] != "noop"]
    prunes = [each for each in events if each["action"] == "prune"]
    failure = concluded["failure"]
    solved = curve[curve[:, 1] < study.solved]
    outcome = Outcome(
        study=study.name,
        task=study.task,
        channels=run.channels,
        variant=run.variant,
        seed=run.seed,
        settings=run.settings,
        steps=config.sac.steps,
        solved_at=int(solved[0, 0]) if len(solved) else None,
        final_error=None if failure else float(np.mean(curve[-_FINAL:, 1])),
        k_end=int(concluded["heads"]),
        grows=len(events) - len(prunes),
        prunes=len(prunes),
        held=sum(each["holds"] for each in events),
        largest_jump=max((each["jump"] for each in prunes), default=0.0),
        failure="" if failure is None else str(failure["cause"]),
    )
    return outcome, curve


def write_outcomes(study: CapacityStudy, planned: Iterable[PlannedRun], folder: Path) -> list[Outcome]:
    """Rows and curves of all runs that are over, kept as files in a folder beside those of other runs of the study."""
    plan = list(planned)
    found = [read_outcome(study, run) for run in plan if is_over(run.folder)]
    now = {(run.channels, run.variant, run.seed) for run in plan}
    kept = list(zip(*read_outcomes(folder), strict=True)) if (folder / ROWS).exists() else []
    before_channels = sorted({row.channels for row, _ in kept})
    settings = {(run.channels, run.variant): run.settings for run in study.planned(folder, before_channels)}
    before = [
        (row, curve)
        for row, curve in kept
        if settings.get((row.channels, row.variant)) == row.settings
        and (row.channels, row.variant, row.seed) not in now
    ]
    found = sorted([*before, *found], key=lambda each: each[0].channels)  # which keeps the order of variants
    rows, curves = [row for row, _ in found], [curve for _, curve in found]
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Outcome)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_as_text, rows))
    folder.mkdir(parents=True, exist_ok=True)
    longest = max(map(len, curves), default=0)
    padded = [np.pad(curve, ((0, longest - len(curve)), (0, 0)), constant_values=np.nan) for curve in curves]
    packed = io.BytesIO()
    np.savez_compressed(packed, curves=np.array(padded, np.float32).reshape(len(found), longest, 3))
    write_whole(folder / CURVES, packed.getvalue())
    write_whole(folder / ROWS, text.getvalue().encode())
    return rows


def read_outcomes(folder: Path) -> tuple[list[Outcome], npt.NDArray[np.float32]]:
    """The rows and curves that :func:`write_outcomes` wrote."""
    try:
        with (folder / ROWS).open(newline="") as file:
            rows = [_from_text(row) for row in csv.DictReader(file)]
        with np.load(folder / CURVES) as kept:
            curves = kept["curves"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        inside = ", ".join(sorted(str(each.parent) for each in folder.glob(f"*/{ROWS}")))
        hint = f"; there are some in {inside}" if inside else ""
        raise ValueError(f"{folder} holds no outcomes of a capacity study: {error}{hint}") from None
    if len(rows) != len(curves):
        both = f"{ROWS} has {len(rows)} runs and {CURVES} {len(curves)}"
        raise ValueError(f"{folder}: {both}; remove both, and incrt capacity run makes them anew")
    return rows, curves


def _as_text(row: Outcome) -> dict[str, Any]:
    digits = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in asdict(row).items()}
    return {name: "" if value is None else value for name, value in digits.items()}


def _from_text(row: Mapping[str, str]) -> Outcome:
    def number(name: str) -> Any:
        text = row[name]
        kind = next(field.type for field in fields(Outcome) if field.name == name)
        if kind is str:
            return text
        if text == "":
            return None
        return float(text) if "float" in str(kind) else int(text)

    return Outcome(**{field.name: number(field.name) for field in fields(Outcome)})


def _lines(path: Path) -> Sequence[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
