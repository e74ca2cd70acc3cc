"""What JAX compiles, or loads from its cache, while a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax.monitoring

from incrt.engine.compilation import is_beside


@contextmanager
def compilations() -> Iterator[list[tuple[str, bool]]]:
    """The name of each program, and whether a thread made it beside other work."""
    found: list[tuple[str, bool]] = []

    def note(event: str, duration_secs: float, **about: str | int) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            found.append((str(about.get("fun_name")), is_beside()))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
