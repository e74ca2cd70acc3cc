"""The runs of one preset, by study, variant, regime and condition."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from incrt.report import paper
from incrt.report.outcomes import Material, Outcome, Reference, StudyRecord

COMPARISON = ("main", "static", "hundred", "seven")
"""The studies that hold heads that grow against a fixed number of them, in the paper's regimes."""
RUNTIME = "runtime"
"""Their variant with heads that grow."""


@dataclass(frozen=True)
class Runs:
    """What a report has of one preset."""

    preset: str
    studies: tuple[StudyRecord, ...]
    outcomes: tuple[Outcome, ...]
    references: tuple[Reference, ...]

    def study(self, name: str) -> StudyRecord | None:
        return next((study for study in self.studies if study.name == name), None)

    def of(self, *studies: str) -> list[Outcome]:
        """All runs of these studies, each once, for what does not depend on the condition that it was tested in."""
        return distinct(each for each in self.outcomes if each.study in studies)

    def missing(self, study: StudyRecord) -> str:
        """Whether runs of a study are not there, in words; empty if all are."""
        found = self.of(study.name)
        if len(found) >= study.runs_wanted:
            return ""
        variants = {each.variant for each in found}
        none = [variant for variant in study.variants if variant not in variants]
        of_some = f", none of {' and '.join(map(repr, none))}" if none and found else ""
        return f"{len(found)} of {study.runs_wanted} runs are there{of_some}"

    def cell(self, study: str, variant: str, tau_z: float, condition: str = "") -> list[Outcome]:
        """The runs that differ in their seeds alone, each once."""
        place = (study, variant, tau_z, condition)
        return distinct(each for each in self.outcomes if _place(each) == place)

    def everywhere(self, study: str, variant: str, tau_z: float) -> list[Outcome]:
        """The runs that differ in their seeds alone, also those that other studies have of the same settings."""
        places = {Path(each.folder).parent for each in self.cell(study, variant, tau_z)}  # a folder a cell
        return distinct(each for each in self.outcomes if Path(each.folder).parent in places and not each.condition)

    def regimes(self, *studies: str) -> list[float]:
        """The values of tau_z that have runs in these studies."""
        return sorted({each.tau_z for each in self.outcomes if each.study in studies})

    def compared(self, variant: str, tau_z: float) -> list[Outcome]:
        """The runs of a variant in the studies of the paper's comparison, all their seeds."""
        return distinct(each for study in COMPARISON for each in self.cell(study, variant, tau_z))

    def comparison(self) -> tuple[str, ...]:
        """Those of the studies of the paper's comparison that are here."""
        return tuple(name for name in COMPARISON if self.study(name) is not None)

    def grown(self) -> list[Outcome]:
        """The runs of the comparison whose heads grow, of all regimes."""
        return [each for tau_z in self.regimes(*COMPARISON) for each in self.compared(RUNTIME, tau_z)]

    def statics(self) -> list[str]:
        """The variants of the comparison with a fixed number of heads; the paper's own number first."""
        studies = [study for name in COMPARISON if (study := self.study(name)) is not None]
        names = dict.fromkeys(name for study in studies for name in study.variants if name.startswith("static"))
        return sorted(names, key=lambda name: name != paper.STATIC)

    def beside(self, studies: Sequence[str], tau_z: float, condition: str = "") -> list[Reference]:
        """The reference controllers of a regime, as the first of these studies has them."""
        place = (tau_z, condition)
        found = [
            [each for each in self.references if each.study == name and (each.tau_z, each.condition) == place]
            for name in studies
        ]
        return next(filter(None, found), [])

    def given_up(self, *studies: str) -> int:
        """How many runs of these studies whose heads grow could not be trained, evaluated or read."""
        failed = {run for study in self.studies if study.name in studies for run, _ in study.failed}
        return sum(Path(run).parent.name.startswith(f"{RUNTIME}-") for run in failed)  # as Cell.key names folders


def of_preset(material: Material, preset: str) -> Runs:
    """The part of the material that belongs to one preset."""
    return Runs(
        preset,
        tuple(each for each in material.studies if each.preset == preset),
        tuple(each for each in material.outcomes if each.preset == preset),
        tuple(each for each in material.references if each.preset == preset),
    )


def distinct(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Each run once, whatever studies name it and whatever it was tested on."""
    return list({each.folder: each for each in outcomes}.values())


def representative(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The run in the middle by its Delta%; of an even number the better of the two."""
    known = [(each.delta_pct, each.seed, each) for each in outcomes if each.is_sound and each.delta_pct is not None]
    ordered = sorted(known, key=lambda entry: entry[:2])
    return ordered[(len(ordered) - 1) // 2][2] if ordered else None


def shown_in_episodes(runs: Runs, known: Container[str]) -> list[Outcome]:
    """Of each regime one of the runs whose episodes are known, by folder: a run of study main where there is one."""
    found = [each for each in runs.outcomes if each.folder in known and not each.condition]
    by_regime = [[each for each in found if each.tau_z == tau_z] for tau_z in sorted({each.tau_z for each in found})]
    shown = [
        representative([each for each in here if each.study == "main"]) or representative(here) for here in by_regime
    ]
    return [run for run in shown if run is not None]


def deltas(outcomes: Iterable[Outcome]) -> list[float]:
    """Delta% of the runs whose figures count."""
    return [each.delta_pct for each in outcomes if each.is_sound and each.delta_pct is not None]


def diverged(outcomes: Iterable[Outcome]) -> int:
    """How many runs' figures do not count."""
    return sum(not each.is_sound for each in outcomes)


def _place(outcome: Outcome) -> tuple[str, str, float, str]:
    return outcome.study, outcome.variant, outcome.tau_z, outcome.condition
