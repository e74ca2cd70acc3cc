"""All charts of a report."""

from collections import Counter
from dataclasses import replace

from incrt.report.chart import Chart
from incrt.report.episode_charts import episode_charts
from incrt.report.head_charts import head_charts
from incrt.report.outcomes import Material
from incrt.report.paper_charts import paper_charts
from incrt.report.study_charts import study_charts
from incrt.report.sweep_charts import sweep_charts
from incrt.report.view import View


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
