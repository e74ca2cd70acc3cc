"""Where tasks run: what the schedule asks of a backend, and the one of this machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from incrt.studies.tasks import Found, Task

_POLL = 0.1
_LINES_SHOWN = 3


class Ended(NamedTuple):
    """A task that is over: what its worker says, or why there is no word from it."""

    task: Task
    found: Found | None
    death: str | None


class Backend(Protocol):
    """Runs tasks."""

    def has_room(self) -> bool:
        """Whether another task may be started now."""

    def start(self, task: Task) -> None:
        """Begin with a task."""

    def ended(self, timeout: float) -> list[Ended]:
        """The tasks that are over, as soon as there is one or so many seconds have passed."""

    def stop(self) -> None:
        """Ask all workers to save what was done and end."""

    def close(self) -> None:
        """Let go of everything, workers included."""


class LocalBackend:
    """One worker at a time, in a process of its own: it has all cores, or the GPU, and its death is not ours."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: tuple[Task, subprocess.Popen[str], IO[str], Path] | None = None

    def has_room(self) -> bool:
        return self._running is None

    def start(self, task: Task) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        path = self._logs / f"worker-{os.getpid()}-{time.time_ns()}.log"
        log = path.open("w")
        # A session of its own: Ctrl-C is for the schedule to hear, which then asks the worker to stop.
        process = subprocess.Popen(
            [sys.executable, "-m", "incrt.studies.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        self._running = (task, process, log, path)
        assert process.stdin is not None  # noqa: S101 it is a pipe
        try:
            process.stdin.write(task.to_json() + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once; its end says so

    def ended(self, timeout: float) -> list[Ended]:
        until = time.monotonic() + timeout
        while self._running is not None:
            task, process, log, path = self._running
            if process.poll() is not None:
                self._running = None
                log.close()
                return [_end(task, process, path)]
            if time.monotonic() >= until:
                return []
            time.sleep(_POLL)
        return []

    def stop(self) -> None:
        if self._running is not None:
            self._running[1].terminate()

    def close(self) -> None:
        if self._running is not None:
            self._running[1].kill()
            self._running[1].wait()


def _end(task: Task, process: subprocess.Popen[str], log: Path) -> Ended:
    assert process.stdout is not None  # noqa: S101 it is a pipe
    answer = process.stdout.read()
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode == 0 and answer:
        log.unlink(missing_ok=True)
        return Ended(task, Found(**json.loads(answer)), None)
    how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit status {process.returncode}"
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-_LINES_SHOWN:]
    return Ended(task, None, f"its worker ended with {how}" + (f", saying: {' / '.join(said)}" if said else ""))
