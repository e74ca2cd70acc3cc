"""The verdicts on the paper's claims as a table; the page shows them in a form of its own."""

from collections.abc import Sequence

from incrt.report.claims.verdicts import Verdict
from incrt.report.tables.table import Column, Row, Table

_COLUMNS = (
    Column("claim", "left"),
    Column("n"),
    Column("ours", "left"),
    Column("paper", "left"),
    Column("verdict", "left"),
    Column("why", "left"),
    Column("where in the paper", "left"),
)
_NOTES = ("n is the number of runs, or events, that a verdict rests on.",)


def claims_table(verdicts: Sequence[Verdict], preset: str) -> Table:
    """One row a claim."""
    rows = tuple(Row(_cells(verdict), preset) for verdict in verdicts)
    return Table("claims", f"Claims of the paper, preset {preset}", _COLUMNS, rows, _NOTES)


def _cells(verdict: Verdict) -> tuple[str, ...]:
    claim = verdict.claim
    return (
        claim.sentence,
        str(verdict.n),
        verdict.ours,
        claim.paper,
        verdict.judgement,
        verdict.why,
        claim.where,
    )
