"""What a policy does in an episode: tracking and torque for each payload, gains, and where its heads look."""

from collections.abc import Sequence

import numpy as np

from incrt.report.figures.chart import Chart, Heatmap, Panel, Series, slug
from incrt.report.figures.parts import View, regime_name
from incrt.report.figures.style import GREY, LINES, ordered_colours
from incrt.report.schema import Row
from incrt.report.wording import number
from incrt.storage.records import Episodes, Floats

_TIME = "time [s]"


def episode_charts(view: View) -> list[Chart | None]:
    """Of a representative run of each regime."""
    found = [(run, view.dataset.episodes[run["folder"]]) for run in view.shown_in_episodes()]
    charts = [chart for shown in found for chart in (_tracking(view, *shown), _gains(view, *shown))]
    looking = [(run, episodes) for run, episodes in found if episodes.attention.size]
    return [*charts, _attention(view, looking) if looking else None]


def _tracking(view: View, run: Row, episodes: Episodes) -> Chart:
    joints = range(episodes.q.shape[-1])
    errors = episodes.q_d - episodes.q
    rows = (("position [rad]", episodes.q), ("error [rad]", errors), ("torque [N m]", episodes.torque))
    panels = []
    for label, values in rows:
        for joint in joints:
            series = _lines(run, episodes, values[..., joint])
            if values is episodes.q:
                wanted = episodes.q_d[0, :, joint]
                series.append(Series("line", episodes.time, wanted, GREY, "reference", dash="dash"))
            panels.append(Panel(f"joint {joint + 1}", _TIME, label, tuple(series), tau_z=run["tau_z"]))
    title, caption = "Tracking and torque in an episode", "One episode a payload, the policy without noise."
    return _chart(view, run, "tracking", title, panels, len(joints), caption)


def _gains(view: View, run: Row, episodes: Episodes) -> Chart:
    joints = episodes.q.shape[-1]
    panels = []
    for label, values in (("K_d", episodes.k_d), ("Λ", episodes.lam), ("η", episodes.eta)):
        for index in range(values.shape[-1]):
            feature = f", feature {index // joints + 1}" if values.shape[-1] > joints else ""
            series = tuple(_lines(run, episodes, values[..., index]))
            panels.append(Panel(f"joint {index % joints + 1}{feature}", _TIME, label, series, tau_z=run["tau_z"]))
    caption = "The gains of the same episodes."
    return _chart(view, run, "gains", "Scheduled gains in an episode", panels, joints, caption)


def _chart(view: View, run: Row, name: str, title: str, panels: Sequence[Panel], columns: int, caption: str) -> Chart:
    about = f"{run['variant']}, seed {run['seed']}, of study {run['study']}; its Δ% is {number(run['delta_pct'])}."
    file, heading = slug(f"{name} tau {run['tau_z']:g}"), f"{title}, {regime_name(run['tau_z'])}"
    return Chart(file, heading, f"{caption} {about}", view.preset, (run["study"],), tuple(panels), columns)


def _lines(run: Row, episodes: Episodes, values: Floats) -> list[Series]:
    """A line a payload; the heavier, the lighter its colour."""
    colours = ordered_colours(len(episodes.payloads), LINES)
    about = {"tau_z": run["tau_z"], "variant": run["variant"]}
    return [
        Series("line", episodes.time, line, colour, f"payload {payload:g} kg", **about)
        for payload, line, colour in zip(episodes.payloads, values, colours, strict=True)
    ]


def _attention(view: View, found: Sequence[tuple[Row, Episodes]]) -> Chart:
    seeds = ", ".join(f"{run['seed']} at {regime_name(run['tau_z'])}" for run, _ in found)
    return Chart(
        "attention",
        "Where the heads look",
        "Weight of each observation of the window, the latest at age 0, in the episode with the middle payload. First "
        f"row: each head, averaged over the episode. Second row: over time, averaged over the heads. Seeds: {seeds}.",
        view.preset,
        tuple(dict.fromkeys(run["study"] for run, _ in found)),
        (*(_by_head(*each) for each in found), *(_over_time(*each) for each in found)),
        len(found),
    )


def _by_head(run: Row, episodes: Episodes) -> Panel:
    weights = episodes.attention.mean(axis=0)
    heat = Heatmap(_ages(episodes), np.arange(1.0, len(weights) + 1), weights, "weight", run["variant"])
    words, ends = (regime_name(run["tau_z"]), "age of the observation [steps]", "head"), (0.5, len(weights) + 0.5)
    return Panel(*words, heatmap=heat, y_whole=True, tau_z=run["tau_z"], y_range=ends)


def _over_time(run: Row, episodes: Episodes) -> Panel:
    weights = episodes.attention.mean(axis=1).T
    heat = Heatmap(episodes.attention_time, _ages(episodes), weights, "weight", run["variant"])
    return Panel(regime_name(run["tau_z"]), _TIME, "age [steps]", heatmap=heat, tau_z=run["tau_z"])


def _ages(episodes: Episodes) -> Floats:
    """Oldest first, as the weights are."""
    return np.arange(episodes.attention.shape[-1] - 1.0, -1.0, -1.0)
