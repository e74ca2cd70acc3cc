"""All tables of one preset: the paper's, one a study, what the certificates say, what it all took, and the rest."""

from collections.abc import Sequence

from incrt.report.claims.rules import Verdict
from incrt.report.selection import Runs
from incrt.report.tables.of_learning import learning_tables, rank_table
from incrt.report.tables.of_paper import paper_tables
from incrt.report.tables.of_studies import certificates_table, study_table
from incrt.report.tables.of_times import times_table
from incrt.report.tables.table import Row, Table


def make_tables(runs: Runs) -> list[Table]:
    """The tables that the page shows, those for which there are runs of this preset."""
    studies = [study for study in runs.studies if len(runs.of(study.name))]
    tables = [*paper_tables(runs), *(study_table(runs, study) for study in studies)]
    tables += [certificates_table(runs, studies)] if studies else []
    return tables + ([times] if (times := times_table(runs)) else [])


def make_more_tables(runs: Runs, verdicts: Sequence[Verdict]) -> list[Table]:
    """What the page shows as verdicts and curves."""
    ranks = rank_table(runs)
    return [claims_table(verdicts, runs.preset), *learning_tables(runs), *([ranks] if ranks else [])]


def claims_table(verdicts: Sequence[Verdict], preset: str) -> Table:
    """One row a claim."""
    rows = [
        {
            "claim": verdict.claim.sentence,
            "n": str(verdict.n),
            "ours": verdict.ours,
            "paper": verdict.claim.paper,
            "verdict": verdict.judgement,
            "why": verdict.why,
            "where in the paper": verdict.claim.where,
        }
        for verdict in verdicts
    ]
    notes = ("n is the number of runs, or events, that a verdict rests on.",)
    title = f"Claims of the paper, preset {preset}"
    return Table("claims", title, tuple(rows[0]), tuple(Row(cells, preset) for cells in rows), notes)
