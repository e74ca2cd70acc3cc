"""The folder of studies: which were asked for, their runs, and how far each run is.

| file | what it holds |
|---|---|
| studies/NAME-PRESET.json | a study as it was asked for, every setting spelled out |
| studies/NAME-PRESET.failed.json | the runs that could not be trained or evaluated, and why |
| studies/commands.jsonl | the commands that came to an end, and what time they took |
| runs/CELL/seed-N/ | a run, as incrt train keeps it; studies that name the same run share it |
| references/TEST.json | the reference controllers on one test |
| logs/ | what workers said that died |
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from incrt.config import TaskConfig
from incrt.config.earlier import read_settings, refuse_earlier
from incrt.controllers.tuning import CONTROLLERS
from incrt.engine.run_folder import is_held
from incrt.runs import is_over
from incrt.storage.atomic import write_whole
from incrt.storage.json import checksum, read_json, write_json
from incrt.storage.lock import lock
from incrt.storage.records import Command
from incrt.studies.study import Cell, Study, comparisons

EPISODES = "episodes.safetensors"
"""One episode a payload, for the report's figures."""
_FAILED = ".failed.json"
_COMMANDS = "commands.jsonl"
_TAIL = 4096
"""Bytes from the end of a log that hold its last line."""


class PlannedRun(NamedTuple):
    """A run that a study asks for."""

    cell: Cell
    seed: int
    folder: Path


class RunStatus(NamedTuple):
    """How far a run is."""

    state: str
    """waiting, training, stopped, trained (not evaluated yet), finished or failed."""
    step: int


class Store:
    """The folder of studies."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def enter(self, study: Study) -> tuple[Study, list[PlannedRun]]:
        """Note that a study is asked for; seeds that were asked for before stay in it, as long as any of its runs do.

        Gives the study as noted, and the runs that it named before and no longer does. A study is refused if a file of
        the user's own, such as a robot, has changed since: its runs would be of two arms.
        """
        path = self._studies / study_file(study.name, study.preset)
        gone: list[PlannedRun] = []
        try:
            with self._lock():
                self._check_files(study)
                if path.exists():
                    before = _from_json(path)
                    keys, keys_before = ({cell.key for cell in each.cells} for each in (study, before))
                    gone = [run for run in self.planned(before) if run.cell.key not in keys]
                    if keys & keys_before:
                        study = dataclasses.replace(study, seeds=tuple(sorted({*before.seeds, *study.seeds})))
                write_json(path, _to_json(study))
        except OSError as error:
            raise ValueError(f"{self.path} cannot be written: {error}") from None
        return study, gone

    def _check_files(self, study: Study) -> None:
        """Studies of one folder share runs and reference controllers, so all of them must mean the same files."""
        now = _files(study)
        for path in self._study_files():
            before = read_json(path).get("files", {})
            if changed := [name for name, digest in now.items() if before.get(name, digest) != digest]:
                raise ValueError(
                    f"{', '.join(changed)} has changed since study {path.stem} was begun in {self.path}, with runs of "
                    "what it said then; choose another --out"
                )

    def _study_files(self) -> list[Path]:
        return [path for path in sorted(self._studies.glob("*.json")) if not path.name.endswith(_FAILED)]

    def studies(self) -> list[Study]:
        """The studies asked for, in the order of their names."""
        found = self._study_files()
        if not found:
            raise ValueError(f"{self.path} holds no study; incrt study run NAME --out {self.path} starts one")
        return [_from_json(path) for path in found]

    def planned(self, study: Study) -> list[PlannedRun]:
        """The runs of a study, those of one cell together."""
        return [
            PlannedRun(cell, seed, self.path / "runs" / cell.key / f"seed-{seed}")
            for cell in study.cells
            for seed in study.seeds
        ]

    def references(self, task: TaskConfig, changes: Mapping[str, Any]) -> Path:
        """Where the reference controllers of a task are kept, tested with some fields changed; none sees a window."""
        digest = checksum([task.replace(window=1).to_json(), changes])[:10]
        return self.path / "references" / f"tau{task.tau_z:g}-{digest}.json"

    def has_references(self, task: TaskConfig, changes: Mapping[str, Any]) -> bool:
        """Whether all reference controllers of a test are there; an older version may have known fewer."""
        with contextlib.suppress(ValueError, TypeError, KeyError):  # it is not there, or damaged
            rows = read_json(self.references(task, changes))
            return {row["controller"] for row in rows} == set(CONTROLLERS)
        return False

    def forget_failed(self, study: Study, runs: Iterable[PlannedRun]) -> None:
        """Those of them that failed will be tried again; what is noted of the study's others stays."""
        with self._lock():
            failed: dict[str, str] = {}
            with contextlib.suppress(ValueError):  # damaged: what is still true of it will be noted again
                failed = self.failed(study)
            others = {run.folder for run in self.planned(study)} - {run.folder for run in runs}
            self._write_failed(study, {run: why for run, why in failed.items() if self.path / run in others})

    def note_failed(self, study: Study, run: Path, why: str) -> None:
        """Keep why a run could not be trained or evaluated, beside what other commands have noted."""
        with self._lock():
            self._write_failed(study, {**self.failed(study), str(run.relative_to(self.path)): why})

    def failed(self, study: Study) -> dict[str, str]:
        """Runs that could not be trained or evaluated when the study was last run, and why."""
        path = self._failed(study)
        return dict(read_json(path)) if path.exists() else {}

    def note_command(self, command: Command) -> None:
        """Keep what a command did; on a full disk it is not kept, and what the command has to say is more important."""
        path = self._studies / _COMMANDS
        with contextlib.suppress(OSError), self._lock():
            before = path.read_bytes() if path.exists() else b""
            write_whole(path, before + json.dumps(vars(command)).encode() + b"\n")

    def commands(self) -> list[Command]:
        """What was kept of commands, the oldest first; a line that cannot be read is one less, no more than that."""
        try:
            lines = (self._studies / _COMMANDS).read_bytes().splitlines()
        except OSError:  # none has come to its end here
            return []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                found.append(Command(**json.loads(line)))
        return found

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One command at a time changes what is noted of studies."""
        self._studies.mkdir(parents=True, exist_ok=True)
        with lock(self._studies / ".lock", wait=True):
            yield

    def _write_failed(self, study: Study, failed: Mapping[str, str]) -> None:
        if failed:
            write_json(self._failed(study), failed)
        else:
            self._failed(study).unlink(missing_ok=True)

    def _failed(self, study: Study) -> Path:
        return self._studies / f"{study.name}-{study.preset}{_FAILED}"

    @property
    def _studies(self) -> Path:
        return self.path / "studies"


def study_file(name: str, preset: str) -> Path:
    """Where among the studies of a folder one is kept; they are read in the order of these."""
    return Path(f"{name}-{preset}.json")


def evaluation_file(folder: Path, changes: Mapping[str, Any]) -> Path:
    """Where a run's figures on a test are kept, by the fields of the task that differ from training."""
    if not changes:
        return folder / "eval.json"
    return folder / f"eval-{checksum(changes)[:10]}.json"


