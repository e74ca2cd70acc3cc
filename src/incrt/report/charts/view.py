"""What charts ask of the material of one preset."""

from collections import defaultdict
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
        self._looks = looks(record.variants for record in material.studies)
        self._outcomes: dict[tuple[str, str, float, str], list[Outcome]] = defaultdict(list)
        for outcome in self.runs.outcomes:
            key = outcome.study, outcome.variant, outcome.tau_z, outcome.condition
            self._outcomes[key].append(outcome)

    def look(self, variant: str) -> Look:
        return self._looks[variant]

    def sound(self, study: str, variant: str, tau_z: float, condition: str = "") -> list[Outcome]:
        """Of the runs that differ in their seeds alone, those whose figures count."""
        return [each for each in self._outcomes.get((study, variant, tau_z, condition), ()) if each.is_sound]

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


def representative(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The run in the middle by its Δ%; of an even number the better of the two."""
    known = [(each.delta_pct, each.seed, each) for each in outcomes if each.is_sound and each.delta_pct is not None]
    ordered = sorted(known, key=lambda entry: entry[:2])
    return ordered[(len(ordered) - 1) // 2][2] if ordered else None


def regimes(record: StudyRecord) -> tuple[float, ...]:
    """The values of tau_z."""
    return tuple(tau_z for tau_z, _ in record.regimes)
