"""Charts hold the figures of the rows they are made from, and are drawn as files and for the page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_up_report import STUDIES, report_dataset
from plotly import graph_objects

from incrt.report import paper
from incrt.report.curves import mean_curve
from incrt.report.data import Dataset
from incrt.report.figures.all_charts import make_charts
from incrt.report.figures.chart import Chart, Panel, Series
from incrt.report.figures.interactive import MOST_POINTS, chart_json
from incrt.report.figures.still import write_all_stills, write_stills
from incrt.report.figures.style import COLOURS, GREY, LINES, looks, ordered_colours
from incrt.report.selection import SOUND, Runs, deltas, representative
from incrt.report.statistics import summarise


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return report_dataset()


@pytest.fixture(scope="module")
def charts(dataset: Dataset) -> dict[str, Chart]:
    return {chart.name: chart for chart in make_charts(Runs(dataset, "paper"))}


def rows(dataset: Dataset, study: str, variant: str, tau_z: float, condition: str = "") -> pl.DataFrame:
    place = {"preset": "paper", "study": study, "variant": variant, "tau_z": tau_z, "condition": condition}
    return dataset.runs.filter(SOUND, **place)


def series_of(chart: Chart, kind: str, variant: str, tau_z: float, *, hollow: bool = False) -> Series:
    found = [
        each
        for panel in chart.panels
        for each in panel.series
        if (each.kind, each.variant, each.hollow) == (kind, variant, hollow) and tau_z in {each.tau_z, panel.tau_z}
    ]
    assert found
    return found[0]


def test_the_papers_figures_come_first_and_all_studies_are_shown(charts: dict[str, Chart]) -> None:
    assert [name for name in charts if name.startswith("figure-")] == list(charts)[:5]
    assert {study for chart in charts.values() for study in chart.studies} == set(STUDIES)


@pytest.mark.parametrize("tau_z", [1.0, 2.0, 5.0])
def test_comparison_has_means_intervals_and_the_papers_figures(
    dataset: Dataset, charts: dict[str, Chart], tau_z: float
) -> None:
    chart = charts["figure-3-comparison"]
    for study, variant in (("main", "runtime"), ("static", "static K=7"), ("static", "static K=8")):
        sample = deltas(rows(dataset, study, variant, tau_z))
        expected, bar = summarise(sample), series_of(chart, "bar", variant, tau_z)
        assert bar.low is not None
        assert bar.high is not None
        assert [*bar.y, *bar.low, *bar.high] == pytest.approx([expected.mean, expected.t_low, expected.t_high])
        assert f"n = {len(sample)}" in bar.notes[0]
    printed = paper.printed("main", "runtime", tau_z)
    assert printed is not None
    assert series_of(chart, "bar", "runtime", tau_z, hollow=True).y[0] == printed.mean
    references = {
        row["controller"].replace("_", " "): row["delta_pct"]
        for row in dataset.controllers.filter(preset="paper", tau_z=tau_z, condition="").iter_rows(named=True)
        if row["controller"] != "baseline"
    }
    lines = {each.label: each.y[0] for each in chart.series if each.kind == "line" and each.tau_z == tau_z}
    assert lines == references


def test_a_run_that_failed_is_not_counted(dataset: Dataset, charts: dict[str, Chart]) -> None:
    assert len(rows(dataset, "static", "static K=7", 5.0)) == 9
    assert "n = 9" in series_of(charts["figure-3-comparison"], "bar", "static K=7", 5.0).notes[0]


def test_strip_has_a_dot_a_seed_and_a_bar_at_the_mean(dataset: Dataset, charts: dict[str, Chart]) -> None:
    expected = deltas(rows(dataset, "main", "runtime", 2.0))
    dots = series_of(charts["figure-4-seeds"], "points", "runtime", 2.0)
    assert sorted(dots.y) == sorted(expected)
    assert len(set(dots.x)) == len(dots.x)
    assert series_of(charts["figure-4-seeds"], "line", "runtime", 2.0).y[0] == pytest.approx(np.mean(expected))


def test_heads_of_the_run_in_the_middle(dataset: Dataset, charts: dict[str, Chart]) -> None:
    found = rows(dataset, "main", "runtime", 5.0)
    middle = representative(found)
    assert middle is not None
    assert middle["delta_pct"] == sorted(deltas(found))[4]
    panel = charts["figure-5-heads"].panels[2]
    assert f"seed {middle['seed']}" in panel.title
    events, printed, heads = panel.series
    assert (printed.x.tolist(), printed.y.tolist()) == (
        heads.x.tolist(),
        heads.y.tolist(),
    )
    assert heads.x.tolist() == [0, *range(1500, 19501, 3000), 50_000]
    assert heads.y.tolist() == [*range(1, 9), 8]
    assert np.unique(events.x).tolist() == list(range(1500, 19501, 3000))


def test_sweeps_have_means_spreads_and_the_papers(dataset: Dataset, charts: dict[str, Chart]) -> None:
    means, spreads = charts["figure-6-cap"].panels
    sample = deltas(rows(dataset, "k_max", "K_max 16", 2.0))
    ours = [each for each in means.series if each.variant == "K_max 16" and not each.hollow]
    assert [each.kind for each in ours] == ["points", "points"]
    assert ours[0].y.tolist() == sample
    assert ours[1].y[0] == pytest.approx(np.mean(sample))
    bars = {each.hollow: each.y[0] for each in spreads.series if each.variant == "K_max 16"}
    assert bars == {False: pytest.approx(np.std(sample, ddof=1)), True: 10.30}
    static = [each for each in means.series if each.label == "the paper: static K=7"]
    assert [(each.dash, each.y[0]) for each in static] == [("dash", -35.0)]
    assert [name for _, name in charts["figure-7-cooldown"].panels[0].x_ticks] == list(STUDIES["grace"][0])


def test_any_study_is_compared_in_error_and_headroom(dataset: Dataset, charts: dict[str, Chart]) -> None:
    error, headroom = charts["results-encoders"].panels
    found = rows(dataset, "encoders", "gru", 1.0)
    for panel, sample in ((error, deltas(found)), (headroom, found["headroom_closed"].to_list())):
        dots, mean = (each for each in panel.series if each.variant == "gru" and each.tau_z == 1.0)
        assert dots.y.tolist() == sample
        assert mean.y[0] == pytest.approx(np.mean([value for value in sample if value is not None]))
    one_regime = charts["results-sensitivity"].panels[0]
    assert [name for _, name in one_regime.x_ticks] == list(STUDIES["sensitivity"][0])


def test_conditions_stand_on_an_axis(dataset: Dataset, charts: dict[str, Chart]) -> None:
    panel = charts["conditions-robustness"].panels[1]
    place, name = panel.x_ticks[2]
    assert (panel.x_ticks[0][1], name) == ("as trained", "payload 3 kg")
    sample = deltas(rows(dataset, "robustness", "runtime", 2.0, "payload 3 kg"))
    near = [each for each in panel.series if each.variant == "runtime" and abs(each.x[0] - place) < 0.5]
    assert near[0].y[0] == pytest.approx(np.mean(sample))


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
    panel = charts["learning-static"].panels[0]
    assert [each.kind for each in panel.series] == ["band"] * 4 + ["line"] * 4


def test_rank_shares_episodes_and_attention(charts: dict[str, Chart]) -> None:
    rank = {each.label: each for each in charts["rank"].panels[0].series if each.label}
    assert rank["effective rank"].y.mean() == pytest.approx(11, abs=0.3)
    assert rank["heads K"].y[-1] == 8
    shares = [each.high for each in charts["shares"].panels[0].series if each.high is not None]
    np.testing.assert_allclose(shares[-1], 1.0)
    tracking = charts["tracking-tau-2"]
    assert [each.label for each in tracking.legend][:2] == ["payload 0 kg", "payload 0.375 kg"]
    position, error = tracking.panels[0], tracking.panels[2]
    np.testing.assert_allclose(position.series[-1].y - position.series[0].y, error.series[0].y)
    heat = charts["attention"].panels[0].heatmap
    assert heat is not None
    assert heat.z.shape == (8, 20)
    assert heat.x[-1] == 0
    np.testing.assert_allclose(heat.z.sum(axis=1), 1.0)


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
        assert found[name].studies == ("quick",)
        assert {each.variant for each in found[name].series} == {"eight"}


def test_names_are_of_files_and_not_twice() -> None:
    studies = {"</script><b>": (("a/b", "$x$"), {2.0: 50}), "script b": (("a/b",), {2.0: 50})}
    names = [chart.name for chart in make_charts(Runs(report_dataset(["paper"], studies, seeds=2), "paper"))]
    assert names[1:4] == ["results-script-b", "results-script-b-2", "learning-script-b"]


def luminance(colour: str) -> float:
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_stand_out_from_light_and_dark() -> None:
    dark = luminance("#14171a")
    for colour in (*COLOURS, GREY, *ordered_colours(9, LINES)):
        here = luminance(colour) + 0.05
        assert 1.05 / here > 2.6
        assert here / (dark + 0.05) > 2.4


def test_a_variant_looks_the_same_everywhere() -> None:
    found = looks([[("a", "runtime", "b")], [("c", "b", "d")], [tuple("efghijklm")]])
    assert found["runtime"] == looks([])["runtime"]
    assert found["c"].colour not in {found["b"].colour, found["d"].colour}
    assert len({found[name] for name in "efghijklm"}) == 9


def test_stills_have_their_labels_and_are_always_the_same(charts: dict[str, Chart], tmp_path: Path) -> None:
    for name in ("figure-3-comparison", "conditions-robustness", "results-sensitivity", "attention"):
        png, svg = write_stills(charts[name], tmp_path)
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        written = svg.read_text()
        assert charts[name].title in written
        for series in charts[name].legend:
            assert series.label in written
        for panel in charts[name].panels:
            assert panel.y_title in written
        write_stills(charts[name], tmp_path)
        assert svg.read_text() == written


@pytest.mark.parametrize("worth_a_process", [1, 10])
def test_all_stills_are_written(
    charts: dict[str, Chart], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth_a_process: int
) -> None:
    monkeypatch.setattr("incrt.report.figures.still._WORTH_A_PROCESS", worth_a_process)
    chart = charts["learning-k-max"]
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    write_all_stills({folder: [chart] for folder in folders})
    _, svg = write_stills(chart, tmp_path)
    for folder in folders:
        assert (folder / f"{chart.name}.png").stat().st_size > 10_000
        assert (folder / svg.name).read_bytes() == svg.read_bytes()


def test_what_has_not_been_begun_is_not_drawn_when_drawing_ends_early(tmp_path: Path) -> None:
    line = Series("line", np.array([0.0, 1]), np.array([0.0, 1]), GREY, "line")
    charts = [Chart(f"chart-{i}", "", "", "paper", (), (Panel("", "", "", (line,)),), 1) for i in range(80)]
    (tmp_path / "chart-0.png").mkdir()  # no file can be written there
    with pytest.raises(IsADirectoryError):
        write_all_stills({tmp_path: charts})
    assert len(list(tmp_path.glob("*.svg"))) < 40


def test_still_of_words_with_dollars(tmp_path: Path) -> None:
    line = Series("line", np.array([0.0, 1]), np.array([0.0, 1]), GREY, "a $x$ of b$")
    chart = Chart("dollars", "$ and $", "", "paper", (), (Panel("", "", "", (line,)),), 1)
    _, svg = write_stills(chart, tmp_path)
    assert "a $x$ of b$" in svg.read_text()


def test_plotly_takes_every_panel(charts: dict[str, Chart]) -> None:
    for chart in charts.values():
        found = json.loads(json.dumps(chart_json(chart), allow_nan=False))
        assert len(found["panels"]) == len(chart.panels)
        for panel in found["panels"]:
            graph_objects.Figure(panel["data"], panel["layout"])
            assert len(panel["about"]) == len(panel["data"])
            assert all(len(trace["y"]) <= MOST_POINTS for trace in panel["data"])


def test_long_lines_are_thinned_and_numbers_short() -> None:
    x = np.arange(1001.0)
    line = Series("line", x, np.where(x == 3, np.nan, x / 3), GREY, "<b> & τ_z")
    chart = Chart("long", "", "", "paper", (), (Panel("", "", "", (line,)),), 1)
    (trace,) = chart_json(chart)["panels"][0]["data"]
    assert (trace["x0"], trace["dx"], len(trace["y"])) == (0.0, 3.0, 334)
    assert trace["y"][:4] == [0, None, 2, 3]
    assert trace["y"][-1] == 333
    assert trace["name"] == "&lt;b&gt; &amp; τ<sub>z</sub>"