def standing(run: PlannedRun, tests: Mapping[str, Mapping[str, Any]]) -> RunStatus:
    """How far a run is that is to be tested like this."""
    if not is_over(run.folder):
        step = _last_step(run.folder / "metrics.jsonl")
        if is_held(run.folder):
            return RunStatus("training", step)
        return RunStatus("stopped" if step else "waiting", step)
    is_evaluated = all(evaluation_file(run.folder, changes).exists() for changes in tests.values())
    is_finished = is_evaluated and (run.folder / EPISODES).exists()
    return RunStatus("finished" if is_finished else "trained", run.cell.config.sac.steps)


def drop_damaged(run: PlannedRun, tests: Mapping[str, Mapping[str, Any]]) -> None:
    """Remove figures that cannot be read: they are then made anew."""
    for changes in tests.values():
        path = evaluation_file(run.folder, changes)
        try:
            is_damaged = path.exists() and "training" not in read_json(path)
        except (ValueError, TypeError):
            is_damaged = True
        if is_damaged:
            path.unlink()


def _last_step(log: Path) -> int:
    """The step that a log of stretches has come to; its last line may be half written."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().split(b"\n")
        return int(json.loads(lines[-2])["step"])
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return 0


def _to_json(study: Study) -> dict[str, Any]:
    cells = [{"variant": cell.variant, **cell.config.to_json()} for cell in study.cells]
    return {**vars(study), "cells": cells, "files": _files(study)}


def _files(study: Study) -> dict[str, str]:
    """The files of the user's own that its tasks are made of, in training and tests, each with its digest."""
    tasks = (cell.config.task.replace(**changes) for cell in study.cells for changes in study.tests.values())
    return {name: digest for task in tasks for name, digest in task.files().items()}


def _from_json(path: Path) -> Study:
    found = read_json(path)
    try:
        for cell in found["cells"]:
            refuse_earlier(cell, "studies end with it: its own incrt report makes a folder of them that is read here")
        cells = tuple(Cell(cell.pop("variant"), read_settings(cell)) for cell in found.pop("cells"))
        found.pop("files", None)
        seeds, trained_by = tuple(found.pop("seeds")), tuple(found.pop("trained_by"))
        # A version before had one name for all, or none.
        compare = comparisons(found.pop("compare"), dict.fromkeys(cell.variant for cell in cells))
        return Study(cells=cells, seeds=seeds, compare=compare, trained_by=trained_by, **found)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a study: {error}") from None
