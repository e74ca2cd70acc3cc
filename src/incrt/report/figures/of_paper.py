"""The paper's Figures 3 to 5, with its own numbers beside ours and the reference controllers in them."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from incrt.report import paper
from incrt.report.data import History
from incrt.report.figures import marks
from incrt.report.figures.chart import STEPS, Chart, View, regime_name
from incrt.report.figures.drawing import Drawing, Panel
from incrt.report.figures.marks import METRICS, PAPER
from incrt.report.figures.style import GREY
from incrt.report.schema import Row
from incrt.report.selection import COMPARISON, RUNTIME, SOUND, deltas, representative
from incrt.report.wording import number


def paper_charts(view: View) -> list[Chart]:
    """Figure 5 only where heads grew."""
    charts, place = [_comparison(view), _seeds(view)], view.growing()
    return [*charts, _heads(view, *place)] if place else charts


def _comparison(view: View) -> Chart:
    """Figure 3: runtime and static in each regime."""
    names = [RUNTIME, *view.statics()]
    found = {tau_z: [view.compared(name, tau_z) for name in names] for tau_z in view.regimes(*COMPARISON)}
    found = {tau_z: cells for tau_z, cells in found.items() if any(map(deltas, cells))}
    drawing = Drawing("Runtime and static heads in each memory regime")
    panel = _by_regime(drawing, found)
    count = len(names) + (2 if len(names) > 1 else 1)
    own = [0, *range(2, count)]  # beside the runtime bar stands the paper's, and behind all its static one
    for group, (tau_z, cells) in enumerate(found.items()):
        places = [marks.beside(group, index, count) for index in range(count)]
        for index, variant, cell in zip(own, names, cells, strict=False):
            (x, width), what = places[index], f"{variant}, {regime_name(tau_z)}"
            marks.mean_mark(panel, x, deltas(cell), view.look(variant), what, variant, 0.9 * width)
        printed = [(1, "main", RUNTIME, view.look(RUNTIME).colour)]
        printed += [(count - 1, "static", paper.STATIC, GREY)] if len(names) > 1 else []
        for index, study, variant, colour in printed:
            if theirs := paper.printed(study, variant, tau_z):
                (x, width), label = places[index], PAPER + ("runtime" if variant == RUNTIME else "static")
                marks.paper_mark(panel, x, theirs, regime_name(tau_z), label, 0.9 * width, colour)
        marks.controller_lines(panel, view, COMPARISON, tau_z, group - 0.46, group + 0.46)
    seeds = marks.counted(cell for cells in found.values() for cell in cells)
    caption = (
        f"The paper's Figure 3. Mean Δ% with the 95 % Student interval over the seeds ({seeds}); lower is better. "
        "Hatched: the paper's own figures; it gives no interval for static heads. Grey lines: the reference "
        "controllers of the same regime."
    )
    return Chart("figure-3-comparison", caption, drawing, view.preset, view.comparison(), names, [*found])


def _seeds(view: View) -> Chart:
    """Figure 4: a dot a seed, a bar at the mean."""
    found = {tau_z: view.compared(RUNTIME, tau_z) for tau_z in view.regimes(*COMPARISON)}
    found = {tau_z: rows for tau_z, rows in found.items() if deltas(rows)}
    drawing = Drawing("Runtime heads, seed by seed")
    panel, colour = _by_regime(drawing, found), view.look(RUNTIME).colour
    for group, (tau_z, rows) in enumerate(found.items()):
        marks.controller_lines(panel, view, COMPARISON, tau_z, group - 0.42, group + 0.42)
        marks.seed_dots(panel, group, 0.5, rows.filter(SOUND), "delta_pct", colour, 5.25)
        mean = float(np.mean(deltas(rows)))
        panel.axes.plot([group - 0.3, group + 0.3], [mean, mean], color=colour, label="mean")
        panel.numbers.append((f"mean, {regime_name(tau_z)}", number(mean)))
        if printed := paper.printed("main", RUNTIME, tau_z):
            marks.paper_mark(panel, group + 0.36, printed, regime_name(tau_z), PAPER + "mean")
    caption = (
        f"The paper's Figure 4. Each dot is a seed ({marks.counted(found.values())} a regime), the bar is the mean. "
        "Diamonds: the paper's means and intervals. Grey lines: the reference controllers."
    )
    return Chart("figure-4-seeds", caption, drawing, view.preset, view.comparison(), [RUNTIME], [*found])


def _by_regime(drawing: Drawing, regimes: Iterable[float]) -> Panel:
    """Delta% with a place for each regime."""
    return drawing.panel("", "memory regime", METRICS["delta_pct"], [*map(regime_name, regimes)])


def _heads(view: View, study: str, variant: str) -> Chart:
    """Figure 5: K(t) of a representative seed of each regime."""
    drawing = Drawing("Active heads K(t) while training", columns=3)
    regimes = view.regimes(study)
    for tau_z in regimes:
        if run := representative(view.with_history(view.sound(study, variant, tau_z))):
            axes = drawing.panel(f"{regime_name(tau_z)}, seed {run['seed']}", STEPS, "heads K").axes
            _heads_over_time(axes, run, view.dataset.histories[run["folder"]], view.look(variant).colour)
    caption = (
        f"The paper's Figure 5. Of each regime the seed with the median Δ% ({variant} of study {study}). Dashed: a "
        "head grows; dotted: one is pruned. Grey, where the training is as long: the paper's schedule, from one head "
        "to its cap of eight."
    )
    return Chart("figure-5-heads", caption, drawing, view.preset, [study], [variant], regimes)


def _heads_over_time(axes: Axes, run: Row, history: History, colour: str) -> None:
    """K(t) of one run and when heads grew and were pruned, before the paper's schedule."""
    last = run["steps"]
    counts = [history.k_init, *history.event_heads]
    top = max(*counts, run["k_max"]) + 0.6
    for action, label, dash in (("grow", "a head grows", "--"), ("prune", "a head is pruned", ":")):
        for step in history.event_steps[np.array(history.event_actions, str) == action]:
            axes.plot([step, step], [0, top], color=GREY, linestyle=dash, alpha=0.6, label=label)
    if last >= paper.GROWTHS[-1]:
        schedule = range(1, len(paper.GROWTHS) + 2)
        axes.step(
            [0, *paper.GROWTHS, last],
            [*schedule, schedule[-1]],
            color=GREY,
            where="post",
            linestyle="-.",
            label=f"{PAPER}K(t)",
        )
    axes.step([0, *history.event_steps, last], [*counts, counts[-1]], color=colour, where="post", label="K(t)")
    axes.set_xlim(0, last)
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
