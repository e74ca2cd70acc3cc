"""The paper's Figures 6 and 7: one setting swept, means on the left and spreads on the right."""

from incrt.report import paper
from incrt.report.data import StudyRecord
from incrt.report.figures import marks
from incrt.report.figures.chart import Chart, View, regime_name
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.marks import METRICS, PAPER
from incrt.report.figures.style import GREY
from incrt.report.selection import SOUND, deltas
from incrt.report.statistics import summarise
from incrt.report.wording import number

_STATIC_COLOUR = "#af2604"
_SWEEPS = {
    "k_max": ("figure-6-cap", "The head-count cap K_max", "The paper's Figure 6"),
    "grace": ("figure-7-cooldown", "The cooldown between two events", "The paper's Figure 7"),
}
"""Of each study the name of the figure, its title, and which it is in the paper."""


def sweep_charts(view: View) -> list[Chart]:
    """Those whose studies are here."""
    return [_sweep(view, study, *about) for name, about in _SWEEPS.items() if (study := view.study(name))]


def _sweep(view: View, study: StudyRecord, name: str, title: str, of_paper: str) -> Chart:
    cells = [view.everywhere(study.name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    drawing = Drawing(title, columns=2)
    if any(map(deltas, cells)):
        for tau_z in study.tau_zs:
            _means(drawing, view, study, tau_z)
            _spreads(drawing, view, study, tau_z)
    caption = (
        f"{of_paper}. Left: mean Δ% with the 95 % Student interval, lower is better; small dots are seeds "
        f"({marks.counted(cells)}). Right: standard deviation of Δ% over the seeds. Hollow and hatched: the paper's "
        "own figures. Grey lines: the reference controllers."
    )
    return Chart(name, caption, drawing, view.preset, [study.name], study.variants, study.tau_zs)


def _means(drawing: Drawing, view: View, study: StudyRecord, tau_z: float) -> None:
    regime = regime_name(tau_z)
    panel = drawing.panel(f"Mean, {regime}", "", METRICS["delta_pct"], study.variants)
    left, right = panel.axes.get_xlim()
    marks.controller_lines(panel, view, (study.name,), tau_z, left, right)
    static = paper.printed("static", paper.STATIC, tau_z)
    if static is not None and study.name == "k_max":  # as in the paper's figure
        label = f"{PAPER}{paper.STATIC}"
        panel.axes.plot([left, right], [static.mean] * 2, color=_STATIC_COLOUR, linestyle="--", label=label)
        panel.numbers.append((label, number(static.mean)))
    for x, variant in enumerate(study.variants):
        look, rows = view.look(variant), view.everywhere(study.name, variant, tau_z).filter(SOUND)
        marks.seed_dots(panel, x - 0.22, 0.3, rows, "delta_pct", look.colour)
        marks.mean_mark(panel, x, deltas(rows), look, f"{variant}, {regime}")
        if found := paper.printed(study.name, variant, tau_z):
            marks.paper_mark(panel, x + 0.22, found, f"{variant}, {regime}", PAPER + "mean")


def _spreads(drawing: Drawing, view: View, study: StudyRecord, tau_z: float) -> None:
    panel = drawing.panel(f"Spread, {regime_name(tau_z)}", "", "standard deviation of Δ%", study.variants)
    for x, variant in enumerate(study.variants):
        spread = summarise(deltas(view.everywhere(study.name, variant, tau_z))).std
        if spread is not None:
            marks.mark(panel, x - 0.19, spread, None, view.look(variant).colour, "", width=0.36)
            panel.numbers.append((variant, number(spread)))
        found = paper.printed(study.name, variant, tau_z)
        if found is not None and found.std is not None:
            marks.mark(panel, x + 0.19, found.std, None, GREY, PAPER + "spread", width=0.36, hollow=True)
            panel.numbers.append((f"{PAPER}spread, {variant}", number(found.std)))
