"""How many threads a lone run has: both ways are tried at two starts, and the faster is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from incrt.engine import threads
from incrt.engine.threads import ThreadChoice, limit_threads, usable_cores

XLA_THREADS = "PJRT_NPROC"
pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="on a single core there is nothing to choose")


@pytest.fixture(autouse=True)
def _not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(XLA_THREADS, raising=False)


def start(folder: Path, one: float, every: float, program: str = "a program") -> bool:
    """One start, with these rates of one thread and of all; whether it had a single one."""
    with ThreadChoice(program, folder) as lone:
        assert (os.environ.get(XLA_THREADS) == "1") is lone.on_one_thread
        for factor in (0.5, 1.0, 0.8):  # other programs were busy at times
            lone.note(2, factor * (one if lone.on_one_thread else every))
        return lone.on_one_thread


@pytest.mark.parametrize(("one", "every", "kept"), [(400.0, 200.0, True), (200.0, 400.0, False), (404.0, 400.0, False)])
def test_both_ways_are_tried_and_then_the_faster_is_taken(tmp_path: Path, one: float, every: float, kept: bool) -> None:
    assert [start(tmp_path, one, every) for _ in range(5)] == [False, True, kept, kept, kept]
    (measured,) = json.loads((tmp_path / "threads" / "measured.json").read_text()).values()
    assert measured == {"all": {"2": every}, "one": {"2": one}}


def test_rates_with_other_numbers_of_heads_are_not_compared(tmp_path: Path) -> None:
    with ThreadChoice("a program", tmp_path) as lone:
        for _ in range(3):
            lone.note(1, 900.0)
            lone.note(8, 400.0)
    for _ in range(2):  # the second start got as far as one head only
        with ThreadChoice("a program", tmp_path) as lone:
            assert lone.on_one_thread
            for _ in range(3):
                lone.note(1, 950.0)
    with ThreadChoice("a program", tmp_path) as lone:
        for _ in range(3):
            lone.note(8, 200.0)
    with ThreadChoice("a program", tmp_path) as lone:
        assert not lone.on_one_thread


@pytest.mark.parametrize("rates", [[], [18.0], [18.0, 400.0]], ids=["nothing", "while it compiled", "too little"])
def test_a_start_that_was_stopped_before_enough_was_timed_is_no_try(tmp_path: Path, rates: list[float]) -> None:
    for _ in range(2):
        with ThreadChoice("a program", tmp_path) as lone:
            assert not lone.on_one_thread
            for rate in rates:
                lone.note(1, rate)
    assert not (tmp_path / "threads" / "measured.json").exists()
    start(tmp_path, 400.0, 200.0)
    for _ in range(2):
        with ThreadChoice("a program", tmp_path) as lone:
            assert lone.on_one_thread


def test_each_program_and_each_machine_is_measured_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        start(tmp_path, 400.0, 200.0)
    assert not start(tmp_path, 400.0, 200.0, "another")
    assert start(tmp_path, 400.0, 200.0)
    monkeypatch.setattr(threads, "_machine", lambda: "another machine")
    assert not start(tmp_path, 400.0, 200.0)


@pytest.mark.parametrize("content", ["", "[1]", '{"x": "y"}', '{"x": {"all": {"2": 0.0}}}', '{"x": {"one": 3}}'])
def test_what_cannot_be_read_is_measured_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "threads").mkdir()
    (tmp_path / "threads" / "measured.json").write_text(content)
    assert [start(tmp_path, 400.0, 200.0) for _ in range(3)] == [False, True, True]


def test_where_nothing_can_be_kept_the_run_has_all_cores(tmp_path: Path) -> None:
    (tmp_path / "threads").write_text("a file where the folder should be")
    assert not any(start(tmp_path, 400.0, 200.0) for _ in range(3))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_compiler_has_as_many_threads_as_it_is_given(threads: int) -> None:
    code = f"""
from pathlib import Path
from incrt.engine.threads import limit_threads
limit_threads({threads})
import jax
jax.block_until_ready(jax.jit(lambda x: x @ x)(jax.numpy.ones((8, 8))))
print(sum("XLAEigen" in (each / "comm").read_text() for each in Path("/proc/self/task").iterdir()))
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(said.stdout) == threads


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"cores must be at most \d+, which is how many this process may use; got 9999"
    ):
        limit_threads(9999)


def test_where_the_user_has_chosen_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, 400.0, 200.0)
    monkeypatch.setenv(XLA_THREADS, "2")
    assert not start(tmp_path, 400.0, 200.0)
    assert os.environ[XLA_THREADS] == "2"
    monkeypatch.delenv(XLA_THREADS)
    assert start(tmp_path, 400.0, 200.0)
