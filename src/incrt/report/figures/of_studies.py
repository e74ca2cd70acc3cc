"""Figures of any study: what its variants reach, what is left of it under other conditions, and how they learn."""

from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from incrt.report.curves import Curve, mean_curve
from incrt.report.data import StudyRecord
from incrt.report.figures import marks
from incrt.report.figures.chart import STEPS, Chart, View, regime_name, slug
from incrt.report.figures.drawing import Drawing
from incrt.report.figures.marks import METRICS, Metric
from incrt.report.figures.style import DASHES
from incrt.report.selection import COMPARISON, SOUND, deltas, groups

_IN_PAPER = (*COMPARISON, "k_max", "grace")
"""Studies whose results have figures in the paper."""
_CUT = 25.0
"""Highest Delta% that is drawn of tests under other conditions: loops near instability would hide all the rest."""
_MOST_BANDS = 7
"""More bands than this only hide each other."""


def study_charts(view: View) -> list[Chart]:
    """What the paper has no figure for."""
    found: list[Chart] = []
    compared = view.comparison()
    for study in view.studies:
        if study.name in compared and (study.name != "main" or len(compared) == 1):  # others have its runs, too
            found.append(_results(view, study, "headroom", ("headroom_closed",)))
        elif study.conditions:
            found.append(_conditions(view, study))
        elif study.name not in _IN_PAPER:
            found.append(_results(view, study, "results", ("delta_pct", "headroom_closed")))
    return found + [_learning(view, study) for study in view.studies if not study.trained_by]


def _chart(view: View, study: StudyRecord, kind: str, drawing: Drawing, caption: str) -> Chart:
    name, shown = f"{kind}-{slug(study.name)}", ([study.name], study.variants, study.tau_zs)
    return Chart(name, caption, drawing, view.preset, *shown)


