"""What a policy does in an episode: tracking, torque and gains for each payload, and where its heads look."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from incrt.report.figures.chart import Chart, View, regime_name, slug
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.style import GREY, LINES, SCALE, ordered_colours
from incrt.report.schema import Row
from incrt.report.wording import number
from incrt.storage.records import Episodes, Floats

_TIME = "time [s]"


def episode_charts(view: View) -> list[Chart]:
    """Of a representative run of each regime."""
    found = [(run, view.dataset.episodes[run["folder"]]) for run in view.shown_in_episodes()]
    charts = [_episode(view, *shown) for shown in found]
    looking = [(run, episodes) for run, episodes in found if episodes.attention.size]
    return [*charts, _attention(view, looking)] if looking else charts


def _episode(view: View, run: Row, episodes: Episodes) -> Chart:
    """All over the same time, so that a gain can be held against the error that it answers."""
    joints, regime = episodes.q.shape[-1], regime_name(run["tau_z"])
    drawing = Drawing(f"Tracking, torque and gains in an episode, {regime}", columns=joints)
    for label, values in (
        ("position [rad]", episodes.q),
        ("error [rad]", episodes.q_d - episodes.q),
        ("torque [N m]", episodes.torque),
        ("K_d", episodes.k_d),
        ("Λ", episodes.lam),
        ("η", episodes.eta),
    ):
        for joint in range(joints):
            axes = drawing.panel(f"joint {joint + 1}", _TIME, label).axes
            _payload_lines(axes, episodes, values[..., joint])
            if values is episodes.q:
                wanted = episodes.q_d[0, :, joint]
                axes.plot(episodes.time, wanted, color=GREY, linestyle="--", label="reference")
    caption = (
        f"One episode a payload, the policy without noise. {run['variant']}, seed {run['seed']}, of study "
        f"{run['study']}; its Δ% is {number(run['delta_pct'])}."
    )
    name, shown = slug(f"tracking tau {run['tau_z']:g}"), ([run["study"]], [run["variant"]], [run["tau_z"]])
    return Chart(name, caption, drawing, view.preset, *shown)


def _payload_lines(axes: Axes, episodes: Episodes, values: Floats) -> None:
    """A line a payload; the heavier, the lighter its colour."""
    colours = ordered_colours(len(episodes.payloads), LINES)
    for payload, line, colour in zip(episodes.payloads, values, colours, strict=True):
        axes.plot(episodes.time, line, color=colour, label=f"payload {payload:g} kg")


def _attention(view: View, found: Sequence[tuple[Row, Episodes]]) -> Chart:
    drawing = Drawing("Where the heads look", columns=len(found), share_x=False)
    names = [regime_name(run["tau_z"]) for run, _ in found]
    by_head = [drawing.panel(name, "age of the observation [steps]", "head").axes for name in names]
    over_time = [drawing.panel(name, _TIME, "age [steps]").axes for name in names]
    drawing.arrange()
    for (_, episodes), above, below in zip(found, by_head, over_time, strict=True):
        _, heads, window = episodes.attention.shape
        ages = np.arange(window - 1.0, -1.0, -1.0)  # oldest first, as the weights are
        _heat(above, ages, np.arange(1.0, heads + 1), episodes.attention.mean(axis=0))
        _heat(below, episodes.attention_time, ages, episodes.attention.mean(axis=1).T)
        for axis in (above.xaxis, above.yaxis, below.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
    runs = [run for run, _ in found]
    seeds = ", ".join(f"{run['seed']} at {regime_name(run['tau_z'])}" for run in runs)
    caption = (
        "Weight of each observation of the window, the latest at age 0, in the episode with the middle payload. First "
        f"row: each head, averaged over the episode. Second row: over time, averaged over the heads. Seeds: {seeds}."
    )
    shown = ([run[name] for run in runs] for name in ("study", "variant", "tau_z"))
    return Chart("attention", caption, drawing, view.preset, *shown)


def _heat(axes: Axes, x: Floats, y: Floats, weights: Floats) -> None:
    """A colour for each weight; rows from below."""
    mesh = axes.pcolormesh(x, y, weights, cmap=SCALE[0], shading="nearest", rasterized=True)
    axes.grid(visible=False)
    axes.figure.colorbar(mesh, ax=axes, label="weight")
