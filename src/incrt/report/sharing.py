"""What studies have in common: in one folder they share runs and controllers, whichever of them was run."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from incrt.report.outcomes import Outcome, Reference, StudyRecord
from incrt.report.reading import cell_name


def shared_runs(studies: Sequence[StudyRecord], rows: Sequence[Outcome]) -> list[Outcome]:
    """The runs that a study asks for and only others have, as rows of that study; runs have the same settings."""
    settings = {
        (study.name, study.preset, cell): _text(each) for study in studies for cell, each in study.configuration.items()
    }

    def run(study: str, preset: str, variant: str, tau_z: float, seed: int) -> tuple[str, int]:
        return settings[study, preset, cell_name(variant, tau_z)], seed

    trained = {row.key[:-1]: row for row in rows if not row.condition}
    runs = {run(*place): row for place, row in reversed(trained.items())}
    wanted = {
        (study.name, study.preset, variant, tau_z, seed): None
        for study in studies
        for variant in study.variants
        for tau_z, _ in study.regimes
        for seed in study.seeds
    }
    return [
        replace(runs[run(*place)], study=place[0], preset=place[1], variant=place[2])
        for place in wanted
        if place not in trained and run(*place) in runs
    ]


class Bench(NamedTuple):
    """What the controllers of a study were tested on."""

    settings: str
    cell: str
    """The first that has it."""
    variant: str
    """As the controllers' rows name it."""
    tau_z: float


def benches(study: StudyRecord) -> list[Bench]:
    """The benches of a study, each once."""
    found = []
    for tau_z in dict.fromkeys(tau_z for tau_z, _ in study.regimes):
        first: dict[str, str] = {}
        for variant in study.variants:
            bench = study.configuration[cell_name(variant, tau_z)]["bench"]
            first.setdefault(_text(bench | {"window": 1}), variant)  # no controller sees a window
        found += [
            Bench(settings, cell_name(variant, tau_z), variant if len(first) > 1 else "", tau_z)
            for settings, variant in first.items()
        ]
    return found


def shared_references(studies: Sequence[StudyRecord], rows: Sequence[Reference]) -> list[Reference]:
    """The controllers that only other studies have, on the same bench with the same fields changed."""
    tests = {
        (study.name, study.preset, bench.variant, bench.tau_z, condition): (bench.settings, _text(changes))
        for study in studies
        for bench in benches(study)
        for condition, changes in {"": {}, **study.conditions}.items()
    }
    known: defaultdict[tuple[Any, ...], list[Reference]] = defaultdict(list)
    for row in rows:
        known[row.key[:-1]].append(row)
    alike = {tests[place]: known[place] for place in reversed(tests) if place in known}
    return [
        replace(row, study=study, preset=preset, variant=variant, condition=condition)
        for (study, preset, variant, tau_z, condition), test in tests.items()
        if (study, preset, variant, tau_z, condition) not in known
        for row in alike.get(test, [])
    ]


def _text(settings: Any) -> str:
    return json.dumps(settings, sort_keys=True)
