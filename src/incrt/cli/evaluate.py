"""``incrt evaluate``, and the table that ``incrt train`` ends with."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import tyro
from rich.console import Console

from incrt.arm.task import make_task
from incrt.cli.figures import draw_run
from incrt.cli.options import Conditions
from incrt.cli.terminal import COLUMNS, MEANINGS, cell, log, new_table, prepare_folder, print_json, saying
from incrt.runs import (
    COMPARED,
    TrainedRun,
    evaluate_run,
    find_runs,
    is_over,
    reference_evaluation,
    reference_rows,
    write_evaluation,
)
from incrt.storage.cache import keep_compiled


@dataclass(frozen=True, kw_only=True)
class Evaluate(Conditions):
    """Evaluate trained runs beside the baseline, the best constant gains and the clairvoyant.

    Without options the figures are also written into each run's eval.json. The options change what the policies are
    tested on; the reference controllers stay tuned for what the policies were trained on.
    """

    runs: Annotated[Path, tyro.conf.Positional]
    """Folder of one run, or of several."""
    figures: Path | None = None
    """Also draw each run into this folder: its tracking beside the reference controllers, and its heads over time."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        keep_compiled()
        runs = find_runs(self.runs)
        for folder in sorted(each.parent for each in self.runs.glob("*/config.json")):
            if not is_over(folder):
                log.print(f"{folder} is left out: it is not trained to its end", markup=False, soft_wrap=True)
        rows = evaluated(runs, self.conditions, self.figures)
        if self.json:
            print_json(rows)
        else:
            tested_on = ", ".join(f"{name} {value}" for name, value in self.conditions.items())
            print_results(f"{self.runs}: {tested_on}" if tested_on else str(self.runs), rows)


def evaluated(
    runs: Sequence[TrainedRun], conditions: Mapping[str, Any], figures_folder: Path | None = None
) -> list[dict[str, Any]]:
    """One row a run, and before them one row a reference and regime; eval.json and figures are written on the way."""
    for run in runs:
        make_task(run.config.task.replace(**conditions))  # refuses what is wrong before any work
        for name in run.changed:
            words = f"{name} has changed since {run.folder} was trained: it is tested on what the file says now"
            log.print(words, markup=False, soft_wrap=True)
    if figures_folder is not None:
        prepare_folder(figures_folder)
    beside: dict[Hashable, list[dict[str, Any]]] = {}  # by the task they were tested on
    kinds: dict[Hashable, int] = {}  # runs of one kind differ in their seeds alone
    learned = []
    for run in runs:
        config = run.config.task.replace(**conditions)
        if config not in beside:
            with saying(f"tau_z = {config.tau_z:g} s: reference controllers, tuned anew for a task that is new"):
                found = {name: reference_evaluation(name, run.config.task, config)[0] for name in COMPARED}
            beside[config] = reference_rows({"tau_z": config.tau_z}, found)
        with saying(f"evaluating {run.folder.name}"):
            figures, recorded = evaluate_run(run, **conditions)
            if not conditions:
                write_evaluation(run, figures)
            if figures_folder is not None:
                draw_run(run, config, recorded, figures_folder)
        kind = (config, run.config.encoder, run.config.heads, run.config.sac, run.algorithm)
        encoder = run.config.encoder.encoder
        name = encoder if run.algorithm is None else f"{encoder}, {run.algorithm}"
        learned.append({"controller": name, "group": kinds.setdefault(kind, len(kinds)), **figures})
    return [row for rows in beside.values() for row in rows] + learned


_SHOWN = ("RMSE", "Δ%", "closed", "max e", "τ TV")
_OF_TRAINING = "K: heads at the end; + and -: heads grown and pruned; held: events whose certificate holds"


def print_results(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """The references, then every run, then the mean of the runs."""
    caption = "; ".join([*(MEANINGS[name] for name in _SHOWN if name in MEANINGS), _OF_TRAINING])
    table = new_table(title, ("τ_z", "controller", *_SHOWN, "K", "+", "-", "held"), caption)
    columns = [COLUMNS[name] for name in _SHOWN]
    learned = [row for row in rows if "seed" in row]
    sound = [row for row in learned if row["training"]["failure"] is None]
    for row in rows:
        name = f"{row['controller']}, {_seed(row)}" if "seed" in row else row["controller"].replace("_", " ")
        cells = [cell(row[key], form) for key, form in columns]
        last = row is rows[-1] or ("seed" not in row and row["controller"] == COMPARED[-1])
        table.add_row(f"{row['tau_z']:g}", name, *cells, *_training(row), end_section=last)
    for found in _alike(sound):
        if len(found) > 1:
            means = [cell(_mean([row[key] for row in found]), form) for key, form in columns]
            table.add_row(f"{found[0]['tau_z']:g}", f"{found[0]['controller']}, mean of {len(found)}", *means)
    console = Console()
    console.print(table)
    for found in _alike(sound):
        name = f"tau_z = {found[0]['tau_z']:g} s, {found[0]['controller']}"
        console.print(f"{name}: {_sentence(found)}", highlight=False, soft_wrap=True)
    for row in learned:
        if (failure := row["training"]["failure"]) is not None:
            words = f"{_seed(row)} failed at step {failure['step']}: {failure['cause']}"
            console.print(words, highlight=False, soft_wrap=True)


def _seed(row: dict[str, Any]) -> str:
    return "no seed" if row["seed"] is None else f"seed {row['seed']}"


def _alike(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The runs that differ in their seeds alone."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["group"], []).append(row)
    return list(found.values())


def _training(row: dict[str, Any]) -> list[str]:
    """Heads and events of a run."""
    training = row.get("training")
    if training is None:
        return ["", "", "", ""]
    if (found := training["guarantees"]) is None:
        return [str(training["heads"]), "", "", ""]
    held = f"{found['certificates_held']}/{found['grows'] + found['prunes']}"
    return [str(training["heads"]), str(found["grows"]), str(found["prunes"]), held]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _sentence(found: Sequence[dict[str, Any]]) -> str:
    deltas = [row["delta_pct"] for row in found if row["delta_pct"] is not None]
    succeeded = sum(row["success"] for row in found)
    spread = f", std {stdev(deltas):.2f}" if len(deltas) > 1 else ""
    mean = f"{fmean(deltas):+.2f}{spread}" if deltas else "-"
    return f"{succeeded} of {len(found)} succeed (RMSE < 0.10 rad), mean Δ% {mean}"
