"""Charts of studies of many variants, of which some are compared with one and some with another."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import altered
from made_up_report import report_dataset
from matplotlib.lines import Line2D

from incrt.report.data import Dataset
from incrt.report.figures.all_charts import make_charts
from incrt.report.figures.chart import Chart
from incrt.report.figures.drawing import Panel
from incrt.report.figures.style import looks
from incrt.report.selection import Runs, groups
from incrt.studies.study import load_study

SEARCH = load_study("search", "paper")
SETTINGS = ("", ", eta 16", ", W 50", ", lr 1e-4", ", lr 1e-3", ", 20k steps", ", 100k steps")
MANY = tuple(f"v{number}" for number in range(21))


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A study whose variants are compared with several, at two windows, and one of as many that are not."""
    studies = {"search": (SEARCH.variants, {5.0: 20}), "many": (MANY, {5.0: 20})}
    found = report_dataset(["paper"], studies, seeds=3)
    search, many = found.studies
    search = replace(search, compare=SEARCH.compare, regimes=((5.0, 20), (5.0, 50)))
    return replace(found, studies=[search, replace(many, compare={})])


@pytest.fixture(scope="module")
def charts(dataset: Dataset) -> dict[str, Chart]:
    return {chart.name: chart for chart in make_charts(Runs(dataset, "paper"))}


def test_variants_are_grouped_by_what_they_are_compared_with(dataset: Dataset) -> None:
    search, many = dataset.studies
    assert list(groups(search).items()) == [
        (f"runtime{setting}", [f"{name}{setting}" for name in ("runtime", "static K=7", "K_max 2")])
        for setting in SETTINGS
    ]
    assert groups(many) == {"": list(MANY)}
    chain = replace(search, variants=tuple("abcd"), compare={"a": "b", "b": "c"})
    assert groups(chain) == {"b": ["a", "b"], "c": ["b", "c"], "": ["d"]}


def test_learning_has_a_panel_a_group(charts: dict[str, Chart]) -> None:
    panels = charts["learning-search"].drawing.panels
    assert [panel.title for panel in panels] == [f"τ_z = 5 s: runtime{setting}" for setting in SETTINGS]
    for panel, setting in zip(panels, SETTINGS, strict=True):
        expected = [f"{name}{setting}" for name in ("runtime", "static K=7", "K_max 2")]
        assert [line.get_label() for line in panel.axes.lines] == expected
        assert len(panel.axes.collections) == len(expected)
    assert "interval" in charts["learning-search"].caption


def test_results_name_every_variant_once_whatever_its_window(charts: dict[str, Chart]) -> None:
    for panel in charts["results-search"].drawing.panels:
        assert len(panel.axes.get_xticks()) == len(SEARCH.variants)
        assert [round(np.asarray(line.get_xdata()).item()) for line in means(panel)] == list(
            range(len(SEARCH.variants))
        )


def means(panel: Panel) -> list[Line2D]:
    """Their marks are larger than those of seeds."""
    return [line for line in panel.axes.lines if line.get_linestyle() == "None" and line.get_markersize() > 6]


def test_the_same_in_another_group_has_the_same_colour_and_another_mark(charts: dict[str, Chart]) -> None:
    drawn = dict(zip(SEARCH.variants, means(charts["results-search"].drawing.panels[0]), strict=True))
    colours = [{drawn[f"{name}{end}"].get_color() for end in SETTINGS} for name in ("runtime", "static K=7", "K_max 2")]
    assert [len(each) for each in colours] == [1, 1, 1]
    assert len(set.union(*colours)) == 3
    assert len({(line.get_color(), line.get_marker()) for line in drawn.values()}) == len(SEARCH.variants)


def test_a_colour_that_is_taken_in_a_group_is_not_taken_again() -> None:
    found = looks([[("a", "b")], [("c", "d"), ("b", "e", "f")]])
    for group in ("ab", "cd", "bef"):
        assert len({found[name].colour for name in group}) == len(group)


def test_curves_of_one_panel_differ_in_colour_or_dash(charts: dict[str, Chart]) -> None:
    (panel,) = charts["learning-many"].drawing.panels
    assert len(panel.axes.lines) == len(MANY)
    assert len(panel.axes.collections) == 0
    assert len({(line.get_color(), line.get_linestyle()) for line in panel.axes.lines}) == len(MANY)
    assert "interval" not in charts["learning-many"].caption


def test_reference_controllers_are_named_where_they_are_drawn(dataset: Dataset, charts: dict[str, Chart]) -> None:
    own = altered(dataset.controllers, where=True, variant="runtime")
    without = {chart.name: chart for chart in make_charts(Runs(replace(dataset, controllers=own), "paper"))}
    for found, is_drawn in ((charts, True), (without, False)):
        chart = found["results-search"]
        assert ("clairvoyant" in chart.drawing.legend) == is_drawn
        assert ("Grey lines" in chart.caption) == is_drawn


def test_files_have_all_names(charts: dict[str, Chart]) -> None:
    for name in ("results-search", "learning-search"):
        written = charts[name].drawing.picture.svg.decode()
        assert all(variant.removeprefix("K_max") in written for variant in SEARCH.variants)
