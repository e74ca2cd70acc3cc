"""Where a lone run trains: both ways are tried at two starts, the faster is kept, no core is given to two."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cores import CAN_CHOOSE, cores_of_all_threads, given_back

from incrt.engine import placement
from incrt.engine.placement import Placement, limit_cores, usable_cores

pytestmark = CAN_CHOOSE


@pytest.fixture(autouse=True)
def _everywhere() -> Iterator[None]:
    with given_back():
        yield


def start(folder: Path, one: float, every: float, program: str = "a program") -> bool:
    """One start, in which a step on one core and on all has these rates; whether it was kept on one core."""
    with Placement(program, folder) as lone:
        assert cores_of_all_threads() == {1 if lone.on_one_core else usable_cores()}
        for factor in (0.5, 1.0, 0.8):  # other programs were busy at times
            lone.note(2, factor * (one if lone.on_one_core else every))
        return lone.on_one_core


@pytest.mark.parametrize(("one", "every", "kept"), [(400.0, 200.0, True), (200.0, 400.0, False), (404.0, 400.0, False)])
def test_both_ways_are_tried_and_then_the_faster_is_taken(tmp_path: Path, one: float, every: float, kept: bool) -> None:
    assert [start(tmp_path, one, every) for _ in range(5)] == [False, True, kept, kept, kept]
    (measured,) = json.loads((tmp_path / "placement" / "measured.json").read_text()).values()
    assert measured == {"all": {"2": every}, "one": {"2": one}}


def test_rates_with_other_numbers_of_heads_are_not_compared(tmp_path: Path) -> None:
    with Placement("a program", tmp_path) as lone:
        lone.note(1, 900.0)
        lone.note(8, 400.0)
    for _ in range(2):  # the second start got as far as one head only
        with Placement("a program", tmp_path) as lone:
            assert lone.on_one_core
            lone.note(1, 950.0)
    with Placement("a program", tmp_path) as lone:
        lone.note(8, 200.0)
    with Placement("a program", tmp_path) as lone:
        assert not lone.on_one_core


def test_a_start_that_was_stopped_before_anything_was_timed_is_no_try(tmp_path: Path) -> None:
    for _ in range(2):
        with Placement("a program", tmp_path) as lone:
            assert not lone.on_one_core
    start(tmp_path, 400.0, 200.0)
    for _ in range(2):
        with Placement("a program", tmp_path) as lone:
            assert lone.on_one_core


def test_each_program_and_each_machine_is_measured_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        start(tmp_path, 400.0, 200.0)
    assert not start(tmp_path, 400.0, 200.0, "another")
    assert start(tmp_path, 400.0, 200.0)
    monkeypatch.setattr(placement, "_machine", lambda: "another machine")
    assert not start(tmp_path, 400.0, 200.0)


def test_a_core_is_given_to_one_process_alone(tmp_path: Path) -> None:
    start(tmp_path, 400.0, 200.0)
    cores: list[int] = []
    with contextlib.ExitStack() as running:
        for _ in range(usable_cores()):
            lone = running.enter_context(Placement("a program", tmp_path))
            assert lone.on_one_core
            cores += os.sched_getaffinity(0)
            os.sched_setaffinity(0, lone._all)  # noqa: SLF001  # the next one is to be another process
        assert len(set(cores)) == usable_cores()
        with Placement("a program", tmp_path) as late:
            assert not late.on_one_core
    assert cores_of_all_threads() == {usable_cores()}


def test_a_run_whose_core_another_process_keeps_busy_is_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        start(tmp_path, 400.0, 200.0)
    with Placement("a program", tmp_path) as lone:
        for rate in (100.0, 100.0, 390.0, 100.0, 100.0):
            lone.note(2, rate)
            assert cores_of_all_threads() == {1}
        lone.note(2, 100.0)
        assert cores_of_all_threads() == {usable_cores()}
        with Placement("a program", tmp_path) as other:  # its core is free again
            assert other.on_one_core
    assert start(tmp_path, 400.0, 200.0)


def test_threads_that_run_already_are_moved_too(tmp_path: Path) -> None:
    start(tmp_path, 400.0, 200.0)
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    try:
        assert start(tmp_path, 400.0, 200.0)
        assert cores_of_all_threads() == {usable_cores()}
    finally:
        end.set()
        other.join()


@pytest.mark.parametrize("content", ["", "[1]", '{"x": "y"}', '{"x": {"all": {"2": 0.0}}}', '{"x": {"one": 3}}'])
def test_what_cannot_be_read_is_measured_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "placement").mkdir()
    (tmp_path / "placement" / "measured.json").write_text(content)
    assert [start(tmp_path, 400.0, 200.0) for _ in range(3)] == [False, True, True]


def test_where_nothing_can_be_kept_the_run_has_all_cores(tmp_path: Path) -> None:
    (tmp_path / "placement").write_text("a file where the folder should be")
    assert not any(start(tmp_path, 400.0, 200.0) for _ in range(3))


def test_a_process_can_be_limited_to_some_cores() -> None:
    many = usable_cores()
    limit_cores(many)
    assert usable_cores() == many
    limit_cores(1)
    assert cores_of_all_threads() == {1}
    with pytest.raises(ValueError, match="cores must be at most 1, which is how many this process may use; got 2"):
        limit_cores(2)
