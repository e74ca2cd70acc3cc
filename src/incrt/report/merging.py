"""What several folders hold, as if one had held everything: reports of earlier runs, and studies run since.

In one folder studies share runs and controllers, whichever of them was run; so they do here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from incrt.report.data import Dataset, History, StudyRecord, as_json, cell_name, command_for, controllers_of
from incrt.report.schema import CONTROLLER_KEY, RUN_KEY, RUNS, Row
from incrt.studies.store import study_file

_ALIKE = ("variants", "regimes", "conditions", "compare", "trained_by")
"""What two records of a study must agree in, beside the settings of their cells."""
_STUDY = ("study", "preset")
_NAMES = ("study", "preset", "variant", "condition")
"""Under which studies have the same test of the same run."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def merge(datasets: Sequence[tuple[Path, Dataset]]) -> Dataset:
    """All of it, in the order in which one folder is read; folders that contradict each other are refused by name."""
    runs = _all_runs(datasets)
    found = [dataset for _, dataset in datasets]
    if len(found) == 1:
        return found[0]
    records: defaultdict[Path, list[tuple[Path, StudyRecord]]] = defaultdict(list)
    for folder, dataset in datasets:
        for record in dataset.studies:
            records[study_file(record.name, record.preset)].append((folder, record))
    for same in records.values():
        _check_same(same)
    asked = [_study([record for _, record in records[file]]) for file in sorted(records)]
    plan = _Plan(asked)
    controllers = pl.concat(each.controllers for each in found)
    controllers = controllers.unique([*CONTROLLER_KEY, "controller"], keep="first", maintain_order=True)
    runs = plan.ordered(_with_shared(runs, plan.runs, RUN_KEY, ("settings", "seed", "changes")), "seed")
    controllers = plan.ordered(_with_shared(controllers, plan.controllers, CONTROLLER_KEY, ("task", "changes")))
    untested = plan.controllers.join(controllers, on=CONTROLLER_KEY, how="anti")
    histories: defaultdict[str, list[History]] = defaultdict(list)
    for dataset in found:
        for run, history in dataset.histories.items():
            histories[run].append(history)
    episodes = _first(dataset.episodes for dataset in found)
    folders = runs["folder"].unique(maintain_order=True)
    return Dataset(
        [_without_what_is_done(study, runs, untested) for study in asked],
        runs,
        controllers,
        histories={run: max(histories[run], key=_fullness) for run in folders if run in histories},
        episodes={run: episodes[run] for run in folders if run in episodes},
        made_by=list(_first({as_json(each): each for each in one.made_by} for one in found).values()),
        commands=pl.concat(each.commands for each in found).unique(maintain_order=True).sort("begun"),
        title=found[0].title,
    )


def _first(mappings: Iterable[Mapping[Key, Value]]) -> dict[Key, Value]:
    """By each key what the first has that has it."""
    found: dict[Key, Value] = {}
    for mapping in mappings:
        found |= {key: value for key, value in mapping.items() if key not in found}
    return found


def _all_runs(datasets: Sequence[tuple[Path, Dataset]]) -> pl.DataFrame:
    """Each row once. A run that several studies name is one run, and came out once in each test."""
    frames = []
    for folder, dataset in datasets:
        tests = [(study.name, study.preset, *test) for study in dataset.studies for test in study.tests.items()]
        columns = ("study", "preset", "condition", "test")
        known = pl.DataFrame(tests, dict.fromkeys(columns, pl.String), orient="row")
        rows = dataset.runs.join(known, on=columns[:3], how="left", maintain_order="left")
        frames.append(rows.with_columns(home=pl.lit(str(folder))))
    rows = pl.concat(frames)
    names = [column.name for column in RUNS]
    _check_one(rows, RUN_KEY, names)
    _check_one(rows.filter(pl.col("test").is_not_null()), ("folder", "test"), [n for n in names if n not in _NAMES])
    return rows.unique(RUN_KEY, keep="first", maintain_order=True).select(names)


def _check_one(rows: pl.DataFrame, key: Sequence[str], names: Sequence[str]) -> None:
    """Refuse rows that have the same key and are not the same."""
    rows = rows.with_columns(mark=rows.select(names).hash_rows())
    rows = rows.with_columns(pl.col("mark", "home").first().over(key).name.prefix("first_"))
    wrong = rows.filter(pl.col("mark") != pl.col("first_mark"))
    if len(wrong):
        raise ValueError(_contradiction(wrong.row(0, named=True)))


def _contradiction(row: Row) -> str:
    """What is wrong where two rows should be the same."""
    where = f"in {row['first_home']} and {row['home']}"
    advice = "a run that was trained twice cannot be in one report: report on one folder, or train with other seeds"
    if row["first_home"] == row["home"]:
        where, advice = f"in two rows of {row['home']}", "one of them was changed since it was written"
    cell = cell_name(row["variant"], row["tau_z"])
    words = (f"study {row['study']}", f"preset {row['preset']}", cell, row["condition"])
    return f"run {row['folder']} came out differently {where} ({', '.join(filter(None, words))}); {advice}"


