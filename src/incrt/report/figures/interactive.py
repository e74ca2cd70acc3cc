"""Charts for plotly.js: each panel is a plot of its own, so that they can stand below each other on a phone.

Colours of text and grid are the page's business: they follow its light or dark.
"""

import html
import math
from typing import Any

import numpy as np

from incrt.report.figures.chart import SYMBOL, Chart, Heatmap, Panel, Series
from incrt.report.figures.style import SCALE
from incrt.storage.records import Floats

MOST_POINTS = 400
_DIGITS = 5

Json = dict[str, Any]


def chart_json(chart: Chart) -> Json:
    """What the page draws of a chart and filters it by, as JSON can hold it."""
    return {"preset": chart.preset, "studies": chart.studies, "panels": [_panel(panel) for panel in chart.panels]}


def _panel(panel: Panel) -> Json:
    data: list[Json] = []
    about: list[Json] = []
    if panel.heatmap is not None:
        data.append(_heatmap(panel.heatmap))
        about.append({"tau_z": panel.tau_z, "variant": panel.heatmap.variant})
    for series in panel.series:
        traces = _band(series) if series.kind == "band" else [_trace(series)]
        tau_z = panel.tau_z if series.tau_z is None else series.tau_z
        data += traces
        about += [{"tau_z": tau_z, "variant": series.variant}] * len(traces)
    return {"data": data, "layout": _layout(panel), "about": about, "tau_z": panel.tau_z}


def _layout(panel: Panel) -> Json:
    x_axis: Json = {"title": {"text": _text(panel.x_title)}}
    y_axis: Json = {"title": {"text": _text(panel.y_title)}}
    if panel.x_ticks:
        places, names = zip(*panel.x_ticks, strict=True)
        x_axis |= {"tickmode": "array", "tickvals": places, "ticktext": [*map(_text, names)], "showgrid": False}
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


def _heatmap(heat: Heatmap) -> Json:
    places = np.linspace(0, 1, len(SCALE)).tolist()
    return {
        "type": "heatmap",
        "x": _numbers(heat.x),
        "y": _numbers(heat.y),
        "z": [_numbers(row) for row in heat.z],
        "colorscale": [*zip(places, SCALE, strict=True)],
        "colorbar": {"title": {"text": _text(heat.label), "side": "right"}, "thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{x}, %{y}: %{z:.3g}<extra></extra>",
    }


def _trace(series: Series) -> Json:
    trace: Json = {"name": _text(series.label or series.variant)}
    if series.kind in {"line", "step"}:
        kept = _thinned(len(series.x))
        trace |= {"type": "scatter", "mode": "lines", **_places(series.x[kept]), "y": _numbers(series.y[kept])}
        shape = {"shape": "hv"} if series.kind == "step" else {}
        trace["line"] = {"color": series.colour, "dash": series.dash, "width": 1.8, **shape}
    else:
        trace |= {"x": _numbers(series.x), "y": _numbers(series.y), **_marks(series)}
        if series.low is not None and series.high is not None:
            up, down = _numbers(series.high - series.y), _numbers(series.y - series.low)
            colour = {"color": series.colour} if series.kind == "points" else {}
            ends = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
            trace["error_y"] = {**ends, "thickness": 1.4, "width": 3, **colour}
    if series.opacity < 1:
        trace["opacity"] = series.opacity
    if series.notes:
        trace |= {"text": [_text(note) for note in series.notes], "hovertemplate": "%{text}<extra></extra>"}
    return trace


def _marks(series: Series) -> Json:
    colour = series.colour
    if series.kind == "points":
        symbol = series.marker + ("-open" if series.hollow else "")
        return {
            "type": "scatter",
            "mode": "markers",
            "marker": {"color": colour, "symbol": symbol, "size": series.size},
        }
    marker: Json = {"color": colour}
    if series.hollow:
        hatch = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.2}
        marker |= {"line": {"color": colour, "width": 1}, "pattern": hatch}
    # Notes are for who points at a bar, not to be written on it.
    return {"type": "bar", "width": series.width, "marker": marker, "textposition": "none"}


def _band(series: Series) -> list[Json]:
    """Two lines that are not seen, and what is between them."""
    kept = _thinned(len(series.x))
    low, high = (_numbers(end[kept]) for end in (series.low, series.high) if end is not None)
    line: Json = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    line |= {"x": _numbers(series.x[kept]), "name": _text(series.label or series.variant)}
    red, green, blue = (int(series.colour[place : place + 2], 16) for place in (1, 3, 5))
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},{series.opacity:g})"}
    return [{**line, "y": low}, {**line, "y": high, **fill}]


def _thinned(length: int) -> slice:
    """At most MOST_POINTS entries, the first among them, as far from each other as they were."""
    return slice(0, length, -(-length // MOST_POINTS) or 1)


def _places(x: Floats) -> Json:
    """Places on the axis; said by the first and the distance where they are evenly spaced."""
    gaps = np.diff(x)
    if len(gaps) > 1 and np.allclose(gaps, gaps[0], rtol=1e-6):
        return {"x0": float(x[0]), "dx": float(np.mean(gaps))}
    return {"x": _numbers(x)}


def _numbers(values: Floats) -> list[float | int | None]:
    """Rounded to five digits; nothing for what is not finite; whole numbers without a point."""
    found: list[float | int | None] = []
    for value in np.asarray(values, float).tolist():
        rounded = float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
        found.append(int(rounded) if rounded is not None and rounded.is_integer() else rounded)
    return found


def _text(words: str) -> str:
    """Plotly reads text as if it were HTML."""
    return SYMBOL.sub(r"\1<sub>\2</sub>", html.escape(words, quote=False))
