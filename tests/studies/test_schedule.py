"""The schedule, on a backend whose workers do as they are told."""

import errno
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from small_studies import TESTS, small_study

from incrt.controllers.tuning import CONTROLLERS
from incrt.studies import schedule
from incrt.studies.assignments import Assignment, AssignmentResult, Spent, split
from incrt.studies.backend import Ended, LocalBackend
from incrt.studies.schedule import How, Result, Schedule
from incrt.studies.store import EPISODES, PlannedRun, RunStatus, Store, evaluation_file
from incrt.studies.study import Study

Script = Callable[[Assignment, int], AssignmentResult | None]
"""What becomes of an assignment that is started for the n-th time; None stands for a death."""


class ScriptedBackend:
    """Workers that are over at once."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.started: list[Assignment] = []
        self.stopped = False
        self._over: list[Ended] = []

    def has_room(self) -> bool:
        return not self._over

    def start(self, assignment: Assignment) -> None:
        tries = sum(each.folders == assignment.folders for each in self.started)
        self.started.append(assignment)
        found = self.script(assignment, tries)
        self._over.append(Ended(assignment, found, "it died" if found is None else None))

    def ended(self, timeout: float) -> list[Ended]:
        del timeout
        over, self._over = self._over, []
        return over

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        pass


def finish(*runs: PlannedRun) -> AssignmentResult:
    """Leave what a finished run leaves, as far as the schedule looks; what its worker says then."""
    for run in runs:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "conclusion.json").write_text("{}")
        (run.folder / EPISODES).touch()
        for changes in TESTS.values():
            evaluation_file(run.folder, changes).write_text('{"training": {}}')
    return AssignmentResult()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_LOOK_EVERY", 0.0)
    monkeypatch.setattr(schedule, "_SECONDS_BEFORE_RETRY", 0.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "out")


@pytest.fixture
def study(tmp_path: Path, store: Store) -> Study:
    entered, _ = store.enter(small_study(tmp_path))
    for cell in entered.cells:
        for changes in TESTS.values():
            path = store.references(cell.config.task, changes)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps([{"controller": name} for name in CONTROLLERS]))
    return entered


def run(
    store: Store,
    study: Study,
    script: Script,
    batch: int = 4,
    stop: Callable[[], bool] = lambda: False,
    plan: Sequence[PlannedRun] = (),
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Result, ScriptedBackend]:
    backend = ScriptedBackend(script)
    seen: list[list[RunStatus]] = []
    schedule_ = Schedule(store, study, plan or store.planned(study), backend, How("cpu", batch, None))
    result = schedule_.run(lambda each: seen.append(list(each)), stop, say)
    assert seen
    return result, backend


def test_batches_hold_every_run_once(store: Store, study: Study) -> None:
    def script(assignment: Assignment, _: int) -> AssignmentResult:
        return finish(*assignment.runs)

    result, backend = run(store, study, script, batch=3)
    assert [len(assignment.runs) for assignment in backend.started] == [2, 2]
    assert sorted(folder for assignment in backend.started for folder in assignment.folders) == sorted(
        each.folder for each in store.planned(study)
    )
    assert result == Result(4, {}, stopped=False, no_space=None, spent=Spent())


def test_a_part_of_a_study_leaves_the_rest_as_it_is(store: Store, study: Study) -> None:
    *part, other = store.planned(study)
    for each in (part[0], other):
        store.note_failed(study, each.folder, "the arm fell off")
    result, backend = run(store, study, lambda assignment, _: finish(*assignment.runs), plan=part)
    assert [assignment.folders for assignment in backend.started] == [tuple(each.folder for each in part)]
    assert (result.finished, result.stopped) == (3, False)
    assert list(store.failed(study)) == [str(other.folder.relative_to(store.path))]


def test_a_finished_run_is_not_started_again(store: Store, study: Study) -> None:
    plan = store.planned(study)
    finish(*plan[:3])
    result, backend = run(store, study, lambda assignment, _: finish(*assignment.runs))
    assert [assignment.folders for assignment in backend.started] == [(plan[3].folder,)]
    assert result.finished == 4
    _, backend = run(store, study, lambda *_: pytest.fail("nothing is left to do"))
    assert backend.started == []


def test_runs_that_are_only_to_be_evaluated_are_started(store: Store, study: Study) -> None:
    plan = store.planned(study)
    finish(*plan)
    evaluation_file(plan[1].folder, TESTS["payload 1 kg"]).unlink()
    _, backend = run(store, study, lambda assignment, _: finish(*assignment.runs))
    assert [assignment.folders for assignment in backend.started] == [(plan[1].folder,)]


def test_runs_without_all_reference_controllers_are_started(store: Store, study: Study) -> None:
    """A version of the library that knew fewer of them has run the study."""
    plan = store.planned(study)
    finish(*plan)
    path = store.references(plan[0].cell.config.task, {})
    whole = path.read_text()
    path.write_text(json.dumps([{"controller": "baseline"}]))

    def script(assignment: Assignment, _: int) -> AssignmentResult:
        path.write_text(whole)
        return finish(*assignment.runs)

    result, backend = run(store, study, script)
    assert len(backend.started) == 1
    assert result.finished == 4


def test_a_batch_that_died_goes_on_as_long_as_it_gets_further(store: Store, study: Study) -> None:
    def script(assignment: Assignment, tries: int) -> AssignmentResult | None:
        if tries < 7:  # each time one checkpoint more
            folder = assignment.runs[0].folder / "checkpoint"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{20 * (tries + 1):09d}.json").write_text("{}")
            return None
        return finish(*assignment.runs)

    result, backend = run(store, study, script)
    assert len(backend.started) == 8
    assert result == Result(4, {}, stopped=False, no_space=None, spent=Spent())


def test_a_run_that_kills_its_worker_is_found_and_given_up(store: Store, study: Study) -> None:
    bad = store.planned(study)[2].folder

    def script(assignment: Assignment, _: int) -> AssignmentResult | None:
        if bad in assignment.folders:
            return None
        return finish(*assignment.runs)

    said: list[str] = []
    result, backend = run(store, study, script, say=said.append)
    assert result.finished == 3
    assert result.failed == {bad: "given up after 3 tries: it died"}
    tries = [4, 4, 4, 2, 2, 2, 1, 1]  # nobody is told of the last one but by what failed
    assert said == [f"{'a run' if n == 1 else f'{n} runs'} will be tried again: it died" for n in tries]
    assert [len(assignment.runs) for assignment in backend.started].count(4) == 3
    assert store.failed(study) == {str(bad.relative_to(store.path)): "given up after 3 tries: it died"}
    result, _ = run(store, study, lambda assignment, _: finish(*assignment.runs))  # tried again by the next command
    assert result.finished == 4
    assert store.failed(study) == {}


def test_what_is_wrong_with_one_run_leaves_the_others_be(store: Store, study: Study) -> None:
    def script(assignment: Assignment, _: int) -> AssignmentResult:
        finish(*assignment.runs[1:])
        return AssignmentResult(problems={str(assignment.runs[0].folder): "is damaged"})

    result, backend = run(store, study, script)
    assert (result.finished, len(backend.started)) == (3, 1)
    assert list(result.failed.values()) == ["is damaged"]


def test_runs_of_another_process_are_left_to_it_and_taken_over_if_it_ends(store: Store, study: Study) -> None:
    plan = store.planned(study)

    def script(assignment: Assignment, _: int) -> AssignmentResult:
        if len(assignment.runs) == 4:  # another process has two of them
            finish(*plan[2:])
            return AssignmentResult(held=[str(each.folder) for each in plan[:2]])
        return finish(*assignment.runs)

    result, backend = run(store, study, script)
    assert [assignment.folders for assignment in backend.started[1:]] == [tuple(each.folder for each in plan[:2])]
    assert result.finished == 4


def test_a_stop_is_passed_on_and_nothing_more_is_started(store: Store, study: Study) -> None:
    result, backend = run(store, study, lambda *_: AssignmentResult(), batch=1, stop=lambda: True)
    assert backend.stopped
    assert len(backend.started) == 1
    assert (result.stopped, result.finished) == (True, 0)


def test_a_stop_is_no_death(store: Store, study: Study) -> None:
    asked = iter([False, False, True])
    result, backend = run(store, study, lambda *_: None, stop=lambda: next(asked, True))
    assert len(backend.started) == 3
    assert (result.stopped, result.failed, store.failed(study)) == (True, {}, {})


def test_a_worker_that_someone_else_stopped_is_started_again_at_once(store: Store, study: Study) -> None:
    def script(assignment: Assignment, tries: int) -> AssignmentResult:
        return finish(*assignment.runs) if tries else AssignmentResult()

    result, backend = run(store, study, script, batch=2)
    assert result.finished == 4
    assert sorted(len(assignment.runs) for assignment in backend.started) == [2, 2, 2, 2]


def test_a_run_that_is_never_finished_is_given_up(store: Store, study: Study) -> None:
    bad = store.planned(study)[1].folder

    def script(assignment: Assignment, _: int) -> AssignmentResult:
        return finish(*(each for each in assignment.runs if each.folder != bad))

    result, _ = run(store, study, script)
    assert (result.finished, list(result.failed)) == (3, [bad])
    assert result.failed[bad] == "given up after 3 tries: its worker left it undone"


def test_two_commands_note_what_failed_beside_each_other(store: Store, study: Study) -> None:
    first, second, *_ = (each.folder for each in store.planned(study))
    store.note_failed(study, first, "one command's")
    store.note_failed(study, second, "the other's")
    assert list(store.failed(study).values()) == ["one command's", "the other's"]


def test_a_full_disk_ends_the_study(store: Store, study: Study) -> None:
    words = str(OSError(errno.ENOSPC, "No space left on device"))
    result, backend = run(store, study, lambda *_: AssignmentResult(no_space=words), batch=1)
    assert len(backend.started) == 1
    assert (result.stopped, result.no_space) == (True, words)


def test_assignments_and_their_ends_travel_as_json(store: Store, study: Study) -> None:
    schedule_ = Schedule(store, study, store.planned(study), ScriptedBackend(lambda *_: None), How("gpu", 2, 3))
    for assignment in schedule_._assignments(schedule_.standings()):  # noqa: SLF001
        assert Assignment.from_json(assignment.to_json()) == assignment
    found = AssignmentResult({"a": "b"}, ["c"], no_space="d", spent=Spent(2, 3.25, 1.5, 0.75))
    assert AssignmentResult.from_json(found.to_json()) == found


def test_what_the_workers_spent_is_added_up(store: Store, study: Study) -> None:
    def script(assignment: Assignment, tries: int) -> AssignmentResult | None:
        if tries == 0:
            return None  # a worker that dies takes its times with it
        found = finish(*assignment.runs)
        found.spent = Spent(runs=len(assignment.runs), train_s=2.26, compile_s=1.5, evaluate_s=0.5)
        return found

    result, _ = run(store, study, script, batch=2)
    assert result.spent.rounded() == {"runs": 4, "train_s": 4.5, "compile_s": 3.0, "evaluate_s": 1.0}


def test_a_worker_that_was_killed_says_what_may_have_killed_it(
    store: Store, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (python := tmp_path / "python").write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    backend = LocalBackend(tmp_path)
    backend.start(split(store, study, store.planned(study), 4, "cpu", None)[0])
    (end,) = backend.ended(20)
    assert end.found is None
    assert end.death is not None
    assert end.death.startswith(
        "its worker ended with signal 9, as where memory runs out (a smaller --batch takes less)"
    )
