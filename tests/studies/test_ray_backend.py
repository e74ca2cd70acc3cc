"""Batches as tasks of Ray, on this machine; ``python benchmarks/study_kill.py --backend ray`` has nodes that die."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from small_studies import SMALL, TESTS, one_assignment, small_study

from incrt.engine.checkpoint import steps_saved
from incrt.studies.assignments import Assignment
from incrt.studies.ray_backend import RayBackend
from incrt.studies.schedule import How, Schedule
from incrt.studies.store import Store, standing

# Ray starts its processes by a fork and an exec; JAX warns of every fork.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=1, num_gpus=0, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_a_study_is_finished_by_assignments(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    study = store.enter(small_study(tmp_path))[0]
    backend = RayBackend(None, "auto", 1)
    assert backend.device == "cpu"
    schedule = Schedule(store, study, store.planned(study), backend, How(backend.device, 2, 1))
    result = schedule.run(lambda _: None, lambda: False, lambda _: None)
    assert (result.finished, result.failed, result.stopped) == (4, {}, False)
    assert result.spent.runs == 4
    assert min(vars(result.spent).values()) > 0
    assert {standing(run, TESTS).state for run in store.planned(study)} == {"finished"}


def test_what_an_assignment_says_is_passed_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    assignment = one_assignment(store, small_study(tmp_path))
    backend = RayBackend(None, "cpu", 1)
    backend.start(Assignment(**{**vars(assignment), "device": "abacus"}))
    (end,) = backend.ended(60)
    assert end.found is not None
    assert {words.split(";")[0] for words in end.found.problems.values()} == {"device must be one of auto, cpu, gpu"}


def test_an_assignment_that_is_stopped_saves_what_was_done(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    assignment = one_assignment(store, small_study(tmp_path, SMALL.replace("steps = 140", "steps = 1000000")))
    backend = RayBackend(None, "cpu", 1)
    backend.start(assignment)
    until = time.monotonic() + 100
    while not any(standing(run, TESTS).step for run in assignment.runs) and time.monotonic() < until:
        time.sleep(0.1)
    backend.stop()
    assert len(backend.ended(60)) == 1
    assert any(steps_saved(run.folder / "checkpoint") for run in assignment.runs)
    assert backend.ended(0) == []


@pytest.mark.parametrize(("device", "cores"), [("cpu", 1000), ("gpu", 1)])
def test_what_no_node_has_is_refused(device: str, cores: int) -> None:
    with pytest.raises(ValueError, match=r"a worker needs .* the nodes have 1 cores and 0 GPUs"):
        RayBackend(None, device, cores)
