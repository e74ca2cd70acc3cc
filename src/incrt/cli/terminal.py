"""What all commands print with: tables and JSON on stdout, progress and errors on stderr."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

log = Console(stderr=True, highlight=False)


def say_stopping() -> None:
    """Answer Ctrl-C."""
    words = "stopping at the next check, when what was done is saved; a second Ctrl-C does not wait for that"
    log.print(words, soft_wrap=True)


@contextmanager
def saying(words: str) -> Iterator[None]:
    """While something takes its time: a status on a terminal, a line elsewhere."""
    if not log.is_terminal:
        log.print(words, markup=False, soft_wrap=True)
    with log.status(escape(words)):
        yield


def print_json(value: Any) -> None:
    """JSON and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


COLUMNS = {
    "RMSE": ("rmse", "{:.4f}"),
    "Δ%": ("delta_pct", "{:+.1f}"),
    "closed": ("headroom_closed", "{:.0%}"),
    "max e": ("max_error", "{:.3f}"),
    "τ rms": ("torque_rms", "{:.1f}"),
    "τ TV": ("torque_tv", "{:.0f}"),
    "η sat": ("eta_saturation_pct", "{:.1f}"),
    "shield": ("shield_active_pct", "{:.2f}"),
}
"""Headings of what can be said of a controller: the field of its evaluation, and how it is printed."""
MEANINGS = {
    "RMSE": "RMSE and max e: tracking error (rad)",
    "Δ%": "Δ%: against the baseline",
    "closed": "closed: of the way from the best constant to the clairvoyant",
    "τ TV": "τ: torque (N m), TV its total variation",
    "η sat": "η sat: feed-forward at its bound (%)",
    "shield": "shield: steps at which it changed the gains (%)",
}


def new_table(title: str, headings: Sequence[str], caption: str | None = None) -> Table:
    """A table without rows; names are to the left, figures to the right."""
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"controller", "training"} else "right", no_wrap=True)
    return table


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


def progress_bar(done: int, total: int) -> Group:
    """A bar on a line of its own, which Rich's does not end."""
    return Group(ProgressBar(total, done, 40), Text())


class LiveView:
    """What shows itself while a block runs: a picture that changes, on a terminal; elsewhere there is none."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
