"""What is kept of studies, and what is said of them, without any training."""

import dataclasses
import errno
import json
from dataclasses import replace
from io import StringIO
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console
from small_studies import SMALL, one_assignment, small_study

from incrt.cli import main
from incrt.cli.study_display import StudyDisplay, failure_lines
from incrt.controllers.tuning import CONTROLLERS
from incrt.report.reading import read_studies
from incrt.storage.records import Command
from incrt.studies import store as store_module
from incrt.studies.assignments import Assignment
from incrt.studies.backend import LocalBackend
from incrt.studies.store import RunStatus, Store
from incrt.studies.study import Study


def test_seeds_asked_for_before_stay_in_the_study(tmp_path: Path) -> None:
    store, study = Store(tmp_path / "out"), small_study(tmp_path)
    store.enter(study)
    more, gone = store.enter(small_study(tmp_path, SMALL.replace('"1-2"', '"2,7"')))
    assert (more.seeds, gone) == ((1, 2, 7), [])
    renamed, gone = store.enter(small_study(tmp_path, SMALL.replace("Small runs", "Other words")))
    assert (renamed.seeds, gone) == ((1, 2, 7), [])
    fewer, gone = store.enter(small_study(tmp_path, SMALL.replace('"all heads".encoder.encoder = "static"', "")))
    assert fewer.seeds == (1, 2, 7)
    assert [(run.cell.variant, run.seed) for run in gone] == [("all heads", seed) for seed in (1, 2, 7)]
    other, gone = store.enter(small_study(tmp_path, SMALL.replace("steps = 140", "steps = 160")))
    assert (other.seeds, len(gone)) == ((1, 2), 3)  # other runs: what was asked for of the first ones says nothing


def test_a_study_is_not_gone_on_with_where_a_file_of_its_own_has_changed(tmp_path: Path) -> None:
    motion = tmp_path / "motion.csv"
    motion.write_text("t,q1,q2\n0,0,0\n1,0.1,0\n2,0,0\n")
    store = Store(tmp_path / "out")
    study = small_study(tmp_path, SMALL.replace("grown = {}", f'grown.task.trajectory = "{motion}"'))
    store.enter(study)
    store.enter(study)
    assert store.studies() == [study]
    motion.write_text("t,q1,q2\n0,0,0\n1,0.2,0\n2,0,0\n")
    changed = r"motion\.csv has changed since study small-memory was begun .*; choose another --out"
    with pytest.raises(ValueError, match=changed):
        store.enter(study)
    with pytest.raises(ValueError, match=changed):  # another one shares its runs and reference controllers
        store.enter(replace(study, name="other"))


@pytest.mark.parametrize(
    ("written", "found"), [("all heads", {"grown": "all heads"}), (None, {}), ({"grown": "all heads"},) * 2]
)
def test_what_is_compared_is_read_as_any_version_wrote_it(tmp_path: Path, written: object, found: object) -> None:
    store = Store(tmp_path / "out")
    study, _ = store.enter(small_study(tmp_path))
    assert store.studies() == [study]
    path = store.path / "studies" / "small-memory.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "compare": written}))
    assert [each.compare for each in store.studies()] == [found]
    assert [each.compare for each in read_studies(store.path).studies] == [found]


