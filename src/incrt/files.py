"""Files that are there whole or not at all."""

import os
import secrets
from pathlib import Path

ASIDE = ".aside"
"""How the names of files end that are being written."""


def write_whole(path: Path, content: bytes) -> None:
    """Write aside, see it onto the disk, rename: a reader, or the next start, meets the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Processes on two machines may have the same number, and write the same file into a folder that they share.
    aside = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{ASIDE}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    settle_entries(path.parent)


def settle(folder: Path) -> None:
    """See a folder and the files in it onto the disk."""
    for path in folder.iterdir():
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    settle_entries(folder)


def settle_entries(folder: Path) -> None:
    """See what is in a folder, by name, onto the disk."""
    if os.name != "posix":  # elsewhere folders cannot be opened
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
