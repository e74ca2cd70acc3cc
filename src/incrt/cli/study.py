"""``incrt study``: run a study, see how far it is, list those that come with the library."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from incrt.cli.options import DEVICE, PRESET
from incrt.cli.study_display import StudyDisplay, failure_lines, standing_rows, status_table
from incrt.cli.terminal import log, new_table, print_json, say_stopping
from incrt.config import RunConfig, format_seeds, parse_seeds
from incrt.config.rules import COUNT
from incrt.engine.threads import usable_cores
from incrt.engine.training import until_signalled
from incrt.runs import is_over
from incrt.storage.records import Command
from incrt.studies.backend import Backend, LocalBackend
from incrt.studies.schedule import How, Result, Schedule
from incrt.studies.store import RunStatus, Store, standing
from incrt.studies.study import Cell, Study, declared_studies, load_study

_GPU_BATCH = 128
"""Runs of a batch on a GPU; at a hundred it is full (docs/engine.md)."""
_RUNS_PER_CORE = 4


@dataclass(frozen=True, kw_only=True)
class RunStudy:
    """Train and evaluate every run of a study that is not finished yet.

    Stop it at any time: the same command goes on. Several of these commands may work on one folder at once.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
    """A study that comes with the library (incrt study list), or a file of your own that ends in .toml."""
    out: Path
    """Folder for studies and their runs. Studies in one folder share the runs that they have in common."""
    preset: Annotated[str, PRESET] = "memory"
    """Task, encoder, heads and training that belong together."""
    seeds: str | None = None
    """Train these seeds, one run each a variant and regime, such as 42-51 or 1,5,7-9. They stay in the study, for all
    its variants. If not given, the study's own and those that were asked for before."""
    variants: tuple[str, ...] | None = None
    """Run these variants alone, by their names (incrt study list --json has them) and after the study's; the others can
    follow. All if not given."""
    tau_z: tuple[float, ...] | None = None
    """Run these regimes alone, by the memory's time constant in seconds. All if not given."""
    device: Annotated[str, DEVICE] = "auto"
    """Where to train; auto takes a GPU if there is one."""
    batch: int | None = None
    """Most runs that one worker trains together; 128 on a GPU and four a core on a CPU if not given."""
    backend: Literal["local", "ray"] = "local"
    """Workers on this machine, or on the nodes of a Ray cluster that share the folder."""
    address: str | None = None
    """Of the Ray cluster, as ray.init takes it; one is started on this machine if not given."""
    cores: int | None = None
    """Cores of a worker on a CPU: all of this machine, or two on Ray, if not given."""

    def run(self) -> None:
        """Run it and say what failed."""
        if self.backend == "local" and self.address is not None:
            raise ValueError("--address goes with --backend ray")
        for name in ("batch", "cores"):
            if getattr(self, name) is not None:
                COUNT(name, getattr(self, name))
        for name in ("variants", "tau_z"):
            if getattr(self, name) == ():
                raise ValueError(f"--{name.replace('_', '-')} must be followed by at least one")
        study = load_study(self.name, self.preset, None if self.seeds is None else parse_seeds(self.seeds))
        cells, asked = study.part(self.variants or (), self.tau_z or ()), study.seeds
        _try_own_parts(study)
        store = Store(self.out.resolve())
        begun, begin = datetime.now(UTC), time.monotonic()
        backend, how = self._arrange(store)
        try:
            study, gone = store.enter(study)
            if gone:
                trained = sum(is_over(run.folder) for run in gone)
                what = f"{trained} trained runs that it no longer names stay there, out of the report"
                log.print(f"study {study.name} has changed; {what}", soft_wrap=True)
            if len(study.seeds) > len(asked):
                log.print(f"seeds that were asked for before stay in the study: {format_seeds(study.seeds)}")
            seeds = study.seeds if self.seeds is None else asked
            plan = [run for run in store.planned(study) if run.cell in cells and run.seed in seeds]
            with StudyDisplay(study, plan, log) as display, until_signalled(say_stopping) as stop:
                result = Schedule(store, study, plan, backend, how).run(
                    display.update, stop, lambda text: log.print(text, markup=False, soft_wrap=True)
                )
        finally:
            backend.close()
        store.note_command(
            Command(
                study=study.name,
                preset=study.preset,
                seeds=format_seeds(seeds),
                batch=how.batch,
                begun=f"{begun:%Y-%m-%d %H:%M} UTC",
                wall_s=round(time.monotonic() - begin, 1),
                **result.spent.rounded(),
                part=self._part(cells),
            )
        )
        where = ", ".join(filter(None, (f"study {study.name}", f"preset {study.preset}", self._part(cells))))
        self._say(where, len(plan), result)

    def _arrange(self, store: Store) -> tuple[Backend, How]:
        if self.backend == "ray":
            from incrt.studies.ray_backend import RayBackend

            cores = self.cores or 2
            ray = RayBackend(self.address, self.device, cores)
            return ray, How(ray.device, self.batch or (_GPU_BATCH if ray.device == "gpu" else cores), cores)
        device = _local_device(self.device)
        batch = self.batch or (_GPU_BATCH if device == "gpu" else _RUNS_PER_CORE * (self.cores or usable_cores()))
        return LocalBackend(store.path / "logs"), How(device, batch, self.cores)

    def _part(self, cells: Sequence[Cell]) -> str:
        """What was asked for of the study, each once and as it is declared; nothing for all of it."""
        variants = dict.fromkeys(repr(each.variant) if "," in each.variant else each.variant for each in cells)
        regimes = dict.fromkeys(f"{each.config.task.tau_z:g}" for each in cells)
        return "; ".join(
            text
            for text, is_asked in ((", ".join(variants), self.variants), (f"tau_z {', '.join(regimes)}", self.tau_z))
            if is_asked
        )

    def _say(self, where: str, planned: int, result: Result) -> None:
        log.print(f"{where}: {result.finished} of {planned} runs are finished", markup=False, soft_wrap=True)
        failed = {str(folder.relative_to(self.out.resolve())): why for folder, why in result.failed.items()}
        for line in failure_lines(failed):
            log.print(line, markup=False, soft_wrap=True)
        if result.no_space is not None:
            raise ValueError(f"{self.out} takes no more: {result.no_space}; what was saved is kept")
        if result.stopped:
            log.print("stopped; the same command goes on from here")
            raise SystemExit(130)
        if result.failed:
            raise SystemExit(1)
        log.print(f"incrt report {self.out} makes the report", markup=False, soft_wrap=True)


