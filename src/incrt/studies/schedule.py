"""Running a study: batches are started, those that died are started again, and every run is finished once.

A run is never lost to a death: it goes on from its own newest checkpoint, whoever starts it again. A batch that dies
again and again without getting any further is halved until the run that kills its worker is alone, and that run is
given up. Runs that another process trains are left to it, and taken over should it end before they do.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from incrt.engine.checkpoint import steps_saved
from incrt.runs import is_over
from incrt.studies.assignments import Assignment, AssignmentResult, Spent, halves, split
from incrt.studies.backend import Backend, Ended
from incrt.studies.store import PlannedRun, RunStatus, Store, drop_damaged, standing
from incrt.studies.study import Study

_DEATHS = 3
"""Deaths in a row without any progress after which a batch is halved."""
_LOOK_EVERY = 1.0
_SECONDS_BEFORE_RETRY = 5.0
"""Between two tries at runs that another process trains."""


class How(NamedTuple):
    """How a study is to be run."""

    device: str
    batch: int
    cores: int | None


class Result(NamedTuple):
    """What a study came to."""

    finished: int
    failed: dict[Path, str]
    """Runs that could not be trained or evaluated, and why."""
    stopped: bool
    no_space: str | None
    spent: Spent
    """By the workers that came to their end."""


class _Tries(NamedTuple):
    """What is known of a batch that was started."""

    deaths: int
    """In a row, without progress."""
    progress: int
    """That was made when it was last started."""


class Schedule:
    """The run of a study, or of a part of it, on a backend."""

    def __init__(self, store: Store, study: Study, plan: Sequence[PlannedRun], backend: Backend, how: How) -> None:
        self._store, self._study, self._plan, self._backend, self._how = store, study, plan, backend, how
        self._failed: dict[Path, str] = {}
        self._finished: set[Path] = set()
        self._referenced: set[Path] = set()
        self._tries: dict[tuple[Path, ...], _Tries] = {}
        self._retry_at = 0.0
        self._no_space: str | None = None
        self._spent = Spent()

    def run(
        self, tell: Callable[[Sequence[RunStatus]], None], stop: Callable[[], bool], say: Callable[[str], None]
    ) -> Result:
        """Until every run is finished or given up, or until ``stop`` says so.

        ``tell`` is shown how far each run is, and ``say`` what went wrong and is tried again.
        """
        self._store.forget_failed(self._study, self._plan)
        for run in self._plan:
            drop_damaged(run, self._study.tests)
        waiting = deque(self._assignments(self.standings()))
        running, is_stopping = 0, False
        while True:
            while waiting and not is_stopping and self._backend.has_room():
                self._start(waiting.popleft())
                running += 1
            for end in self._backend.ended(_LOOK_EVERY):
                running -= 1
                if end.found is not None:
                    self._spent += end.found.spent
                    self._no_space = end.found.no_space or self._no_space
                again = self._settle(end, is_stopping=is_stopping)
                if again and end.death:
                    say(f"{_runs(len(end.assignment.runs))} will be tried again: {end.death}")
                waiting.extend(again)
            standings = self.standings()
            tell(standings)
            if (stop() or self._no_space is not None) and not is_stopping:
                is_stopping = True
                self._backend.stop()
            if running == 0 and (is_stopping or not waiting):
                left = self._unfinished(standings)
                if is_stopping or not left:
                    break
                waiting.extend(self._try_again(standings))
        finished = sum(each.state == "finished" for each in standings)
        return Result(finished, self._failed, is_stopping and bool(left), self._no_space, self._spent)

    def _start(self, assignment: Assignment) -> None:
        deaths = self._tries[assignment.folders].deaths if assignment.folders in self._tries else 0
        self._tries[assignment.folders] = _Tries(deaths, _progress(assignment))
        self._backend.start(assignment)

    def _try_again(self, standings: Sequence[RunStatus]) -> list[Assignment]:
        """What is left was in another process's hands, or its worker was asked to stop: look again now and then."""
        time.sleep(_LOOK_EVERY)
        if time.monotonic() < self._retry_at:
            return []
        self._retry_at = time.monotonic() + _SECONDS_BEFORE_RETRY
        return self._assignments(standings)

    def standings(self) -> list[RunStatus]:
        """How far each run is."""
        found: list[RunStatus] = []
        for run in self._plan:
            if run.folder in self._finished:
                found.append(RunStatus("finished", run.cell.config.sac.steps))
                continue
            each = standing(run, self._study.tests)
            if each.state == "finished" and self._has_references(run):
                self._finished.add(run.folder)
                self._failed.pop(run.folder, None)  # another command has done it
            elif run.folder in self._failed:
                each = RunStatus("failed", each.step)
            elif each.state == "finished":
                each = RunStatus("trained", each.step)
            found.append(each)
        return found

    def _has_references(self, run: PlannedRun) -> bool:
        """Whether the reference controllers stand beside it, on every test."""
        tests = [(run.cell.config.task, changes) for changes in self._study.tests.values()]
        missing = [each for each in tests if self._store.references(*each) not in self._referenced]
        if not all(self._store.has_references(*each) for each in missing):
            return False
        self._referenced.update(self._store.references(*each) for each in missing)
        return True

    def _unfinished(self, standings: Sequence[RunStatus]) -> list[PlannedRun]:
        pairs = zip(self._plan, standings, strict=True)
        return [run for run, each in pairs if each.state not in {"finished", "failed"}]

    def _assignments(self, standings: Sequence[RunStatus]) -> list[Assignment]:
        """Batches of what is not finished and not in another process's hands."""
        idle = [
            run
            for run, each in zip(self._plan, standings, strict=True)
            if each.state not in {"finished", "failed", "training"}
        ]
        return split(self._store, self._study, idle, self._how.batch, self._how.device, self._how.cores)

    def _settle(self, end: Ended, *, is_stopping: bool) -> list[Assignment]:
        """Note what failed; gives what must be started again."""
        if end.found is not None:
            for folder, why in end.found.problems.items():
                self._give_up(Path(folder), why)
        if is_stopping or (end.found is not None and not self._left_undone(end.assignment, end.found)):
            return []
        before = self._tries[end.assignment.folders]
        deaths = 1 if _progress(end.assignment) > before.progress else before.deaths + 1
        if deaths < _DEATHS:
            self._tries[end.assignment.folders] = _Tries(deaths, before.progress)
            return [end.assignment]
        if len(end.assignment.runs) > 1:
            return halves(end.assignment)
        why = end.death or "its worker left it undone"
        self._give_up(end.assignment.runs[0].folder, f"given up after {deaths} tries: {why}")
        return []

    def _left_undone(self, assignment: Assignment, found: AssignmentResult) -> bool:
        """Whether there are runs that the worker could have finished and has not: someone else stopped it, perhaps."""
        states = dict(zip((run.folder for run in self._plan), self.standings(), strict=True))
        mine = [folder for folder in assignment.folders if str(folder) not in found.held]
        return any(states[folder].state not in {"finished", "failed"} for folder in mine)

    def _give_up(self, folder: Path, why: str) -> None:
        self._failed[folder] = why
        try:
            self._store.note_failed(self._study, folder, why)
        except OSError as error:
            self._no_space = str(error)


def _runs(number: int) -> str:
    return "a run" if number == 1 else f"{number} runs"


def _progress(assignment: Assignment) -> int:
    """Grows whenever a run of the batch is saved, trained or evaluated."""
    saved = sum(max(steps_saved(run.folder / "checkpoint"), default=0) for run in assignment.runs)
    done = sum(is_over(run.folder) + len(list(run.folder.glob("eval*.json"))) for run in assignment.runs)
    return saved + done
