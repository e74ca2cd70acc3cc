"""How far variants were at each tenth of their training, and what the rank of their windows was: ways, not ends."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from incrt.report.charts.curves import in_parts, scatter_in_parts
from incrt.report.charts.view import View
from incrt.report.outcomes import Floats, History, Material, Outcome, StudyRecord
from incrt.report.selection import Runs, of_preset
from incrt.report.statistics import compare, summarise
from incrt.report.tables.rows import NAME, TAU_Z, make_row, mean_of, tau_text
from incrt.report.tables.table import Column, Row, Table
from incrt.report.wording import difference_text, mean_text, number

_PARTS = 10
_STEPS = Column("steps")
_COUNT = Column("n")
_RETURN = Column("return ± CI95")
_DIFFERENCE = Column("difference [Welch95]")
_COLUMNS = (NAME, TAU_Z, _STEPS, _COUNT, _RETURN, _DIFFERENCE)
_RANK = Column("rank ± CI95")
_SCATTER = Column("scatter")
_OF_RANKS = (NAME, TAU_Z, _STEPS, _COUNT, _RANK, _SCATTER)


def learning_tables(material: Material, preset: str) -> list[Table]:
    """One a study that trains and compares, where its runs are there."""
    runs = of_preset(material, preset)
    comparing = [study for study in runs.studies if study.compare and not study.trained_by]
    found = [_table(runs, study, material.histories) for study in comparing]
    return [table for table in found if table.rows]


def _table(runs: Runs, study: StudyRecord, histories: Mapping[str, History]) -> Table:
    names = [name for name in study.variants if name in study.compare or name in study.compare.values()]
    rows: list[Row] = []
    for tau_z in runs.regimes(study.name):
        cells = {name: runs.cell(study.name, name, tau_z) for name in names}
        for name, found in cells.items():
            others = cells.get(study.compare.get(name, ""), [])
            rows += _rows(runs.preset, name, tau_z, found, others, histories)
    notes = (
        study.about,
        "The return is the mean over the episodes of training that ended in these steps: the higher, the better.",
        "± is half the 95 % Student interval over the seeds.",
        "The difference is against the same steps of what the study compares with: a positive one speaks for the row.",
    )
    title = f"Learning in study {study.name}, preset {runs.preset}"
    return Table(f"learning-{study.name}", title, _COLUMNS, tuple(rows), notes, (study.name,))


def _rows(
    preset: str,
    name: str,
    tau_z: float,
    found: Sequence[Outcome],
    others: Sequence[Outcome],
    histories: Mapping[str, History],
) -> Iterator[Row]:
    """One a tenth of the training; another length of training has nothing to compare with."""
    if not found:
        return
    steps = found[0].steps
    own = _returns(found, histories, steps)
    against = _returns(others, histories, steps) if others and others[0].steps == steps else [[]] * _PARTS
    for part, (values, other) in enumerate(zip(own, against, strict=True)):
        cells = {
            NAME: name,
            TAU_Z: tau_text(tau_z),
            _STEPS: _steps_text(part, steps),
            _COUNT: str(len(values)),
            _RETURN: mean_text(summarise(values)),
            _DIFFERENCE: difference_text(compare(values, other)) if other else None,
        }
        yield make_row(_COLUMNS, cells, preset, tau_z, name)


def _returns(found: Sequence[Outcome], histories: Mapping[str, History], steps: int) -> list[list[float]]:
    """By tenth, the mean return of each run that ended an episode in it."""
    known = [histories[each.folder] for each in found if each.folder in histories]
    return _by_tenth([in_parts(each.steps, each.returns, float(steps), _PARTS) for each in known])


def rank_table(material: Material, preset: str) -> Table | None:
    """Of the runs whose ranks are drawn, where there are any."""
    view = View(material, preset)
    place = view.growing()
    if place is None:
        return None
    rows: list[Row] = []
    for tau_z in view.runs.regimes(place[0]):
        rows += _rank_rows(view, place, tau_z)
    notes = (
        "The rank is the mean over the checks in these steps, of each run.",
        "± is half the 95 % Student interval over the seeds.",
        "The scatter is the standard deviation of the rank over these checks, in the mean over the runs.",
    )
    title = f"Effective rank in study {place[0]}, preset {preset}"
    return Table("ranks", title, _OF_RANKS, tuple(rows), notes, (place[0],)) if rows else None


def _rank_rows(view: View, place: tuple[str, str], tau_z: float) -> Iterator[Row]:
    """One a tenth of the training."""
    runs = view.sound(*place, tau_z)
    known = [each for each in view.histories(runs) if each.ranks.size]
    if not known:
        return
    steps = runs[0].steps
    means = [in_parts(each.check_steps, each.ranks, float(steps), _PARTS) for each in known]
    scatters = [scatter_in_parts(each.check_steps, each.ranks, float(steps), _PARTS) for each in known]
    for part, (values, scatter) in enumerate(zip(_by_tenth(means), _by_tenth(scatters), strict=True)):
        cells = {
            NAME: place[1],
            TAU_Z: tau_text(tau_z),
            _STEPS: _steps_text(part, steps),
            _COUNT: str(len(values)),
            _RANK: mean_text(summarise(values)),
            _SCATTER: number(mean_of(scatter)),
        }
        yield make_row(_OF_RANKS, cells, view.preset, tau_z, place[1])


def _by_tenth(parts: Sequence[Floats]) -> list[list[float]]:
    """By tenth, what is known of each run."""
    columns = np.array(parts).reshape(-1, _PARTS).T
    return [column[np.isfinite(column)].tolist() for column in columns]


def _steps_text(part: int, steps: int) -> str:
    return f"{part * steps // _PARTS} to {(part + 1) * steps // _PARTS}"