def _try_own_parts(study: Study) -> None:
    """Refuse a part of the user's own, such as a robot, that cannot be used, before anything is made."""
    own = [cell for cell in study.cells if any(_with(cell, changes).own_parts() for changes in study.tests.values())]
    program = (
        "import json, sys; from incrt.config.earlier import read_settings; from incrt.engine.training import make_job\n"
        "for settings in json.load(sys.stdin): make_job('.', read_settings(settings))"
    )
    for variant in dict.fromkeys(cell.variant for cell in own):
        configs = [_with(cell, changes) for cell in own if cell.variant == variant for changes in study.tests.values()]
        _asked(program, f"variant {variant!r}", json.dumps([config.to_json() for config in configs]))


def _with(cell: Cell, changes: Mapping[str, Any]) -> RunConfig:
    return cell.config.replace(task=dict(changes))


def _local_device(asked: str) -> str:
    """Where workers will train."""
    if asked == "cpu":  # which is there: a process less to wait for
        return asked
    program = f"from incrt.engine.population import find_device as f; print(f({asked!r}).platform)"
    return "cpu" if _asked(program, "no device to train on") == "cpu" else "gpu"


def _asked(program: str, what: str, given: str = "") -> str:
    """What a program of a process of its own prints: whoever uses JAX on a GPU keeps a piece of it, as workers must."""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603
    if found.returncode:
        said = [line for line in found.stderr.splitlines() if line.startswith("ValueError: ")]
        raise ValueError(f"{what}: {said[-1].removeprefix('ValueError: ') if said else found.stderr.strip()[-500:]}")
    return found.stdout.strip()


@dataclass(frozen=True)
class Status:
    """How far the studies in a folder are, from any terminal."""

    folder: Annotated[Path, tyro.conf.Positional]
    """What incrt study run had as --out."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print a table a study."""
        from incrt.report.archive import is_archive

        if is_archive(self.folder):
            raise ValueError(f"{self.folder} is the folder of a report, which has no runs to go on with")
        store = Store(self.folder)
        rows = []
        for study in store.studies():
            plan = store.planned(study)
            seen = [(str(run.folder.relative_to(store.path)), standing(run, study.tests)) for run in plan]
            finished = {name for name, each in seen if each.state == "finished"}  # by another study since, perhaps
            failed = {name: why for name, why in store.failed(study).items() if name not in finished}
            standings = [RunStatus("failed", each.step) if name in failed else each for name, each in seen]
            found = standing_rows(study, plan, standings)
            rows += [{"study": study.name, "preset": study.preset, **row} for row in found]
            if not self.json:
                console = Console()
                console.print(status_table(study, found))
                for line in failure_lines(failed):
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self.json:
            print_json(rows)


@dataclass(frozen=True)
class ListStudies:
    """The studies that come with the library."""

    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print their names and what they are about."""
        rows: list[dict[str, Any]] = []
        for name, about in declared_studies().items():
            study = load_study(name, "memory")
            runs = 0 if study.trained_by else len(study.cells) * len(study.seeds)
            rows.append({"study": name, "runs": runs, "variants": list(study.variants), "about": about})
        if self.json:
            print_json(rows)
            return
        table = new_table("Studies", ("study", "runs"))
        table.columns[0].justify = "left"
        table.add_column("about")
        for row in rows:
            table.add_row(row["study"], str(row["runs"]), row["about"])
        Console().print(table)


@dataclass(frozen=True)
class StudyCommand:
    """Run studies: named sets of runs behind a claim."""

    command: Annotated[
        Annotated[RunStudy, tyro.conf.subcommand("run")]
        | Annotated[Status, tyro.conf.subcommand("status")]
        | Annotated[ListStudies, tyro.conf.subcommand("list")],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> None:
        """Run the one that was named."""
        self.command.run()
