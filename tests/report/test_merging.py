"""Folders that are reported on together are as one that held everything; what contradicts is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import altered, but
from made_up_report import CONDITIONS, MIDDLE, STUDIES, report_dataset, without_figures

from incrt.cli import main
from incrt.report.archive import write_archive
from incrt.report.build import build_report
from incrt.report.data import Dataset, StudyRecord, cell_name, command_for, controllers_of
from incrt.report.drawn import only_drawn
from incrt.report.merging import merge
from incrt.report.schema import CONTROLLERS, RUN_KEY, RUNS, Row, to_frame

ONE, OTHER = Path("one"), Path("other")
WHOLE = report_dataset(("memory",), {name: STUDIES[name] for name in ("main", "robustness", "static")}, seeds=4)
FOLDERS = WHOLE.runs["folder"].unique(maintain_order=True).to_list()
ROW = WHOLE.runs.row(0, named=True)
CONTROLLER = WHOLE.controllers.row(0, named=True)
FIRST = WHOLE.studies[0]
CELL = next(iter(FIRST.configuration))
STATIC = pl.col("study") == "static"


def part(keep: pl.Expr, whole: Dataset = WHOLE) -> Dataset:
    """A folder with these rows alone, and with the seeds and studies of these."""
    rows = whole.runs.filter(keep)
    runs = set(rows["folder"])
    seeds = {study: tuple(sorted(rows.filter(study=study)["seed"].unique())) for study in rows["study"].unique()}
    return replace(
        whole,
        studies=[_with_seeds(study, seeds[study.name]) for study in whole.studies if study.name in seeds],
        runs=rows,
        controllers=whole.controllers.filter(pl.col("study").is_in(list(seeds))),
        histories={name: each for name, each in whole.histories.items() if name in runs},
        episodes={name: each for name, each in whole.episodes.items() if name in runs},
    )


def _with_seeds(study: StudyRecord, seeds: tuple[int, ...]) -> StudyRecord:
    command = command_for(study.name, study.preset, seeds)
    return replace(study, seeds=seeds, runs_wanted=len(study.configuration) * len(seeds), command=command)


def changed(**changes: Any) -> Dataset:
    """Everything, with other words in the record of the first study."""
    return replace(WHOLE, studies=[replace(FIRST, **changes), *WHOLE.studies[1:]])


def with_error(whole: Dataset, row: Row) -> Dataset:
    """Everything, but that one test of a run came out otherwise."""
    here = pl.all_horizontal(pl.col(name) == row[name] for name in RUN_KEY)
    return replace(whole, runs=altered(whole.runs, here, max_error=9.0))


def only(study: StudyRecord, rows: Sequence[Row] = (), controllers: Sequence[Row] = ()) -> Dataset:
    """A folder with one study."""
    return replace(WHOLE, studies=[study], runs=to_frame(rows, RUNS), controllers=to_frame(controllers, CONTROLLERS))


def assert_same(found: Dataset, wanted: Dataset) -> None:
    for name in ("studies", "made_by", "title"):
        assert getattr(found, name) == getattr(wanted, name), name
    for name in ("runs", "controllers", "commands"):
        assert getattr(found, name).equals(getattr(wanted, name)), name
    for one, other in ((found.histories, wanted.histories), (found.episodes, wanted.episodes)):
        assert list(one) == list(other)
        assert all(one[key] is other[key] for key in one)


# --- what is split is put together again ---------------------------------------------------------------------------


@given(st.lists(st.sampled_from(("one", "other", "both")), min_size=len(FOLDERS), max_size=len(FOLDERS)))
def test_however_runs_are_split_the_folders_together_hold_them(where: list[str]) -> None:
    place = dict(zip(FOLDERS, where, strict=True))
    one, other = (
        part(pl.col("folder").is_in([name for name, home in place.items() if home != elsewhere]))
        for elsewhere in ("other", "one")
    )
    assert_same(merge([(ONE, one), (OTHER, other)]), WHOLE)


@pytest.mark.parametrize(
    "keep",
    [
        pl.col("seed") < 44,
        pl.col("variant") == "static K=7",
        STATIC,
        pl.col("condition") == "",
    ],
    ids=["seeds", "variants", "studies", "tests"],
)
def test_what_is_kept_of_both_is_kept_of_the_whole(keep: pl.Expr, tmp_path: Path) -> None:
    found = merge([(ONE, part(~keep)), (OTHER, part(keep))])
    for folder, dataset in ((tmp_path / "whole", WHOLE), (tmp_path / "found", found)):
        write_archive(only_drawn(dataset), folder)
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "found" / path.name).read_bytes(), path.name


def test_studies_come_in_the_order_of_their_files() -> None:
    """Which is not that of their names: a hyphen comes before a letter, and also before the dot of an ending."""
    whole = report_dataset(("memory", "paper"), {"a": (("runtime",), MIDDLE)}, seeds=1)
    names = ("a-b", "a-memory")
    more = [
        replace(whole, studies=[replace(each, name=name) for each in whole.studies], runs=whole.runs.clear())
        for name in names
    ]
    found = merge([(ONE, whole), *((Path(name), each) for name, each in zip(names, more, strict=True))])
    assert [(each.name, each.preset) for each in found.studies] == [
        *(("a-b", "memory"), ("a-b", "paper"), ("a-memory", "memory"), ("a-memory", "paper")),
        *(("a", "memory"), ("a", "paper")),
    ]


def test_each_variant_s_own_controllers_come_in_the_order_of_the_cells() -> None:
    (study,) = [each for each in WHOLE.studies if each.name == "static"]
    some = WHOLE.controllers.filter(STATIC)
    # All variants share a task at 1 s; at 2 s each has its own.
    settings = {
        cell: parts | {"task": parts["task"] | ({"eta_max": cell} if "2 s" in cell else {})}
        for cell, parts in study.configuration.items()
    }
    own = (altered(some.filter(tau_z=2.0), where=True, variant=variant) for variant in study.variants)
    wanted = pl.concat([some.filter(tau_z=1.0), *own])
    whole = replace(part(STATIC), studies=[replace(study, configuration=settings)])
    one, other = (replace(whole, controllers=wanted.filter(tau_z=tau_z)) for tau_z in (2.0, 1.0))
    assert merge([(ONE, one), (OTHER, other)]).controllers.equals(wanted)


def test_one_folder_is_left_as_it_is() -> None:
    assert merge([(ONE, WHOLE)]) is WHOLE


def test_the_first_folder_speaks_for_both() -> None:
    other = replace(
        changed(about="Other words."),
        controllers=altered(WHOLE.controllers, where=True, rmse=0.5),
        title="Another",
    )
    assert_same(merge([(ONE, WHOLE), (OTHER, other)]), WHOLE)


def test_what_made_the_runs_is_named_once_and_commands_in_their_order() -> None:
    (maker,), command = WHOLE.made_by, WHOLE.commands
    before = altered(command, where=True, begun="2025-12-31 23:59 UTC")
    other = replace(WHOLE, made_by=[{"device": "another"}, maker], commands=pl.concat([command, before]))
    found = merge([(ONE, WHOLE), (OTHER, other)])
    assert found.made_by == [maker, {"device": "another"}]
    assert found.commands.equals(pl.concat([before, command]))


def test_of_two_histories_of_a_run_the_one_with_more_in_it_is_kept() -> None:
    """A report keeps heads and ranks only of the runs that it drew them of; other folders may have them drawn."""
    none = np.zeros(0)
    bare = {
        name: replace(each, event_steps=none, event_actions=(), event_heads=none, check_steps=none, ranks=none)
        for name, each in WHOLE.histories.items()
    }
    found = merge([(ONE, replace(WHOLE, histories=bare)), (OTHER, WHOLE)]).histories
    kept = {name: (len(each.event_steps), len(each.ranks)) for name, each in found.items()}
    assert kept == {name: (len(each.event_steps), len(each.ranks)) for name, each in WHOLE.histories.items()}


# --- what is missing -----------------------------------------------------------------------------------------------


def test_a_run_that_another_folder_has_finished_has_not_failed() -> None:
    robustness = WHOLE.studies[1]
    done, half, gone = FOLDERS[0], FOLDERS[1], "runs/gone/seed-1"
    failed = tuple((run, "the disk was full") for run in (done, half, gone))
    one = part((pl.col("study") != "robustness") | ((pl.col("folder") == half) & (pl.col("condition") == "")))
    one = replace(one, studies=[replace(s, failed=failed) if s.name == "robustness" else s for s in one.studies])
    other = part(pl.col("folder") == done)
    other = replace(other, studies=[replace(s, failed=((gone, "said otherwise"),)) for s in other.studies])
    for folders in ([(ONE, one), (OTHER, other)], [(OTHER, other), (ONE, one)]):
        (found,) = [each for each in merge(folders).studies if each.name == robustness.name]
        said = dict(folders[0][1].studies[1].failed)[gone]
        assert dict(found.failed) == {half: "the disk was full", gone: said}


@pytest.mark.parametrize("tests", [("",), tuple(CONDITIONS), ("", *CONDITIONS)], ids=["training", "others", "all"])
def test_controllers_are_missing_only_if_no_folder_has_them(tests: tuple[str, ...]) -> None:
    whole = part(pl.col("study") == "robustness")
    (study,) = whole.studies
    first, second, *_ = (f"{controllers_of(cell)}: cannot be read" for cell in study.configuration)
    gone = whole.controllers.filter((pl.col("tau_z") != 1.0) | ~pl.col("condition").is_in(tests))
    has, lacks, lacks_more = (
        replace(whole, studies=[replace(study, unread=unread)], controllers=references)
        for unread, references in (((), whole.controllers), ((first,), gone), ((first, second), gone))
    )
    for folders, unread in (([lacks, lacks], (first,)), ([has, lacks], ()), ([lacks_more, has], ())):
        (found,) = merge(list(zip((ONE, OTHER), folders, strict=True))).studies
        assert found.unread == unread
    assert merge([(ONE, lacks_more), (OTHER, lacks)]).studies[0].unread == (first,)  # the second is there


def test_studies_share_what_only_one_of_them_has_as_in_one_folder() -> None:
    whole = part(pl.col("study") != "robustness")
    main, static = whole.studies
    one = part(pl.col("study") == "main")
    unread = tuple(f"{controllers_of(cell)}: cannot be read" for cell in static.configuration if "runtime" in cell)
    own = part(STATIC & (pl.col("variant") != "runtime"))
    other = replace(own, studies=[replace(static, unread=unread)], controllers=own.controllers.clear())
    for folders in ([(ONE, one), (OTHER, other)], [(OTHER, other), (ONE, one)]):
        found = merge(folders)
        assert found.studies == [main, static]
        assert found.runs.equals(whole.runs)
        assert found.controllers.equals(whole.controllers)
    # A run of other settings is another run.
    cell = "runtime, tau_z = 2 s"
    settings = static.configuration | {cell: static.configuration[cell] | {"sac": {"steps": 9}}}
    other = replace(other, studies=[replace(static, configuration=settings)])
    found = merge([(ONE, one), (OTHER, other)])
    lacking = whole.runs.join(found.runs, on=RUN_KEY, how="anti")
    assert set(lacking.select("study", "variant", "tau_z").iter_rows()) == {("static", "runtime", 2.0)}


def _small_study(
    name: str, preset: str, tasks: dict[str, dict[str, Any]], conditions: dict[str, dict[str, Any]]
) -> StudyRecord:
    """A study at 5 s whose variants differ in their tasks."""
    return replace(
        FIRST,
        name=name,
        preset=preset,
        seeds=(1, 2),
        variants=tuple(tasks),
        compare={},
        regimes=tuple(dict.fromkeys((5.0, task["window"]) for task in tasks.values())),
        conditions=conditions,
        configuration={cell_name(variant, 5.0): {"task": task} for variant, task in tasks.items()},
    )


def test_what_is_shared_is_named_as_the_study_that_shares_it_names_it() -> None:
    task = {"window": 20, "eta_max": 8}
    first = _small_study("first", "memory", {"its": task}, {"heavy": {"payload": 2}})
    rows = [
        but(ROW, variant="its", tau_z=5.0, study="first", seed=seed, condition=name, folder=f"{seed}")
        for seed in (1, 2)
        for name in ("", "heavy")
    ]
    controllers = [
        but(CONTROLLER, study="first", tau_z=5.0, condition=name, controller=each)
        for name in ("", "heavy")
        for each in ("baseline", "observer")
    ]
    second = _small_study(
        "second",
        "paper",
        {"long": task | {"window": 50}, "same": task, "wide": task | {"eta_max": 16}},
        {"heavy": {"payload": 3}, "2 kg": {"payload": 2}},
    )
    # What controllers on the same task have in a study that comes later is not what is shared.
    third = replace(first, name="third")
    one = only(first, rows, controllers)
    of_third = [but(each, study="third", rmse=0.5) for each in controllers]
    other = replace(only(second, [], of_third), studies=[second, third])
    found = merge([(ONE, one), (OTHER, other)])
    assert found.runs.filter(study="second").to_dicts() == [
        but(rows[2 * i + j], study="second", preset="paper", variant="same", condition=("", "2 kg")[j])
        for i in range(2)
        for j in range(2)
    ]
    assert found.controllers.filter(study="second").to_dicts() == [
        but(each, study="second", preset="paper", variant="long", condition="2 kg" if each["condition"] else "")
        for each in controllers
    ]


def test_a_test_alone_is_no_run() -> None:
    """Of a run whose outcome in its training's own conditions is not there, others share only what is."""
    task = {"window": 20}
    first = _small_study("first", "memory", {"its": task}, {"heavy": {"payload": 2}})
    second = replace(first, name="second", conditions={})
    row = but(ROW, variant="its", tau_z=5.0, study="first", seed=1, condition="heavy")
    assert merge([(ONE, only(first, [row])), (OTHER, only(second))]).runs.to_dicts() == [row]


