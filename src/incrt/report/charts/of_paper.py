"""The paper's Figures 3 to 5, with its own figures beside ours and the reference controllers in them."""

import numpy as np

from incrt.report import paper
from incrt.report.charts.chart import Chart, Dash, Panel, Series
from incrt.report.charts.colours import GREY, Look
from incrt.report.charts.pieces import (
    MEASURES,
    STEPS,
    Place,
    at,
    beside,
    counted,
    mean_mark,
    paper_mark,
    reference_lines,
    regime_name,
    seed_dots,
)
from incrt.report.charts.view import View
from incrt.report.outcomes import History, Outcome
from incrt.report.selection import COMPARISON, RUNTIME, deltas, representative
from incrt.report.wording import number

_PAPER = "the paper: "


def paper_charts(view: View) -> list[Chart]:
    """Those for which there are runs."""
    found = (comparison(view), strip(view), heads(view))
    return [chart for chart in found if chart is not None]


def comparison(view: View) -> Chart | None:
    """Figure 3: runtime and static in each regime."""
    statics = view.runs.statics()
    regimes = [tau_z for tau_z in view.runs.regimes(*COMPARISON) if _shown(view, statics, tau_z)]
    if not regimes:
        return None
    series: list[Series] = []
    for group, tau_z in enumerate(regimes):
        series += _regime_bars(view, statics, group, tau_z)
        series += reference_lines(view, COMPARISON, tau_z, group - 0.46, group + 0.46)
    names = [RUNTIME, *statics]
    cells = [view.runs.compared(name, tau_z) for name in names for tau_z in regimes]
    return Chart(
        "figure-3-comparison",
        "Runtime and static heads in each memory regime",
        "The paper's Figure 3. Mean Δ% with the 95 % Student interval over the seeds "
        f"({counted(cells)}); lower is better. Hatched: the paper's own figures; it gives no interval for static "
        "heads. Grey lines: the reference controllers of the same regime.",
        view.preset,
        view.runs.comparison(),
        (_by_regime(regimes, series),),
        1,
    )


def _shown(view: View, statics: list[str], tau_z: float) -> bool:
    return any(deltas(view.runs.compared(name, tau_z)) for name in (RUNTIME, *statics))


def _regime_bars(view: View, statics: list[str], group: int, tau_z: float) -> list[Series]:
    """Ours and the paper's: runtime, then static."""
    series: list[Series] = []
    count = len(statics) + (3 if statics else 2)

    def place(index: int, variant: str) -> Place:
        x, width = beside(group, index, count)
        return Place(x, 0.9 * width, tau_z, variant)

    def printed(index: int, study: str, variant: str, colour: str) -> None:
        if found := paper.printed(study, variant, tau_z):
            label = _PAPER + ("runtime" if variant == RUNTIME else "static")
            where = place(index, variant if variant == RUNTIME else "")
            series.append(paper_mark("bar", found.mean, found.half_width, colour, label, where))

    for index, variant in enumerate([RUNTIME, *statics]):
        own = index if variant == RUNTIME else index + 1
        sample = deltas(view.runs.compared(variant, tau_z))
        series += mean_mark("bar", sample, view.look(variant), variant, place(own, variant))
    printed(1, "main", RUNTIME, view.look(RUNTIME).colour)
    if statics:
        printed(count - 1, "static", paper.STATIC, GREY)
    return series


