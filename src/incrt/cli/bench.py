"""``incrt bench``: how fast the engine trains, on this machine and in this process."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
import tyro
from rich.console import Console
from rich.table import Table

from incrt.arm.task import make_task
from incrt.cli.terminal import log, new_table, print_json
from incrt.config import EncoderConfig, HeadsConfig, SacConfig, preset
from incrt.config.rules import COUNT
from incrt.engine.population import Population
from incrt.engine.progress import Run

_WARM_UP = 2000
"""Steps after which every program of a run has been compiled: the first head grows at step 1500."""
_CPU_STEPS = 1000
_SB3_STEPS = {20: 100, 50: 50}
"""Steps of the peer that are timed, by window; each takes a large part of a second."""


@dataclass(frozen=True)
class Bench:
    """Time training as it is, with plant, replay and checks.

    cpu: one run and eight, beside Stable-Baselines3's SAC with the paper's attention written out over the whole window,
    on the same cores. gpu: the 30 runs of the paper's main study, one run, and 150 runs, each from start to end.
    """

    device: Annotated[Literal["cpu", "gpu"], tyro.conf.Positional]
    """What to time."""
    steps: int | None = None
    """Environment steps of a run, with gpu alone; 50 000 if not given."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        if self.device == "cpu" and self.steps is not None:
            raise ValueError("--steps goes with bench gpu; bench cpu times steps, not whole runs")
        steps = SacConfig.steps if self.steps is None else COUNT("steps", self.steps)
        rows = _time_cpu() if self.device == "cpu" else _time_gpu(steps)
        if self.json:
            print_json(rows)
        else:
            Console().print(_table(f"Training on {jax.devices(self.device)[0].device_kind}", rows))


def _time_cpu() -> list[dict[str, Any]]:
    try:
        from incrt.sb3.peer import time_sb3
    except ImportError as error:
        raise ValueError(f"bench cpu has nothing to compare with: {error}") from None
    rows = []
    for window in (20, 50):
        with log.status(f"W = {window}: Stable-Baselines3"):
            peer = time_sb3(preset(task={"window": window}).task, EncoderConfig(), SacConfig(), _SB3_STEPS[window])
        for count in (1, 8):
            runs = [study_run(seed, window, 5.0, _CPU_STEPS) for seed in range(count)]
            with log.status(f"W = {window}: {count} runs of the engine"):
                training_seconds([study_run(0, window, 5.0, HeadsConfig.check_every)], "cpu")  # compiles
                rate = count * _CPU_STEPS / training_seconds(runs, "cpu")
            rows.append(
                {
                    "window": window,
                    "runs": count,
                    "sb3_steps_per_s": peer,
                    "engine_steps_per_s": rate,
                    "ratio": rate / peer,
                }
            )
    return rows


def _time_gpu(steps: int) -> list[dict[str, Any]]:
    regimes = [(20, 1.0), (50, 2.0), (20, 5.0)]
    studies = [
        [(seed, window, tau_z) for window, tau_z in regimes for seed in range(42, 52)],
        [(42, 20, 5.0)],
        [(seed, 20, tau_z) for tau_z in (1.0, 2.0, 5.0) for seed in range(42, 92)],
    ]
    rows = []
    for study in studies:
        windows = ", ".join(str(window) for window in sorted({window for _, window, _ in study}))
        with log.status(f"{len(study)} runs, W = {windows}"):
            warm_up = training_seconds([study_run(*each, steps=_WARM_UP) for each in study], "gpu")
            training = training_seconds([study_run(*each, steps=steps) for each in study], "gpu")
        rows.append(
            {
                "runs": len(study),
                "window": windows,
                "ms_per_step": 1e3 * training / steps,
                "train_s": training,
                "compile_s": max(warm_up - training * _WARM_UP / steps, 0.0),
            }
        )
        log.print(f"{len(study)} runs, W = {windows}: {training:.1f} s")
    return rows


def study_run(seed: int, window: int, tau_z: float, steps: int, k_max: int = EncoderConfig.k_max) -> Run:
    """A run of the paper's main study."""
    environment, params = make_task(preset(task={"window": window, "tau_z": tau_z}).task)
    return Run(seed, environment, params, window, EncoderConfig(k_max=k_max), sac=SacConfig(steps=steps))


def training_seconds(runs: Sequence[Run], device: str) -> float:
    """How long it takes to train the runs to their end."""
    begin = time.perf_counter()
    for _ in Population(runs, device).train():
        pass
    return time.perf_counter() - begin


_FORMS = {
    "window": ("W", "{}"),
    "runs": ("runs", "{}"),
    "sb3_steps_per_s": ("SB3 steps/s", "{:.2f}"),
    "engine_steps_per_s": ("engine steps/s", "{:.1f}"),
    "ratio": ("ratio", "{:.1f}"),
    "ms_per_step": ("ms/step", "{:.3f}"),
    "train_s": ("training [s]", "{:.1f}"),
    "compile_s": ("compiling [s]", "{:.1f}"),
}


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = new_table(title, [_FORMS[key][0] for key in rows[0]])
    for row in rows:
        table.add_row(*(_FORMS[key][1].format(value) for key, value in row.items()))
    return table
