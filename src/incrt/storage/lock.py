"""Files that keep other processes out for as long as they are open, however their holder ends."""

import time
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps others out
    fcntl = None  # type: ignore[assignment]

_TRIES = 5


class HeldError(ValueError):
    """A lock that another process holds."""


def lock(path: Path, *, wait: bool) -> IO[str]:
    """Hold a lock until the file is closed; without ``wait`` one that another process holds is refused."""
    held = path.open("a")
    if fcntl is None:
        return held
    if wait:
        fcntl.flock(held, fcntl.LOCK_EX)
        return held
    for _ in range(_TRIES):  # is_held has it for a moment
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return held
    held.close()
    raise HeldError(f"{path} is held by another process")


def is_held(path: Path) -> bool:
    """Whether another process holds the lock now."""
    if fcntl is None:
        return False
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no such file, or no way to know: whoever wants to hold it will be told
        return False
    return False
