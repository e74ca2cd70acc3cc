"""All figures of a report."""

from collections import Counter
from dataclasses import replace

import matplotlib as mpl

from incrt.report.figures.chart import Chart, View
from incrt.report.figures.of_episodes import episode_charts
from incrt.report.figures.of_heads import head_charts
from incrt.report.figures.of_paper import paper_charts
from incrt.report.figures.of_studies import study_charts
from incrt.report.figures.of_sweeps import sweep_charts
from incrt.report.figures.style import STYLE
from incrt.report.selection import Runs


def make_charts(runs: Runs) -> list[Chart]:
    """The figures for which one preset has runs, the paper's first; no two names are the same."""
    view = View(runs.dataset, runs.preset)
    makers = (paper_charts, sweep_charts, study_charts, head_charts, episode_charts)
    with mpl.rc_context(STYLE):
        charts = [chart for maker in makers for chart in maker(view) if not chart.drawing.is_empty]
    seen: Counter[str] = Counter()
    for index, chart in enumerate(charts):
        seen[chart.name] += 1
        if (times := seen[chart.name]) > 1:
            charts[index] = replace(chart, name=f"{chart.name}-{times}")
    return charts
