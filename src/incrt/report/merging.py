"""What several folders hold, as if one had held everything: reports of earlier runs, and studies run since."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from incrt.report.outcomes import History, Material, Outcome, Reference, StudyRecord
from incrt.report.reading import cell_name, command_for, references_of
from incrt.report.sharing import shared_references, shared_runs, tasks, tests_of
from incrt.studies.store import study_file

_ALIKE = ("variants", "regimes", "conditions", "compare", "trained_by")
"""What two records of a study must agree in, beside the settings of their cells."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def merge(materials: Sequence[tuple[Path, Material]]) -> Material:
    """All of it, in the order in which one folder is read; folders that contradict each other are refused by name."""
    if len(materials) == 1:
        _rows(materials)
        return materials[0][1]
    found = [material for _, material in materials]
    records: defaultdict[Path, list[tuple[Path, StudyRecord]]] = defaultdict(list)
    for folder, material in materials:
        for record in material.studies:
            records[study_file(record.name, record.preset)].append((folder, record))
    for same in records.values():
        _check_same(same)
    asked = [_study(records[file]) for file in sorted(records)]
    rows = _rows(materials)
    rows += shared_runs(asked, rows)
    references = list(_first({each.key: each for each in material.references} for material in found).values())
    references += shared_references(asked, references)
    studies = [_with_what_is_missing(each, rows, references) for each in asked]
    order = _Order(studies)
    outcomes = sorted(rows, key=order.of_outcome)
    histories: defaultdict[str, list[History]] = defaultdict(list)
    for material in found:
        for run, history in material.histories.items():
            histories[run].append(history)
    episodes = _first(material.episodes for material in found)
    runs = list(dict.fromkeys(each.folder for each in outcomes))
    return Material(
        studies=studies,
        outcomes=outcomes,
        references=sorted(references, key=order.of_reference),
        histories={run: max(histories[run], key=_fullness) for run in runs if run in histories},
        episodes={run: episodes[run] for run in runs if run in episodes},
        made_by=list({json.dumps(each, sort_keys=True): each for one in found for each in one.made_by}.values()),
        commands=sorted(dict.fromkeys(each for one in found for each in one.commands), key=lambda each: each.begun),
        title=found[0].title,
    )


def _first(mappings: Iterable[Mapping[Key, Value]]) -> dict[Key, Value]:
    """By each key what the first has that has it."""
    found: dict[Key, Value] = {}
    for mapping in mappings:
        found |= {key: value for key, value in mapping.items() if key not in found}
    return found


def _rows(materials: Sequence[tuple[Path, Material]]) -> list[Outcome]:
    """Each outcome once. A run that several studies name is one run, and came out once in each test."""
    known: dict[tuple[Any, ...], tuple[Path, Outcome]] = {}
    runs: dict[tuple[str, str], tuple[Path, Outcome]] = {}
    for folder, material in materials:
        fields = {(study.name, study.preset): tests_of(study) for study in material.studies}
        for row in material.outcomes:
            home, other = known.setdefault(row.key, (folder, row))
            test = fields[row.study, row.preset].get(row.condition)
            if row == other and test is not None:
                home, run = runs.setdefault((row.folder, test), (folder, row))
                other = replace(run, study=row.study, preset=row.preset, variant=row.variant, condition=row.condition)
            if row != other:
                raise ValueError(_contradiction(row, home, folder))
    return [row for _, row in known.values()]


def _contradiction(row: Outcome, home: Path, folder: Path) -> str:
    """What is wrong where two rows should be the same."""
    where = f"in {home} and {folder}"
    advice = "a run that was trained twice cannot be in one report: report on one folder, or train with other seeds"
    if home == folder:
        where, advice = f"in two rows of {folder}", "one of them was changed since it was written"
    words = (f"study {row.study}", f"preset {row.preset}", cell_name(row.variant, row.tau_z), row.condition)
    return f"run {row.folder} came out differently {where} ({', '.join(filter(None, words))}); {advice}"


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


def _study(records: Sequence[tuple[Path, StudyRecord]]) -> StudyRecord:
    """A study as all these folders together were asked for it, with all that any of them could not do or read."""
    _, first = records[0]
    seeds = tuple(sorted({seed for _, record in records for seed in record.seeds}))
    said = [each for _, record in records for each in record.unread]
    cells = [references_of(cell) for cell in first.configuration]
    unread = [next((each for each in said if each.startswith(f"{cell}: ")), None) for cell in cells]
    return replace(
        first,
        seeds=seeds,
        runs_wanted=len(first.configuration) * len(seeds),
        failed=tuple(_first(dict(record.failed) for _, record in records).items()),
        unread=tuple(filter(None, unread)),
        command=command_for(first.name, first.preset, seeds),
    )


def _with_what_is_missing(study: StudyRecord, rows: Sequence[Outcome], references: Sequence[Reference]) -> StudyRecord:
    """The study's record, without what one folder could not do and another has done."""
    place = study.name, study.preset
    tested = Counter(row.folder for row in rows if (row.study, row.preset) == place)
    known = {each.key[:-1] for each in references}
    missing = [
        f"{references_of(task.cell)}: "
        for task in tasks(study)
        if any((*place, task.variant, task.tau_z, condition) not in known for condition in tests_of(study))
    ]
    return replace(
        study,
        failed=tuple((run, why) for run, why in study.failed if tested[run] < len(tests_of(study))),
        unread=tuple(each for each in study.unread if each.startswith(tuple(missing))),
    )


def _terms(record: StudyRecord) -> dict[str, Any]:
    settings = {
        f"{cell}, {part}.{name}": value
        for cell, parts in record.configuration.items()
        for part, fields in parts.items()
        for name, value in fields.items()
    }
    return {name: getattr(record, name) for name in _ALIKE} | settings


def _fullness(history: History) -> tuple[int, int, int]:
    """A report keeps of a history only what it drew, and another one may draw more."""
    return len(history.event_steps), len(history.check_steps), history.shares.size


class _Order:
    """The places of rows among those of one folder: by study, cell, seed and test."""

    def __init__(self, studies: Sequence[StudyRecord]) -> None:
        self._variants = {(study.name, study.preset): study.variants for study in studies}
        self._cells = _places((each.name, each.preset, cell) for each in studies for cell in each.configuration)
        self._tests = _places((each.name, each.preset, test) for each in studies for test in ("", *each.conditions))

    def of_outcome(self, row: Outcome) -> tuple[int, int, int]:
        cell, test = self.of_reference(row)
        return cell, row.seed, test

    def of_reference(self, row: Outcome | Reference) -> tuple[int, int]:
        """A controller that stands for all variants has the place of the first one; what no study asked for is last."""
        study = row.study, row.preset
        variants = [row.variant] if row.variant else self._variants[study]
        cells = [(*study, cell_name(variant, row.tau_z)) for variant in variants]
        cell = min(self._cells.get(each, len(self._cells)) for each in cells)
        return cell, self._tests.get((*study, row.condition), len(self._tests))


def _places(names: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    return {name: place for place, name in enumerate(names)}
