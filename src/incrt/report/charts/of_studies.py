"""Charts of any study: what its variants reach, what is left of it under other conditions, and how they learn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from incrt.report.charts.chart import Chart, Panel, Series, slug
from incrt.report.charts.colours import DASHES
from incrt.report.charts.curves import mean_curve
from incrt.report.charts.pieces import (
    MEASURES,
    STEPS,
    Measure,
    Place,
    beside,
    counted,
    mean_mark,
    reference_lines,
    regime_name,
    seed_dots,
    values_of,
)
from incrt.report.charts.view import View, groups, regimes
from incrt.report.outcomes import Outcome, StudyRecord
from incrt.report.selection import COMPARISON, deltas

_OWN = (*COMPARISON, "k_max", "grace")
"""Studies whose results have figures in the paper."""
_CUT = 25.0
"""Highest Delta% that is drawn of tests under other conditions: loops near instability would hide all the rest."""
_MOST_BANDS = 7
"""More bands than this only hide each other."""


def study_charts(view: View) -> list[Chart]:
    """What the paper has no figure for."""
    found: list[Chart | None] = []
    compared = view.runs.comparison()
    for record in view.runs.studies:
        if record.name in compared and (record.name != "main" or len(compared) == 1):  # others have its runs, too
            found.append(_results(view, record, "headroom", ("headroom_closed",)))
        elif record.conditions:
            found.append(_conditions(view, record))
        elif record.name not in _OWN:
            found.append(_results(view, record, "results", ("delta_pct", "headroom_closed")))
    found += [_learning(view, record) for record in view.runs.studies if not record.trained_by]
    return [chart for chart in found if chart is not None]


def _results(view: View, record: StudyRecord, name: str, measures: Sequence[Measure]) -> Chart | None:
    """Mean with interval and a dot a seed, a panel a measure."""
    cells = [view.runs.cell(record.name, variant, tau_z) for variant in record.variants for tau_z in regimes(record)]
    if not any(map(deltas, cells)):
        return None
    panels = tuple(_result_panel(view, record, measure) for measure in measures)
    words = ""
    if "headroom_closed" in measures:
        words += " Headroom closed is 0 at the best constant gains and 1 at the clairvoyant controller."
    if any(series.kind == "line" for panel in panels for series in panel.series):
        words += " Grey lines: the reference controllers."
    return Chart(
        f"{name}-{slug(record.name)}",
        f"Study {record.name}: {'headroom closed' if name == 'headroom' else 'results of the variants'}",
        f"{record.about} Means with the 95 % Student interval; small dots are seeds ({counted(cells)}).{words}",
        view.preset,
        (record.name,),
        panels,
        2 if len(record.variants) * len(regimes(record)) <= 8 else 1,
    )


def _result_panel(view: View, record: StudyRecord, measure: Measure) -> Panel:
    """Regimes are groups on the axis; where there is one only, the axis names the variants."""
    one = len(regimes(record)) == 1
    series: list[Series] = []
    for group, tau_z in enumerate(regimes(record)):
        ends = (-0.5, len(record.variants) - 0.5) if one else (group - 0.46, group + 0.46)
        series += reference_lines(view, (record.name,), tau_z, *ends, measure)
        for index, variant in enumerate(record.variants):
            x, width = (index, 0.5) if one else beside(group, index, len(record.variants))
            place = Place(x, width, tau_z, variant)
            series += _mean_and_dots(view, view.sound(record.name, variant, tau_z), measure, place, named=not one)
    names = record.variants if one else [regime_name(tau_z) for tau_z in regimes(record)]
    ticks = tuple((float(index), name) for index, name in enumerate(names))
    title = regime_name(regimes(record)[0]) if one else ""
    x_range = (-0.5, len(names) - 0.5)
    return Panel(title, "", MEASURES[measure], tuple(series), x_ticks=ticks, x_range=x_range)


def _mean_and_dots(
    view: View, runs: Sequence[Outcome], measure: Measure, place: Place, *, named: bool = True
) -> list[Series]:
    look = view.look(place.variant)
    half = replace(place, x=place.x + place.width / 4, width=place.width / 2)
    dots = replace(half, x=place.x - place.width / 5)
    marks = mean_mark("points", values_of(runs, measure), look, place.variant, half)
    if not named:
        marks = [replace(mark, label="") for mark in marks]
    return [*seed_dots(runs, measure, look.colour, dots), *marks]


def _conditions(view: View, record: StudyRecord) -> Chart | None:
    """What is left of the results on other tests; a panel a regime."""
    conditions = [name for name in dict.fromkeys(["", *record.conditions]) if _tested(view, record, name)]
    if not conditions:
        return None
    return Chart(
        f"conditions-{slug(record.name)}",
        f"Study {record.name}: results under other conditions",
        f"{record.about} Mean Δ% against the baseline under the same condition, with the 95 % Student interval over "
        f"the seeds; what lies above {_CUT:g} is not drawn. Grey lines: the reference controllers there.",
        view.preset,
        (record.name,),
        tuple(_condition_panel(view, record, tau_z, conditions) for tau_z in regimes(record)),
        1,
    )


def _tested(view: View, record: StudyRecord, condition: str) -> bool:
    return any(view.sound(record.name, each, tau_z, condition) for each in record.variants for tau_z in regimes(record))


def _condition_panel(view: View, record: StudyRecord, tau_z: float, conditions: Sequence[str]) -> Panel:
    series: list[Series] = []
    for group, condition in enumerate(conditions):
        series += reference_lines(view, (record.name,), tau_z, group - 0.42, group + 0.42, condition=condition)
        for index, variant in enumerate(record.variants):
            x, width = beside(group, index, len(record.variants))
            sample = values_of(view.sound(record.name, variant, tau_z, condition), "delta_pct")
            place = Place(x, width, tau_z, variant)
            series += mean_mark("points", sample, view.look(variant), variant, place)
    ticks = tuple((float(group), name or "as trained") for group, name in enumerate(conditions))
    ends = (-0.5, len(conditions) - 0.5)
    tops = [each.y if each.high is None else each.high for each in series]
    heights = (-105.0, _CUT) if any(np.max(top) > _CUT for top in tops) else None
    words = regime_name(tau_z), "", MEASURES["delta_pct"]
    return Panel(*words, tuple(series), x_ticks=ticks, x_range=ends, y_range=heights, tau_z=tau_z)


def _learning(view: View, record: StudyRecord) -> Chart | None:
    """Mean return over environment steps; a panel a regime, and there one for all that is compared with one variant."""
    panels = []
    for tau_z in regimes(record):
        for other, variants in groups(record).items():
            name = f": {other}" if other and len(groups(record)) > 1 else ""
            panels.append(_learning_panel(view, record, tau_z, variants, f"{regime_name(tau_z)}{name}"))
    panels = [panel for panel in panels if panel.series]
    if not panels:
        return None
    banded = any(series.kind == "band" for panel in panels for series in panel.series)
    cells = [view.runs.cell(record.name, variant, tau_z) for variant in record.variants for tau_z in regimes(record)]
    return Chart(
        f"learning-{slug(record.name)}",
        f"Study {record.name}: return while training",
        f"Mean return of the episodes that ended, over the seeds ({counted(cells)})"
        + (", with its 95 % Student interval" if banded else "")
        + ". Where variants are trained for different times, so long are their curves. Higher is better.",
        view.preset,
        (record.name,),
        tuple(panels),
        2 if len(panels) == 4 else 3,
    )


def _learning_panel(view: View, record: StudyRecord, tau_z: float, variants: Sequence[str], title: str) -> Panel:
    bands: list[Series] = []
    lines: list[Series] = []
    for variant in variants:
        curve = mean_curve(
            [(history.steps, history.returns) for history in view.histories(view.sound(record.name, variant, tau_z))]
        )
        if curve is None:
            continue
        look = view.look(variant)
        dash = DASHES[sum(line.colour == look.colour for line in lines) % len(DASHES)]
        line = Series("line", curve.x, curve.mean, look.colour, variant, dash=dash, tau_z=tau_z, variant=variant)
        lines.append(line)
        bands.append(replace(line, kind="band", label="", low=curve.low, high=curve.high, opacity=0.18))
    shown = [*(bands if len(bands) <= _MOST_BANDS else []), *lines]
    return Panel(title, STEPS, "return of an episode", tuple(shown), tau_z=tau_z)
