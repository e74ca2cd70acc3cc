"""When JAX made programs in this process, so that training can be timed with that and without."""

import math
import threading
import time
from collections.abc import Iterable
from functools import cache

import jax.monitoring

BESIDE = "compiles-ahead"
"""How the names of threads begin that compile beside the training (:mod:`incrt.engine.ahead`)."""


@cache
def compilations() -> list[tuple[float, float]]:
    """Begin and end (of ``time.monotonic``) of what kept the training waiting for programs, from the first call on.

    JAX makes them, and some are made beside the training, where only waiting for them counts. The list is the same at
    every call, and grows.
    """
    found: list[tuple[float, float]] = []

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        # Tracing, lowering and compiling, some inside each other.
        if event.startswith("/jax/core/compile/") and not is_beside():
            found.append(((end := time.monotonic()) - duration_secs, end))

    jax.monitoring.register_event_duration_secs_listener(note)
    return found


def is_beside() -> bool:
    """Whether this thread compiles beside the training."""
    return threading.current_thread().name.startswith(BESIDE)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the time that at least one of the spans covers."""
    length, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        length += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return length
