"""Where assignments run: what the schedule asks of a backend, and the one of this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from incrt.studies.assignments import Assignment, AssignmentResult

_POLL = 0.1


class Ended(NamedTuple):
    """A assignment that is over: what its worker says, or why there is no word from it."""

    assignment: Assignment
    found: AssignmentResult | None
    death: str | None


class Backend(Protocol):
    """Runs assignments."""

    def has_room(self) -> bool:
        """Whether another assignment may be started now."""

    def start(self, assignment: Assignment) -> None:
        """Begin with an assignment."""

    def ended(self, timeout: float) -> list[Ended]:
        """The assignments that are over, as soon as there is one or so many seconds have passed."""

    def stop(self) -> None:
        """Ask all workers to save what was done and end."""

    def close(self) -> None:
        """Let go of everything, workers included."""


class LocalBackend:
    """One worker at a time, in a process of its own: it has all cores, or the GPU, and its death is not ours."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: _Worker | None = None

    def has_room(self) -> bool:
        return self._running is None

    def start(self, assignment: Assignment) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        self._running = _Worker(assignment, self._logs / f"worker-{os.getpid()}-{time.time_ns()}.log")

    def ended(self, timeout: float) -> list[Ended]:
        until = time.monotonic() + timeout
        while self._running is not None:
            if self._running.process.poll() is not None:
                over, self._running = self._running, None
                return [over.end()]
            if time.monotonic() >= until:
                break
            time.sleep(_POLL)
        return []

    def stop(self) -> None:
        if self._running is not None:
            self._running.process.terminate()

    def close(self) -> None:
        if self._running is not None:
            self._running.process.kill()
            self._running.end()


class _Worker:
    """The process of one assignment."""

    def __init__(self, assignment: Assignment, log: Path) -> None:
        # The answer goes into a file: a pipe that nobody reads would be full at some length, and the worker would wait.
        self._task, self._log, self._answer = assignment, log, log.with_suffix(".answer")
        with log.open("w") as said, self._answer.open("w") as answer:
            # A session of its own: Ctrl-C is for the schedule to hear, which then asks the worker to stop.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "incrt.studies.worker"],
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdin is not None  # noqa: S101 it is a pipe
        with contextlib.suppress(BrokenPipeError):  # it died at once: its end says so
            self.process.stdin.write(assignment.to_json() + "\n")
            self.process.stdin.flush()

    def end(self) -> Ended:
        """What became of the assignment, once the process is over; the log of one that did well is of no use."""
        self.process.communicate()
        status = self.process.returncode
        answer = self._answer.read_text()
        self._answer.unlink(missing_ok=True)
        if status == 0 and answer:
            self._log.unlink(missing_ok=True)
            return Ended(self._task, AssignmentResult.from_json(answer.splitlines()[-1]), None)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        if status == -signal.SIGKILL:
            how += ", as where memory runs out (a smaller --batch takes less)"
        said = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        last = f", saying: {said[-1]}" if said else ""
        return Ended(self._task, None, f"its worker ended with {how}{last} ({self._log})")
