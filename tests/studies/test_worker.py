"""Studies of small runs: what a worker does with a batch, the commands, and the report."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_studies import SMALL, TESTS, one_assignment, small_study

from incrt.cli import main
from incrt.controllers.tuning import CONTROLLERS
from incrt.engine import training
from incrt.engine.run_folder import is_held
from incrt.report import schema
from incrt.report.merging import merge
from incrt.report.reading import read_studies
from incrt.report.schema import RUNS, from_csv
from incrt.report.selection import Runs, deltas
from incrt.report.tables import make_tables
from incrt.report.tables.table import to_markdown
from incrt.storage.json import read_json
from incrt.studies import worker
from incrt.studies.assignments import Assignment
from incrt.studies.backend import LocalBackend
from incrt.studies.schedule import How, Schedule
from incrt.studies.store import EPISODES, PlannedRun, Store, evaluation_file, standing
from incrt.studies.study import Study
from incrt.studies.worker import work

KILL = Path(__file__).parents[2] / "benchmarks" / "study_kill.py"


def say_nothing(_: str) -> None:
    """A worker's warnings."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Study]:
    """The small study, trained and evaluated."""
    folder = tmp_path_factory.mktemp("trained")
    store = Store(folder / "out")
    study = store.enter(small_study(folder))[0]
    found = work(one_assignment(store, study), say_nothing)
    assert (found.problems, found.held, found.no_space) == ({}, [], None)
    spent = found.spent
    assert spent.runs == 4
    assert min(spent.train_s, spent.compile_s, spent.evaluate_s) > 0
    return store, study


def copied(trained: tuple[Store, Study], folder: Path) -> tuple[Store, Study, list[PlannedRun]]:
    """The trained study once more, for tests that do it harm."""
    shutil.copytree(trained[0].path, folder / "out")
    store = Store(folder / "out")
    (study,) = store.studies()
    return store, study, store.planned(study)


def test_a_run_that_was_only_gone_on_with_is_not_counted_as_trained(
    trained: tuple[Store, Study], tmp_path: Path
) -> None:
    store, study, plan = copied(trained, tmp_path)
    for name in ("conclusion.json", "policy.safetensors"):  # killed after its last checkpoint
        (plan[0].folder / name).unlink()
    shutil.rmtree(plan[1].folder)
    found = work(one_assignment(store, study), say_nothing)
    assert (found.problems, found.spent.runs) == ({}, 1)
    assert all(standing(run, TESTS).state == "finished" for run in plan)


def test_every_run_is_trained_and_evaluated_on_every_condition(trained: tuple[Store, Study]) -> None:
    store, study = trained
    for run in store.planned(study):
        assert standing(run, TESTS).state == "finished"
        usual, heavier = (json.loads(evaluation_file(run.folder, changes).read_text()) for changes in TESTS.values())
        assert heavier.pop("condition") == "payload 1 kg"
        assert usual.keys() == heavier.keys()
        assert usual["rmse"] != heavier["rmse"]
        assert usual["seed"] == run.seed


def test_a_study_is_read_back_as_it_was_entered(trained: tuple[Store, Study]) -> None:
    store, study = trained
    assert store.studies() == [study]


def test_what_the_report_is_made_of(trained: tuple[Store, Study]) -> None:
    store, study = trained
    dataset = read_studies(store.path)
    assert len(dataset.runs) == 8
    assert set(dataset.runs["condition"]) == {"", "payload 1 kg"}
    grown = dataset.runs.filter(variant="grown", condition="").row(0, named=True)
    metrics = json.loads((store.path / grown["folder"] / "eval.json").read_text())
    assert (grown["rmse"], grown["delta_pct"]) == (metrics["rmse"], metrics["delta_pct"])
    checks = [json.loads(line) for line in (store.path / grown["folder"] / "events.jsonl").read_text().splitlines()]
    grows = [check["step"] for check in checks if check["action"] == "grow"]
    assert (grown["grows"], grown["last_grow"]) == (len(grows), grows[-1])
    assert grown["largest_grow_jump"] == 0.0
    history = dataset.histories[grown["folder"]]
    assert history.steps[-1] == 140
    assert history.event_steps.tolist() == grows
    assert np.allclose(history.shares.sum(1), 1)
    assert dataset.controllers.filter(condition="")["controller"].to_list() == list(CONTROLLERS)
    assert len(dataset.commands) == 0  # a worker did this, no command
    (episodes,) = dataset.episodes.values()
    assert episodes.q.shape == (1, 20, 2)
    assert np.allclose(episodes.attention.sum(-1), 1, atol=1e-6)
    assert dataset.studies[0].runs_wanted == 4
    assert study.name == "small"