# --- what contradicts ----------------------------------------------------------------------------------------------


def test_two_outcomes_of_one_test_are_refused() -> None:
    row = WHOLE.runs.filter(pl.col("condition") != "").row(0, named=True)
    other, run, test = with_error(WHOLE, row), row["folder"], row["condition"]
    said = f"{run} came out differently in one and other .study robustness, .* tau_z = 1 s, {test}"
    with pytest.raises(ValueError, match=said):
        merge([(ONE, WHOLE), (OTHER, other)])


def test_a_folder_that_contradicts_itself_is_refused() -> None:
    row = WHOLE.runs.filter(study="static", variant="runtime").row(0, named=True)
    with pytest.raises(ValueError, match=f"{row['folder']} came out differently in two rows of one .study static"):
        merge([(ONE, with_error(WHOLE, row))])


def test_two_outcomes_of_one_test_are_refused_also_under_two_names() -> None:
    task = {"window": 20}
    first, second = (
        _small_study(name, "memory", {"its": task}, {condition: {"payload": 2}})
        for name, condition in (("first", "heavy"), ("second", "2 kg"))
    )
    row = but(ROW, variant="its", tau_z=5.0, study="first", seed=1, condition="heavy")
    other = but(row, study="second", condition="2 kg", max_error=9.0)
    one, two = only(first, [row]), only(second, [other])
    with pytest.raises(ValueError, match=r"came out differently in one and other .study second, .* 2 kg"):
        merge([(ONE, one), (OTHER, two)])


