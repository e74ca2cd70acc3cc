"""Which cores the threads of this process have."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from incrt.engine.placement import usable_cores

_THREADS = Path("/proc/self/task")

CAN_CHOOSE = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or usable_cores() < 2, reason="there is one core, or no way to choose one"
)


def cores_of_all_threads() -> set[int]:
    """How many cores each thread has."""
    found = set()
    for thread in _THREADS.iterdir():
        with contextlib.suppress(ProcessLookupError):
            found.add(len(os.sched_getaffinity(int(thread.name))))
    return found


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """All threads have their cores again after this."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        for thread in _THREADS.iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), before)
