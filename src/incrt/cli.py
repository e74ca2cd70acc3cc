"""The command line: tables on stdout, progress and errors on stderr."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from incrt.config import BenchConfig, preset
from incrt.evaluation import Evaluation, Trajectory, delta_pct, evaluate
from incrt.references import CONTROLLERS, reference_controller

_log = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Baselines:
    """Evaluate the reference controllers: what constant gains can do, and what a clairvoyant could do.

    The controllers are tuned for the preset. The options from --payloads to --delay change what they are tested on.
    """

    preset: Literal["memory", "paper"] = "memory"
    """The bench."""
    tau_z: tuple[float, ...] = (1.0, 2.0, 5.0)
    """Memory horizons [s]."""
    payloads: tuple[float, ...] | None = None
    """Payloads to test on [kg]; they may lie outside the range of the preset."""
    reference: str | None = None
    """Trajectory to follow: paper, slow, fast, shifted or two_tone."""
    noise_position: float | None = None
    """Standard deviation of the measured positions [rad]."""
    noise_velocity: float | None = None
    """Standard deviation of the measured velocities [rad/s]."""
    delay: int | None = None
    """Control steps between computing a torque and applying it."""
    figure: Path | None = None
    """Also draw one rollout of each controller at the last tau_z into this file."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        options = {
            "eval_payloads": self.payloads,
            "reference": self.reference,
            "noise_position": self.noise_position,
            "noise_velocity": self.noise_velocity,
            "delay": self.delay,
        }
        changes = {name: value for name, value in options.items() if value is not None}
        # All configurations are built before the first is evaluated, so that a bad option costs nothing.
        tuned_for = [preset(self.preset, tau_z=tau_z) for tau_z in self.tau_z]
        tested_on = [config.replace(**changes) for config in tuned_for]
        if not tested_on:
            raise ValueError("tau_z must name at least one memory horizon")
        rows = []
        for nominal, config in zip(tuned_for, tested_on, strict=True):
            found = _evaluate_references(nominal, config)
            baseline = found["baseline"][0].rmse
            rows += [_row(name, config, evaluation, baseline) for name, (evaluation, _) in found.items()]
        if self.figure is not None:
            _draw(self.figure, f"preset {self.preset}", tested_on[-1], {name: one for name, (_, one) in found.items()})
        if self.json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            Console().print(_table(f"Reference controllers, preset {self.preset}", rows))


def _evaluate_references(nominal: BenchConfig, config: BenchConfig) -> dict[str, tuple[Evaluation, Trajectory]]:
    found = {}
    for name in CONTROLLERS:
        with _log.status(f"tau_z = {config.tau_z:g} s: {name}"):
            found[name] = evaluate(config, reference_controller(name, nominal))
        if not _log.is_terminal:
            _log.print(f"tau_z = {config.tau_z:g} s: {name} done")
    return found


def _row(name: str, config: BenchConfig, evaluation: Evaluation, baseline_rmse: float) -> dict[str, Any]:
    row = {
        "controller": name,
        "tau_z": config.tau_z,
        "delta_pct": delta_pct(evaluation.rmse, baseline_rmse),
        **evaluation.to_dict(),
    }
    # JSON has no infinity: a controller that diverged has null for a figure.
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


_COLUMNS = {
    "RMSE": ("rmse", "{:.4f}"),
    "Δ%": ("delta_pct", "{:+.1f}"),
    "<0.1": ("success", "{}"),
    "max e": ("max_error", "{:.3f}"),
    "τ rms": ("torque_rms", "{:.1f}"),
    "τ TV": ("torque_tv", "{:.0f}"),
    "η sat%": ("eta_saturation_pct", "{:.1f}"),
    "shield%": ("shield_active_pct", "{:.2f}"),
}
_CAPTION = (
    "RMSE and max e: tracking error (rad); Δ%: against the baseline; τ: torque (N m), TV its total variation; "
    "η sat: feed-forward at its bound; shield: steps at which it changed the gains"
)


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title, caption=_CAPTION, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("τ_z", justify="right", no_wrap=True)
    table.add_column("controller", no_wrap=True)
    for heading in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        last = following is None or following["tau_z"] != row["tau_z"]
        cells = [_cell(row[key], form) for key, form in _COLUMNS.values()]
        table.add_row(f"{row['tau_z']:g}", row["controller"].replace("_", " "), *cells, end_section=last)
    return table


def _cell(value: Any, form: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else form.format(value)


def _draw(path: Path, title: str, config: BenchConfig, trajectories: dict[str, Trajectory]) -> None:
    from incrt.report.figures import tracking_figure

    middle = len(config.eval_payloads) // 2
    rollouts = {
        name: jax.tree.map(lambda x: x[middle * config.eval_rollouts], batch) for name, batch in trajectories.items()
    }
    title = f"{title}, tau_z = {config.tau_z:g} s, payload {config.eval_payloads[middle]:g} kg"
    tracking_figure(title, rollouts, path)
    _log.print(f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one line that says what is wrong."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"baselines": Baselines},
        prog="incrt",
        description="Reinforcement-learned control with attention that grows while it learns.",
        args=arguments,
    )
    try:
        command.run()
    except ValueError as error:
        _log.print(f"incrt: {error}", markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        _log.print("incrt: interrupted; what was tuned so far is kept")
        sys.exit(130)


if __name__ == "__main__":
    main()
