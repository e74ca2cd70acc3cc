"""The report: the page, beside it every table and figure as a file of its own, and what they all were made from."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from incrt.config.presets import PRESETS
from incrt.report.archive import write_archive
from incrt.report.charts import make_charts
from incrt.report.charts.still import STILLS, write_all_stills
from incrt.report.claims import judge
from incrt.report.claims.verdicts import Verdict
from incrt.report.drawn import only_drawn
from incrt.report.outcomes import Material, Outcome
from incrt.report.page import render
from incrt.report.selection import deltas, diverged, of_preset
from incrt.report.statistics import rate, summarise
from incrt.report.tables import make_tables, table
from incrt.report.tables.of_claims import claims_table
from incrt.report.tables.of_learning import learning_tables, rank_table
from incrt.report.tables.rows import mean_of
from incrt.storage.atomic import write_whole

PAGE = "report.html"
_FORMS = {".md": table.to_markdown, ".csv": table.to_csv, ".tex": table.to_latex}


def build_report(material: Material, out: Path) -> dict[str, list[Verdict]]:
    """Write the report into a folder; gives its verdicts by preset. The page needs nothing of the rest."""
    material = only_drawn(material)
    presets = list(dict.fromkeys(study.preset for study in material.studies))
    verdicts = {preset: judge(material, preset) for preset in presets}
    tables = {preset: make_tables(material, preset) for preset in presets}
    charts = {preset: make_charts(material, preset) for preset in presets}
    try:
        write_archive(material, out)  # first: what is cut off can then be made again
        _write(out / PAGE, render(material.title, verdicts, tables, charts, material))
        _write(out / "cells.csv", _cells(material))
        written = set()
        for preset, found in tables.items():
            others = [claims_table(verdicts[preset], preset), *learning_tables(material, preset)]
            others += [ranks] if (ranks := rank_table(material, preset)) else []
            for each in (*found, *others):  # the page shows these as verdicts and curves
                for ending, form in _FORMS.items():
                    _write(path := out / "tables" / preset / f"{each.name}{ending}", form(each))
                    written.add(path)
        folders = {preset: out / "figures" / preset for preset in presets}
        for preset, folder in folders.items():
            folder.mkdir(parents=True, exist_ok=True)
            written |= {folder / f"{each.name}{ending}" for each in charts[preset] for ending in STILLS}
        write_all_stills({folders[preset]: found for preset, found in charts.items()})
        _remove_others(out, written)
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error}") from None
    return verdicts


def _remove_others(out: Path, written: set[Path]) -> None:
    """Tables and figures of an earlier report that had more of them would pass for this one's."""
    for folder, endings in (("tables", _FORMS), ("figures", STILLS)):
        for preset in PRESETS:
            for path in (out / folder / preset).glob("*"):
                if path.suffix in endings and path not in written:
                    path.unlink()


def _cells(material: Material) -> str:
    """The statistics of every variant, regime and condition as numbers, a line each."""
    lines = []
    for preset in dict.fromkeys(study.preset for study in material.studies):
        runs = of_preset(material, preset)
        for place in dict.fromkeys((each.study, each.variant, each.tau_z, each.condition) for each in runs.outcomes):
            about = dict(zip(("study", "variant", "tau_z", "condition"), place, strict=True))
            lines.append({"preset": preset, **about, **_figures(runs.cell(*place))})
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _figures(found: Sequence[Outcome]) -> dict[str, float | None]:
    """Of runs that differ in their seeds alone; the summary is that of Delta%."""
    succeeded, sound = rate(sum(each.success for each in found), len(found)), [each for each in found if each.is_sound]
    return {
        "runs": len(found),
        "diverged": diverged(found),
        "successes": succeeded.count,
        "success_rate": succeeded.value,
        "wilson_low": succeeded.low,
        "wilson_high": succeeded.high,
        **vars(summarise(deltas(found))),
        "headroom_closed": mean_of([each.headroom_closed for each in sound]),
        "max_error": mean_of([each.max_error for each in sound]),
        "torque_tv": mean_of([each.torque_tv for each in sound]),
    }


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
