"""The paper's three tables, with its numbers beside ours and the reference controllers below."""

from collections.abc import Sequence

import polars as pl

from incrt.report import paper
from incrt.report.selection import COMPARISON, RUNTIME, Runs, deltas
from incrt.report.statistics import compare, summarise
from incrt.report.tables.cells import ABOUT_DELTA, Cells, controller_cells, controller_rows, variant_cells
from incrt.report.tables.table import Row, Table
from incrt.report.wording import difference_text, interval_text, number, plus_minus

_LESS = "runtime less it [points]"


def paper_tables(runs: Runs) -> list[Table]:
    """Those of Tables 1 to 3 for which there are runs."""
    end = "A schedule ends when K reaches K_max, or with the last growth of a run that does not reach it."
    length = "Its length is the mean over the runs, in thousands of steps."
    caps = ("n", "diverged", "paper: Δ% ± CI95", "paper: std", "paper: n")
    cooldowns = ("fails", "diverged", "schedule [k]", "paper: Δ% ± CI95", "paper: std", "paper: fails")
    found = [
        _comparison(runs),
        _sweep(runs, "k_max", "Table 2: the head-count cap", caps),
        _sweep(
            runs, "grace", "Table 3: the cooldown between two events", (*cooldowns, "paper: schedule [k]"), end, length
        ),
    ]
    return [table for table in found if table.rows]


def _comparison(runs: Runs) -> Table:
    """In each regime the heads that grow, then the fixed numbers of them, then the reference controllers."""
    rows = []
    for tau_z in runs.regimes(*COMPARISON):
        grown = runs.compared(RUNTIME, tau_z)
        for variant in (RUNTIME, *(runs.statics() or [paper.STATIC])):
            found = runs.compared(variant, tau_z)
            printed = _printed("main" if variant == RUNTIME else "static", variant, tau_z)
            cells = {**variant_cells(variant, tau_z, found), **printed}
            if not len(found):
                del cells["diverged"]
            if variant != RUNTIME:
                cells[_LESS] = difference_text(compare(deltas(grown), deltas(found)))
                cells["paper: runtime less it"] = number(paper.DIFFERENCES.get(tau_z), 1)
            rows.append(Row(cells, runs.preset, tau_z, variant))
        for row in runs.controllers(COMPARISON, tau_z):
            cells = {**controller_cells(row), _LESS: _against(grown, row["delta_pct"])}
            rows.append(Row(cells, runs.preset, tau_z))
    headings = (
        *("variant", "τ_z [s]", "Δ% ± CI95", "success", "diverged", _LESS),
        *("paper: Δ% ± CI95", "paper: success", "paper: runtime less it"),
    )
    notes = (
        ABOUT_DELTA,
        "The difference has its 95 % interval: Welch's, or of one sample for a controller.",
        "The paper's static figures are of INCRT-1L, with K = 7 at τ_z = 2; of the other regimes it does not say K.",
    )
    title = f"Table 1: heads that grow and fixed ones, preset {runs.preset}"
    return Table("table-1", title, headings, tuple(rows), notes, runs.comparison())


def _against(grown: pl.DataFrame, fixed: float | None) -> str | None:
    """The runs' mean less one number, with its interval."""
    if fixed is None:
        return None
    less = summarise([delta - fixed for delta in deltas(grown)])
    return interval_text(less.mean, less.t_low, less.t_high)


def _sweep(runs: Runs, name: str, title: str, headings: Sequence[str], *notes: str) -> Table:
    """One row a value of what the study sweeps; below them INCRT-1L, where the paper has it, and the controllers."""
    study, rows = runs.study(name), list[Row]()
    places = [(name, variant) for variant in study.variants] if study else []
    if name == "k_max":
        places.append(("static", paper.STATIC))
    for tau_z in runs.regimes(name) if study else ():
        for place, variant in places:
            found, printed = runs.everywhere(place, variant, tau_z), _printed(place, variant, tau_z)
            if len(found) or printed:
                rows.append(Row({**variant_cells(variant, tau_z, found), **printed}, runs.preset, tau_z, variant))
        rows += controller_rows(runs, name, tau_z)
    shown = ("variant", "τ_z [s]", "Δ% ± CI95", "std", *headings)
    file = title.partition(":")[0].lower().replace(" ", "-")
    return Table(file, f"{title}, preset {runs.preset}", shown, tuple(rows), (ABOUT_DELTA, *notes), (name,))


def _printed(study: str, variant: str, tau_z: float) -> Cells:
    printed = paper.printed(study, variant, tau_z)
    if printed is None:
        return {}
    failures, n = printed.failures, printed.n
    return {
        "paper: Δ% ± CI95": plus_minus(printed.mean, printed.half_width),
        "paper: std": number(printed.std),
        "paper: n": str(n),
        "paper: success": None if failures is None else f"{n - failures}/{n}",
        "paper: fails": None if failures is None else f"{failures}/{n}",
        "paper: schedule [k]": number(printed.schedule, 1),
    }
