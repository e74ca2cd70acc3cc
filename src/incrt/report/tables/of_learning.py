"""How far variants were at each tenth of their training, and what the rank of their windows was: ways, not ends."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from incrt.report.curves import in_parts, scatter_in_parts
from incrt.report.data import StudyRecord
from incrt.report.selection import Runs, mean_of
from incrt.report.statistics import compare, summarise
from incrt.report.tables.table import Row, Table
from incrt.report.wording import difference_text, mean_text, number
from incrt.storage.records import Floats

_PARTS = 10
_HEADINGS = ("variant", "τ_z [s]", "steps", "n")
_INTERVAL = "± is half the 95 % Student interval over the seeds."


def learning_tables(runs: Runs) -> list[Table]:
    """One a study that trains and compares, where its runs are there."""
    comparing = [study for study in runs.studies if study.compare and not study.trained_by]
    found = [_learning_table(runs, study) for study in comparing]
    return [table for table in found if table.rows]


def _learning_table(runs: Runs, study: StudyRecord) -> Table:
    names = [name for name in study.variants if name in study.compare or name in study.compare.values()]
    rows: list[Row] = []
    for tau_z in runs.regimes(study.name):
        cells = {name: runs.cell(study.name, name, tau_z) for name in names}
        for name, found in cells.items():
            rows += _learning_rows(runs, name, tau_z, found, cells.get(study.compare.get(name, ""), runs.rows.clear()))
    notes = (
        study.about,
        "The return is the mean over the episodes of training that ended in these steps: the higher, the better.",
        _INTERVAL,
        "The difference is against the same steps of what the study compares with: a positive one speaks for the row.",
    )
    title = f"Learning in study {study.name}, preset {runs.preset}"
    headings = (*_HEADINGS, "return ± CI95", "difference [Welch95]")
    return Table(f"learning-{study.name}", title, headings, tuple(rows), notes, (study.name,))


def _learning_rows(runs: Runs, name: str, tau_z: float, found: pl.DataFrame, others: pl.DataFrame) -> list[Row]:
    """One a tenth of the training; another length of training has nothing to compare with."""
    if not len(found):
        return []
    steps = found["steps"][0]
    own, other = (
        _by_tenth([in_parts(each.steps, each.returns, steps, _PARTS) for each in runs.histories(rows)])
        for rows in (found, others.filter(others["steps"].first() == steps))
    )
    rows = []
    for part, values in enumerate(own):
        against = difference_text(compare(values, other[part])) if other[part] else None
        cells = {"return ± CI95": mean_text(summarise(values)), "difference [Welch95]": against}
        rows.append(Row(_about(name, tau_z, part, steps, len(values)) | cells, runs.preset, tau_z, name))
    return rows


def rank_table(runs: Runs) -> Table | None:
    """Of the runs whose ranks are drawn, where there are any."""
    place = runs.growing()
    if place is None:
        return None
    study, variant = place
    rows: list[Row] = []
    for tau_z in runs.regimes(study):
        found = runs.sound(study, variant, tau_z)
        known = [each for each in runs.histories(found) if each.ranks.size]
        steps = found["steps"][0] if known else 0
        means, scatters = (
            _by_tenth([values(each.check_steps, each.ranks, steps, _PARTS) for each in known])
            for values in (in_parts, scatter_in_parts)
        )
        for part, values in enumerate(means if known else []):
            cells = {"rank ± CI95": mean_text(summarise(values)), "scatter": number(mean_of(scatters[part]))}
            rows.append(Row(_about(variant, tau_z, part, steps, len(values)) | cells, runs.preset, tau_z, variant))
    notes = (
        "The rank is the mean over the checks in these steps, of each run.",
        _INTERVAL,
        "The scatter is the standard deviation of the rank over these checks, in the mean over the runs.",
    )
    title, headings = f"Effective rank in study {study}, preset {runs.preset}", (*_HEADINGS, "rank ± CI95", "scatter")
    return Table("ranks", title, headings, tuple(rows), notes, (study,)) if rows else None


def _about(variant: str, tau_z: float, part: int, steps: int, n: int) -> dict[str, str | None]:
    tenth = f"{part * steps // _PARTS} to {(part + 1) * steps // _PARTS}"
    return {"variant": variant, "τ_z [s]": f"{tau_z:g}", "steps": tenth, "n": str(n)}


def _by_tenth(parts: Sequence[Floats]) -> list[list[float]]:
    """By tenth, what is known of each run."""
    columns = np.array(parts).reshape(-1, _PARTS).T
    return [column[np.isfinite(column)].tolist() for column in columns]
