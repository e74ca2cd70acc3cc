"""What charts ask of the material of one preset."""

from collections.abc import Sequence

from incrt.report.charts.colours import Look, looks
from incrt.report.outcomes import History, Material, Outcome, StudyRecord
from incrt.report.selection import of_preset


class View:
    """The runs of one preset, what they left on their way, and how their variants are drawn."""

    def __init__(self, material: Material, preset: str) -> None:
        self.material = material
        self.preset = preset
        self.runs = of_preset(material, preset)
        # The looks are those of all presets: a variant is drawn the same wherever it is.
        self._looks = looks(list(groups(record).values()) for record in material.studies)

    def look(self, variant: str) -> Look:
        return self._looks[variant]

    def sound(self, study: str, variant: str, tau_z: float, condition: str = "") -> list[Outcome]:
        """Of the runs that differ in their seeds alone, those whose figures count."""
        return [each for each in self.runs.cell(study, variant, tau_z, condition) if each.is_sound]

    def everywhere(self, study: str, variant: str, tau_z: float) -> list[Outcome]:
        """The same, also those that other studies have of the same settings."""
        return [each for each in self.runs.everywhere(study, variant, tau_z) if each.is_sound]

    def growing(self) -> tuple[str, str] | None:
        """Study and variant whose heads are shown: main's, or else the first in which heads grew."""
        places = [(study.name, variant) for study in self.runs.studies for variant in study.variants]
        grew = {(each.study, each.variant) for each in self.runs.outcomes if each.grows}
        found = [place for place in places if place in grew]
        return ("main", "runtime") if ("main", "runtime") in found else next(iter(found), None)

    def histories(self, outcomes: Sequence[Outcome]) -> list[History]:
        """Of the runs that left one."""
        found = self.material.histories
        return [found[each.folder] for each in outcomes if each.folder in found]


def regimes(record: StudyRecord) -> tuple[float, ...]:
    """The values of tau_z, each once, whatever windows the variants have there."""
    return tuple(dict.fromkeys(tau_z for tau_z, _ in record.regimes))


def groups(record: StudyRecord) -> dict[str, list[str]]:
    """The variants that are compared with the same one and this one, by its name; by none those without comparison."""
    others = dict.fromkeys(record.compare.values())
    found = {
        other: [variant for variant in record.variants if other in {variant, record.compare.get(variant)}]
        for other in others
    }
    alone = [variant for variant in record.variants if variant not in {*record.compare, *others}]
    return {**found, "": alone} if alone else found
