"""The report: the page, beside it every table and figure as a file of its own, and what they all were made from."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from incrt.config.presets import PRESETS
from incrt.report.archive import write_archive
from incrt.report.claims import judge
from incrt.report.claims.rules import Verdict
from incrt.report.data import Dataset
from incrt.report.drawn import only_drawn
from incrt.report.figures.all_charts import make_charts
from incrt.report.page import render
from incrt.report.schema import to_csv
from incrt.report.selection import SOUND, Runs, deltas, diverged, mean_of, total
from incrt.report.statistics import rate, summarise
from incrt.report.tables import make_more_tables, make_tables, table
from incrt.storage.atomic import write_whole

PAGE = "report.html"
_SUMMARY = ("n", "mean", "std", "t_low", "t_high", "median", "iqm", "iqm_low", "iqm_high")
_FORMS = {".md": table.to_markdown, ".csv": table.to_csv, ".tex": table.to_latex}


def build_report(dataset: Dataset, out: Path) -> dict[str, list[Verdict]]:
    """Write the report into a folder; gives its verdicts by preset. The page needs nothing of the rest."""
    dataset = only_drawn(dataset)
    runs = {preset: Runs(dataset, preset) for preset in dataset.presets}
    verdicts = {preset: judge(each) for preset, each in runs.items()}
    tables = {preset: make_tables(each) for preset, each in runs.items()}
    charts = {preset: make_charts(each) for preset, each in runs.items()}
    try:
        write_archive(dataset, out)  # first: what is cut off can then be made again
        files = {
            out / PAGE: render(dataset, verdicts, tables, charts).encode(),
            out / "cells.csv": _cells(runs).encode(),
        }
        for preset, each in runs.items():
            for made in (*tables[preset], *make_more_tables(each, verdicts[preset])):
                for ending, form in _FORMS.items():
                    files[out / "tables" / preset / f"{made.name}{ending}"] = form(made).encode()
            for chart in charts[preset]:
                files[out / "figures" / preset / f"{chart.name}.png"] = chart.drawing.picture.png
                files[out / "figures" / preset / f"{chart.name}.svg"] = chart.drawing.picture.svg
        for path, content in files.items():
            write_whole(path, content)
        _remove_others(out, files)
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error}") from None
    return verdicts


def _remove_others(out: Path, files: Mapping[Path, bytes]) -> None:
    """Tables and figures of an earlier report that had more of them would pass for this one's."""
    for folder, endings in (("tables", tuple(_FORMS)), ("figures", (".png", ".svg"))):
        for preset in PRESETS:
            for path in (out / folder / preset).glob("*"):
                if path.suffix in endings and path not in files:
                    path.unlink()


def _cells(presets: Mapping[str, Runs]) -> str:
    """The statistics of every variant, regime and condition as numbers, a line each."""
    lines = []
    for preset, runs in presets.items():
        for place, found in runs.cells.items():
            about = dict(zip(("study", "variant", "tau_z", "condition"), place, strict=True))
            lines.append({"preset": preset, **about, **_metrics(found)})
    return to_csv(pl.DataFrame(lines, infer_schema_length=None))


def _metrics(found: pl.DataFrame) -> dict[str, float | None]:
    """Of runs that differ in their seeds alone; the summary is that of Delta%."""
    succeeded, sound = rate(total(found, "success"), len(found)), found.filter(SOUND)
    summary = summarise(deltas(found))
    return {
        "runs": len(found),
        "diverged": diverged(found),
        "successes": succeeded.count,
        "success_rate": succeeded.value,
        "wilson_low": succeeded.low,
        "wilson_high": succeeded.high,
        **{name: getattr(summary, name) for name in _SUMMARY},
        **{name: mean_of(sound[name]) for name in ("headroom_closed", "max_error", "torque_tv")},
    }
