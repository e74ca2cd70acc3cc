"""The paper's three tables, with its figures beside ours and the reference controllers below."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.outcomes import Outcome
from incrt.report.selection import COMPARISON, RUNTIME, Runs, deltas, diverged
from incrt.report.statistics import compare, rate, summarise
from incrt.report.tables.rows import (
    ABOUT_DELTA,
    DELTA,
    DIVERGED,
    FAILS,
    NAME,
    SUCCESS,
    TAU_Z,
    Cells,
    fails_text,
    make_row,
    mean_of,
    reference_cells,
    reference_rows,
    tau_text,
)
from incrt.report.tables.table import Column, Row, Table
from incrt.report.wording import difference_text, interval_text, mean_text, number, plus_minus, rate_text

_DIFFERENCE = Column("runtime less it [points]")
_PAPER_SUCCESS = Column("paper: success")
_PAPER_DIFFERENCE = Column("paper: runtime less it")
_STD = Column("std")
_COUNT = Column("n")
_SCHEDULE = Column("schedule [k]")
_PAPER_DELTA = Column("paper: Δ% ± CI95")
_PAPER_STD = Column("paper: std")
_PAPER_COUNT = Column("paper: n")
_PAPER_FAILS = Column("paper: fails")
_PAPER_SCHEDULE = Column("paper: schedule [k]")
_TITLE_1 = "Table 1: heads that grow and fixed ones"
_NOTES_1 = (
    ABOUT_DELTA,
    "The difference has its 95 % interval: Welch's, or of one sample for a controller.",
    "The paper's static figures are of INCRT-1L, with K = 7 at τ_z = 2; of the other regimes it does not say K.",
)
_COLUMNS_1 = (
    *(NAME, TAU_Z, DELTA, SUCCESS, DIVERGED, _DIFFERENCE),
    *(_PAPER_DELTA, _PAPER_SUCCESS, _PAPER_DIFFERENCE),
)
_TITLE_2 = "Table 2: the head-count cap"
_NOTES_2 = (ABOUT_DELTA,)
_COLUMNS_2 = (NAME, TAU_Z, DELTA, _STD, _COUNT, DIVERGED, _PAPER_DELTA, _PAPER_STD, _PAPER_COUNT)
_TITLE_3 = "Table 3: the cooldown between two events"
_NOTES_3 = (
    ABOUT_DELTA,
    "A schedule ends when K reaches K_max, or with the last growth of a run that does not reach it.",
    "Its length is the mean over the runs, in thousands of steps.",
)
_COLUMNS_3 = (
    *(NAME, TAU_Z, DELTA, _STD, FAILS, DIVERGED, _SCHEDULE),
    *(_PAPER_DELTA, _PAPER_STD, _PAPER_FAILS, _PAPER_SCHEDULE),
)


def paper_tables(runs: Runs) -> list[Table]:
    """Those of Tables 1 to 3 for which there are runs."""
    found = (
        ("table-1", _TITLE_1, _COLUMNS_1, _main_rows(runs), _NOTES_1, runs.comparison()),
        ("table-2", _TITLE_2, _COLUMNS_2, _swept_rows(runs, "k_max", _COLUMNS_2), _NOTES_2, ("k_max",)),
        ("table-3", _TITLE_3, _COLUMNS_3, _swept_rows(runs, "grace", _COLUMNS_3), _NOTES_3, ("grace",)),
    )
    return [
        Table(name, f"{title}, preset {runs.preset}", columns, rows, notes, studies)
        for name, title, columns, rows, notes, studies in found
        if rows
    ]


def _main_rows(runs: Runs) -> tuple[Row, ...]:
    """In each regime the heads that grow, then the fixed numbers of them, then the reference controllers."""
    rows = []
    for tau_z in runs.regimes(*COMPARISON):
        grown = runs.compared(RUNTIME, tau_z)
        fixed = {variant: runs.compared(variant, tau_z) for variant in runs.statics() or [paper.STATIC]}
        for variant, found in {RUNTIME: grown, **fixed}.items():
            cells = {NAME: variant, TAU_Z: tau_text(tau_z), **_success_cells(found), **_printed_cells(variant, tau_z)}
            if found is not grown:
                cells[_DIFFERENCE] = difference_text(compare(deltas(grown), deltas(found)))
            rows.append(make_row(_COLUMNS_1, cells, runs.preset, tau_z, variant))
        for reference in runs.beside(COMPARISON, tau_z):
            cells = {**reference_cells(reference), _DIFFERENCE: _against(grown, reference.delta_pct)}
            rows.append(make_row(_COLUMNS_1, cells, runs.preset, tau_z))
    return tuple(rows)


def _success_cells(found: Sequence[Outcome]) -> Cells:
    if not found:
        return {}
    return {
        DELTA: mean_text(summarise(deltas(found))),
        SUCCESS: rate_text(rate(sum(each.success for each in found), len(found))),
        DIVERGED: str(diverged(found)),
    }


def _printed_cells(variant: str, tau_z: float) -> Cells:
    is_runtime = variant == RUNTIME
    printed = paper.printed("main" if is_runtime else "static", variant, tau_z)
    if printed is None or printed.failures is None:
        return {}
    return {
        _PAPER_DELTA: plus_minus(printed.mean, printed.half_width),
        _PAPER_SUCCESS: f"{printed.n - printed.failures}/{printed.n}",
        _PAPER_DIFFERENCE: None if is_runtime else number(paper.DIFFERENCES[tau_z], 1),
    }


def _against(grown: Sequence[Outcome], fixed: float | None) -> str | None:
    """The runs' mean less one figure, with its interval."""
    if fixed is None:
        return None
    less = summarise([delta - fixed for delta in deltas(grown)])
    return interval_text(less.mean, less.t_low, less.t_high)


def _swept_rows(runs: Runs, name: str, columns: Sequence[Column]) -> tuple[Row, ...]:
    """One row a value of what the study sweeps; below them INCRT-1L, where the paper has it, and the controllers."""
    study, rows = runs.study(name), []
    for tau_z in runs.regimes(name) if study else ():
        places = [(name, variant) for variant in study.variants] if study else []
        if name == "k_max":
            places.append(("static", paper.STATIC))
        for place, variant in places:
            found, printed = runs.everywhere(place, variant, tau_z), paper.printed(place, variant, tau_z)
            if found or printed:
                cells = {NAME: variant, TAU_Z: tau_text(tau_z), **_own_cells(found), **_paper_cells(printed)}
                rows.append(make_row(columns, cells, runs.preset, tau_z, variant))
        rows += reference_rows(columns, runs, name, tau_z)
    return tuple(rows)


def _own_cells(found: Sequence[Outcome]) -> Cells:
    summary = summarise(deltas(found))
    sound = [each for each in found if each.is_sound]
    ends = mean_of([each.last_grow if each.saturated_at is None else each.saturated_at for each in sound])
    return {
        DELTA: mean_text(summary),
        _STD: number(summary.std),
        _COUNT: str(len(found)),
        FAILS: fails_text(found),
        DIVERGED: str(diverged(found)),
        _SCHEDULE: number(None if ends is None else ends / 1000, 1),
    }


def _paper_cells(printed: paper.Printed | None) -> Cells:
    if printed is None:
        return {}
    return {
        _PAPER_DELTA: plus_minus(printed.mean, printed.half_width),
        _PAPER_STD: number(printed.std),
        _PAPER_COUNT: str(printed.n),
        _PAPER_FAILS: None if printed.failures is None else f"{printed.failures}/{printed.n}",
        _PAPER_SCHEDULE: number(printed.schedule, 1),
    }
