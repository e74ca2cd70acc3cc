"""Trains and evaluates one batch: what a process of the local backend, or an assignment of Ray, does."""

import errno
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jax.monitoring

from incrt.controllers.tuning import CONTROLLERS
from incrt.engine.ahead import is_ahead
from incrt.engine.training import Job, make_job, train, until_signalled
from incrt.runs import evaluate_run, find_runs, is_over, reference_evaluation, reference_rows
from incrt.storage.cache import keep_compiled
from incrt.storage.json import read_json, write_json
from incrt.storage.lock import HeldError
from incrt.studies.assignments import Assignment, AssignmentResult
from incrt.studies.episodes import record_episodes
from incrt.studies.store import EPISODES, PlannedRun, Store, evaluation_file

_CHECKPOINTS = 10
"""In a run: more would cost time, fewer would lose more of it to a death."""
_NOTHING_FITS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def work(assignment: Assignment, warn: Callable[[str], None]) -> AssignmentResult:
    """Train what is not trained, evaluate what is not evaluated. What goes wrong with one run leaves the others be."""
    keep_compiled()
    _compilations()
    found = AssignmentResult()
    was_stopped = False
    try:
        unfinished = [run for run in assignment.runs if not is_over(run.folder)]
        if assignment.trained_by:
            for run in unfinished:
                studies = " or ".join(assignment.trained_by)
                found.problems[str(run.folder)] = f"is not trained: incrt study run with study {studies} trains it"
        elif unfinished:
            begin = time.monotonic()
            fresh = [run for run in unfinished if not (run.folder / "config.json").exists()]
            with until_signalled() as stop:
                try:
                    _train(assignment, unfinished, found, warn)
                except ValueError as error:  # of no one run: a device that is not there, for example
                    found.problems |= {str(run.folder): str(error) for run in unfinished}
                was_stopped = stop()  # also where the last steps were done before it was heard
            found.spent.compile_s = _length(each for each in _compilations() if each[0] >= begin)
            found.spent.train_s = time.monotonic() - begin - found.spent.compile_s
            others = {*found.held, *found.problems}  # another process may have brought one to its end meanwhile
            found.spent.runs = sum(_is_whole(run.folder) for run in fresh if str(run.folder) not in others)
        trained = [run for run in assignment.runs if is_over(run.folder)]
        begin = time.monotonic()
        if not was_stopped:
            _evaluate(assignment, trained, found)
        found.spent.evaluate_s = time.monotonic() - begin
    except OSError as error:
        if error.errno not in _NOTHING_FITS:
            raise
        found.no_space = str(error)
    return found


def _is_whole(folder: Path) -> bool:
    """Whether a run was trained to its last step."""
    return is_over(folder) and read_json(folder / "conclusion.json")["failure"] is None


@cache
def _compilations() -> list[tuple[float, float]]:
    """Begin and end of all that JAX did in this process, from the first call on, to make programs."""
    found: list[tuple[float, float]] = []

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        # Tracing, lowering and compiling, some inside each other; beside the training they take no time from it.
        if event.startswith("/jax/core/compile/") and not is_ahead():
            found.append(((end := time.monotonic()) - duration_secs, end))

    jax.monitoring.register_event_duration_secs_listener(note)
    return found


def _length(spans: Iterable[tuple[float, float]]) -> float:
    """Of the time that at least one of the spans covers."""
    length, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        length += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return length


def _train(
    assignment: Assignment, runs: list[PlannedRun], found: AssignmentResult, warn: Callable[[str], None]
) -> None:
    def refused(job: Job, error: ValueError) -> None:
        if isinstance(error, HeldError):
            found.held.append(str(job.folder))
        elif isinstance(error.__cause__, OSError) and error.__cause__.errno in _NOTHING_FITS:
            raise error.__cause__
        else:
            found.problems[str(job.folder)] = str(error)

    jobs = []
    for run in runs:
        try:
            jobs.append(make_job(run.folder, run.cell.config.replace(seed=run.seed)))
        except ValueError as error:  # of this run's settings
            found.problems[str(run.folder)] = str(error)
    save_every = max(1, runs[0].cell.config.sac.steps // _CHECKPOINTS)  # all runs of an assignment are of one length
    train(jobs, assignment.device, save_every, warn=warn, on_refused=refused, cores=assignment.cores)


def _evaluate(assignment: Assignment, runs: list[PlannedRun], found: AssignmentResult) -> None:
    for run in runs:
        try:
            for name, changes in assignment.tests.items():
                _references(Store(assignment.store), run, changes)
                _evaluate_on(run, name, changes)
        except ValueError as error:
            found.problems[str(run.folder)] = str(error)


def _evaluate_on(run: PlannedRun, condition: str, changes: Mapping[str, Any]) -> None:
    path, episodes = evaluation_file(run.folder, changes), run.folder / EPISODES
    if path.exists() and (changes or episodes.exists()):
        return
    (trained,) = find_runs(run.folder)
    figures, recorded = evaluate_run(trained, **changes)
    if not changes:
        record_episodes(episodes, trained, recorded)
    tested = {"condition": condition} if changes else {}
    write_json(path, {**tested, **figures})


def _references(store: Store, run: PlannedRun, changes: Mapping[str, Any]) -> None:
    """What stands beside the learned results, once for all runs on a task."""
    if store.has_references(run.cell.config.task, changes):
        return
    config = run.cell.config.task.replace(**changes)
    found = {name: reference_evaluation(name, run.cell.config.task, config)[0] for name in CONTROLLERS}
    path = store.references(run.cell.config.task, changes)
    write_json(path, reference_rows({"tau_z": config.tau_z}, found))


def main() -> None:
    """A worker of the local backend: its assignment is the first line of stdin, the result the last of stdout."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print, also those that are not Python's, must not be taken for the answer
    assignment = Assignment.from_json(sys.stdin.readline())
    threading.Thread(target=_stop_without_parent, daemon=True).start()
    found = work(assignment, lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201
    answer.write(found.to_json() + "\n")
    answer.close()


def _stop_without_parent() -> None:
    """Stdin ends when whoever started this worker is gone: then save what was done and end as well."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        # The last line is the reason shown, and JAX ends its tracebacks with a word of its own.
        why = next(iter(str(error).splitlines()), "")
        print(f"{type(error).__name__}: {why}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
