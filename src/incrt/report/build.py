"""The report of a folder of studies: the page, and beside it every table, figure and row as a file of its own."""

from pathlib import Path

from incrt.files import write_whole
from incrt.report.charts import make_charts
from incrt.report.charts.still import write_all_stills
from incrt.report.claims import judge
from incrt.report.claims.verdicts import Verdict
from incrt.report.outcomes import Material, Outcome, Reference, to_csv
from incrt.report.page import render
from incrt.report.tables import make_tables, table

PAGE = "report.html"
_FORMS = {".md": table.to_markdown, ".csv": table.to_csv, ".tex": table.to_latex}


def build_report(material: Material, title: str, out: Path) -> dict[str, list[Verdict]]:
    """Write the report into a folder; gives its verdicts by preset. The page needs nothing of the rest."""
    presets = list(dict.fromkeys(study.preset for study in material.studies))
    verdicts = {preset: judge(material, preset) for preset in presets}
    of_preset = {preset: make_tables(material, preset) for preset in presets}
    charts = {preset: make_charts(material, preset) for preset in presets}
    try:
        _write(out / "runs.csv", to_csv(material.outcomes, Outcome))
        _write(out / "references.csv", to_csv(material.references, Reference))
        for preset, found in of_preset.items():
            for each in found:
                for ending, form in _FORMS.items():
                    _write(out / "tables" / preset / f"{each.name}{ending}", form(each))
        folders = {preset: out / "figures" / preset for preset in presets}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        write_all_stills({folders[preset]: found for preset, found in charts.items()})
        _write(out / PAGE, render(title, verdicts, of_preset, charts, material))
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error}") from None
    return verdicts


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
