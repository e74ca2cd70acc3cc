"""The command line: tables on stdout, progress and errors on stderr."""

import json
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
from incrt.evaluation import Evaluation, Trajectory, delta_pct, evaluate, headroom_closed
from incrt.jsonable import finite
from incrt.phase1 import surrogate
from incrt.tuning import CONTROLLERS, reference_controller

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
    """Name of the trajectory to follow."""
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
        if self.figure is not None:
            _prepare(self.figure)
        rows = []
        for nominal, config in zip(tuned_for, tested_on, strict=True):
            found = _evaluate_references(nominal, config)
            tested = {"preset": self.preset, "tau_z": config.tau_z, **changes}
            rows += _rows(tested, {name: evaluation for name, (evaluation, _) in found.items()})
        title = ", ".join([f"preset {self.preset}", *(f"{name} {value}" for name, value in changes.items())])
        if self.figure is not None:
            _draw(self.figure, title, tested_on[-1], {name: one for name, (_, one) in found.items()})
        if self.json:
            sys.stdout.write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
        else:
            Console().print(_table(f"Reference controllers, {title}", rows))


def _evaluate_references(nominal: BenchConfig, config: BenchConfig) -> dict[str, tuple[Evaluation, Trajectory]]:
    found = {}
    for name in CONTROLLERS:
        with _log.status(f"tau_z = {config.tau_z:g} s: {name}"):
            found[name] = evaluate(config, reference_controller(name, nominal))
        if not _log.is_terminal:
            _log.print(f"tau_z = {config.tau_z:g} s: {name} done")
    return found


def _rows(tested: dict[str, Any], found: dict[str, Evaluation]) -> list[dict[str, Any]]:
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


_COLUMNS = {
    "RMSE": ("rmse", "{:.4f}"),
    "Δ%": ("delta_pct", "{:+.1f}"),
    "closed": ("headroom_closed", "{:.0%}"),
    "max e": ("max_error", "{:.3f}"),
    "τ rms": ("torque_rms", "{:.1f}"),
    "τ TV": ("torque_tv", "{:.0f}"),
    "η sat": ("eta_saturation_pct", "{:.1f}"),
    "shield": ("shield_active_pct", "{:.2f}"),
}
_CAPTION = (
    "RMSE and max e: tracking error (rad); Δ%: against the baseline; closed: of the way from the best constant to the "
    "clairvoyant; τ: torque (N m), TV its total variation; "
    "η sat: feed-forward at its bound (%); shield: steps at which it changed the gains (%)"
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


def _cell(value: float | None, form: str) -> str:
    if value is None:
        return "-"
    return form.format(value) if abs(value) < 1e5 else f"{value:.0e}"


def _prepare(path: Path) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise ValueError(f"figure must end in .png, .svg or .pdf, got {str(path)!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ValueError(f"figure cannot be written: {error}") from error


def _draw(path: Path, title: str, config: BenchConfig, trajectories: dict[str, Trajectory]) -> None:
    from incrt.report.figures import tracking_figure

    middle = len(config.eval_payloads) // 2
    rollouts = {
        name: jax.tree.map(lambda x: x[middle * config.eval_rollouts], batch) for name, batch in trajectories.items()
    }
    title = f"{title}, tau_z = {config.tau_z:g} s, payload {config.eval_payloads[middle]:g} kg"
    tracking_figure(title, rollouts, path)
    _log.print(f"wrote {path}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Phase1:
    """Choose the head count before training, as INCRT-1L does: no policy is trained.

    The gradient of the tracking cost with respect to the hidden memory is taken along the baseline's rollouts; how many
    eigenvalues of its autocovariance make up the part alpha is the number of heads.
    """

    preset: Literal["memory", "paper"] = "memory"
    """The bench."""
    tau_z: tuple[float, ...] = (1.0, 2.0, 5.0)
    """Memory horizons [s]."""
    window: int | None = None
    """W: steps in a window; that of the preset if not given."""
    alpha: float = 0.95
    """Part of the sum of eigenvalues to cover."""
    k_max: int = 8
    """Most heads to choose."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the spectrum and the choice."""
        changes = {} if self.window is None else {"window": self.window}
        configs = [preset(self.preset, tau_z=tau_z, **changes) for tau_z in self.tau_z]
        if not configs:
            raise ValueError("tau_z must name at least one memory horizon")
        rows = []
        for config in configs:
            with _log.status(f"tau_z = {config.tau_z:g} s"):
                found = surrogate(config, self.alpha, self.k_max)
            rows.append(
                {
                    "preset": self.preset,
                    "tau_z": config.tau_z,
                    "window": config.window,
                    "alpha": self.alpha,
                    "k": found.k,
                    "rank": found.rank,
                    "spectrum": found.spectrum,
                }
            )
        if self.json:
            sys.stdout.write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
        else:
            Console().print(_spectra(f"Phase 1, preset {self.preset}", rows))


_SHOWN_EIGENVALUES = 6


def _spectra(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    caption = (
        "K: heads to train with; rank: eigenvalues that make up the part alpha of their sum; "
        "λ1 ...: eigenvalues of the autocovariance of d(cost)/d(memory), % of their sum"
    )
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("τ_z", "W", "alpha", "K", "rank", *(f"λ{i + 1}" for i in range(_SHOWN_EIGENVALUES))):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        numbers = (row["tau_z"], row["window"], row["alpha"], row["k"], row["rank"])
        shown = (f"{100 * part:.1f}" for part in row["spectrum"][:_SHOWN_EIGENVALUES])
        table.add_row(*(f"{number:g}" for number in numbers), *shown)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one line that says what is wrong."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"baselines": Baselines, "phase1": Phase1},
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