def _check_same(records: Sequence[tuple[Path, StudyRecord]]) -> None:
    """Refuse studies of one name that are not the same."""
    home, first = records[0]
    for folder, record in records[1:]:
        one, other = _terms(first), _terms(record)
        if differing := [term for term in {**one, **other} if one.get(term) != other.get(term)]:
            term = differing[0]
            raise ValueError(
                f"study {first.name}, preset {first.preset}, is not the same in {home} and {folder}: "
                f"{term}: {one.get(term)!r}, and {other.get(term)!r}"
            )


def _terms(record: StudyRecord) -> dict[str, Any]:
    settings = {
        f"{cell}, {part}.{name}": value
        for cell, parts in record.configuration.items()
        for part, fields in parts.items()
        for name, value in fields.items()
    }
    return {name: getattr(record, name) for name in _ALIKE} | settings


def _study(records: Sequence[StudyRecord]) -> StudyRecord:
    """A study as all these folders together were asked for it, with all that any of them could not do or read."""
    first = records[0]
    seeds = tuple(sorted({seed for record in records for seed in record.seeds}))
    said = [each for record in records for each in record.unread]
    cells = [controllers_of(cell) for cell in first.configuration]
    unread = [next((each for each in said if each.startswith(f"{cell}: ")), None) for cell in cells]
    return replace(
        first,
        seeds=seeds,
        runs_wanted=len(first.configuration) * len(seeds),
        failed=tuple(_first(dict(record.failed) for record in records).items()),
        unread=tuple(filter(None, unread)),
        command=command_for(first.name, first.preset, seeds),
    )


def _without_what_is_done(study: StudyRecord, runs: pl.DataFrame, untested: pl.DataFrame) -> StudyRecord:
    """The study's record, without what one folder could not do and another has done."""
    own = {"study": study.name, "preset": study.preset}
    tested = Counter(runs.filter(**own)["folder"])
    missing = tuple(f"{controllers_of(cell)}: " for cell in untested.filter(**own)["name"])
    return replace(
        study,
        failed=tuple((run, why) for run, why in study.failed if tested[run] < len(study.tests)),
        unread=tuple(each for each in study.unread if each.startswith(missing)),
    )


class _Plan:
    """All that studies ask for. Runs are the same if all their settings are, tests if they change the same fields."""

    def __init__(self, studies: Sequence[StudyRecord]) -> None:
        cells, tests, seeds = list[Row](), list[Row](), list[Row]()
        for study in studies:
            own = {"study": study.name, "preset": study.preset}
            names = {
                cell_name(variant, tau_z): (variant, tau_z) for variant in study.variants for tau_z in study.tau_zs
            }
            for name, settings in study.configuration.items():
                if name in names:
                    task = as_json(settings["task"] | {"window": 1})  # no controller sees a window
                    variant, tau_z = names[name]
                    cell = {"variant": variant, "tau_z": tau_z, "name": name, "settings": as_json(settings)}
                    cells.append({**own, **cell, "task": task})
            tests += [{**own, "condition": name, "changes": changes} for name, changes in study.tests.items()]
            seeds += [{**own, "seed": seed} for seed in study.seeds]
        self._cells = pl.DataFrame(cells).with_row_index("cell")
        self._tests = pl.DataFrame(tests).with_row_index("test")
        tested = self._cells.join(pl.DataFrame(seeds), on=_STUDY, maintain_order="left_right")
        self.runs = tested.join(self._tests, on=_STUDY, maintain_order="left_right")
        # Variants with the same task have the same controllers: of the first, named only if there is another task.
        tasks = self._cells.unique([*_STUDY, "tau_z", "task"], keep="first", maintain_order=True)
        is_one = pl.len().over(*_STUDY, "tau_z") == 1
        tasks = tasks.with_columns(variant=pl.when(is_one).then(pl.lit("")).otherwise("variant"))
        self.controllers = tasks.join(self._tests, on=_STUDY, maintain_order="left_right")

    def ordered(self, rows: pl.DataFrame, *between: str) -> pl.DataFrame:
        """As in one folder: by study and cell, and by test; what no study asked for is last."""
        places = pl.concat([self._cells.with_columns(variant=pl.lit("")), self._cells])
        key, test_key = [*_STUDY, "variant", "tau_z"], [*_STUDY, "condition"]
        placed = rows.join(places.group_by(key).agg(pl.min("cell")), on=key, how="left")
        placed = placed.join(self._tests, on=test_key, how="left")
        return placed.sort("cell", *between, "test", nulls_last=True, maintain_order=True).select(rows.columns)


def _with_shared(rows: pl.DataFrame, wanted: pl.DataFrame, key: Sequence[str], identity: Sequence[str]) -> pl.DataFrame:
    """Also the tests that a study asks for and only others have, as rows of that study."""
    wanted = wanted.select(list(dict.fromkeys([*key, *identity])))
    known = wanted.join(rows, on=key, maintain_order="left_right")
    each_once = [name for name in (*identity, "controller") if name in known.columns]
    known = known.unique(each_once, keep="first", maintain_order=True)
    known = known.drop(name for name in key if name not in identity)
    missing = wanted.join(rows, on=key, how="anti", maintain_order="left")
    shared = missing.join(known, on=identity, maintain_order="left_right").select(rows.columns)
    return pl.concat([rows, shared])


def _fullness(history: History) -> tuple[int, int, int]:
    """A report keeps of a history only what it drew, and another one may draw more."""
    return len(history.event_steps), len(history.check_steps), history.shares.size
