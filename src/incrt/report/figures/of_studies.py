"""Charts of any study: what its variants reach, what is left of it under other conditions, and how they learn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from incrt.report.curves import mean_curve
from incrt.report.data import StudyRecord
from incrt.report.figures import parts
from incrt.report.figures.chart import Chart, Panel, Series, slug
from incrt.report.figures.parts import METRICS, STEPS, Metric, Place, View, regime_name
from incrt.report.figures.style import DASHES
from incrt.report.selection import COMPARISON, deltas, groups

_IN_PAPER = (*COMPARISON, "k_max", "grace")
"""Studies whose results have figures in the paper."""
_CUT = 25.0
"""Highest Delta% that is drawn of tests under other conditions: loops near instability would hide all the rest."""
_MOST_BANDS = 7
"""More bands than this only hide each other."""


def study_charts(view: View) -> list[Chart | None]:
    """What the paper has no figure for."""
    found: list[Chart | None] = []
    compared = view.comparison()
    for study in view.studies:
        if study.name in compared and (study.name != "main" or len(compared) == 1):  # others have its runs, too
            found.append(_results(view, study, "headroom", ("headroom_closed",)))
        elif study.conditions:
            found.append(_conditions(view, study))
        elif study.name not in _IN_PAPER:
            found.append(_results(view, study, "results", ("delta_pct", "headroom_closed")))
    return found + [_learning(view, study) for study in view.studies if not study.trained_by]


def _results(view: View, study: StudyRecord, name: str, metrics: Sequence[Metric]) -> Chart | None:
    """Mean with interval and a dot a seed, a panel a metric."""
    cells = [view.cell(study.name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    if not any(map(deltas, cells)):
        return None
    panels = tuple(_result_panel(view, study, metric) for metric in metrics)
    words = ""
    if "headroom_closed" in metrics:
        words += " Headroom closed is 0 at the best constant gains and 1 at the clairvoyant controller."
    if any(series.kind == "line" for panel in panels for series in panel.series):
        words += " Grey lines: the reference controllers."
    return view.chart(
        f"{name}-{slug(study.name)}",
        f"Study {study.name}: {'headroom closed' if name == 'headroom' else 'results of the variants'}",
        f"{study.about} Means with the 95 % Student interval; small dots are seeds ({parts.counted(cells)}).{words}",
        (study.name,),
        panels,
        2 if len(study.variants) * len(study.tau_zs) <= 8 else 1,
    )


def _result_panel(view: View, study: StudyRecord, metric: Metric) -> Panel:
    """Regimes are groups on the axis; where there is one only, the axis names the variants."""
    one = len(study.tau_zs) == 1
    series: list[Series] = []
    for group, tau_z in enumerate(study.tau_zs):
        ends = (-0.5, len(study.variants) - 0.5) if one else (group - 0.46, group + 0.46)
        series += parts.controller_lines(view, (study.name,), tau_z, *ends, metric)
        for index, variant in enumerate(study.variants):
            x, width = (index, 0.5) if one else parts.beside(group, index, len(study.variants))
            place, look, rows = (
                Place(x, width, tau_z, variant),
                view.look(variant),
                view.sound(study.name, variant, tau_z),
            )
            series += parts.seed_dots(rows, metric, look.colour, place.moved(-width / 5, width / 2))
            known = rows[metric].drop_nulls().to_list()
            marks = parts.mean_mark("points", known, look, variant, place.moved(width / 4, width / 2))
            series += [replace(mark, label="") for mark in marks] if one else marks
    names = study.variants if one else [regime_name(tau_z) for tau_z in study.tau_zs]
    title, x_range = regime_name(study.tau_zs[0]) if one else "", (-0.5, len(names) - 0.5)
    return Panel(title, "", METRICS[metric], tuple(series), x_ticks=parts.ticks(names), x_range=x_range)


def _conditions(view: View, study: StudyRecord) -> Chart | None:
    """What is left of the results on other tests; a panel a regime."""
    places = [(variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    conditions = [name for name in study.tests if any(len(view.sound(study.name, *place, name)) for place in places)]
    return view.chart(
        f"conditions-{slug(study.name)}",
        f"Study {study.name}: results under other conditions",
        f"{study.about} Mean Δ% against the baseline under the same condition, with the 95 % Student interval over "
        f"the seeds; what lies above {_CUT:g} is not drawn. Grey lines: the reference controllers there.",
        (study.name,),
        (_condition_panel(view, study, tau_z, conditions) for tau_z in study.tau_zs),
        1,
    )


def _condition_panel(view: View, study: StudyRecord, tau_z: float, conditions: Sequence[str]) -> Panel:
    series: list[Series] = []
    for group, condition in enumerate(conditions):
        series += parts.controller_lines(view, (study.name,), tau_z, group - 0.42, group + 0.42, condition=condition)
        for index, variant in enumerate(study.variants):
            place = Place(*parts.beside(group, index, len(study.variants)), tau_z, variant)
            sample = deltas(view.cell(study.name, variant, tau_z, condition))
            series += parts.mean_mark("points", sample, view.look(variant), variant, place)
    names, ends = parts.ticks(name or "as trained" for name in conditions), (-0.5, len(conditions) - 0.5)
    tops = [each.y if each.high is None else each.high for each in series]
    heights = (-105.0, _CUT) if any(np.max(top) > _CUT for top in tops) else None
    words = regime_name(tau_z), "", METRICS["delta_pct"]
    return Panel(*words, tuple(series), x_ticks=names, x_range=ends, y_range=heights, tau_z=tau_z)


def _learning(view: View, study: StudyRecord) -> Chart | None:
    """Mean return over environment steps; a panel a regime, and there one for all that is compared with one variant."""
    panels = []
    for tau_z in study.tau_zs:
        for other, variants in groups(study).items():
            name = f": {other}" if other and len(groups(study)) > 1 else ""
            panels.append(_learning_panel(view, study, tau_z, variants, f"{regime_name(tau_z)}{name}"))
    panels = [panel for panel in panels if panel.series]
    banded = any(series.kind == "band" for panel in panels for series in panel.series)
    cells = [view.cell(study.name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    return view.chart(
        f"learning-{slug(study.name)}",
        f"Study {study.name}: return while training",
        f"Mean return of the episodes that ended, over the seeds ({parts.counted(cells)})"
        + (", with its 95 % Student interval" if banded else "")
        + ". Where variants are trained for different times, so long are their curves. Higher is better.",
        (study.name,),
        panels,
        2 if len(panels) == 4 else 3,
    )


def _learning_panel(view: View, study: StudyRecord, tau_z: float, variants: Sequence[str], title: str) -> Panel:
    bands: list[Series] = []
    lines: list[Series] = []
    for variant in variants:
        histories = view.histories(view.sound(study.name, variant, tau_z))
        curve = mean_curve([(history.steps, history.returns) for history in histories])
        if curve is None:
            continue
        colour = view.look(variant).colour
        dash = DASHES[sum(line.colour == colour for line in lines) % len(DASHES)]
        line = Series("line", curve.x, curve.mean, colour, variant, dash=dash, tau_z=tau_z, variant=variant)
        lines.append(line)
        bands.append(replace(line, kind="band", label="", low=curve.low, high=curve.high, opacity=0.18))
    shown = [*(bands if len(bands) <= _MOST_BANDS else []), *lines]
    return Panel(title, STEPS, "return of an episode", tuple(shown), tau_z=tau_z)
