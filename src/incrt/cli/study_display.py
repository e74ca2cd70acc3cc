"""How a study shows itself: one view of all its runs, live on a terminal and in plain lines elsewhere."""

import re
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from incrt.cli.terminal import LiveView, new_table, progress_bar
from incrt.studies.store import PlannedRun, RunStatus
from incrt.studies.study import Study

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_OF_RATE = 60.0
"""Steps a second are those of the last so many: compiling, and what was done before, must not count."""
STATES = ("waiting", "stopped", "training", "trained", "finished", "failed")


def standing_rows(study: Study, plan: Sequence[PlannedRun], standings: Sequence[RunStatus]) -> list[dict[str, Any]]:
    """One row a variant and regime: how many runs are in which state, and how many of their steps are done."""
    rows = []
    for cell in study.cells:
        members = [each for run, each in zip(plan, standings, strict=True) if run.cell is cell]
        if not members:  # none of the part that is run
            continue
        counts = Counter(each.state for each in members)
        done = sum(each.step for each in members)
        rows.append(
            {
                "variant": cell.variant,
                "tau_z": cell.config.task.tau_z,
                "runs": len(members),
                **{state: counts[state] for state in STATES},
                "steps_done": done,
                "steps": cell.config.sac.steps * len(members),
                "steps_left": sum(cell.config.sac.steps - each.step for each in members if each.state != "failed"),
            }
        )
    return rows


def status_table(study: Study, rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for people; states that no run is in are left out."""
    shown = [state for state in STATES if any(row[state] for row in rows)]
    table = new_table(f"{study.name}, preset {study.preset}", ("variant", "τ_z", "runs", *shown, "steps"))
    table.columns[0].justify = "left"
    for row in rows:
        part = f"{100 * row['steps_done'] / row['steps']:.0f} %"
        counts = [str(row[state]) for state in ("runs", *shown)]
        table.add_row(escape(row["variant"]), f"{row['tau_z']:g}", *counts, part)
    return table


def failure_lines(failed: Mapping[str, str]) -> list[str]:
    """What failed and why; runs that failed for the same reason together."""
    reasons: dict[str, list[str]] = {}
    for run, why in failed.items():
        reasons.setdefault(re.sub(rf"\S*{re.escape(run)}(/?)", _short, why), []).append(run)
    return [
        f"failed: {runs[0] if len(runs) == 1 else f'{len(runs)} runs, the first {runs[0]}'}: {why}"
        for why, runs in reasons.items()
    ]


def _short(name: re.Match[str]) -> str:
    """In place of a run's folder, which is named before the reason; a file in it has its name left."""
    return "" if name[1] else "it"


class StudyDisplay(LiveView):
    """Told again and again how far the runs are."""

    def __init__(self, study: Study, plan: Sequence[PlannedRun], console: Console) -> None:
        super().__init__(console)
        self._study, self._plan = study, list(plan)
        self._looks: deque[tuple[float, int]] = deque()
        """When the runs were last looked at, and how many steps were done then."""
        self._last_line = -_SECONDS_BETWEEN_LINES

    def update(self, standings: Sequence[RunStatus]) -> None:
        """Show how far the runs are."""
        rows = standing_rows(self._study, self._plan, standings)
        line = self._line(rows)
        if self._live is not None:
            bar = progress_bar(sum(row["steps_done"] for row in rows), sum(row["steps"] for row in rows))
            self._live.update(Group(bar, Text(line), status_table(self._study, rows)))
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(line, markup=False, soft_wrap=True)

    def _line(self, rows: Sequence[dict[str, Any]]) -> str:
        now, done = time.monotonic(), sum(row["steps_done"] for row in rows)
        self._looks.append((now, done))
        while now - self._looks[0][0] > _SECONDS_OF_RATE and len(self._looks) > 2:
            self._looks.popleft()
        begun, before = self._looks[0]
        rate = (done - before) / max(now - begun, 1e-9)
        left = sum(row["steps_left"] for row in rows)
        counts = {state: sum(row[state] for row in rows) for state in STATES}
        words = [f"{count} {state}" for state, count in counts.items() if count]
        if left and rate > 0:
            words += [f"{rate:.0f} steps/s", f"{left / rate / 60:.1f} min left"]
        return f"{self._study.name}: {', '.join(words)}"
