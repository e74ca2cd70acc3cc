"""What a policy does in an episode: tracking and torque for each payload, gains, and where its heads look."""

from collections.abc import Sequence

import numpy as np

from incrt.report.charts.chart import Chart, Heatmap, Panel, Series, slug
from incrt.report.charts.colours import GREY, LINES, ordered_colours
from incrt.report.charts.pieces import regime_name
from incrt.report.charts.view import View
from incrt.report.outcomes import Episodes, Floats, Outcome
from incrt.report.selection import shown_in_episodes
from incrt.report.wording import number

_TIME = "time [s]"


def episode_charts(view: View) -> list[Chart]:
    """Of a representative run of each regime."""
    found = [(run, view.material.episodes[run.folder]) for run in shown_in_episodes(view.runs, view.material.episodes)]
    charts = [
        chart for run, episodes in found for chart in (_tracking(view, run, episodes), _gains(view, run, episodes))
    ]
    looking = [(run, episodes) for run, episodes in found if episodes.attention.size]
    return charts + ([_attention(view, looking)] if looking else [])


def _tracking(view: View, run: Outcome, episodes: Episodes) -> Chart:
    joints = range(episodes.q.shape[-1])
    rows = (
        ("position [rad]", episodes.q),
        ("error [rad]", episodes.q_d - episodes.q),
        ("torque [N m]", episodes.torque),
    )
    panels = []
    for label, values in rows:
        for joint in joints:
            series = _lines(run, episodes, values[..., joint])
            if values is episodes.q:
                wanted = episodes.q_d[0, :, joint]
                series.append(Series("line", episodes.time, wanted, GREY, "reference", dash="dash"))
            panels.append(_panel(run, f"joint {joint + 1}", label, series))
    return _chart(
        view,
        run,
        "tracking",
        "Tracking and torque in an episode",
        panels,
        len(joints),
        "One episode a payload, the policy without noise.",
    )


def _gains(view: View, run: Outcome, episodes: Episodes) -> Chart:
    joints = episodes.q.shape[-1]
    rows = (("K_d", episodes.k_d), ("Λ", episodes.lam), ("η", episodes.eta))
    panels = []
    for label, values in rows:
        for index in range(values.shape[-1]):
            feature = f", feature {index // joints + 1}" if values.shape[-1] > joints else ""
            title = f"joint {index % joints + 1}{feature}"
            panels.append(_panel(run, title, label, _lines(run, episodes, values[..., index])))
    return _chart(
        view, run, "gains", "Scheduled gains in an episode", panels, joints, "The gains of the same episodes."
    )


def _chart(
    view: View, run: Outcome, name: str, title: str, panels: Sequence[Panel], columns: int, caption: str
) -> Chart:
    return Chart(
        f"{name}-tau-{slug(f'{run.tau_z:g}')}",
        f"{title}, {regime_name(run.tau_z)}",
        f"{caption} {run.variant}, seed {run.seed}, of study {run.study}; its Δ% is {number(run.delta_pct)}.",
        view.preset,
        (run.study,),
        tuple(panels),
        columns,
    )


def _lines(run: Outcome, episodes: Episodes, values: Floats) -> list[Series]:
    """A line a payload; the heavier, the lighter its colour."""
    colours = ordered_colours(len(episodes.payloads), LINES)
    return [
        Series("line", episodes.time, line, colour, f"payload {payload:g} kg", tau_z=run.tau_z, variant=run.variant)
        for payload, line, colour in zip(episodes.payloads, values, colours, strict=True)
    ]


def _panel(run: Outcome, title: str, y_title: str, series: Sequence[Series]) -> Panel:
    return Panel(title, _TIME, y_title, tuple(series), tau_z=run.tau_z)


def _attention(view: View, found: Sequence[tuple[Outcome, Episodes]]) -> Chart:
    panels = [_by_head(run, episodes) for run, episodes in found]
    panels += [_over_time(run, episodes) for run, episodes in found]
    seeds = ", ".join(f"{run.seed} at {regime_name(run.tau_z)}" for run, _ in found)
    return Chart(
        "attention",
        "Where the heads look",
        "Weight of each observation of the window, the latest at age 0, in the episode with the middle payload. First "
        f"row: each head, averaged over the episode. Second row: over time, averaged over the heads. Seeds: {seeds}.",
        view.preset,
        tuple(dict.fromkeys(run.study for run, _ in found)),
        tuple(panels),
        len(found),
    )


def _by_head(run: Outcome, episodes: Episodes) -> Panel:
    weights = episodes.attention.mean(axis=0)
    heat = Heatmap(_ages(episodes), np.arange(1.0, len(weights) + 1), weights, "weight", run.variant)
    return Panel(
        regime_name(run.tau_z),
        "age of the observation [steps]",
        "head",
        heatmap=heat,
        y_whole=True,
        tau_z=run.tau_z,
        y_range=(0.5, len(weights) + 0.5),
    )


def _over_time(run: Outcome, episodes: Episodes) -> Panel:
    heat = Heatmap(episodes.attention_time, _ages(episodes), episodes.attention.mean(axis=1).T, "weight", run.variant)
    return Panel(regime_name(run.tau_z), _TIME, "age [steps]", heatmap=heat, tau_z=run.tau_z)


def _ages(episodes: Episodes) -> Floats:
    """Oldest first, as the weights are."""
    return np.arange(episodes.attention.shape[-1] - 1.0, -1.0, -1.0)