def test_folders_that_share_out_the_seeds_are_read_as_one(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, _ = trained
    parts = []
    for seed, other in ((1, 2), (2, 1)):
        part, study, runs = copied(trained, tmp_path / str(seed))
        for run in runs:
            if run.seed == other:
                shutil.rmtree(run.folder)
        path = part.path / "studies" / "small-memory.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "seeds": [seed]}))
        part.note_failed(study, runs[0].folder, "it failed here")
        parts.append(part.path)
    shutil.rmtree(parts[0] / "references")
    whole, (first, second) = read_studies(store.path), [read_studies(path) for path in parts]
    assert first.studies[0].unread
    assert second.studies[0].failed
    for found in (merge([(parts[0], first), (parts[1], second)]), merge([(parts[1], second), (parts[0], first)])):
        assert found.studies == whole.studies
        assert found.runs.equals(whole.runs)
        assert found.controllers.equals(whole.controllers)
        assert (list(found.histories), found.made_by) == (list(whole.histories), whole.made_by)


def test_a_training_that_failed_is_no_success(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, study, runs = copied(trained, tmp_path)
    figures = json.loads((runs[0].folder / "eval.json").read_text())
    assert figures["success"]
    figures["training"]["failure"] = {"step": 30, "cause": "the critic's loss is not finite"}
    (runs[0].folder / "eval.json").write_text(json.dumps(figures))
    found = read_studies(store.path).runs.filter(seed=runs[0].seed, condition="").head(1)
    assert found.select("failure", "success").row(0) == ("step 30: the critic's loss is not finite", False)
    assert deltas(found) == []
    assert study.seeds == (1, 2)


def test_a_condition_that_changes_is_tested_anew(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, _, runs = copied(trained, tmp_path)
    changed, _ = store.enter(small_study(tmp_path, SMALL.replace("[1.0]", "[1.25]")))
    assert {standing(run, changed.tests).state for run in runs} == {"trained"}
    assert set(read_studies(store.path).runs["condition"]) == {""}


def test_controllers_stand_beside_the_study_whose_task_they_have(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, study, _ = copied(trained, tmp_path)
    other = small_study(tmp_path, SMALL.replace("horizon = 40", 'horizon = 40, trajectory = "slow"'))
    store.enter(dataclasses.replace(other, name="other"))
    rows = [{**row, "delta_pct": -1.0} for row in read_json(store.references(study.cells[0].config.task, {}))]
    store.references(other.cells[0].config.task, {}).write_text(json.dumps(rows))
    runs = Runs(read_studies(store.path), "memory")
    assert {row["delta_pct"] for row in runs.controllers(("other",), 5.0)} == {-1.0}
    assert -1.0 not in {row["delta_pct"] for row in runs.controllers(("small",), 5.0)}
    assert len(runs.controllers(("small",), 5.0)) == len(CONTROLLERS)


def test_a_finished_run_is_left_as_it_is(trained: tuple[Store, Study], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "train", lambda *_, **__: pytest.fail("a finished run is not trained"))
    monkeypatch.setattr(worker, "evaluate_run", lambda *_, **__: pytest.fail("nor evaluated"))
    found = work(one_assignment(*trained), say_nothing)
    assert found.problems == {}


def test_a_damaged_run_is_named_and_the_others_go_on(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, study, runs = copied(trained, tmp_path)
    for name in ("conclusion.json", "eval.json"):  # the first run is not finished, and its checkpoint is broken
        (runs[0].folder / name).unlink()
    for path in (runs[0].folder / "checkpoint").glob("*.safetensors"):
        path.write_bytes(b"nonsense")
    (runs[1].folder / "policy.safetensors").write_bytes(b"nonsense")
    (runs[1].folder / "eval.json").unlink()
    (runs[2].folder / "eval.json").unlink()
    found = work(one_assignment(store, study), say_nothing)
    assert set(found.problems) == {str(runs[0].folder), str(runs[1].folder)}
    assert "no checkpoint" in found.problems[str(runs[0].folder)]
    assert "policy.safetensors holds no policy" in found.problems[str(runs[1].folder)]
    assert "conclusion.json, and the command that trained the run makes" in found.problems[str(runs[1].folder)]
    (runs[1].folder / "conclusion.json").unlink()
    assert set(work(one_assignment(store, study), say_nothing).problems) == {str(runs[0].folder)}
    assert (runs[2].folder / "eval.json").read_bytes() == (
        trained[0].planned(trained[1])[2].folder / "eval.json"
    ).read_bytes()


@pytest.mark.usefixtures("hears_signals")
def test_a_stop_during_the_last_steps_leaves_the_evaluation_to_the_next_command(
    trained: tuple[Store, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study, plan = copied(trained, tmp_path)
    shutil.rmtree(plan[0].folder)
    train = training.train

    def interrupted(*arguments: Any, **options: Any) -> Any:
        try:
            return train(*arguments, **options)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(worker, "train", interrupted)
    found = work(one_assignment(store, study), say_nothing)
    assert (found.problems, found.spent.runs) == ({}, 1)
    assert standing(plan[0], TESTS).state == "trained"
    work(one_assignment(store, study), say_nothing)
    assert standing(plan[0], TESTS).state == "finished"


def test_a_run_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    study = store.enter(small_study(tmp_path))[0]
    first, *others = store.planned(study)
    first.folder.mkdir(parents=True)
    with held(first.folder):
        assert is_held(first.folder)
        found = work(one_assignment(store, study), say_nothing)
    assert found.held == [str(first.folder)]
    assert found.spent.runs == len(others)
    assert {standing(run, TESTS).state for run in others} == {"finished"}
    assert not is_held(first.folder)
    assert standing(first, {}).state == "waiting"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Another process that trains in a folder."""
    code = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(folder / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.communicate("\n")


def test_the_last_that_a_worker_says_is_what_it_died_of() -> None:
    """JAX adds words of its own to a traceback, and messages may have several lines."""
    code = """
import runpy, sys
class Stdin:
    def readline(self):
        raise RuntimeError("out of memory\\nFor simplicity, some frames were removed.")
sys.stdin = Stdin()
runpy.run_module("incrt.studies.worker", run_name="__main__")
"""
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert died.returncode == 1
    assert died.stderr.splitlines()[-1] == "RuntimeError: out of memory"


def test_a_full_disk_is_said_and_what_was_finished_stays(
    trained: tuple[Store, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study, runs = copied(trained, tmp_path)
    (runs[-1].folder / "eval.json").unlink()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker, "write_json", full)
    found = work(one_assignment(store, study), say_nothing)
    assert found.no_space is not None
    assert "No space left on device" in found.no_space
    assert [standing(run, TESTS).state for run in runs] == [*["finished"] * 3, "trained"]


def test_runs_that_another_study_trains_are_only_evaluated(
    trained: tuple[Store, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study, runs = copied(trained, tmp_path)
    shutil.rmtree(runs[0].folder)
    monkeypatch.setattr(worker, "train", lambda *_, **__: pytest.fail("nothing is to be trained"))
    assignment = one_assignment(store, study)
    found = work(Assignment(**{**vars(assignment), "trained_by": ("main",)}), say_nothing)
    assert found.problems == {str(runs[0].folder): "is not trained: incrt study run with study main trains it"}


def test_what_is_wrong_with_all_runs_is_said_of_all_and_not_tried_again(tmp_path: Path) -> None:
    assignment = one_assignment(Store(tmp_path / "out"), small_study(tmp_path))
    found = work(Assignment(**{**vars(assignment), "device": "abacus"}), say_nothing)
    assert set(found.problems) == {str(folder) for folder in assignment.folders}
    assert set(found.problems.values()) == {"device must be one of auto, cpu, gpu; got 'abacus'"}


def test_references_that_are_gone_or_damaged_are_made_anew(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, study, runs = copied(trained, tmp_path)
    path = store.references(runs[0].cell.config.task, {})
    before = path.read_bytes()
    path.write_text('[{"x": 1}]')
    assert read_studies(store.path).studies[0].unread
    assert Runs(read_studies(store.path), "memory").given_up("small") == 0  # no run is lost
    path.unlink()
    backend = LocalBackend(tmp_path / "logs")
    result = Schedule(store, study, runs, backend, How("cpu", 4, None)).run(lambda _: None, lambda: False, say_nothing)
    assert result.finished == 4
    assert path.read_bytes() == before


def test_a_condition_that_could_not_be_tested_is_among_what_failed(
    trained: tuple[Store, Study], tmp_path: Path
) -> None:
    store, study, runs = copied(trained, tmp_path)
    evaluation_file(runs[0].folder, TESTS["payload 1 kg"]).unlink()
    store.note_failed(study, runs[0].folder, "the arm fell off")
    store.note_failed(study, runs[1].folder, "was done since")
    failed = dict(read_studies(store.path).studies[0].failed)
    assert failed == {str(runs[0].folder.relative_to(store.path)): "the arm fell off"}


def test_the_command_goes_on_with_what_is_there(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, runs = copied(trained, tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    before = (runs[0].folder / "eval.json").read_bytes()
    (runs[0].folder / "eval.json").write_text("nonsense")
    main(["study", "run", str(tmp_path / "small.toml"), "--out", str(store.path), "--device", "cpu"])
    assert "4 of 4 runs are finished" in capsys.readouterr().err
    assert (runs[0].folder / "eval.json").read_bytes() == before  # made anew from the policy
    (command,) = store.commands()
    assert (command.study, command.preset, command.seeds) == ("small", "memory", "1-2")
    assert (command.runs, command.train_s, command.compile_s) == (0, 0.0, 0.0)  # nothing was left to train
    assert 0 < command.evaluate_s < command.wall_s
    assert datetime.strptime(command.begun, "%Y-%m-%d %H:%M %Z").replace(tzinfo=UTC) <= datetime.now(UTC)
    assert read_studies(store.path).commands.to_dicts() == [vars(command)]
    main(["study", "status", str(store.path), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["variant"], row["finished"], row["steps_done"]) for row in rows] == [
        ("grown", 2, 280),
        ("all heads", 2, 280),
    ]
    main(["study", "status", str(store.path)])
    assert "small, preset memory" in capsys.readouterr().out


def test_the_command_runs_a_part_of_a_study(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, runs = copied(trained, tmp_path)
    name = "[/all], heads"  # which is neither markup nor two
    (tmp_path / "small.toml").write_text(SMALL.replace("all heads", name))
    for each in (runs[0], runs[2]):
        (each.folder / "eval.json").unlink()
    part = ["--variants", name, name, "--tau-z", "5.0", "5"]
    main(["study", "run", str(tmp_path / "small.toml"), *part, "--out", str(store.path), "--device", "cpu"])
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"study small, preset memory, '{name}'; tau_z 5: 2 of 2 runs are finished" in said
    assert [(each.folder / "eval.json").exists() for each in runs] == [False, True, True, True]
    (command,) = store.commands()
    assert command.part == f"'{name}'; tau_z 5"
    (study,) = store.studies()
    assert study.variants == ("grown", name)  # the whole is still asked for


def test_seeds_that_stay_in_the_study_are_named(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, _ = copied(trained, tmp_path)
    (tmp_path / "small.toml").write_text(SMALL.replace('"1-2"', '"2"'))
    command = ["study", "run", str(tmp_path / "small.toml"), "--out", str(store.path), "--device", "cpu"]
    for asked, finished in (([], "4 of 4"), (["--seeds", "2"], "2 of 2")):
        main([*command, *asked])
        said = capsys.readouterr().err.replace("\n", " ")
        assert "seeds that were asked for before stay in the study: 1-2" in said
        assert f"{finished} runs are finished" in said
    assert [each.seeds for each in store.commands()] == ["1-2", "2"]
    (tmp_path / "small.toml").write_text(SMALL.replace('"all heads".encoder.encoder = "static"', ""))
    main(command)
    said = capsys.readouterr().err.replace("\n", " ")
    assert "study small has changed; 2 trained runs that it no longer names stay there, out of the report" in said


def test_controllers_are_not_missed_where_no_run_is(trained: tuple[Store, Study], tmp_path: Path) -> None:
    store, study, runs = copied(trained, tmp_path)
    for changes in study.tests.values():
        store.references(study.cells[0].config.task, changes).unlink()
    (unread,) = read_studies(store.path).studies[0].unread  # of one task, said once
    assert unread.startswith("reference controllers of grown, tau_z = 5 s")
    for each in runs:
        shutil.rmtree(each.folder)
    assert read_studies(store.path).studies[0].unread == ()


def test_the_command_ends_with_what_failed_and_why(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, runs = copied(trained, tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    (runs[0].folder / "conclusion.json").write_text("{")
    (runs[0].folder / "eval.json").unlink()
    with pytest.raises(SystemExit) as ended:
        main(["study", "run", str(tmp_path / "small.toml"), "--out", str(store.path), "--device", "cpu"])
    assert ended.value.code == 1
    said = capsys.readouterr().err.replace("\n", " ")
    assert "3 of 4 runs are finished" in said
    assert f"failed: {runs[0].folder.relative_to(store.path)}" in said
    main(["study", "status", str(store.path)])
    assert "conclusion.json" in capsys.readouterr().out


def test_the_report_is_made_from_its_rows(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = trained
    main(["report", str(store.path), "--out", str(tmp_path / "report"), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in rows} == {"holds", "cannot tell"}  # these runs are too short to refute the paper
    main(["report", str(store.path), "--out", str(tmp_path / "shown")])
    printed = capsys.readouterr().out
    for word in ("Study small, preset memory", "all heads", "clairvoyant", "Small runs.", "Differences are against"):
        assert word in " ".join(printed.split())
    assert "condition" in printed
    assert "…" not in printed  # nothing is cut off
    assert "<html" in (tmp_path / "report" / "report.html").read_text()
    dataset = read_studies(store.path)
    rows = from_csv((tmp_path / "report" / "runs.csv").read_text(), RUNS)
    controllers = from_csv((tmp_path / "report" / "references.csv").read_text(), schema.CONTROLLERS)
    assert rows.equals(dataset.runs)
    assert controllers.equals(dataset.controllers)
    again = dataclasses.replace(dataset, runs=rows, controllers=controllers)
    for table in make_tables(Runs(again, "memory")):
        path = tmp_path / "report" / "tables" / "memory" / f"{table.name}.md"
        assert path.read_text() == to_markdown(table)
    figures = sorted((tmp_path / "report" / "figures" / "memory").iterdir())
    assert {path.suffix for path in figures} == {".png", ".svg"}
    assert all(path.stat().st_size > 1000 for path in figures)


def test_the_report_leaves_out_what_it_cannot_read_and_says_so(
    trained: tuple[Store, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, runs = copied(trained, tmp_path)
    (runs[0].folder / "eval.json").write_text("{}")
    (runs[1].folder / EPISODES).write_bytes(b"nonsense")  # a figure less, no more than that
    (runs[2].folder / "conclusion.json").unlink()  # not finished: that is no failure
    (runs[3].folder / "metrics.jsonl").write_text("nonsense")
    dataset = read_studies(store.path)
    names = [str(run.folder.relative_to(store.path)) for run in runs]
    assert set(dataset.runs["folder"]) == {names[1]}
    assert {name for name, _ in dataset.studies[0].failed} == {names[0], names[3]}
    assert dataset.episodes == {}
    (runs[1].folder / "conclusion.json").unlink()
    with pytest.raises(SystemExit):
        main(["report", str(store.path)])
    assert "is finished yet" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["study", "run", "nothing", "--out", "OUT"], "there is no study 'nothing'"),
        (["study", "run", "quick", "--out", "OUT", "--seeds", "x"], "seeds must be numbers"),
        (["study", "run", "quick", "--out", "OUT", "--address", "auto"], "--address goes with --backend ray"),
        (["study", "run", "quick", "--out", "OUT", "--batch", "0"], "batch must be a whole number"),
        (["study", "run", "quick", "--out", "OUT", "--variants"], "--variants must be followed by at least one"),
        (["study", "run", "quick", "--out", "OUT", "--tau-z", "--variants", "none"], "--tau-z must be followed by"),
        (["study", "run", "quick", "--out", "OUT", "--variants", "none", "deeper"], "variants must be among 'runtime'"),
        (["study", "run", "quick", "--out", "OUT", "--tau-z", "1", "5"], "tau_z must be among 5; got 1"),
        (["study", "run", "quick", "--out", "FILE/there", "--device", "cpu"], "cannot be written"),
        (["study", "run", "quick", "--out", "OUT", "--device", "gpu"], "there is no gpu here"),
        (["study", "status", "OUT"], "holds no study"),
        (["report", "OUT"], "there is no folder"),
    ],
)
def test_bad_input_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    (tmp_path / "file").touch()
    places = {"OUT": str(tmp_path / "out"), "FILE/there": str(tmp_path / "file" / "there")}
    with pytest.raises(SystemExit) as ended:
        main([places.get(each, each) for each in arguments])
    assert ended.value.code == 2
    assert named in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ('task.robot = "nowhere.py:Arm"', "variant 'own': robot 'nowhere.py:Arm' cannot be loaded"),
        ('heads.trigger = "json:JSONDecoder"', "variant 'own': trigger 'json:JSONDecoder' must be one of paper"),
    ],
)
def test_parts_of_ones_own_are_tried_before_the_study_is_entered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str, why: str
) -> None:
    (tmp_path / "mine.toml").write_text(SMALL.replace("grown = {}", f"grown = {{}}\nown.{part}"))
    with pytest.raises(SystemExit) as ended:
        main(["study", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), "--device", "cpu"])
    assert ended.value.code == 2
    assert why in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_study_that_was_killed_is_the_same_to_the_bit() -> None:
    """Two kills here; ``python benchmarks/study_kill.py`` has twenty."""
    command = [sys.executable, str(KILL), "--kills", "2", "--steps", "900"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all the same to the bit" in done.stdout
