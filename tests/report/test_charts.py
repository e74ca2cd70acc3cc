"""Figures hold the numbers of the rows they are made from, and are drawn as files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from made_up_report import STUDIES, report_dataset
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from incrt.report import paper
from incrt.report.curves import mean_curve
from incrt.report.data import Dataset
from incrt.report.figures import heads_figure
from incrt.report.figures.all_charts import make_charts
from incrt.report.figures.chart import Chart, regime_name
from incrt.report.figures.drawing import Drawing, Panel
from incrt.report.figures.style import COLOURS, GREY, LINES, SCALE, STYLE, looks, ordered_colours
from incrt.report.selection import SOUND, Runs, deltas, representative
from incrt.report.statistics import summarise
from incrt.report.wording import interval_text


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return report_dataset()


@pytest.fixture(scope="module")
def charts(dataset: Dataset) -> dict[str, Chart]:
    return {chart.name: chart for chart in make_charts(Runs(dataset, "paper"))}


def rows(dataset: Dataset, study: str, variant: str, tau_z: float, condition: str = "") -> pl.DataFrame:
    place = {"preset": "paper", "study": study, "variant": variant, "tau_z": tau_z, "condition": condition}
    return dataset.runs.filter(SOUND, **place)


def panels(chart: Chart) -> list[Panel]:
    return chart.drawing.panels


def curve(panel: Panel, label: str) -> Any:
    """The points of the first line of that name."""
    return next(line.get_xydata() for line in panel.axes.lines if line.get_label() == label)


def marks(panel: Panel, x: float) -> list[float]:
    """The heights of all marks close to a place, from left to right; means are drawn larger than seeds."""
    points = [line for line in panel.axes.lines if line.get_marker() in set("osD^vPX") and line.get_markersize() > 6]
    found = [point for line in points for point in np.asarray(line.get_xydata()).tolist()]
    return [height for place, height in sorted(found) if abs(place - x) < 0.5]


def seeds(panel: Panel) -> list[Any]:
    """The points of each cloud of seeds."""
    clouds = [line for line in panel.axes.lines if line.get_alpha() == 0.75]
    return [np.asarray(line.get_xydata()) for line in clouds]


def bars(panel: Panel, label: str = "") -> list[float]:
    """The heights of the bars, or of those of one name."""
    found = [each for each in panel.axes.containers if isinstance(each, BarContainer)]
    return [bar.patches[0].get_height() for bar in found if not label or bar.get_label() == label]


def start(line: Line2D) -> list[float]:
    return np.asarray(line.get_xydata(), float)[0].tolist()  # type: ignore[no-any-return]


def numbers(chart: Chart) -> dict[str, str]:
    return {f"{what}: {measure}": str(value) for what, measure, value in chart.numbers}


def test_the_papers_figures_come_first_and_all_studies_are_shown(charts: dict[str, Chart]) -> None:
    assert [name for name in charts if name.startswith("figure-")] == list(charts)[:5]
    assert {study for chart in charts.values() for study in chart.studies} == set(STUDIES)


@pytest.mark.parametrize("tau_z", [1.0, 2.0, 5.0])
def test_comparison_has_means_intervals_and_the_papers_figures(
    dataset: Dataset, charts: dict[str, Chart], tau_z: float
) -> None:
    chart = charts["figure-3-comparison"]
    (panel,), found = panels(chart), numbers(chart)
    group = [1.0, 2.0, 5.0].index(tau_z)
    for study, variant in (("main", "runtime"), ("static", "static K=7"), ("static", "static K=8")):
        sample = deltas(rows(dataset, study, variant, tau_z))
        expected = summarise(sample)
        words = f"{interval_text(expected.mean, expected.t_low, expected.t_high)}, n = {len(sample)}"
        assert found[f"{variant}, {regime_name(tau_z)}: Δ% of the RMSE"] == words
    assert bars(panel, "static K=8")[group] == pytest.approx(expected.mean)
    printed = paper.printed("main", "runtime", tau_z)
    assert printed is not None
    assert bars(panel, "the paper: runtime")[group] == printed.mean
    references = {
        row["controller"].replace("_", " "): row["delta_pct"]
        for row in dataset.controllers.filter(preset="paper", tau_z=tau_z, condition="").iter_rows(named=True)
        if row["controller"] != "baseline"
    }
    lines = [(line, start(line)) for line in panel.axes.lines if line.get_linestyle() != "None"]
    assert {line.get_label(): y for line, (x, y) in lines if round(x) == group} == references


def test_a_run_that_failed_is_not_counted(dataset: Dataset, charts: dict[str, Chart]) -> None:
    assert len(rows(dataset, "static", "static K=7", 5.0)) == 9
    assert numbers(charts["figure-3-comparison"])["static K=7, τ_z = 5 s: Δ% of the RMSE"].endswith("n = 9")


def test_strip_has_a_dot_a_seed_and_a_bar_at_the_mean(dataset: Dataset, charts: dict[str, Chart]) -> None:
    expected = deltas(rows(dataset, "main", "runtime", 2.0))
    (panel,) = panels(charts["figure-4-seeds"])
    dots = seeds(panel)[1]
    assert sorted(dots[:, 1]) == sorted(expected)
    assert len(set(dots[:, 0])) == len(dots)
    means = [start(line)[1] for line in panel.axes.lines if line.get_label() == "mean"]
    assert means[1] == pytest.approx(np.mean(expected))


def test_heads_of_the_run_in_the_middle(dataset: Dataset, charts: dict[str, Chart]) -> None:
    found = rows(dataset, "main", "runtime", 5.0)
    middle = representative(found)
    assert middle is not None
    assert middle["delta_pct"] == sorted(deltas(found))[4]
    panel = panels(charts["figure-5-heads"])[2]
    assert f"seed {middle['seed']}" in panel.title
    heads = curve(panel, "K(t)").tolist()
    assert heads == curve(panel, "the paper: K(t)").tolist()
    assert [step for step, _ in heads] == [0, *range(1500, 19501, 3000), 50_000]
    assert [count for _, count in heads] == [*range(1, 9), 8]
    grown = [start(line)[0] for line in panel.axes.lines if line.get_label() == "a head grows"]
    assert grown == list(range(1500, 19501, 3000))


def test_sweeps_have_means_spreads_and_the_papers(dataset: Dataset, charts: dict[str, Chart]) -> None:
    means, spreads = panels(charts["figure-6-cap"])
    sample = deltas(rows(dataset, "k_max", "K_max 16", 2.0))
    assert seeds(means)[3][:, 1].tolist() == sample
    printed = paper.printed("k_max", "K_max 16", 2.0)
    assert printed is not None
    assert marks(means, 3) == pytest.approx([np.mean(sample), printed.mean])
    assert bars(spreads)[-2:] == pytest.approx([np.std(sample, ddof=1), 10.30])
    assert curve(means, "the paper: static K=7")[0, 1] == -35.0
    assert tick_names(panels(charts["figure-7-cooldown"])[0]) == list(STUDIES["grace"][0])


def tick_names(panel: Panel) -> list[str]:
    return [each.get_text() for each in panel.axes.get_xticklabels()]


def test_any_study_is_compared_in_error_and_headroom(dataset: Dataset, charts: dict[str, Chart]) -> None:
    error, headroom = panels(charts["results-encoders"])
    found = rows(dataset, "encoders", "gru", 1.0)
    index = STUDIES["encoders"][0].index("gru")
    for panel, sample in ((error, deltas(found)), (headroom, found["headroom_closed"].to_list())):
        known = [value for value in sample if value is not None]
        assert seeds(panel)[index][:, 1].tolist() == known
        assert marks(panel, 0)[index] == pytest.approx(np.mean(known))
    assert tick_names(panels(charts["results-sensitivity"])[0]) == list(STUDIES["sensitivity"][0])


def test_conditions_stand_on_an_axis(dataset: Dataset, charts: dict[str, Chart]) -> None:
    panel = panels(charts["conditions-robustness"])[1]
    assert tick_names(panel)[::2][:2] == ["as trained", "payload 3 kg"]
    sample = deltas(rows(dataset, "robustness", "runtime", 2.0, "payload 3 kg"))
    assert marks(panel, 2)[0] == pytest.approx(np.mean(sample))
    assert "runtime, payload 3 kg, τ_z = 2 s: Δ% of the RMSE" in numbers(charts["conditions-robustness"])


def test_curves_of_unequal_length() -> None:
    steps = [np.arange(100.0, last + 1, 100) for last in (1000, 1000, 600)]
    values = [at + np.arange(len(each), dtype=float) for at, each in zip((0.0, 2.0, 7.0), steps, strict=True)]
    values[0][3] = np.nan
    curve = mean_curve(list(zip(steps, values, strict=True)))
    assert curve is not None
    assert curve.x.tolist() == steps[0].tolist()
    for index in (0, 5, 9):
        sample = summarise([each[index] for each in values if index < len(each)])
        found = [curve.mean[index], curve.low[index], curve.high[index]]
        assert found == pytest.approx([sample.mean, sample.t_low, sample.t_high])
    assert curve.mean[3] == pytest.approx((5 + 10) / 2)
    assert (curve.least[0], curve.most[0]) == (0.0, 7.0)
    assert mean_curve([]) is None
    assert mean_curve([(steps[0], np.full(10, np.nan))]) is None


def test_learning_curves_are_drawn_once_for_the_same_runs(charts: dict[str, Chart]) -> None:
    assert {name for name in charts if name.startswith("learning-")} == {
        f"learning-{name.replace('_', '-')}" for name in STUDIES if name != "robustness"
    }
    axes = panels(charts["learning-static"])[0].axes
    assert (len(axes.collections), len(axes.lines)) == (4, 4)


def test_rank_shares_episodes_and_attention(charts: dict[str, Chart]) -> None:
    rank = panels(charts["rank"])[0]
    assert curve(rank, "effective rank")[:, 1].mean() == pytest.approx(11, abs=0.3)
    assert curve(rank, "heads K")[-1, 1] == 8
    highest = panels(charts["shares"])[0].axes.collections[-1].get_paths()[0].vertices
    assert np.asarray(highest)[:, 1].max() == pytest.approx(1.0)
    tracking = charts["tracking-tau-2"].drawing
    assert list(tracking.legend)[:2] == ["payload 0 kg", "payload 0.375 kg"]
    assert len(tracking.panels) == 6 * 2
    position, error = tracking.panels[0], tracking.panels[2]
    found = curve(position, "reference")[:, 1] - curve(position, "payload 0 kg")[:, 1]
    np.testing.assert_allclose(found, curve(error, "payload 0 kg")[:, 1])
    (mesh,) = panels(charts["attention"])[0].axes.collections
    weights = np.asarray(mesh.get_array())
    assert weights.shape == (8, 20)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_what_cannot_be_seen_is_said(charts: dict[str, Chart]) -> None:
    said = charts["figure-6-cap"].description
    assert said.startswith("The head-count cap K_max. Mean, τ_z = 2 s: Δ% of the RMSE; Spread")
    assert charts["figure-4-seeds"].description == "Runtime heads, seed by seed. Δ% of the RMSE over memory regime"


def test_nothing_is_made_of_nothing(dataset: Dataset) -> None:
    empty = replace(
        dataset, runs=dataset.runs.clear(), controllers=dataset.controllers.clear(), histories={}, episodes={}
    )
    assert make_charts(Runs(empty, "paper")) == []
    assert make_charts(Runs(dataset, "unknown")) == []
    rows_alone = replace(empty, runs=dataset.runs)
    names = {chart.name for chart in make_charts(Runs(rows_alone, "paper"))}
    assert "figure-3-comparison" in names
    assert not names & {"figure-5-heads", "rank", "shares", "attention", "learning-main"}


def test_heads_are_shown_without_study_main() -> None:
    dataset = report_dataset(["paper"], {"quick": (("gru", "eight", "nine"), {5.0: 20})}, seeds=2)
    found = {chart.name: chart for chart in make_charts(Runs(dataset, "paper"))}
    for name in ("figure-5-heads", "rank", "shares"):
        assert found[name].studies == ["quick"]
        assert found[name].variants == ["eight"]


def test_names_are_of_files_and_not_twice() -> None:
    studies = {"</script><b>": (("a/b", "$x$"), {2.0: 50}), "script b": (("a/b",), {2.0: 50})}
    names = [chart.name for chart in make_charts(Runs(report_dataset(["paper"], studies, seeds=2), "paper"))]
    assert names[1:4] == ["results-script-b", "results-script-b-2", "learning-script-b"]


def luminance(colour: str) -> float:
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_stand_out_from_white() -> None:
    for colour in (*COLOURS, GREY, *ordered_colours(9, LINES)):
        assert 1.05 / (luminance(colour) + 0.05) > 2.6


def test_ordered_colours_go_from_end_to_end() -> None:
    first, _, last = ordered_colours(3, SCALE)
    assert (first, last) == ("#440154", "#fde725")
    assert ordered_colours(1, SCALE) == [first]


def test_a_variant_looks_the_same_everywhere() -> None:
    found = looks([[("a", "runtime", "b")], [("c", "b", "d")], [tuple("efghijklm")]])
    assert found["runtime"] == looks([])["runtime"]
    assert found["c"].colour not in {found["b"].colour, found["d"].colour}
    assert len({found[name] for name in "efghijklm"}) == 9


def test_files_have_their_labels_and_are_always_the_same(dataset: Dataset, charts: dict[str, Chart]) -> None:
    again = {chart.name: chart for chart in make_charts(Runs(dataset, "paper"))}
    for name in ("figure-3-comparison", "conditions-robustness", "attention"):
        picture = charts[name].drawing.picture
        assert picture.png[:8] == b"\x89PNG\r\n\x1a\n"
        written = picture.svg.decode()
        assert all(label in written for label in (charts[name].drawing.title, *charts[name].drawing.legend))
        assert all(panel.y_title in written for panel in panels(charts[name]))
        assert again[name].drawing.picture == picture


def test_words_with_dollars_and_underscores_are_as_they_were_written() -> None:
    names = ("a $x$ of b$", "_a")
    drawing = Drawing("$ and $")
    with mpl.rc_context(STYLE):
        for name in names:
            drawing.panel(names=names).axes.plot([0, 1], label=name)
    written = drawing.picture.svg.decode()
    assert all(f">{name}</text>" in written for name in (*names, "$ and $"))


def test_heads_of_one_run(tmp_path: Path) -> None:
    checks: list[dict[str, Any]] = [{"step": 500 * i, "k": i, "rank": 2.0 * i, "action": "grow"} for i in (1, 2)]
    stretches: list[dict[str, Any]] = [{"step": 500, "return": None}, {"step": 1000, "return": -3.0}]
    heads_figure("a run", 2, checks, stretches, tmp_path / "a.png")
    heads_figure("a run without checks", 2, [], [], tmp_path / "b.png")
    assert all((tmp_path / name).stat().st_size > 5_000 for name in ("a.png", "b.png"))