def test_each_variant_with_a_task_of_its_own_has_its_controllers(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    text = SMALL.replace("grown = {}", 'grown.task.trajectory = "slow"')
    study, _ = store.enter(small_study(tmp_path, text))
    write_references(store, study, dict.fromkeys(CONTROLLERS, 0.1))
    found = read_studies(store.path).controllers.filter(condition="")
    assert found.select("variant", "controller").rows() == list(product(("grown", "all heads"), CONTROLLERS))


def test_nothing_is_said_of_an_arm_that_was_lost(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    study, _ = store.enter(small_study(tmp_path))
    write_references(store, study, {**dict.fromkeys(CONTROLLERS, 0.1), "adaptive": 1e9})
    found = read_studies(store.path).controllers
    lost = found.filter(controller="adaptive").select("rmse", "delta_pct", "torque_tv")
    assert set(lost.rows()) == {(None, None, None)}
    assert set(found.filter(controller="observer").select("rmse", "headroom_closed").rows()) == {(0.1, 0.0)}
    write_references(store, study, {**dict.fromkeys(CONTROLLERS, 0.1), "clairvoyant": 1.0})
    found = read_studies(store.path).controllers.filter(controller="observer")
    assert set(found.select("rmse", "headroom_closed").rows()) == {(0.1, None)}  # an end of it was lost


def write_references(store: Store, study: Study, rmse: dict[str, float]) -> None:
    figures = dict.fromkeys(("delta_pct", "headroom_closed", "max_error", "torque_rms", "torque_tv"), 0.0)
    for cell in study.cells:
        for changes in study.tests.values():
            path = store.references(cell.config.task, changes)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps([{"controller": name, "rmse": rmse[name], **figures} for name in rmse]))


def test_what_failed_of_a_study_s_other_runs_stays_noted_and_no_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    study, _ = store.enter(small_study(tmp_path))
    first, second, *_ = store.planned(study)
    for folder in (first.folder, second.folder, store.path / "runs" / "of-a-variant-that-is-gone" / "seed-1"):
        store.note_failed(study, folder, "the arm fell off")
    store.forget_failed(study, [first])
    assert list(store.failed(study)) == [str(second.folder.relative_to(store.path))]
    (store.path / "studies" / "small-memory.failed.json").write_text('{"a')
    store.forget_failed(study, [first])
    assert store.failed(study) == {}


def test_a_part_of_a_study_is_shown_alone(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    part = [run for run in Store(tmp_path / "out").planned(study) if run.cell.variant == "all heads"]
    text = StringIO()
    with StudyDisplay(study, part, Console(file=text, width=80, force_terminal=True)) as display:
        display.update([RunStatus("waiting", 0), RunStatus("training", 70)])
    shown = text.getvalue()
    assert "\nsmall: 1 waiting, 1 training" in shown.replace("\r", "")
    assert "all heads" in shown
    assert "grown" not in shown


def command(seeds: str) -> Command:
    return Command("small", "memory", seeds, 8, "2026-01-01 12:00 UTC", 9.5, 4, 5.0, 2.5, 1.5)


@pytest.mark.parametrize("damage", [b"nonsense", b'{"study": "small"}', b"[]", b'{"study": "sm', b"\xff\xfe"])
def test_a_damaged_line_about_a_command_is_left_out(tmp_path: Path, damage: bytes) -> None:
    store = Store(tmp_path / "out")
    store.enter(small_study(tmp_path))
    assert store.commands() == []
    store.note_command(command("1"))
    path = store.path / "studies" / "commands.jsonl"
    path.write_bytes(path.read_bytes() + damage + b"\n")
    store.note_command(command("2"))
    assert store.commands() == [command("1"), command("2")]
    assert read_studies(store.path).commands.to_dicts() == [vars(each) for each in store.commands()]


def test_a_command_s_times_are_not_worth_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Store(tmp_path / "out")
    monkeypatch.setattr(store_module, "write_whole", full)
    store.note_command(command("1"))
    assert store.commands() == []


def test_a_worker_that_dies_says_how(tmp_path: Path) -> None:
    assignment = one_assignment(Store(tmp_path / "out"), small_study(tmp_path))
    for folder in assignment.folders:  # over, so that nothing is left but the tests
        folder.mkdir(parents=True)
        (folder / "conclusion.json").write_text("{}")
    backend = LocalBackend(tmp_path / "logs")
    backend.start(Assignment(**{**vars(assignment), "tests": []}))  # no assignment at all
    assert not backend.has_room()
    (end,) = backend.ended(60)
    assert backend.has_room()
    assert end.found is None
    assert end.death is not None
    assert "exit status 1, saying: AttributeError" in end.death


def test_a_long_answer_does_not_block_the_worker(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    study = dataclasses.replace(small_study(tmp_path), seeds=tuple(range(600)), trained_by=("main",))
    backend = LocalBackend(tmp_path / "logs")
    backend.start(one_assignment(store, study))
    (end,) = backend.ended(60)
    assert end.found is not None
    assert len(end.found.problems) == 1200
    assert len(end.found.to_json()) > 2**17


def test_names_with_brackets_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "out")
    store.enter(small_study(tmp_path, SMALL.replace('"all heads"', '"[red] x [/b]"')))
    main(["study", "status", str(store.path)])
    assert "[red] x [/b]" in capsys.readouterr().out


def test_runs_that_failed_for_one_reason_are_said_in_one_line() -> None:
    failed = {f"runs/a/seed-{seed}": f"is not trained: runs/a/seed-{seed} waits" for seed in range(60)}
    assert failure_lines({**failed, "runs/b": "is damaged"}) == [
        "failed: 60 runs, the first runs/a/seed-0: is not trained: it waits",
        "failed: runs/b: is damaged",
    ]
    assert failure_lines({"runs/c": "out/runs/c/events.jsonl cannot be read"}) == [
        "failed: runs/c: events.jsonl cannot be read"
    ]
