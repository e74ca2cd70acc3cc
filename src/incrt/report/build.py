"""The report of a folder of studies: the page, and beside it every table, figure and row as a file of its own."""

import csv
import io
from pathlib import Path

from incrt.files import write_whole
from incrt.report.charts import make_charts
from incrt.report.charts.still import write_all_stills
from incrt.report.claims import judge
from incrt.report.claims.verdicts import Verdict
from incrt.report.outcomes import Material, Outcome, Reference, to_csv
from incrt.report.page import render
from incrt.report.selection import deltas, diverged, of_preset
from incrt.report.statistics import rate, summarise
from incrt.report.tables import make_tables, table

PAGE = "report.html"
_FORMS = {".md": table.to_markdown, ".csv": table.to_csv, ".tex": table.to_latex}


def build_report(material: Material, title: str, out: Path) -> dict[str, list[Verdict]]:
    """Write the report into a folder; gives its verdicts by preset. The page needs nothing of the rest."""
    presets = list(dict.fromkeys(study.preset for study in material.studies))
    verdicts = {preset: judge(material, preset) for preset in presets}
    tables = {preset: make_tables(material, preset) for preset in presets}
    charts = {preset: make_charts(material, preset) for preset in presets}
    try:
        _write(out / PAGE, render(title, verdicts, tables, charts, material))
        _write(out / "runs.csv", to_csv(material.outcomes, Outcome))
        _write(out / "references.csv", to_csv(material.references, Reference))
        _write(out / "cells.csv", _cells(material))
        for preset, found in tables.items():
            for each in found:
                for ending, form in _FORMS.items():
                    _write(out / "tables" / preset / f"{each.name}{ending}", form(each))
        folders = {preset: out / "figures" / preset for preset in presets}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        write_all_stills({folders[preset]: found for preset, found in charts.items()})
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error}") from None
    return verdicts


def _cells(material: Material) -> str:
    """The statistics of every variant, regime and condition as numbers, a line each."""
    lines = []
    for preset in dict.fromkeys(study.preset for study in material.studies):
        runs = of_preset(material, preset)
        for place in dict.fromkeys((each.study, each.variant, each.tau_z, each.condition) for each in runs.outcomes):
            found = runs.cell(*place)
            succeeded = rate(sum(each.success for each in found), len(found))
            about = dict(zip(("study", "variant", "tau_z", "condition"), place, strict=True))
            counts = {"runs": len(found), "diverged": diverged(found), "successes": succeeded.count}
            wilson = {"wilson_low": succeeded.low, "wilson_high": succeeded.high}
            lines.append({"preset": preset, **about, **counts, **wilson, **vars(summarise(deltas(found)))})
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