def strip(view: View) -> Chart | None:
    """Figure 4: a dot a seed, a bar at the mean."""
    found = {tau_z: view.runs.compared(RUNTIME, tau_z) for tau_z in view.runs.regimes(*COMPARISON)}
    found = {tau_z: runs for tau_z, runs in found.items() if deltas(runs)}
    if not found:
        return None
    look = view.look(RUNTIME)
    series: list[Series] = []
    for group, (tau_z, runs) in enumerate(found.items()):
        place = Place(group, 0.5, tau_z, RUNTIME)
        series += reference_lines(view, COMPARISON, tau_z, group - 0.42, group + 0.42)
        series += seed_dots([run for run in runs if run.is_sound], "delta_pct", look.colour, place, 7.0)
        mean = float(np.mean(deltas(runs)))
        note = f"mean, {regime_name(tau_z)}: {number(mean)}"
        bar = at(group - 0.3, group + 0.3), at(mean, mean)
        series.append(Series("line", *bar, look.colour, "mean", notes=(note, note), tau_z=tau_z, variant=RUNTIME))
        if printed := paper.printed("main", RUNTIME, tau_z):
            beside_it = Place(group + 0.36, 0.1, tau_z, RUNTIME)
            series.append(paper_mark("points", printed.mean, printed.half_width, GREY, _PAPER + "mean", beside_it))
    return Chart(
        "figure-4-seeds",
        "Runtime heads, seed by seed",
        f"The paper's Figure 4. Each dot is a seed ({counted(found.values())} a regime), the bar is the mean. "
        "Diamonds: the paper's means and intervals. Grey lines: the reference controllers.",
        view.preset,
        view.runs.comparison(),
        (_by_regime(list(found), series),),
        1,
    )


def heads(view: View) -> Chart | None:
    """Figure 5: K(t) of a representative seed of each regime."""
    place = view.growing()
    if place is None:
        return None
    study, variant = place
    panels = []
    for tau_z in view.runs.regimes(study):
        found = [run for run in view.sound(study, variant, tau_z) if run.folder in view.material.histories]
        run = representative(found)
        if run is not None:
            panels.append(_heads_panel(run, view.material.histories[run.folder], view.look(variant)))
    if not panels:
        return None
    return Chart(
        "figure-5-heads",
        "Active heads K(t) while training",
        f"The paper's Figure 5. Of each regime the seed with the median Δ% ({variant} of study {study}). Dashed: a "
        "head grows; dotted: one is pruned. Grey, where the training is as long: the paper's schedule, from one head "
        "to its cap of eight.",
        view.preset,
        (study,),
        tuple(panels),
        3,
    )


def _heads_panel(run: Outcome, history: History, look: Look) -> Panel:
    counts = np.concatenate([[history.k_init], history.event_heads, history.event_heads[-1:]])
    steps = np.concatenate([[0.0], history.event_steps, [float(run.steps)]])[: len(counts)]
    if not len(history.event_steps):
        steps, counts = at(0, run.steps), at(history.k_init, history.k_init)
    top = float(max(*counts, run.k_max)) + 0.6
    series = [
        *_events(run, history, "grow", "a head grows", "dash", top),
        *_events(run, history, "prune", "a head is pruned", "dot", top),
        *_paper_schedule(run),
        Series("step", steps, counts, look.colour, "K(t)", variant=run.variant),
    ]
    title = f"{regime_name(run.tau_z)}, seed {run.seed}"
    return Panel(
        title, STEPS, "heads K", tuple(series), x_range=(0, run.steps), y_range=(0, top), y_whole=True, tau_z=run.tau_z
    )


def _paper_schedule(run: Outcome) -> list[Series]:
    """K(t) as the paper has it in every regime; nothing for runs that are not as long."""
    if run.steps < paper.GROWTHS[-1]:
        return []
    steps, counts = at(0, *paper.GROWTHS, run.steps), at(*range(1, len(paper.GROWTHS) + 2), len(paper.GROWTHS) + 1)
    return [Series("step", steps, counts, GREY, _PAPER + "K(t)", dash="dashdot", variant=run.variant)]


def _events(run: Outcome, history: History, action: str, label: str, dash: Dash, top: float) -> list[Series]:
    """A line from below to the top at each event of a kind."""
    happened = zip(history.event_steps, history.event_actions, strict=True)
    events = [step for step, what in happened if what == action]
    if not events:
        return []
    x, y = np.repeat(np.array(events, float), 3), np.tile([0.0, top, np.nan], len(events))
    return [Series("line", x, y, GREY, label, dash=dash, opacity=0.6, variant=run.variant)]


def _by_regime(regimes: list[float], series: list[Series]) -> Panel:
    """Delta% with a place for each regime."""
    ticks = tuple((float(group), regime_name(tau_z)) for group, tau_z in enumerate(regimes))
    ends = -0.55, len(regimes) - 0.45
    return Panel("", "memory regime", MEASURES["delta_pct"], tuple(series), x_ticks=ticks, x_range=ends)
