"""What several folders hold, as if one had held everything: reports of earlier runs, and studies run since.

In one folder studies share runs and controllers, whichever of them was run; so they do here. Two runs are the same if
their settings and seeds are, two tests if they change the same fields.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from incrt.report.data import Dataset, History, StudyRecord, as_json, cell_name, command_for, controllers_of
from incrt.report.schema import CONTROLLER_KEY, CONTROLLERS, RUN_KEY, RUNS, Columns, Row
from incrt.studies.store import study_file

_ALIKE = ("variants", "regimes", "conditions", "compare", "trained_by")
"""What two records of a study must agree in, beside the settings of their cells."""
_STUDY = ("study", "preset")
_NAMES = (*_STUDY, "variant", "condition")
"""Under which each study has the same test of the same run."""
_RUN, _TASK = ("settings", "seed", "changes"), ("task", "changes")
"""What makes a test of a run, and of a controller, the same whatever it is called."""


def merge(datasets: Sequence[tuple[Path, Dataset]]) -> Dataset:
    """All of it, in the order in which one folder is read; folders that contradict each other are refused by name."""
    (_, first), *others = datasets
    studies = _studies(datasets)
    wanted, wanted_controllers = _plan(studies)
    frames = [dataset.runs.with_columns(home=pl.lit(str(folder))) for folder, dataset in datasets]
    known = pl.concat(frames).join(wanted, on=RUN_KEY, maintain_order="left")
    _check_one_outcome(known)
    if not others:
        return first
    found = [dataset for _, dataset in datasets]
    runs = _shared(known, wanted, RUN_KEY, _RUN, RUNS)
    controllers = pl.concat(each.controllers for each in found)
    controllers = controllers.join(wanted_controllers, on=CONTROLLER_KEY, maintain_order="left")
    controllers = _shared(controllers, wanted_controllers, CONTROLLER_KEY, _TASK, CONTROLLERS)
    untested = wanted_controllers.join(controllers, on=CONTROLLER_KEY, how="anti")
    folders = runs["folder"].unique(maintain_order=True)
    histories = {run: [each.histories[run] for each in found if run in each.histories] for run in folders}
    episodes = {run: [each.episodes[run] for each in found if run in each.episodes] for run in folders}
    return Dataset(
        [_without_what_is_done(study, runs, untested) for study in studies],
        runs,
        controllers,
        histories={run: max(each, key=_fullness) for run, each in histories.items() if each},
        episodes={run: each[0] for run, each in episodes.items() if each},
        made_by=list({as_json(maker): maker for each in found for maker in each.made_by}.values()),
        commands=pl.concat(each.commands for each in found).unique(maintain_order=True).sort("begun"),
        title=first.title,
    )


def _studies(datasets: Sequence[tuple[Path, Dataset]]) -> list[StudyRecord]:
    """Each study as all these folders together were asked for it, in the order of their files."""
    records: dict[Path, list[tuple[Path, StudyRecord]]] = {}
    for folder, dataset in datasets:
        for study in dataset.studies:
            records.setdefault(study_file(study.name, study.preset), []).append((folder, study))
    return [_study(records[file]) for file in sorted(records)]


def _study(records: Sequence[tuple[Path, StudyRecord]]) -> StudyRecord:
    """One of them, with all that any of the folders could not do or read; studies that are not the same are refused."""
    (home, first), *others = records
    for folder, record in others:
        one, other = _terms(first), _terms(record)
        for term in {**one, **other}:
            if one.get(term) != other.get(term):
                raise ValueError(
                    f"study {first.name}, preset {first.preset}, is not the same in {home} and {folder}: "
                    f"{term}: {one.get(term)!r}, and {other.get(term)!r}"
                )
    seeds = tuple(sorted({seed for _, record in records for seed in record.seeds}))
    failed: dict[str, str] = {}
    for run, why in (each for _, record in records for each in record.failed):
        failed.setdefault(run, why)
    return replace(
        first,
        seeds=seeds,
        runs_wanted=len(first.configuration) * len(seeds),
        failed=tuple(failed.items()),
        unread=tuple(words for _, record in records for words in record.unread),
        command=command_for(first.name, first.preset, seeds),
    )


def _terms(record: StudyRecord) -> dict[str, Any]:
    settings = {
        f"{cell}, {part}.{name}": value
        for cell, parts in record.configuration.items()
        for part, fields in parts.items()
        for name, value in fields.items()
    }
    return {name: getattr(record, name) for name in _ALIKE} | settings


def _plan(studies: Sequence[StudyRecord]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All tests of runs, and of controllers, that studies ask for, with what makes them the same."""
    cells, tests, seeds = list[Row](), list[Row](), list[Row]()
    for study in studies:
        own = {"study": study.name, "preset": study.preset}
        for variant in study.variants:
            for tau_z in study.tau_zs:
                if settings := study.configuration.get(name := cell_name(variant, tau_z)):
                    task = as_json(settings["task"] | {"window": 1})  # no controller sees a window
                    place = {"variant": variant, "tau_z": tau_z, "name": name}
                    cells.append({**own, **place, "settings": as_json(settings), "task": task})
        tests += [{**own, "condition": name, "changes": changes} for name, changes in study.tests.items()]
        seeds += [{**own, "seed": seed} for seed in study.seeds]
    all_cells, all_tests = pl.DataFrame(cells), pl.DataFrame(tests)
    runs = all_cells.join(pl.DataFrame(seeds), on=_STUDY, maintain_order="left_right")
    # Variants with the same task have the same controllers: of the first, named only if there is another task.
    tasks = all_cells.unique([*_STUDY, "tau_z", "task"], keep="first", maintain_order=True)
    is_one = pl.len().over(*_STUDY, "tau_z") == 1
    tasks = tasks.with_columns(variant=pl.when(is_one).then(pl.lit("")).otherwise("variant"))
    of_runs, of_tasks = (each.join(all_tests, on=_STUDY, maintain_order="left_right") for each in (runs, tasks))
    return of_runs.select(*RUN_KEY, "settings", "changes"), of_tasks.select(*CONTROLLER_KEY, *_TASK, "name")


