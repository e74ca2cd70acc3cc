"""The paper's Figures 3 to 5, with its own numbers beside ours and the reference controllers in them."""

from collections.abc import Sequence

import numpy as np

from incrt.report import paper
from incrt.report.data import History
from incrt.report.figures import parts
from incrt.report.figures.chart import Chart, Dash, Panel, Series
from incrt.report.figures.parts import PAPER, STEPS, Place, View, at, regime_name
from incrt.report.figures.style import GREY, Look
from incrt.report.schema import Row
from incrt.report.selection import COMPARISON, RUNTIME, SOUND, deltas, representative
from incrt.report.wording import number


def paper_charts(view: View) -> list[Chart | None]:
    """Those for which there are runs."""
    return [_comparison(view), _seeds(view), _heads(view)]


def _comparison(view: View) -> Chart | None:
    """Figure 3: runtime and static in each regime."""
    names = [RUNTIME, *view.statics()]
    found = {tau_z: [view.compared(name, tau_z) for name in names] for tau_z in view.regimes(*COMPARISON)}
    found = {tau_z: cells for tau_z, cells in found.items() if any(map(deltas, cells))}
    series: list[Series] = []
    for group, (tau_z, cells) in enumerate(found.items()):
        count = len(names) + (2 if len(names) > 1 else 1)
        places = [parts.beside(group, index, count) for index in range(count)]
        own = [0, *range(2, count)]  # beside the runtime bar stands the paper's, and behind all its static one
        for index, variant, cell in zip(own, names, cells, strict=False):
            place = Place(places[index][0], 0.9 * places[index][1], tau_z, variant)
            series += parts.mean_mark("bar", deltas(cell), view.look(variant), variant, place)
        printed = [(1, "main", RUNTIME, view.look(RUNTIME).colour)]
        printed += [(count - 1, "static", paper.STATIC, GREY)] if len(names) > 1 else []
        for index, study, variant, colour in printed:
            if theirs := paper.printed(study, variant, tau_z):
                place = Place(places[index][0], 0.9 * places[index][1], tau_z, RUNTIME if variant == RUNTIME else "")
                label = PAPER + ("runtime" if variant == RUNTIME else "static")
                series.append(parts.paper_mark("bar", theirs.mean, theirs.half_width, colour, label, place))
        series += parts.controller_lines(view, COMPARISON, tau_z, group - 0.46, group + 0.46)
    every_cell = [cell for cells in found.values() for cell in cells]
    return view.chart(
        "figure-3-comparison",
        "Runtime and static heads in each memory regime",
        "The paper's Figure 3. Mean Δ% with the 95 % Student interval over the seeds "
        f"({parts.counted(every_cell)}); lower is better. Hatched: the paper's own figures; it gives no interval for "
        "static heads. Grey lines: the reference controllers of the same regime.",
        view.comparison(),
        (_by_regime(list(found), series),),
        1,
    )


def _seeds(view: View) -> Chart | None:
    """Figure 4: a dot a seed, a bar at the mean."""
    found = {tau_z: view.compared(RUNTIME, tau_z) for tau_z in view.regimes(*COMPARISON)}
    found = {tau_z: rows for tau_z, rows in found.items() if deltas(rows)}
    colour = view.look(RUNTIME).colour
    series: list[Series] = []
    for group, (tau_z, rows) in enumerate(found.items()):
        place = Place(group, 0.5, tau_z, RUNTIME)
        series += parts.controller_lines(view, COMPARISON, tau_z, group - 0.42, group + 0.42)
        series += parts.seed_dots(rows.filter(SOUND), "delta_pct", colour, place, 7.0)
        mean = float(np.mean(deltas(rows)))
        notes = (f"mean, {regime_name(tau_z)}: {number(mean)}",) * 2
        bar = at(group - 0.3, group + 0.3), at(mean, mean)
        series.append(Series("line", *bar, colour, "mean", notes=notes, tau_z=tau_z, variant=RUNTIME))
        if printed := paper.printed("main", RUNTIME, tau_z):
            here = place.moved(0.36, 0.1)
            series.append(parts.paper_mark("points", printed.mean, printed.half_width, GREY, PAPER + "mean", here))
    return view.chart(
        "figure-4-seeds",
        "Runtime heads, seed by seed",
        f"The paper's Figure 4. Each dot is a seed ({parts.counted(found.values())} a regime), the bar is the mean. "
        "Diamonds: the paper's means and intervals. Grey lines: the reference controllers.",
        view.comparison(),
        (_by_regime(list(found), series),),
        1,
    )


def _by_regime(regimes: Sequence[float], series: Sequence[Series]) -> Panel:
    """Delta% with a place for each regime."""
    names, ends = parts.ticks(map(regime_name, regimes)), (-0.55, len(regimes) - 0.45)
    return Panel("", "memory regime", parts.METRICS["delta_pct"], tuple(series), x_ticks=names, x_range=ends)


def _heads(view: View) -> Chart | None:
    """Figure 5: K(t) of a representative seed of each regime."""
    if (place := view.growing()) is None:
        return None
    study, variant = place
    cells = (view.with_history(view.sound(study, variant, tau_z)) for tau_z in view.regimes(study))
    runs = [run for run in map(representative, cells) if run is not None]
    return view.chart(
        "figure-5-heads",
        "Active heads K(t) while training",
        f"The paper's Figure 5. Of each regime the seed with the median Δ% ({variant} of study {study}). Dashed: a "
        "head grows; dotted: one is pruned. Grey, where the training is as long: the paper's schedule, from one head "
        "to its cap of eight.",
        (study,),
        (_heads_panel(run, view.dataset.histories[run["folder"]], view.look(variant)) for run in runs),
        3,
    )


def _heads_panel(run: Row, history: History, look: Look) -> Panel:
    last, variant = run["steps"], run["variant"]
    steps = np.concatenate([[0.0], history.event_steps, [float(last)]])
    counts = np.concatenate([[history.k_init], history.event_heads])
    counts = np.append(counts, counts[-1])
    top = float(max(*counts, run["k_max"])) + 0.6
    series = [
        *_events(variant, history, "grow", "a head grows", "dash", top),
        *_events(variant, history, "prune", "a head is pruned", "dot", top),
        *_paper_schedule(variant, last),
        Series("step", steps, counts, look.colour, "K(t)", variant=variant),
    ]
    title, ends, about = f"{regime_name(run['tau_z'])}, seed {run['seed']}", (0, last), {"tau_z": run["tau_z"]}
    return Panel(title, STEPS, "heads K", tuple(series), x_range=ends, y_range=(0, top), y_whole=True, **about)


def _paper_schedule(variant: str, last: int) -> list[Series]:
    """K(t) as the paper has it in every regime; nothing for runs that are not as long."""
    if last < paper.GROWTHS[-1]:
        return []
    steps, counts = at(0, *paper.GROWTHS, last), at(*range(1, len(paper.GROWTHS) + 2), len(paper.GROWTHS) + 1)
    return [Series("step", steps, counts, GREY, PAPER + "K(t)", dash="dashdot", variant=variant)]


def _events(variant: str, history: History, action: str, label: str, dash: Dash, top: float) -> list[Series]:
    """A line from below to the top at each event of a kind."""
    steps = history.event_steps[np.array(history.event_actions, str) == action]
    if not len(steps):
        return []
    x, y = np.repeat(steps, 3), np.tile([0.0, top, np.nan], len(steps))
    return [Series("line", x, y, GREY, label, dash=dash, opacity=0.6, variant=variant)]
