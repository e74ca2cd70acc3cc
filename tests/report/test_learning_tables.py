"""Tables of learning hold what SciPy makes of the histories."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made_up import altered, around, dataset_of, sample
from scipy import stats

from incrt.report.data import Dataset, History
from incrt.report.selection import Runs
from incrt.report.tables.of_learning import learning_tables, rank_table

NOTHING = np.zeros(0)
STEPS = np.arange(500.0, 50_001, 500)


def history(returns: np.ndarray) -> History:
    return History(1, STEPS, returns, NOTHING, (), NOTHING, NOTHING, NOTHING, np.zeros((0, 0)))


@pytest.fixture(scope="module")
def studied() -> Dataset:
    """Five runs of each of two variants; the second learns later and gets further."""
    made = dataset_of(
        sample("hundred", "runtime", 5.0, around(-50, 5, 5)),
        sample("hundred", "static K=8", 5.0, around(-50, 5, 5), encoder="static"),
        compare="runtime",
    )
    random = np.random.default_rng(0)
    curves = {"runtime": -1000 / STEPS, "static K=8": -20_000 / STEPS + 1}
    histories = {
        folder: history(curves[variant] + random.normal(size=len(STEPS)))
        for folder, variant in made.runs.select("folder", "variant").iter_rows()
    }
    return replace(made, histories=histories)


def test_each_tenth_is_compared_with_the_same_tenth(studied: Dataset) -> None:
    (table,) = learning_tables(Runs(studied, "paper"))
    assert table.name == "learning-hundred"
    assert [row.cells["steps"] for row in table.rows] == 2 * [f"{i * 5000} to {i * 5000 + 5000}" for i in range(10)]
    values = {
        variant: np.array(
            [
                studied.histories[folder].returns.reshape(10, 10).mean(1)
                for folder in studied.runs.filter(variant=variant)["folder"]
            ]
        )
        for variant in ("runtime", "static K=8")
    }
    for tenth, row in enumerate(table.rows[10:]):
        own, other = (values[name][:, tenth] for name in ("static K=8", "runtime"))
        interval = stats.ttest_ind(own, other, equal_var=False).confidence_interval()
        shown = [f"{figure:.2f}" for figure in (own.mean() - other.mean(), *interval)]
        assert (
            re.findall(r"-?\d+\.\d+", (row.cells["difference [Welch95]"] or "").replace("\N{MINUS SIGN}", "-")) == shown
        )
    assert all(row.cells["difference [Welch95]"] is None for row in table.rows[:10])


def test_runs_of_another_length_or_without_a_history_have_no_part(studied: Dataset) -> None:
    shorter = altered(studied.runs, pl.col("variant") == "runtime", steps=40_000)
    (table,) = learning_tables(Runs(replace(studied, runs=shorter), "paper"))
    assert {row.cells["difference [Welch95]"] for row in table.rows} == {None}
    assert table.rows[0].cells["steps"] == "0 to 4000"
    fewer = dict(list(studied.histories.items())[1:])
    (table,) = learning_tables(Runs(replace(studied, histories=fewer), "paper"))
    assert [row.cells["n"] for row in table.rows] == ["4"] * 10 + ["5"] * 10


def test_a_study_that_compares_nothing_has_no_such_table(studied: Dataset) -> None:
    alone = [replace(each, compare={}) for each in studied.studies]
    assert learning_tables(Runs(replace(studied, studies=alone), "paper")) == []
    assert learning_tables(Runs(studied, "memory")) == []


def test_ranks_by_tenth_with_their_scatter(studied: Dataset) -> None:
    random = np.random.default_rng(1)
    ranks = {name: random.integers(20, 40, len(STEPS)).astype(float) for name in studied.runs["folder"].head(4)}
    followed = {
        folder: replace(each, check_steps=STEPS, ranks=ranks[folder]) if folder in ranks else each
        for folder, each in studied.histories.items()
    }
    table = rank_table(Runs(replace(studied, histories=followed), "paper"))
    assert table is not None
    assert [row.cells["steps"] for row in table.rows] == [f"{i * 5000} to {i * 5000 + 5000}" for i in range(10)]
    parts = np.array(list(ranks.values())).reshape(4, 10, 10)
    for tenth, row in enumerate(table.rows):
        half = stats.t.ppf(0.975, 3) * stats.sem(parts[:, tenth].mean(axis=1))
        shown = [parts[:, tenth].mean(), half, parts[:, tenth].std(axis=1, ddof=1).mean()]
        assert list(row.cells.values())[3:] == ["4", f"{shown[0]:.2f} ± {shown[1]:.2f}", f"{shown[2]:.2f}"]


def test_without_ranks_there_is_no_table_of_them(studied: Dataset) -> None:
    assert rank_table(Runs(studied, "paper")) is None
    assert rank_table(Runs(studied, "memory")) is None
