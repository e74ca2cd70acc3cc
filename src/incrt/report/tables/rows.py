"""What the tables have in common: headings, rows by heading, and the reference controllers among them."""

from collections.abc import Mapping, Sequence

from incrt.config import SUCCESS_RMSE
from incrt.report.outcomes import Outcome, Reference
from incrt.report.selection import Runs
from incrt.report.tables.table import Column, Row
from incrt.report.wording import number

NAME = Column("variant", "left")
TAU_Z = Column("τ_z [s]")
CONDITION = Column("condition", "left")
DELTA = Column("Δ% ± CI95")
DIVERGED = Column("diverged")
SUCCESS = Column("success")
FAILS = Column("fails")
HEADROOM = Column("headroom closed")
TORQUE_TV = Column("torque TV [N m]")

ABOUT_DELTA = (
    "Δ% is the change of the RMSE against the baseline; ± is half the 95 % Student interval over the seeds. "
    "Diverged runs are those whose training stopped early or whose arm was lost (RMSE not below 1 rad): they have not "
    "succeeded, and have no part in means, spreads and comparisons."
)

Cells = Mapping[Column, str | None]


def make_row(
    columns: Sequence[Column], cells: Cells, preset: str, tau_z: float | None = None, variant: str | None = None
) -> Row:
    """A row from what is known for some of the columns; of other columns nothing is shown."""
    return Row(tuple(cells.get(column) for column in columns), preset, tau_z, variant)


def reference_rows(columns: Sequence[Column], runs: Runs, study: str, tau_z: float, condition: str = "") -> list[Row]:
    """The reference controllers of a regime of a study, in a table's columns."""
    beside = runs.beside((study,), tau_z, condition)
    return [make_row(columns, reference_cells(each), runs.preset, tau_z) for each in beside]


def reference_cells(reference: Reference) -> dict[Column, str | None]:
    """What there is to say of a reference controller."""
    succeeds = reference.rmse is not None and reference.rmse < SUCCESS_RMSE
    return {
        NAME: reference.controller.replace("_", " ") + (f" ({reference.variant})" if reference.variant else ""),
        TAU_Z: tau_text(reference.tau_z),
        CONDITION: reference.condition,
        DELTA: number(reference.delta_pct),
        SUCCESS: "yes" if succeeds else "no",
        FAILS: "no" if succeeds else "yes",
        DIVERGED: "yes" if reference.rmse is None else "no",
        HEADROOM: number(reference.headroom_closed),
        TORQUE_TV: number(reference.torque_tv, 0),
    }


def tau_text(tau_z: float) -> str:
    """A regime."""
    return f"{tau_z:g}"


def fails_text(outcomes: Sequence[Outcome]) -> str | None:
    """How many of the runs have not succeeded."""
    return f"{sum(not each.success for each in outcomes)}/{len(outcomes)}" if outcomes else None


def mean_of(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
