"""The runs of one preset, by study, variant, regime and condition."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import polars as pl

from incrt.report import paper
from incrt.report.data import Dataset, History, StudyRecord
from incrt.report.schema import Row

COMPARISON = ("main", "static", "hundred", "seven")
"""The studies that hold heads that grow against a fixed number of them, in the paper's regimes."""
RUNTIME = "runtime"
"""Their variant with heads that grow."""
SOUND = pl.col("failure").is_null() & pl.col("delta_pct").is_not_null()
"""Whether the metrics of a run count: it was trained to its end, and the arm was not lost."""
AS_TRAINED = pl.col("condition") == ""
_PLACE = ("study", "variant", "tau_z", "condition")
_CELL_FOLDER = pl.col("folder").str.replace(r"/?[^/]*$", "")
"""Runs that differ in their seeds alone lie in one folder, whatever studies name them."""


class Runs:
    """What a report has of one preset."""

    def __init__(self, dataset: Dataset, preset: str) -> None:
        self.dataset = dataset
        self.preset = preset
        self.studies = [study for study in dataset.studies if study.preset == preset]
        self.rows = dataset.runs.filter(preset=preset)
        self._controllers = dataset.controllers.filter(preset=preset)

    @cached_property
    def cells(self) -> dict[tuple[str, str, float, str], pl.DataFrame]:
        """By study, variant, tau_z and condition the runs that differ in their seeds alone, each once."""
        rows = once(self.rows, *_PLACE)
        return dict(rows.partition_by(_PLACE, as_dict=True).items())

    def study(self, name: str) -> StudyRecord | None:
        return next((study for study in self.studies if study.name == name), None)

    def of(self, *studies: str) -> pl.DataFrame:
        """All runs of these studies, each once, for what does not depend on the condition that it was tested in."""
        return once(self.rows.filter(pl.col("study").is_in(studies)))

    def cell(self, study: str, variant: str, tau_z: float, condition: str = "") -> pl.DataFrame:
        """The runs that differ in their seeds alone, each once."""
        return self.cells.get((study, variant, tau_z, condition), self.rows.clear())

    def sound(self, study: str, variant: str, tau_z: float, condition: str = "") -> pl.DataFrame:
        """Those of them whose metrics count."""
        return self.cell(study, variant, tau_z, condition).filter(SOUND)

    def everywhere(self, study: str, variant: str, tau_z: float) -> pl.DataFrame:
        """The runs that differ in their seeds alone, also those that other studies have of the same settings."""
        folders = self.cell(study, variant, tau_z).select(_CELL_FOLDER).to_series()
        return once(self.rows.filter(AS_TRAINED, _CELL_FOLDER.is_in(folders.to_list())))

    def regimes(self, *studies: str) -> list[float]:
        """The values of tau_z that have runs in these studies."""
        return sorted(self.rows.filter(pl.col("study").is_in(studies))["tau_z"].unique())

    def compared(self, variant: str, tau_z: float) -> pl.DataFrame:
        """The runs of a variant in the studies of the paper's comparison, all their seeds."""
        return once(pl.concat(self.cell(study, variant, tau_z) for study in COMPARISON))

    def comparison(self) -> tuple[str, ...]:
        """Those of the studies of the paper's comparison that are here."""
        return tuple(name for name in COMPARISON if self.study(name) is not None)

    def grown(self) -> pl.DataFrame:
        """The runs of the comparison whose heads grow, of all regimes."""
        regimes = (self.compared(RUNTIME, tau_z) for tau_z in self.regimes(*COMPARISON))
        return pl.concat([self.rows.clear(), *regimes])

    def statics(self) -> list[str]:
        """The variants of the comparison with a fixed number of heads; the paper's own number first."""
        studies = [study for name in COMPARISON if (study := self.study(name)) is not None]
        names = dict.fromkeys(name for study in studies for name in study.variants if name.startswith("static"))
        return sorted(names, key=lambda name: name != paper.STATIC)

    def controllers(self, studies: Sequence[str], tau_z: float, condition: str = "") -> list[Row]:
        """The reference controllers of a regime, as the first of these studies has them."""
        here = self._controllers.filter(tau_z=tau_z, condition=condition)
        return next((found.to_dicts() for name in studies if len(found := here.filter(study=name))), [])

    def given_up(self, *studies: str) -> int:
        """How many runs of these studies whose heads grow could not be trained, evaluated or read."""
        failed = {run for study in self.studies if study.name in studies for run, _ in study.failed}
        return sum(run.split("/")[-2:][0].startswith(f"{RUNTIME}-") for run in failed)  # as Cell.key names folders

    def missing(self, study: StudyRecord) -> str:
        """Whether runs of a study are not there, in words; empty if all are."""
        found = self.of(study.name)
        if len(found) >= study.runs_wanted:
            return ""
        none = [variant for variant in study.variants if variant not in found["variant"]]
        of_some = f", none of {' and '.join(map(repr, none))}" if none and len(found) else ""
        return f"{len(found)} of {study.runs_wanted} runs are there{of_some}"

    def growing(self) -> tuple[str, str] | None:
        """Study and variant whose heads are shown: main's, or else the first in which heads grew."""
        grew = set(self.rows.filter(pl.col("grows") > 0).select("study", "variant").iter_rows())
        places = [(study.name, variant) for study in self.studies for variant in study.variants]
        found = [place for place in places if place in grew]
        return ("main", RUNTIME) if ("main", RUNTIME) in found else next(iter(found), None)

    def histories(self, rows: pl.DataFrame) -> list[History]:
        """Of the runs that left one."""
        return [known for folder in rows["folder"] if (known := self.dataset.histories.get(folder)) is not None]

    def with_history(self, rows: pl.DataFrame, *, shares: bool = False) -> pl.DataFrame:
        """Those of the runs that left one, or one with the shares of its heads."""
        known = [folder for folder, each in self.dataset.histories.items() if each.shares.size or not shares]
        return rows.filter(pl.col("folder").is_in(known))

    def shown_in_episodes(self) -> list[Row]:
        """Of each regime one of the runs whose episodes are known: a run of study main where there is one."""
        found = self.rows.filter(AS_TRAINED, pl.col("folder").is_in(list(self.dataset.episodes)))
        regimes = (found.filter(tau_z=tau_z) for tau_z in sorted(found["tau_z"].unique()))
        shown = (representative(here.filter(study="main")) or representative(here) for here in regimes)
        return [run for run in shown if run is not None]