def _shared(
    known: pl.DataFrame, wanted: pl.DataFrame, key: Sequence[str], identity: Sequence[str], columns: Columns
) -> pl.DataFrame:
    """Of each test that a study asks for its own rows, or else those of whichever study has it first."""
    names = [column.name for column in columns]
    more = [name for name in ("controller",) if name in names]
    once = known.unique([*identity, *more], keep="first", maintain_order=True)
    once = once.drop(name for name in wanted.columns if name not in identity)
    others = wanted.join(known, on=key, how="anti").join(once, on=identity, maintain_order="right")
    found = pl.concat([known.select(names), others.select(names)])
    found = found.unique([*key, *more], keep="first", maintain_order=True)
    return wanted.select(key).join(found, on=key, maintain_order="left_right").select(names)


def _check_one_outcome(rows: pl.DataFrame) -> None:
    """Refuse two outcomes of the same test of the same run."""
    outcome = [column.name for column in RUNS if column.name not in _NAMES]
    outcomes = rows.unique([*_RUN, *outcome], keep="first", maintain_order=True)
    several = outcomes.filter(pl.len().over(_RUN) > 1)
    if not len(several):
        return
    first, row, *_ = several.partition_by(_RUN, maintain_order=True)[0].to_dicts()
    where = f"in {first['home']} and {row['home']}"
    advice = "a run that was trained twice cannot be in one report: report on one folder, or train with other seeds"
    if first["home"] == row["home"]:
        where, advice = f"in two rows of {row['home']}", "one of them was changed since it was written"
    cell = cell_name(row["variant"], row["tau_z"])
    words = (f"study {row['study']}", f"preset {row['preset']}", cell, row["condition"])
    raise ValueError(f"run {row['folder']} came out differently {where} ({', '.join(filter(None, words))}); {advice}")


def _without_what_is_done(study: StudyRecord, runs: pl.DataFrame, untested: pl.DataFrame) -> StudyRecord:
    """The study's record, without what one folder could not do and another has done."""
    own = {"study": study.name, "preset": study.preset}
    tests = dict(runs.filter(**own).group_by("folder").len().iter_rows())
    missing = (f"{controllers_of(cell)}: " for cell in untested.filter(**own)["name"].unique(maintain_order=True))
    said = (next((words for words in study.unread if words.startswith(cell)), None) for cell in missing)
    return replace(
        study,
        failed=tuple((run, why) for run, why in study.failed if tests.get(run, 0) < len(study.tests)),
        unread=tuple(filter(None, said)),
    )


def _fullness(history: History) -> int:
    """A report keeps of a history only what it drew, and another one may draw more."""
    return len(history.event_steps) + len(history.check_steps) + history.shares.size
