"""One table a study, and what the certificates of all studies say."""

import polars as pl

from incrt.report.data import StudyRecord
from incrt.report.selection import Runs, deltas, largest, total
from incrt.report.statistics import compare
from incrt.report.tables.cells import ABOUT_DELTA, Cells, controller_rows, variant_cells
from incrt.report.tables.table import Row, Table
from incrt.report.wording import difference_text, number, p_text

_NOTES = (
    ABOUT_DELTA,
    "The rate of success has its 95 % Wilson interval, the interquartile mean (IQM) its 95 % BCa bootstrap interval.",
    "Headroom closed is the way from the best constant gains (0) to the clairvoyant controller (1).",
)


def study_table(runs: Runs, study: StudyRecord) -> Table:
    """One row a variant, regime and condition."""
    tested, others = any(runs.rows.filter(study=study.name)["condition"]), set(study.compare.values())
    headings = (
        *("variant", "τ_z [s]", *(("condition",) if tested else ()), "n", "diverged", "success", "Δ% ± CI95", "std"),
        *("median", "IQM [BCa95]", "headroom closed", "torque TV [N m]", "K at the end"),
        *(("compared with",) if len(others) > 1 else ()),  # it has a column where it is not the same for all
        *(("difference [Welch95]", "p (Mann-Whitney)", "Cohen's d") if others else ()),
    )
    rows: list[Row] = []
    for tau_z in runs.regimes(study.name):
        for condition in study.tests:
            cells = {variant: runs.cell(study.name, variant, tau_z, condition) for variant in study.variants}
            for variant, found in cells.items():
                if len(found):
                    texts = {**variant_cells(variant, tau_z, found), "condition": condition}
                    if other := study.compare.get(variant):
                        texts |= _against(found, other, cells[other])
                    rows.append(Row(texts, runs.preset, tau_z, variant))
            if any(map(len, cells.values())):
                rows += controller_rows(runs, study.name, tau_z, condition)
    title = f"Study {study.name}, preset {runs.preset}"
    return Table(f"study-{study.name}", title, headings, tuple(rows), _notes(runs, study), (study.name,))


def _against(found: pl.DataFrame, other: str, others: pl.DataFrame) -> Cells:
    comparison = compare(deltas(found), deltas(others))
    return {
        "compared with": other,
        "difference [Welch95]": difference_text(comparison),
        "p (Mann-Whitney)": p_text(comparison.p),
        "Cohen's d": number(comparison.cohens_d),
    }


def _notes(runs: Runs, study: StudyRecord) -> tuple[str, ...]:
    notes = [study.about, *_NOTES]
    others = set(study.compare.values())
    if others:
        other = "the variant named beside them" if len(others) > 1 else others.pop()
        notes.append(
            f"Difference, p and Cohen's d are against {other} in the same regime: positive where the variant's Δ% is "
            "higher, which is worse; they are not corrected for many comparisons."
        )
    if missing := runs.missing(study):
        notes.append(f"{missing}.")
    notes += [f"Not shown: {words}." for words in study.unread]
    if study.failed:
        run, why = study.failed[0]
        notes.append(f"Runs that could not be trained or evaluated: {len(study.failed)}; the first, {run}: {why}")
    return tuple(notes)


def certificates_table(runs: Runs, studies: list[StudyRecord]) -> Table:
    """One row a study."""
    notes = (
        "Each event has a certificate: at a growth the policy does not jump, at a prune no more than its bound.",
        "Proposition 3 says where K comes to rest if the rank does.",
    )
    rows = tuple(Row(_certified(study.name, runs.of(study.name)), runs.preset) for study in studies)
    return Table("certificates", f"Certificates, preset {runs.preset}", tuple(rows[0].cells), rows, notes)


def _certified(study: str, found: pl.DataFrame) -> Cells:
    grows, prunes, held = (total(found, name) for name in ("grows", "prunes", "certificates_held"))
    jumps = (largest(found, name) for name in ("largest_grow_jump", "largest_prune_jump"))
    jump, part = (None if each is None else f"{each:.3g}" for each in jumps)
    inside = found["inside"].drop_nulls()
    return {
        "study": study,
        "runs": str(len(found)),
        "events": str(grows + prunes),
        "growths": str(grows),
        "prunes": str(prunes),
        "certificates held": str(held),
        "certificates failed": str(grows + prunes - held),
        "largest jump at growth": jump,
        "largest jump at pruning / bound": part,
        "runs inside Proposition 3's interval": f"{inside.sum()}/{len(inside)}" if len(inside) else None,
    }
