"""The paper's Figures 6 and 7: one setting swept, means on the left and spreads on the right."""

from dataclasses import replace

from incrt.report import paper
from incrt.report.charts.chart import Chart, Panel, Series
from incrt.report.charts.colours import GREY
from incrt.report.charts.pieces import (
    MEASURES,
    Place,
    at,
    counted,
    mean_mark,
    paper_mark,
    reference_lines,
    regime_name,
    seed_dots,
)
from incrt.report.charts.view import View, regimes
from incrt.report.outcomes import StudyRecord
from incrt.report.selection import deltas
from incrt.report.statistics import summarise
from incrt.report.wording import number

_STATIC_COLOUR = "#af2604"
_SWEEPS = (
    ("k_max", "figure-6-cap", "The head-count cap K_max", "The paper's Figure 6"),
    ("grace", "figure-7-cooldown", "The cooldown between two events", "The paper's Figure 7"),
)


def sweep_charts(view: View) -> list[Chart]:
    """Those for which there are runs."""
    found = (_sweep(view, *each) for each in _SWEEPS)
    return [chart for chart in found if chart is not None]


def _sweep(view: View, study: str, name: str, title: str, of_paper: str) -> Chart | None:
    record = view.runs.study(study)
    if record is None:
        return None
    cells = [view.runs.everywhere(study, variant, tau_z) for variant in record.variants for tau_z in regimes(record)]
    if not any(map(deltas, cells)):
        return None
    return Chart(
        name,
        title,
        f"{of_paper}. Left: mean Δ% with the 95 % Student interval, lower is better; small dots are seeds "
        f"({counted(cells)}). Right: standard deviation of Δ% over the seeds. Hollow and hatched: the paper's own "
        "figures. Grey lines: the reference controllers.",
        view.preset,
        (study,),
        tuple(panel(view, record, tau_z) for tau_z in regimes(record) for panel in (_means, _spreads)),
        2,
    )


def _means(view: View, record: StudyRecord, tau_z: float) -> Panel:
    ends = -0.5, len(record.variants) - 0.5
    series = reference_lines(view, (record.name,), tau_z, *ends)
    static = paper.printed("static", paper.STATIC, tau_z)
    if static is not None and record.name == "k_max":  # as in the paper's figure
        label = f"the paper: {paper.STATIC}"
        note = f"{label}: {number(static.mean)}"
        line = at(*ends), at(static.mean, static.mean)
        series.append(Series("line", *line, _STATIC_COLOUR, label, dash="dash", notes=(note, note), tau_z=tau_z))
    for index, variant in enumerate(record.variants):
        look, runs = view.look(variant), view.everywhere(record.name, variant, tau_z)
        place = Place(index, 0.3, tau_z, variant)
        series += seed_dots(runs, "delta_pct", look.colour, replace(place, x=index - 0.22))
        # The axis names the variants.
        marks = mean_mark("points", deltas(runs), look, variant, place)
        series += [replace(mark, label="") for mark in marks]
        if found := paper.printed(record.name, variant, tau_z):
            beside = replace(place, x=index + 0.22)
            series.append(paper_mark("points", found.mean, found.half_width, GREY, "the paper: mean", beside))
    title, y_title = f"Mean, {regime_name(tau_z)}", MEASURES["delta_pct"]
    return Panel(title, "", y_title, tuple(series), x_ticks=_ticks(record), x_range=ends, tau_z=tau_z)


def _spreads(view: View, record: StudyRecord, tau_z: float) -> Panel:
    series: list[Series] = []
    for index, variant in enumerate(record.variants):
        place = Place(index - 0.19, 0.36, tau_z, variant)
        spread = summarise(deltas(view.everywhere(record.name, variant, tau_z))).std
        if spread is not None:
            bar = at(place.x), at(spread), view.look(variant).colour
            note = f"{variant}: {number(spread)}"
            series.append(Series("bar", *bar, width=0.36, notes=(note,), tau_z=tau_z, variant=variant))
        found = paper.printed(record.name, variant, tau_z)
        if found is not None and found.std is not None:
            beside = replace(place, x=index + 0.19)
            series.append(paper_mark("bar", found.std, None, GREY, "the paper: spread", beside))
    title, y_title = f"Spread, {regime_name(tau_z)}", "standard deviation of Δ%"
    return Panel(title, "", y_title, tuple(series), x_ticks=_ticks(record), tau_z=tau_z)


def _ticks(record: StudyRecord) -> tuple[tuple[float, str], ...]:
    return tuple((float(index), variant) for index, variant in enumerate(record.variants))
