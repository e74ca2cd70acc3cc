"""When JAX made programs in this process, so that training can be timed with that and without."""

import math
import time
from collections.abc import Iterable
from functools import cache

import jax.monitoring

from incrt.engine.ahead import is_ahead


@cache
def compilations() -> list[tuple[float, float]]:
    """Begin and end (of ``time.monotonic``) of all that JAX did to make programs; it notes them from the first call on.

    The list is the same at every call, and grows.
    """
    found: list[tuple[float, float]] = []

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        # Tracing, lowering and compiling, some inside each other; beside the training they take no time from it.
        if event.startswith("/jax/core/compile/") and not is_ahead():
            found.append(((end := time.monotonic()) - duration_secs, end))

    jax.monitoring.register_event_duration_secs_listener(note)
    return found


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the time that at least one of the spans covers."""
    length, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        length += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return length
