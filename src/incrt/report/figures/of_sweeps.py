"""The paper's Figures 6 and 7: one setting swept, means on the left and spreads on the right."""

from dataclasses import replace

from incrt.report import paper
from incrt.report.data import StudyRecord
from incrt.report.figures import parts
from incrt.report.figures.chart import Chart, Panel, Series
from incrt.report.figures.parts import PAPER, Place, View, at, regime_name
from incrt.report.figures.style import GREY
from incrt.report.selection import SOUND, deltas
from incrt.report.statistics import summarise
from incrt.report.wording import number

_STATIC_COLOUR = "#af2604"


def sweep_charts(view: View) -> list[Chart | None]:
    """Those for which there are runs."""
    return [
        _sweep(view, "k_max", "figure-6-cap", "The head-count cap K_max", "The paper's Figure 6"),
        _sweep(view, "grace", "figure-7-cooldown", "The cooldown between two events", "The paper's Figure 7"),
    ]


def _sweep(view: View, name: str, file: str, title: str, of_paper: str) -> Chart | None:
    if (study := view.study(name)) is None:
        return None
    cells = [view.everywhere(name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    if not any(map(deltas, cells)):
        return None
    return view.chart(
        file,
        title,
        f"{of_paper}. Left: mean Δ% with the 95 % Student interval, lower is better; small dots are seeds "
        f"({parts.counted(cells)}). Right: standard deviation of Δ% over the seeds. Hollow and hatched: the paper's "
        "own figures. Grey lines: the reference controllers.",
        (name,),
        (panel(view, study, tau_z) for tau_z in study.tau_zs for panel in (_means, _spreads)),
        2,
    )


def _means(view: View, study: StudyRecord, tau_z: float) -> Panel:
    ends = -0.5, len(study.variants) - 0.5
    series = parts.controller_lines(view, (study.name,), tau_z, *ends)
    static = paper.printed("static", paper.STATIC, tau_z)
    if static is not None and study.name == "k_max":  # as in the paper's figure
        label, line = f"{PAPER}{paper.STATIC}", (at(*ends), at(static.mean, static.mean))
        notes = (f"{label}: {number(static.mean)}",) * 2
        series.append(Series("line", *line, _STATIC_COLOUR, label, dash="dash", notes=notes, tau_z=tau_z))
    for index, variant in enumerate(study.variants):
        look, rows = view.look(variant), view.everywhere(study.name, variant, tau_z).filter(SOUND)
        place = Place(index, 0.3, tau_z, variant)
        series += parts.seed_dots(rows, "delta_pct", look.colour, place.moved(-0.22))
        marks = parts.mean_mark("points", deltas(rows), look, variant, place)
        series += [replace(mark, label="") for mark in marks]  # the axis names the variants
        if found := paper.printed(study.name, variant, tau_z):
            here = place.moved(0.22)
            series.append(parts.paper_mark("points", found.mean, found.half_width, GREY, PAPER + "mean", here))
    title, y_title = f"Mean, {regime_name(tau_z)}", parts.METRICS["delta_pct"]
    names = parts.ticks(study.variants)
    return Panel(title, "", y_title, tuple(series), x_ticks=names, x_range=ends, tau_z=tau_z)


def _spreads(view: View, study: StudyRecord, tau_z: float) -> Panel:
    series: list[Series] = []
    for index, variant in enumerate(study.variants):
        place = Place(index - 0.19, 0.36, tau_z, variant)
        spread = summarise(deltas(view.everywhere(study.name, variant, tau_z))).std
        if spread is not None:
            notes = (f"{variant}: {number(spread)}",)
            series.append(place.series("bar", spread, view.look(variant).colour, notes=notes))
        found = paper.printed(study.name, variant, tau_z)
        if found is not None and found.std is not None:
            here = replace(place, x=index + 0.19)
            series.append(parts.paper_mark("bar", found.std, None, GREY, PAPER + "spread", here))
    title, y_title = f"Spread, {regime_name(tau_z)}", "standard deviation of Δ%"
    return Panel(title, "", y_title, tuple(series), x_ticks=parts.ticks(study.variants), tau_z=tau_z)
