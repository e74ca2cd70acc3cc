"""Locks: one process at a time, for as long as it lives and no longer."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from incrt.storage.lock import HeldError, is_held, lock

HOLDER = """
import sys
from pathlib import Path
from incrt.storage.lock import lock
held = lock(Path(sys.argv[1]), wait=False)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_what_another_process_holds_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as other:
        assert is_held(path)
        with pytest.raises(HeldError, match=f"{path} is held by another process"):
            lock(path, wait=False)
        other.kill()
        other.wait()
        assert not is_held(path)
        lock(path, wait=False).close()


def test_a_lock_ends_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = lock(path, wait=False)
    assert is_held(path)
    with pytest.raises(HeldError, match="is held"):
        lock(path, wait=False)
    held.close()
    assert not is_held(path)
    with lock(path, wait=False):
        assert is_held(path)


def test_who_waits_gets_the_lock_after_the_other(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", []
    first = lock(path, wait=True)

    def second() -> None:
        with lock(path, wait=True):
            order.append("second")

    waiting = threading.Thread(target=second)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    order.append("first")
    first.close()
    waiting.join(10)
    assert order == ["first", "second"]


def test_asking_makes_no_file_and_what_is_written_in_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    assert not path.exists()
    path.write_text("words")
    lock(path, wait=False).close()
    assert path.read_text() == "words"


def test_a_lock_in_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lock(tmp_path / "absent" / "lock", wait=False)
