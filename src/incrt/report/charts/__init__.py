"""All charts of a report."""

from collections import Counter
from dataclasses import replace

from incrt.report.charts.chart import Chart
from incrt.report.charts.episodes import episode_charts
from incrt.report.charts.heads import head_charts
from incrt.report.charts.of_paper import paper_charts
from incrt.report.charts.of_studies import study_charts
from incrt.report.charts.sweeps import sweep_charts
from incrt.report.charts.view import View
from incrt.report.outcomes import Material


def make_charts(material: Material, preset: str) -> list[Chart]:
    """The charts for which one preset has runs, the paper's figures first; no two names are the same."""
    view = View(material, preset)
    makers = (paper_charts, sweep_charts, study_charts, head_charts, episode_charts)
    charts = [chart for maker in makers for chart in maker(view)]
    seen: Counter[str] = Counter()
    named = []
    for chart in charts:
        seen[chart.name] += 1
        times = seen[chart.name]
        named.append(chart if times == 1 else replace(chart, name=f"{chart.name}-{times}"))
    return named
