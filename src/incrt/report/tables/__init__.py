"""All tables of one preset: the paper's, one a study, what the certificates say, and what it all took."""

from collections.abc import Sequence

from incrt.report.outcomes import Material, Outcome, StudyRecord
from incrt.report.selection import Runs, deltas, diverged, of_preset
from incrt.report.statistics import compare, rate, summarise
from incrt.report.tables.of_paper import paper_tables
from incrt.report.tables.of_times import times_table
from incrt.report.tables.rows import (
    ABOUT_DELTA,
    CONDITION,
    DELTA,
    DIVERGED,
    HEADROOM,
    NAME,
    SUCCESS,
    TAU_Z,
    TORQUE_TV,
    Cells,
    make_row,
    mean_of,
    reference_rows,
    tau_text,
)
from incrt.report.tables.table import Column, Row, Table
from incrt.report.wording import difference_text, interval_text, mean_text, number, p_text, rate_text

_COUNT = Column("n")
_STD = Column("std")
_MEDIAN = Column("median")
_IQM = Column("IQM [BCa95]")
_HEADS = Column("K at the end")
_OTHER = Column("compared with", "left")
_DIFFERENCE = Column("difference [Welch95]")
_P = Column("p (Mann-Whitney)")
_COHENS_D = Column("Cohen's d")
_NOTES = (
    ABOUT_DELTA,
    "The rate of success has its 95 % Wilson interval, the interquartile mean (IQM) its 95 % BCa bootstrap interval.",
    "Headroom closed is the way from the best constant gains (0) to the clairvoyant controller (1).",
)
_STUDY = Column("study", "left")
_CERTIFICATES = (
    _STUDY,
    Column("runs"),
    Column("events"),
    Column("growths"),
    Column("prunes"),
    Column("certificates held"),
    Column("certificates failed"),
    Column("largest jump at growth"),
    Column("largest jump at pruning / bound"),
    Column("runs inside Proposition 3's interval"),
)


def make_tables(material: Material, preset: str) -> list[Table]:
    """Every table for which there are runs of this preset."""
    runs = of_preset(material, preset)
    with_runs = [study for study in runs.studies if runs.of(study.name)]
    certificates = [_certificates(runs, with_runs)] if with_runs else []
    times = times_table(material.commands, runs.studies, preset)
    return [
        *paper_tables(runs),
        *(study_table(runs, study) for study in with_runs),
        *certificates,
        *([times] if times.rows else []),
    ]


def study_table(runs: Runs, study: StudyRecord) -> Table:
    """One row a variant, regime and condition."""
    tested = any(each.condition for each in runs.outcomes if each.study == study.name)
    columns = (
        *(NAME, TAU_Z, *((CONDITION,) if tested else ()), _COUNT, DIVERGED, SUCCESS, DELTA, _STD, _MEDIAN, _IQM),
        *(HEADROOM, TORQUE_TV, _HEADS, *_comparing(study)),
    )
    rows: list[Row] = []
    for tau_z in runs.regimes(study.name):
        for condition in ("", *study.conditions):
            cells = {variant: runs.cell(study.name, variant, tau_z, condition) for variant in study.variants}
            for variant, found in cells.items():
                if found:
                    about = {NAME: variant, TAU_Z: tau_text(tau_z), CONDITION: condition}
                    other = study.compare.get(variant)
                    against = _against(found, other, cells[other]) if other else {}
                    rows.append(
                        make_row(columns, {**about, **_own_cells(found), **against}, runs.preset, tau_z, variant)
                    )
            if any(cells.values()):
                rows += reference_rows(columns, runs, study.name, tau_z, condition)
    title = f"Study {study.name}, preset {runs.preset}"
    return Table(f"study-{study.name}", title, columns, tuple(rows), _notes(runs, study), (study.name,))


def _own_cells(found: Sequence[Outcome]) -> Cells:
    summary, sound = summarise(deltas(found)), [each for each in found if each.is_sound]
    return {
        _COUNT: str(len(found)),
        DIVERGED: str(diverged(found)),
        SUCCESS: rate_text(rate(sum(each.success for each in found), len(found))),
        DELTA: mean_text(summary),
        _STD: number(summary.std),
        _MEDIAN: number(summary.median),
        _IQM: interval_text(summary.iqm, summary.iqm_low, summary.iqm_high),
        HEADROOM: number(mean_of([each.headroom_closed for each in sound])),
        TORQUE_TV: number(mean_of([each.torque_tv for each in sound]), 0),
        _HEADS: _heads_text([each.heads for each in sound]),
    }


def _comparing(study: StudyRecord) -> tuple[Column, ...]:
    """What variants are compared with has a column of its own where it is not the same for all."""
    others = set(study.compare.values())
    return (*((_OTHER,) if len(others) > 1 else ()), *((_DIFFERENCE, _P, _COHENS_D) if others else ()))


def _against(found: Sequence[Outcome], other: str, others: Sequence[Outcome]) -> Cells:
    comparison = compare(deltas(found), deltas(others))
    return {
        _OTHER: other,
        _DIFFERENCE: difference_text(comparison),
        _P: p_text(comparison.p),
        _COHENS_D: number(comparison.cohens_d),
    }


def _heads_text(heads: Sequence[int]) -> str | None:
    """One number if all have it, else the mean and the range; nothing for an encoder without heads."""
    if not any(heads):
        return None
    low, high = min(heads), max(heads)
    return str(low) if low == high else f"{number(mean_of(heads), 1)} ({low} to {high})"


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


def _certificates(runs: Runs, studies: Sequence[StudyRecord]) -> Table:
    """One row a study."""
    notes = (
        "Each event has a certificate: at a growth the policy does not jump, at a prune no more than its bound.",
        "Proposition 3 says where K comes to rest if the rank does.",
    )
    rows = tuple(Row(_certified(study.name, runs.of(study.name)), runs.preset) for study in studies)
    return Table("certificates", f"Certificates, preset {runs.preset}", _CERTIFICATES, rows, notes)


def _certified(study: str, found: Sequence[Outcome]) -> tuple[str | None, ...]:
    grows, prunes = sum(each.grows for each in found), sum(each.prunes for each in found)
    inside = [each.inside for each in found if each.inside is not None]
    jumps = [each.largest_grow_jump for each in found if each.largest_grow_jump is not None]
    parts = [each.largest_prune_jump for each in found if each.largest_prune_jump is not None]
    return (
        study,
        str(len(found)),
        str(grows + prunes),
        str(grows),
        str(prunes),
        str(held := sum(each.certificates_held for each in found)),
        str(grows + prunes - held),
        f"{max(jumps):.3g}" if jumps else None,
        f"{max(parts):.3g}" if parts else None,
        f"{sum(inside)}/{len(inside)}" if inside else None,
    )
