"""Charts for plotly.js: each panel is a plot of its own, so that they can stand below each other on a phone.

Colours of text and grid are the page's business: they follow its light or dark.
"""

import html
import math
from typing import Any

import numpy as np

from incrt.report.charts.chart import SYMBOL, Chart, Heatmap, Panel, Series
from incrt.report.charts.colours import SCALE
from incrt.report.outcomes import Floats

MOST_POINTS = 400
_DIGITS = 5


def chart_json(chart: Chart) -> dict[str, Any]:
    """What the page draws of a chart, as JSON can hold it."""
    return {"panels": [_panel(panel) for panel in chart.panels]}


def _panel(panel: Panel) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    about: list[dict[str, Any]] = []
    if panel.heatmap is not None:
        data.append(_heatmap(panel.heatmap))
        about.append(_about(panel.tau_z, panel.heatmap.variant))
    for series in panel.series:
        traces = _traces(series)
        data += traces
        about += [_about(panel.tau_z if series.tau_z is None else series.tau_z, series.variant)] * len(traces)
    return {"data": data, "layout": _layout(panel), "about": about, "tau_z": panel.tau_z}


def _about(tau_z: float | None, variant: str) -> dict[str, Any]:
    """What the filters look at."""
    return {"tau_z": tau_z, "variant": variant}


def _layout(panel: Panel) -> dict[str, Any]:
    x_axis: dict[str, Any] = {"title": {"text": _text(panel.x_title)}}
    y_axis: dict[str, Any] = {"title": {"text": _text(panel.y_title)}}
    if panel.x_ticks:
        x_axis |= {"tickmode": "array", "tickvals": [place for place, _ in panel.x_ticks]}
        x_axis |= {"ticktext": [_text(name) for _, name in panel.x_ticks], "showgrid": False}
    if panel.y_whole:
        y_axis |= {"tick0": 0, "dtick": _whole_step(panel)}
    for axis, limits in ((x_axis, panel.x_range), (y_axis, panel.y_range)):
        if limits:
            axis["range"] = list(limits)
    if panel.heatmap is not None:
        x_axis["showgrid"] = y_axis["showgrid"] = False
    return {"xaxis": x_axis, "yaxis": y_axis, "showlegend": False, "barmode": "overlay"}


def _whole_step(panel: Panel) -> int:
    """Between two marks of an axis that counts: a whole number, and no more than eight of them."""
    heights = [series.y for series in panel.series] + ([panel.heatmap.y] if panel.heatmap else [])
    highest = max((float(np.nanmax(each)) for each in heights if len(each)), default=1.0)
    return max(1, math.ceil(highest / 8))


def _heatmap(heat: Heatmap) -> dict[str, Any]:
    places = np.linspace(0, 1, len(SCALE))
    return {
        "type": "heatmap",
        "x": _numbers(heat.x),
        "y": _numbers(heat.y),
        "z": [_numbers(row) for row in heat.z],
        "colorscale": [[float(place), colour] for place, colour in zip(places, SCALE, strict=True)],
        "colorbar": {"title": {"text": _text(heat.label), "side": "right"}, "thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{x}, %{y}: %{z:.3g}<extra></extra>",
    }


def _traces(series: Series) -> list[dict[str, Any]]:
    if series.kind == "band":
        return _band(series)
    trace: dict[str, Any] = {"name": _text(series.label or series.variant)}
    if series.kind in {"line", "step"}:
        kept = thinned(len(series.x))
        trace |= {"type": "scatter", "mode": "lines", **_places(series.x[kept]), "y": _numbers(series.y[kept])}
        trace["line"] = {"color": series.colour, "dash": series.dash, "width": 1.8}
        if series.kind == "step":
            trace["line"]["shape"] = "hv"
    else:
        trace |= {"x": _numbers(series.x), "y": _numbers(series.y)}
        trace |= _bar(series) if series.kind == "bar" else _points(series)
        if series.low is not None and series.high is not None:
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": _numbers(series.high - series.y),
                "arrayminus": _numbers(series.y - series.low),
                "thickness": 1.4,
                "width": 3,
            }
            if series.kind == "points":
                trace["error_y"]["color"] = series.colour
    if series.opacity < 1:
        trace["opacity"] = series.opacity
    if series.notes:
        trace |= {"text": [_text(note) for note in series.notes], "hovertemplate": "%{text}<extra></extra>"}
    return [trace]


def _bar(series: Series) -> dict[str, Any]:
    marker: dict[str, Any] = {"color": series.colour}
    if series.hollow:
        marker["line"] = {"color": series.colour, "width": 1}
        marker["pattern"] = {
            "shape": "/",
            "fgcolor": series.colour,
            "bgcolor": "rgba(0,0,0,0)",
            "size": 6,
            "solidity": 0.2,
        }
    # Notes are for who points at a bar, not to be written on it.
    return {"type": "bar", "width": series.width, "marker": marker, "textposition": "none"}


def _points(series: Series) -> dict[str, Any]:
    symbol = series.marker + ("-open" if series.hollow else "")
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {"color": series.colour, "symbol": symbol, "size": series.size},
    }


def _band(series: Series) -> list[dict[str, Any]]:
    """Two lines that are not seen, and what is between them."""
    kept = thinned(len(series.x))
    line = {
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "x": _numbers(series.x[kept]),
    }
    ends = (series.low, series.high)
    low, high = (_numbers(end[kept]) for end in ends if end is not None)
    name = _text(series.label or series.variant)
    return [
        {**line, "name": name, "y": low},
        {**line, "name": name, "y": high, "fill": "tonexty", "fillcolor": _clear(series.colour, series.opacity)},
    ]


def thinned(length: int) -> slice:
    """At most MOST_POINTS entries, the first among them, as far from each other as they were."""
    return slice(0, length, -(-length // MOST_POINTS) or 1)


def _places(x: Floats) -> dict[str, Any]:
    """Places on the axis; said by the first and the distance where they are evenly spaced."""
    gaps = np.diff(x)
    if len(gaps) > 1 and np.allclose(gaps, gaps[0], rtol=1e-6):
        return {"x0": float(x[0]), "dx": float(np.mean(gaps))}
    return {"x": _numbers(x)}


def _numbers(values: Floats) -> list[float | int | None]:
    """Rounded to five digits; nothing for what is not finite; whole numbers without a point."""
    found: list[float | int | None] = []
    for value in np.asarray(values, float).tolist():
        rounded = float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
        found.append(int(rounded) if rounded is not None and rounded.is_integer() else rounded)
    return found


def _clear(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def _text(words: str) -> str:
    """Plotly reads text as if it were HTML."""
    return SYMBOL.sub(r"\1<sub>\2</sub>", html.escape(words, quote=False))
