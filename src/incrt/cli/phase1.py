"""``incrt phase1``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from incrt.cli.options import PRESET, TaskOptions, with_settings
from incrt.cli.terminal import log, new_table, print_json
from incrt.config import preset
from incrt.offline import surrogate


@dataclass(frozen=True, kw_only=True)
class Phase1(TaskOptions):
    """Choose the head count before training, as INCRT-1L does: no policy is trained.

    The gradient of the tracking cost with respect to the hidden memory is taken along the baseline's rollouts; how many
    eigenvalues of its autocovariance make up the fraction alpha is the number of heads.
    """

    preset: Annotated[str, PRESET] = "memory"
    """The task."""
    tau_z: tuple[float, ...] = (1.0, 2.0, 5.0)
    """Memory horizons [s]."""
    window: int | None = None
    """W: steps in a window; that of the preset if not given."""
    alpha: float = 0.95
    """Fraction of the sum of eigenvalues to cover."""
    k_max: int = 8
    """Most heads to choose."""
    set: tuple[str, ...] = ()
    """Any other field of the task, as task.FIELD=VALUE: task.eta_max=[8,5.5]. incrt settings lists them all."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the spectrum and the choice."""
        options = {**self.task_options, "window": self.window}
        configs = [
            with_settings(preset(self.preset), self.set, {"task": {**options, "tau_z": tau_z}}).task
            for tau_z in self.tau_z
        ]
        if not configs:
            raise ValueError("tau_z must name at least one memory horizon")
        rows = []
        for config in configs:
            with log.status(f"tau_z = {config.tau_z:g} s"):
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
            print_json(rows)
        else:
            Console().print(_spectra(f"Phase 1, preset {self.preset}", rows))


_SHOWN_EIGENVALUES = 6


def _spectra(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    caption = (
        "K: heads to train with; rank: eigenvalues that make up the fraction alpha of their sum; "
        "λ1 ...: eigenvalues of the autocovariance of d(cost)/d(memory), % of their sum"
    )
    headings = ("τ_z", "W", "alpha", "K", "rank", *(f"λ{i + 1}" for i in range(_SHOWN_EIGENVALUES)))
    table = new_table(title, headings, caption)
    for row in rows:
        numbers = (row["tau_z"], row["window"], row["alpha"], row["k"], row["rank"])
        shown = (f"{100 * part:.1f}" for part in row["spectrum"][:_SHOWN_EIGENVALUES])
        table.add_row(*(f"{number:g}" for number in numbers), *shown)
    return table