def test_a_run_that_was_trained_twice_is_refused_also_where_other_studies_name_it() -> None:
    mine = part(pl.col("study") == "main")
    tests = part(pl.col("study") == "robustness")
    merge([(ONE, mine), (OTHER, tests)])
    row = tests.runs.filter(condition="").row(0, named=True)
    with pytest.raises(ValueError, match=f"{row['folder']} came out differently in one and other .study robustness"):
        merge([(ONE, mine), (OTHER, with_error(tests, row))])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"variants": ("runtime", "more")}, r"variants: \('runtime',\), and \('runtime', 'more'\)"),
        ({"regimes": ((2.0, 50),)}, "regimes: .* and "),
        ({"conditions": {"payload 2 kg": {"eval_payloads": [2.0]}}}, "conditions: {}, and {'payload 2 kg': .*2.0"),
        ({"compare": {"runtime": "static"}}, "compare: {}, and {'runtime': 'static'}"),
        ({"trained_by": ("main",)}, "trained_by: .* and "),
        (
            {"configuration": FIRST.configuration | {CELL: {"sac": {"steps": 9}}}},
            r"runtime, tau_z = 1 s, task.preset: 'memory', and None",
        ),
        (
            {"configuration": FIRST.configuration | {CELL: FIRST.configuration[CELL] | {"sac": {"steps": 9}}}},
            r"runtime, tau_z = 1 s, sac.steps: 50000, and 9",
        ),
    ],
)
def test_two_studies_of_one_name_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"study main, preset memory, is not the same in one and other: {said}"):
        merge([(ONE, WHOLE), (OTHER, changed(**changes))])


