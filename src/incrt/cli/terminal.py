"""What all commands print with: tables and JSON on stdout, progress and errors on stderr."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

log = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """JSON and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def cell(value: float | None, form: str) -> str:
    """A figure of a table; a dash for none, few digits for one that would break the column."""
    if value is None:
        return "-"
    return form.format(value) if abs(value) < 1e5 else f"{value:.0e}"


def prepare_file(path: Path) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise ValueError(f"figure must end in .png, .svg or .pdf, got {str(path)!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ValueError(f"figure cannot be written: {error}") from error


def prepare_folder(path: Path) -> None:
    """Make a folder for figures, or refuse it before the work and not after it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"figures cannot be written: {error}") from error
