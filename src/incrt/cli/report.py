"""``incrt report``."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from incrt.cli.study_display import failure_lines
from incrt.cli.terminal import log, new_table, print_json
from incrt.report.outcomes import Material

_OF_STUDIES = ("variant", "τ_z [s]", "condition", "n", "success", "Δ% ± CI95", "compared with", "difference [Welch95]")
"""The columns of a study's table that a terminal has room for."""
_NAMES = ("variant", "condition", "compared with")


@dataclass(frozen=True)
class Report:
    """Make the report of the studies in a folder: one page that works offline, and its tables and figures as files.

    Runs that are not finished are left out; make it as often as you like while a study runs. A report's own folder
    holds all that is needed to make it once more, without the runs. Several folders are reported on as if one had
    held everything: incrt report results new-studies --out results adds what was run since to an earlier report.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """What incrt study run had as --out, or the folder of a report."""
    more: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """More of them, to be reported on together."""
    out: Path | None = None
    """Folder for the report, needed with several; else report in the folder of the studies, or the report's own."""
    title: str | None = None
    """Of the page; if not given, the (first) folder's name, or the title that the report had."""
    json: bool = False
    """Print the verdicts as JSON and nothing else."""

    def run(self) -> None:
        """Write it and print the verdicts."""
        from incrt.report.archive import is_archive, read_archive
        from incrt.report.build import PAGE, build_report
        from incrt.report.merging import merge
        from incrt.report.reading import read_folder

        if self.more and self.out is None:
            raise ValueError("--out must be given for a report on several folders, which has none of its own")
        if self.out is not None and (self.out / "studies").is_dir():
            raise ValueError(f"--out {self.out} is a folder of studies; give it a folder of its own")
        folders = (self.folder, *self.more)
        with log.status("reading the runs"):
            material = merge([(folder, read_folder(folder)) for folder in folders])
        if not material.outcomes:
            named = " and ".join(map(str, folders))
            raise ValueError(f"no run in {named} is finished yet; incrt study status {self.folder} says how far")
        if (
            self.out is not None
            and is_archive(self.out)
            and self.out.resolve() not in {each.resolve() for each in folders}
        ):
            _check_kept(self.out, read_archive(self.out), material)
        out = self.out or (self.folder if is_archive(self.folder) else self.folder / "report")
        with log.status("writing the report"):
            found = build_report(replace(material, title=self.title or material.title), out)
        _say_what_is_missing(material)
        rows = [
            {
                "preset": preset,
                "claim": verdict.claim.sentence,
                "n": verdict.n,
                "ours": verdict.ours,
                "paper": verdict.claim.paper,
                "verdict": verdict.judgement,
                "why": verdict.why,
                "open": verdict.is_open,
            }
            for preset, verdicts in found.items()
            for verdict in verdicts
        ]
        if self.json:
            print_json(rows)
            return
        table = new_table("Claims of the paper", ("preset", "verdict", "n"))
        table.add_column("claim")
        spoken = [row for row in rows if not row["open"]]
        for row in spoken:
            table.add_row(str(row["preset"]), str(row["verdict"]), str(row["n"]), str(row["claim"]))
        if spoken:
            Console().print(table)
        _print_own_studies(material)
        if len(spoken) < len(rows):
            log.print(f"claims that no run here speaks to: {len(rows) - len(spoken)} (--json has them)")
        log.print(f"wrote {out / PAGE}", markup=False, soft_wrap=True)


def _check_kept(out: Path, before: Material, material: Material) -> None:
    """Refuse to write over what a report has, perhaps as the only copy, and this one would not."""
    if gone := {each.key for each in before.outcomes} - {each.key for each in material.outcomes}:
        had = f"--out {out} holds a report with {len(gone)} tests of runs that are not in this one"
        raise ValueError(f"{had}; name {out} among the folders to add to it, or give another --out")


def _say_what_is_missing(material: Material) -> None:
    """Of each study: runs that are not there, or could not be read."""
    from incrt.report.selection import of_preset

    for study in material.studies:
        if missing := of_preset(material, study.preset).missing(study):
            log.print(f"study {study.name}, preset {study.preset}: {missing}", markup=False, soft_wrap=True)
        for line in (*failure_lines(dict(study.failed)), *(f"not shown: {words}" for words in study.unread)):
            log.print(line, markup=False, soft_wrap=True)


def _print_own_studies(material: Material) -> None:
    """A table for each study that did not come with the library, which no claim of the paper speaks of."""
    from incrt.report.selection import of_preset
    from incrt.report.tables import study_table
    from incrt.studies.study import declared_studies

    for record in material.studies:
        runs = of_preset(material, record.preset)
        if record.name in declared_studies() or not runs.of(record.name):
            continue
        found = study_table(runs, record)
        others = list(dict.fromkeys(record.compare.values()))
        left_out = {"compared with": len(others) < 2, "success": bool(record.conditions)}
        shown = [name for name in _OF_STUDIES if not left_out.get(name)]
        places = {column.heading: place for place, column in enumerate(found.columns) if column.heading in shown}
        against = f" Differences are against {' and '.join(others)}." if others else ""
        table = new_table(found.title, list(places), caption=record.about + against)
        for column in table.columns:
            if column.header in _NAMES:  # a name may take two lines, a figure is read in one
                column.no_wrap, column.overflow = False, "fold"
        for row in found.rows:
            table.add_row(*("-" if row.cells[place] is None else row.cells[place] for place in places.values()))
        Console().print(table)