# --- the command ---------------------------------------------------------------------------------------------------


def archives(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The report of a whole, and what those of its two parts keep."""
    whole = replace(report_dataset(("memory",), {"main": (("runtime",), MIDDLE)}, seeds=4), title="Whole")
    build_report(whole, tmp_path / "whole")
    write_archive(only_drawn(part(pl.col("seed") < 44, whole)), tmp_path / "one")
    write_archive(only_drawn(part(pl.col("seed") >= 44, whole)), tmp_path / "other")
    return tmp_path / "whole", tmp_path / "one", tmp_path / "other"


def test_a_report_takes_up_what_another_folder_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    whole, one, other = archives(tmp_path)
    main(["report", str(one), str(other), "--out", str(one), "--json"])
    names = ("runs.csv", "references.csv", "commands.csv", "record.json", "cells.csv", "tables/memory/study-main.csv")
    assert [name for name in names if (one / name).read_bytes() != (whole / name).read_bytes()] == []
    before = (one / "record.json").read_bytes()
    main(["report", str(one), "--json"])
    assert (one / "record.json").read_bytes() == before


def test_a_study_of_which_runs_are_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    whole = report_dataset(("memory",), {"main": (("runtime",), MIDDLE)}, seeds=4)
    for wanted, is_named in ((4, False), (9, True)):
        write_archive(replace(whole, studies=[replace(whole.studies[0], runs_wanted=wanted)]), tmp_path)
        main(["report", str(tmp_path), "--json"])
        assert ("study main, preset memory: 4 of 9 runs are there" in capsys.readouterr().err) == is_named


def test_a_report_is_not_written_among_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store" / "studies").mkdir(parents=True)
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "one"), str(tmp_path / "other"), "--out", str(tmp_path / "store")])
    assert "store is a folder of studies; give it a folder of its own" in " ".join(capsys.readouterr().err.split())


def test_several_folders_need_a_place_for_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path / "one"), str(tmp_path / "other")])
    assert ended.value.code == 2
    assert "--out must be given for a report on several folders" in capsys.readouterr().err.replace("\n", " ")
