"""What studies have in common: in one folder they share runs and controllers, whichever of them was run."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from incrt.report.outcomes import Outcome, Reference, StudyRecord
from incrt.report.reading import cell_name


def shared_runs(studies: Sequence[StudyRecord], rows: Sequence[Outcome]) -> list[Outcome]:
    """The tests of runs that a study asks for and only others have, as rows of that study.

    Runs are the same if all their settings are, and tests if they change the same fields.
    """
    wanted = {
        (study.name, study.preset, variant, tau_z, seed, condition): (_text(settings), seed, changes)
        for study in studies
        for variant, tau_z, settings in _cells(study)
        for seed in study.seeds
        for condition, changes in tests_of(study).items()
    }
    known = {row.key: row for row in rows}
    runs = {wanted[place]: row for place, row in known.items() if place in wanted}
    return [
        replace(runs[run], study=study, preset=preset, variant=variant, condition=condition)
        for (study, preset, variant, tau_z, seed, condition), run in wanted.items()
        if (study, preset, variant, tau_z, seed, condition) not in known and run in runs
    ]


def tests_of(study: StudyRecord) -> dict[str, str]:
    """What the runs of a study are tested on, by name: the fields that differ from what they were trained on."""
    return {name: _text(changes) for name, changes in {"": {}, **study.conditions}.items()}


def _cells(study: StudyRecord) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    """Variant, tau_z and settings of each cell."""
    for variant in study.variants:
        for tau_z in dict.fromkeys(tau_z for tau_z, _ in study.regimes):
            if settings := study.configuration.get(cell_name(variant, tau_z)):
                yield variant, tau_z, settings


class Task(NamedTuple):
    """What the controllers of a study were tested on."""

    settings: str
    cell: str
    """The first that has it."""
    variant: str
    """As the controllers' rows name it."""
    tau_z: float


def tasks(study: StudyRecord) -> list[Task]:
    """The tasks of a study, each once."""
    variants: defaultdict[float, dict[str, str]] = defaultdict(dict)
    for variant, tau_z, settings in _cells(study):
        task = _text(settings["task"] | {"window": 1})  # no controller sees a window
        variants[tau_z].setdefault(task, variant)
    return [
        Task(task, cell_name(variant, tau_z), variant if len(found) > 1 else "", tau_z)
        for tau_z, found in variants.items()
        for task, variant in found.items()
    ]


def shared_references(studies: Sequence[StudyRecord], rows: Sequence[Reference]) -> list[Reference]:
    """The controllers that only other studies have, on the same task with the same fields changed."""
    wanted = {
        (study.name, study.preset, task.variant, task.tau_z, condition): (task.settings, changes)
        for study in studies
        for task in tasks(study)
        for condition, changes in tests_of(study).items()
    }
    known: defaultdict[tuple[Any, ...], list[Reference]] = defaultdict(list)
    for row in rows:
        known[row.key[:-1]].append(row)
    tested = {wanted[place]: known[place] for place in reversed(wanted) if place in known}
    return [
        replace(row, study=study, preset=preset, variant=variant, condition=condition)
        for (study, preset, variant, tau_z, condition), test in wanted.items()
        if (study, preset, variant, tau_z, condition) not in known
        for row in tested.get(test, [])
    ]


def _text(settings: Any) -> str:
    return json.dumps(settings, sort_keys=True)