def once(rows: pl.DataFrame, *within: str) -> pl.DataFrame:
    """Each run once, whatever studies name it and whatever it was tested on; or once in each place."""
    return rows.group_by(*within, "folder", maintain_order=True).last().select(rows.columns)


def representative(rows: pl.DataFrame) -> Row | None:
    """The run in the middle by its Delta%; of an even number the better of the two."""
    ordered = rows.filter(SOUND).sort("delta_pct", "seed", maintain_order=True)
    return ordered.row((len(ordered) - 1) // 2, named=True) if len(ordered) else None


def deltas(rows: pl.DataFrame) -> list[float]:
    """Delta% of the runs whose metrics count."""
    return rows.filter(SOUND)["delta_pct"].to_list()


def diverged(rows: pl.DataFrame) -> int:
    """How many runs' metrics do not count."""
    return len(rows.filter(~SOUND))


def total(rows: pl.DataFrame, name: str) -> int:
    """The sum of a column that counts."""
    return int(rows[name].sum())


def largest(rows: pl.DataFrame, name: str) -> float | None:
    """Of what is known of a column."""
    return max(rows[name].drop_nulls().to_list(), default=None)


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are known; added up one by one, so that it is the same to the last digit on every machine."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def groups(study: StudyRecord) -> dict[str, list[str]]:
    """The variants that are compared with the same one and this one, by its name; by none those without comparison."""
    others = dict.fromkeys(study.compare.values())
    found = {
        other: [variant for variant in study.variants if other in {variant, study.compare.get(variant)}]
        for other in others
    }
    alone = [variant for variant in study.variants if variant not in {*study.compare, *others}]
    return {**found, "": alone} if alone else found