def _results(view: View, study: StudyRecord, name: str, metrics: Sequence[Metric]) -> Chart:
    """Mean with interval and a dot a seed, a panel a metric."""
    cells = [view.cell(study.name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    few = len(study.variants) * len(study.tau_zs) <= 8
    shown = "headroom closed" if name == "headroom" else "results of the variants"
    drawing = Drawing(f"Study {study.name}: {shown}", columns=2 if few else 1)
    if any(map(deltas, cells)):
        for metric in metrics:
            _results_panel(drawing, view, study, metric)
    about = f"{study.about} Means with the 95 % Student interval; small dots are seeds ({marks.counted(cells)})."
    if "headroom_closed" in metrics:
        about += " Headroom closed is 0 at the best constant gains and 1 at the clairvoyant controller."
    if any(line.get_linestyle() != "None" for panel in drawing.panels for line in panel.axes.lines):  # not a mark
        about += " Grey lines: the reference controllers."
    return _chart(view, study, name, drawing, about)


def _results_panel(drawing: Drawing, view: View, study: StudyRecord, metric: Metric) -> None:
    """Regimes are groups on the axis; where there is one only, the axis names the variants."""
    one = len(study.tau_zs) == 1
    names = study.variants if one else [regime_name(tau_z) for tau_z in study.tau_zs]
    panel = drawing.panel(regime_name(study.tau_zs[0]) if one else "", "", METRICS[metric], names)
    for group, tau_z in enumerate(study.tau_zs):
        left, right = panel.axes.get_xlim() if one else (group - 0.46, group + 0.46)
        marks.controller_lines(panel, view, (study.name,), tau_z, left, right, metric)
        for index, variant in enumerate(study.variants):
            x, width = (float(index), 0.5) if one else marks.beside(group, index, len(study.variants))
            look, rows = view.look(variant), view.sound(study.name, variant, tau_z)
            marks.seed_dots(panel, x - width / 5, width / 2, rows, metric, look.colour)
            known, what = rows[metric].drop_nulls().to_list(), f"{variant}, {regime_name(tau_z)}"
            marks.mean_mark(panel, x + width / 4, known, look, what, "" if one else variant)


def _conditions(view: View, study: StudyRecord) -> Chart:
    """What is left of the results on other tests; a panel a regime."""
    drawing = Drawing(f"Study {study.name}: results under other conditions")
    rows = view.rows.filter(SOUND, study=study.name)
    conditions = [name for name in study.tests if name in rows["condition"]]
    for tau_z in study.tau_zs:
        if tau_z in rows["tau_z"]:
            _conditions_panel(drawing, view, study, tau_z, conditions)
    caption = (
        f"{study.about} Mean Δ% against the baseline under the same condition, with the 95 % Student interval over "
        f"the seeds; what lies above {_CUT:g} is not drawn. Grey lines: the reference controllers there."
    )
    return _chart(view, study, "conditions", drawing, caption)


def _conditions_panel(
    drawing: Drawing, view: View, study: StudyRecord, tau_z: float, conditions: Sequence[str]
) -> None:
    names = [name or "as trained" for name in conditions]
    panel = drawing.panel(regime_name(tau_z), "", METRICS["delta_pct"], names)
    for group, (condition, name) in enumerate(zip(conditions, names, strict=True)):
        ends = group - 0.42, group + 0.42
        marks.controller_lines(panel, view, (study.name,), tau_z, *ends, condition=condition)
        for index, variant in enumerate(study.variants):
            x, _ = marks.beside(group, index, len(study.variants))
            sample = deltas(view.cell(study.name, variant, tau_z, condition))
            marks.mean_mark(panel, x, sample, view.look(variant), f"{variant}, {name}, {regime_name(tau_z)}", variant)
    if panel.axes.dataLim.y1 > _CUT:
        panel.axes.set_ylim(-105, _CUT)


def _learning(view: View, study: StudyRecord) -> Chart:
    """Mean return over environment steps; a panel a regime, and there one for all that is compared with one variant."""
    shown: list[tuple[str, dict[str, Curve]]] = []
    for tau_z in study.tau_zs:
        for other, variants in groups(study).items():
            name = f": {other}" if other and len(groups(study)) > 1 else ""
            if curves := _curves(view, study, variants, tau_z):
                shown.append((f"{regime_name(tau_z)}{name}", curves))
    drawing = Drawing(f"Study {study.name}: return while training", columns=2 if len(shown) == 4 else 3)
    for title, curves in shown:
        _learning_panel(drawing.panel(title, STEPS, "return of an episode").axes, view, curves)
    banded = any(len(curves) <= _MOST_BANDS for _, curves in shown)
    cells = [view.cell(study.name, variant, tau_z) for variant in study.variants for tau_z in study.tau_zs]
    caption = (
        f"Mean return of the episodes that ended, over the seeds ({marks.counted(cells)})"
        + (", with its 95 % Student interval" if banded else "")
        + ". Where variants are trained for different times, so long are their curves. Higher is better."
    )
    return _chart(view, study, "learning", drawing, caption)


def _curves(view: View, study: StudyRecord, variants: Sequence[str], tau_z: float) -> dict[str, Curve]:
    """The mean return of each variant whose runs left one."""
    found = {}
    for variant in variants:
        histories = view.histories(view.sound(study.name, variant, tau_z))
        curve = mean_curve([(history.steps, history.returns) for history in histories])
        if curve is not None:
            found[variant] = curve
    return found


def _learning_panel(axes: Axes, view: View, curves: Mapping[str, Curve]) -> None:
    """The means, and their intervals where these are few enough; curves of one colour differ in their dashes."""
    drawn: Counter[str] = Counter()
    for variant, curve in curves.items():
        colour = view.look(variant).colour
        dash = DASHES[drawn[colour] % len(DASHES)]
        drawn[colour] += 1
        if len(curves) <= _MOST_BANDS:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
        mark = "o" if len(curve.x) == 1 else None  # a line through one point is not seen
        axes.plot(curve.x, curve.mean, color=colour, linestyle=dash, marker=mark, label=variant)
