"""Files that are there whole or not at all."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

ASIDE = ".aside"
"""How the names of files end that are being written."""


def write_whole(path: Path, content: bytes) -> None:
    """Write aside, see it onto the disk, rename: a reader, or the next start, meets the old file or the new one."""
    write_together(path.parent, {path.name: content})


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """The same for files that are of no use without each other: none is renamed before all are on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    # Processes on two machines may have the same number, and write the same file into a folder that they share.
    mark = f"{os.getpid()}-{secrets.token_hex(4)}{ASIDE}"
    asides = {folder / name: folder / f"{name}.{mark}" for name in contents}
    try:
        for aside, content in zip(asides.values(), contents.values(), strict=True):
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        try:
            for path, aside in asides.items():
                aside.replace(path)
        except KeyboardInterrupt:
            for path, aside in asides.items():  # or some would be old and some new
                if aside.exists():
                    aside.replace(path)
            raise
    finally:
        for aside in asides.values():
            aside.unlink(missing_ok=True)
    settle_entries(folder)


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
