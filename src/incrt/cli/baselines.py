"""``incrt baselines``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from incrt.arm.task import make_task
from incrt.cli.figures import draw_tracking
from incrt.cli.options import PRESET, Conditions, given, with_settings
from incrt.cli.terminal import COLUMNS, MEANINGS, cell, log, new_table, prepare_file, print_json
from incrt.config import TaskConfig, preset
from incrt.controllers.evaluation import Evaluation, Rollout, evaluate
from incrt.controllers.tuning import CONTROLLERS, reference_controller
from incrt.runs import reference_rows


@dataclass(frozen=True, kw_only=True)
class Baselines(Conditions):
    """Evaluate the reference controllers: what constant gains can do, and what a clairvoyant could do.

    The controllers are tuned for the preset with robot, friction and settings as given. --trajectory, --payloads, noise
    and delay change only what they are tested on.
    """

    preset: Annotated[str, PRESET] = "memory"
    """The task."""
    tau_z: tuple[float, ...] = (1.0, 2.0, 5.0)
    """Memory horizons [s]."""
    set: tuple[str, ...] = ()
    """Any other field of the task, as task.FIELD=VALUE: task.eta_max=[8,5.5]. incrt settings lists them all."""
    figure: Path | None = None
    """Also draw one rollout of each controller at the last tau_z into this file."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        options = {"robot": self.robot, "friction": self.friction}
        arm = given(**options)
        changes = {name: value for name, value in self.conditions.items() if name not in arm}
        # All tasks are built before the first is evaluated, so that a bad option costs nothing.
        tuned_for = [
            with_settings(preset(self.preset), self.set, {"task": {**options, "tau_z": tau_z}}).task
            for tau_z in self.tau_z
        ]
        tested_on = [config.replace(**changes) for config in tuned_for]
        if not tested_on:
            raise ValueError("tau_z must name at least one memory horizon")
        for config in (*tuned_for, *tested_on):
            make_task(config)
        if self.figure is not None:
            prepare_file(self.figure)
        rows = []
        for nominal, config in zip(tuned_for, tested_on, strict=True):
            found = _evaluate_references(nominal, config)
            tested = {"preset": self.preset, "tau_z": config.tau_z, **arm, **changes}
            rows += reference_rows(tested, {name: evaluation for name, (evaluation, _) in found.items()})
        title = ", ".join([f"preset {self.preset}", *(f"{name} {value}" for name, value in {**arm, **changes}.items())])
        if self.figure is not None:
            draw_tracking(self.figure, title, tested_on[-1], {name: one for name, (_, one) in found.items()})
        if self.json:
            print_json(rows)
        else:
            Console().print(_table(f"Reference controllers, {title}", rows))


def _evaluate_references(nominal: TaskConfig, config: TaskConfig) -> dict[str, tuple[Evaluation, Rollout]]:
    found = {}
    for name in CONTROLLERS:
        with log.status(f"tau_z = {config.tau_z:g} s: {name}"):
            found[name] = evaluate(config, reference_controller(name, nominal))
        if not log.is_terminal:
            log.print(f"tau_z = {config.tau_z:g} s: {name} done")
    return found


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = new_table(title, ("τ_z", "controller", *COLUMNS), "; ".join(MEANINGS.values()))
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        last = following is None or following["tau_z"] != row["tau_z"]
        cells = [cell(row[key], form) for key, form in COLUMNS.values()]
        table.add_row(f"{row['tau_z']:g}", row["controller"].replace("_", " "), *cells, end_section=last)
    return table
