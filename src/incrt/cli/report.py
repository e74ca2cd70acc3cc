"""``incrt report``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from incrt.cli.study_display import failure_lines
from incrt.cli.terminal import log, new_table, print_json

if TYPE_CHECKING:  # polars takes a while to import, and other commands do without it
    from incrt.report.data import Dataset, StudyRecord
    from incrt.report.selection import Runs

_SHOWN = ("variant", "τ_z [s]", "condition", "n", "success", "Δ% ± CI95", "compared with", "difference [Welch95]")
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
        from incrt.report.archive import is_archive
        from incrt.report.build import PAGE, build_report
        from incrt.report.merging import merge
        from incrt.report.reading import read_folder
        from incrt.report.selection import Runs

        if self.more and self.out is None:
            raise ValueError("--out must be given for a report on several folders, which has none of its own")
        if self.out is not None and (self.out / "studies").is_dir():
            raise ValueError(f"--out {self.out} is a folder of studies; give it a folder of its own")
        folders = (self.folder, *self.more)
        with log.status("reading the runs"):
            dataset = merge([(folder, read_folder(folder)) for folder in folders])
        if not len(dataset.runs):
            named = " and ".join(map(str, folders))
            raise ValueError(f"no run in {named} is finished yet; incrt study status {self.folder} says how far")
        out = self.out or (self.folder if is_archive(self.folder) else self.folder / "report")
        _check_kept(out, folders, dataset)
        with log.status("writing the report"):
            verdicts = build_report(replace(dataset, title=self.title or dataset.title), out)
        presets = {preset: Runs(dataset, preset) for preset in dataset.presets}
        for study in dataset.studies:
            _say_what_is_missing(presets[study.preset], study)
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
            for preset, found in verdicts.items()
            for verdict in found
        ]
        if self.json:
            print_json(rows)
            return
        table = new_table("Claims of the paper", ("preset", "verdict", "n"))
        table.add_column("claim")
        spoken = [row for row in rows if not row["open"]]
        for row in spoken:
            table.add_row(*(str(row[name]) for name in ("preset", "verdict", "n", "claim")))
        if spoken:
            Console().print(table)
        for study in dataset.studies:
            _print_own_study(presets[study.preset], study)
        if len(spoken) < len(rows):
            log.print(f"claims that no run here speaks to: {len(rows) - len(spoken)} (--json has them)")
        log.print(f"wrote {out / PAGE}", markup=False, soft_wrap=True)


def _check_kept(out: Path, folders: Sequence[Path], dataset: "Dataset") -> None:
    """Refuse to write over what a report has, perhaps as the only copy, and this one would not."""
    from incrt.report.archive import is_archive, read_archive
    from incrt.report.schema import RUN_KEY

    if not is_archive(out) or out.resolve() in {each.resolve() for each in folders}:
        return
    if gone := len(read_archive(out).runs.join(dataset.runs, on=RUN_KEY, how="anti")):
        had = f"--out {out} holds a report with {gone} tests of runs that are not in this one"
        raise ValueError(f"{had}; name {out} among the folders to add to it, or give another --out")


def _say_what_is_missing(runs: "Runs", study: "StudyRecord") -> None:
    """Of a study: runs that are not there, or could not be read."""
    if missing := runs.missing(study):
        log.print(f"study {study.name}, preset {study.preset}: {missing}", markup=False, soft_wrap=True)
    for line in (*failure_lines(dict(study.failed)), *(f"not shown: {words}" for words in study.unread)):
        log.print(line, markup=False, soft_wrap=True)


def _print_own_study(runs: "Runs", study: "StudyRecord") -> None:
    """The table of a study that did not come with the library, which no claim of the paper speaks of."""
    from incrt.report.tables.of_studies import study_table
    from incrt.studies.study import declared_studies

    if study.name in declared_studies() or not len(runs.of(study.name)):
        return
    found, others = study_table(runs, study), list(dict.fromkeys(study.compare.values()))
    left_out = {"compared with": len(others) < 2, "success": bool(study.conditions)}
    shown = [name for name in found.headings if name in _SHOWN and not left_out.get(name)]
    against = f" Differences are against {' and '.join(others)}." if others else ""
    table = new_table(found.title, shown, caption=study.about + against)
    for column in table.columns:
        if column.header in _NAMES:  # a name may take two lines, a number is read in one
            column.no_wrap, column.overflow = False, "fold"
    for row in found.rows:
        table.add_row(*("-" if (cell := row.cells.get(name)) is None else cell for name in shown))
    Console().print(table)
