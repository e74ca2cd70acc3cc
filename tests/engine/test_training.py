"""Training into folders: the contract of the files, resume, interrupts, folders that are refused."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import pytest
from small_runs import RUN, SAC, TASK

import incrt
from incrt.engine.policy import load
from incrt.engine.population import News, Population
from incrt.engine.progress import Checkpoint
from incrt.engine.run_folder import RunFolder
from incrt.engine.training import Job, make_job, train, until_signalled


def small_job(folder: Path, seed: int = 42, **sac: Any) -> Job:
    return make_job(folder, RUN.replace(seed=seed, sac=sac))


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was trained without interruption."""
    folder = tmp_path_factory.mktemp("peaceful") / "seed-42"
    train([small_job(folder)], "cpu", save_every=40)
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_same_run(a: Path, b: Path) -> None:
    """Everything but the speed, which the clock decides."""
    names = ["events.jsonl", "policy.safetensors", "conclusion.json", f"checkpoint/{SAC.steps:09d}.safetensors"]
    for name in names:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    first, second = (
        [{key: value for key, value in line.items() if key != "steps_per_s"} for line in lines(each / "metrics.jsonl")]
        for each in (a, b)
    )
    assert first == second


def test_the_folder_holds_what_other_programs_rely_on(peaceful: Path) -> None:
    config = json.loads((peaceful / "config.json").read_text())
    assert config["seed"] == 42
    assert config["sac"]["steps"] == SAC.steps
    assert config["task"]["window"] == TASK.window
    (maker,) = config["made_by"]
    assert {"incrt", "jax", "commit", "python"} <= set(maker)
    assert (maker["from_step"], maker["device"]) == (0, "cpu")
    events = lines(peaceful / "events.jsonl")
    assert [event["step"] for event in events] == list(range(20, 141, 20))
    for event in events:
        assert {"step", "action", "reason", "k", "rank", "shares"} <= set(event)
        assert ({"head", "jump", "bound", "holds"} <= set(event)) == (event["action"] != "noop")
    assert [event["step"] for event in events if event["action"] == "grow"] == [60, 140]
    metrics = lines(peaceful / "metrics.jsonl")
    assert [line["step"] for line in metrics] == [event["step"] for event in events]
    for line in metrics:
        assert {"critic_loss", "actor_loss", "temperature", "return", "steps_per_s"} <= set(line)
    conclusion = json.loads((peaceful / "conclusion.json").read_text())
    assert (conclusion["steps"], conclusion["heads"], conclusion["failure"]) == (140, 3, None)
    assert conclusion["guarantees"]["grows"] == conclusion["guarantees"]["certificates_held"] == 2
    assert load(peaceful / "policy.safetensors").mask.tolist() == [True, True, True]


@pytest.mark.usefixtures("hears_signals")
def test_a_signal_stops_the_training_and_the_next_call_goes_on(peaceful: Path, tmp_path: Path) -> None:
    def interrupt(number: int, _: Population, news: News) -> None:
        if any(report.metrics.step == 60 for report in news.reports):
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT):
        folder = tmp_path / str(number) / "seed-42"
        before = signal.getsignal(number)
        progress = train([small_job(folder)], "cpu", save_every=1000, on_news=partial(interrupt, number))
        assert progress[0].step == 60
        assert not progress[0].finished
        assert not (folder / "policy.safetensors").exists()
        assert signal.getsignal(number) is before
        progress = train([small_job(folder)], "cpu")
        assert progress[0].finished
        assert_same_run(folder, peaceful)


@pytest.mark.usefixtures("hears_signals")
def test_a_second_signal_acts_as_it_always_does() -> None:
    with until_signalled() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("hears_signals")
def test_a_signal_is_heard_by_all_that_wait_for_one_and_answered_at_once() -> None:
    answers = []
    with until_signalled(lambda: answers.append("heard")) as stop:
        with until_signalled() as stop_within:
            os.kill(os.getpid(), signal.SIGINT)
            assert stop_within()
            assert answers == ["heard"]
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("hears_signals")
def test_a_signal_that_came_before_is_heard_too(tmp_path: Path) -> None:
    """A worker of a study hears one while it still makes the runs' folders."""
    with until_signalled() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with until_signalled() as stop_within:
            assert stop_within()
        (progress,) = train([small_job(tmp_path)], "cpu")
        assert stop()
        assert progress.step == 0
    with until_signalled() as stop:
        assert not stop()


@pytest.mark.slow
def test_training_that_was_killed_goes_on_as_if_it_was_not() -> None:
    """Three kills here; ``python benchmarks/kill_resume.py`` has twenty, of longer runs."""
    script = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"
    done = subprocess.run(
        [sys.executable, script, "--kills", "3", "--seed", "5", "--steps", "1500"],
        env={**os.environ, "XLA_FLAGS": ""},  # programs as users have them
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("s after its start") == 3
    assert "all the same to the bit" in done.stdout


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_serves(peaceful: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    newest = folder / "checkpoint" / f"{SAC.steps:09d}.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    warnings: list[str] = []
    progress = train([small_job(folder)], "cpu", warn=warnings.append)
    assert progress[0].finished
    assert len(warnings) == 1
    assert "checkpoint at step 140" in warnings[0]
    assert_same_run(folder, peaceful)


def test_a_finished_run_is_left_alone(peaceful: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in peaceful.rglob("*") if path.suffix != ".jsonl"}
    assert train([small_job(peaceful)], "cpu")[0].finished
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_finished_run_can_be_made_longer(peaceful: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seed-42"
    assert train([small_job(folder, steps=100)], "cpu")[0].step == 100
    (folder / "eval.json").write_text("{}")
    kept: list[bool] = []
    longer = train([small_job(folder)], "cpu", on_news=lambda *_: kept.append((folder / "policy.safetensors").exists()))
    assert longer[0].step == SAC.steps
    assert all(kept)  # an interrupt would otherwise leave no policy at all
    assert_same_run(folder, peaceful)
    assert json.loads((folder / "config.json").read_text())["sac"]["steps"] == SAC.steps
    assert not (folder / "eval.json").exists()  # it was of the shorter run
    with pytest.raises(ValueError, match="holds a run of 140 steps; it can be made longer, not shorter"):
        train([small_job(folder, steps=100)], "cpu")


def test_a_kill_before_the_last_checkpoint_is_made_good(peaceful: Path, tmp_path: Path) -> None:
    """The results are written first: without the checkpoint they are made again, with it they are there."""
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    for path in (folder / "checkpoint").glob(f"{SAC.steps:09d}*"):
        path.unlink()
    (folder / "config.json.1.aside").write_text("{")
    (folder / "checkpoint" / "1.safetensors.1.aside").write_text("{")
    train([small_job(folder)], "cpu")
    assert_same_run(folder, peaceful)
    assert not list(folder.rglob("*.aside"))


def test_a_kill_while_the_folder_is_made_leaves_one_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "config.json.1.aside").write_text("{")
    folder = RunFolder(tmp_path, small_job(tmp_path).run, {}, pytest.fail)
    folder.take()
    folder.begin({})
    folder.close()
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 42


def opened(path: Path, maker: str, **sac: Any) -> list[tuple[int, str]]:
    """Who has trained a run, once it is opened by another: from which step on, and who."""
    job = small_job(path, **sac)
    folder = RunFolder(path, job.run, job.about, lambda _: None)
    folder.take()
    folder.begin({"jax": maker})
    folder.close()
    return [(each["from_step"], each["jax"]) for each in json.loads((path / "config.json").read_text())["made_by"]]


def test_the_folder_names_all_who_trained_it(peaceful: Path, tmp_path: Path) -> None:
    assert opened(tmp_path / "new", "a") == opened(tmp_path / "new", "a") == [(0, "a")]
    assert opened(tmp_path / "new", "b") == [(0, "b")]  # nothing was trained before
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    ours = jax.__version__
    assert opened(folder, "b") == [(0, ours)]  # it is over: b trains nothing
    assert opened(folder, "b", steps=200) == [(0, ours), (SAC.steps, "b")]
    for path in (folder / "checkpoint").glob(f"{SAC.steps:09d}*"):
        path.unlink()
    assert opened(folder, "c", steps=200) == [(0, ours), (120, "c")]  # b's steps are trained again


@pytest.mark.parametrize("lost", ["checkpoint", "checkpoint/*"])
def test_results_are_not_lost_with_the_checkpoints(peaceful: Path, tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    for path in folder.glob(lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ValueError, match="has results but no checkpoint"):
        train([small_job(folder)], "cpu")
    for name in ("conclusion.json", "policy.safetensors", "metrics.jsonl", "events.jsonl"):
        assert (folder / name).read_bytes() == (peaceful / name).read_bytes()


def test_a_kill_after_the_last_checkpoint_is_made_good(peaceful: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    (folder / "conclusion.json").unlink()
    (folder / "policy.safetensors").write_bytes(b"cut short")
    train([small_job(folder)], "cpu")
    assert_same_run(folder, peaceful)


def test_other_numbers_of_an_environment_are_another_run(peaceful: Path) -> None:
    job = small_job(peaceful)
    other = dataclasses.replace(job.run, params=job.run.params._replace(payload_std=0.3))
    with pytest.raises(ValueError, match=r"holds another run, with another environment\.params"):
        train([Job(other, peaceful, job.about)], "cpu")


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    for name in ("thesis.txt", "mine.aside"):
        (tmp_path / name).write_text("work of years")
    with pytest.raises(ValueError, match="is not the folder of a run"):
        train([small_job(tmp_path)], "cpu")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.aside", "thesis.txt"]


@pytest.mark.parametrize(
    "content", ["{}", "[1]", "{", '{"sac": {"steps": "many"}}', '{"sac": {"steps": 9}, "made_by": {"jax": "1"}}']
)
def test_a_description_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json does not describe a run"):
        train([small_job(tmp_path)], "cpu")


def test_a_checkpoint_of_another_seed_is_refused(peaceful: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seed-43"
    train([small_job(folder, seed=43, steps=20)], "cpu")
    shutil.rmtree(folder / "checkpoint")
    shutil.copytree(peaceful / "checkpoint", folder / "checkpoint")
    warnings: list[str] = []
    with pytest.raises(ValueError, match="no checkpoint in"):
        train([small_job(folder, seed=43)], "cpu", warn=warnings.append)
    assert "it is of another run" in warnings[0]


def test_the_saved_policy_sees_its_window(peaceful: Path) -> None:
    """The controller keeps the window itself; here evaluate_policy keeps it."""
    policy = load(peaceful / "policy.safetensors")

    expected, _ = incrt.evaluate_policy(TASK, jax.jit(policy.predict))
    found, _ = incrt.evaluate(TASK, policy)
    assert found.rmse == pytest.approx(expected.rmse, rel=1e-4)
    frozen, _ = incrt.evaluate_policy(
        TASK, jax.jit(lambda contexts: policy.predict(contexts[:, -1:].repeat(5, axis=1)))
    )
    assert abs(frozen.rmse - expected.rmse) > 1e-3 * expected.rmse  # the window makes a difference


def test_a_folder_of_another_run_is_refused_and_left_as_it_is(peaceful: Path) -> None:
    before = (peaceful / "config.json").read_bytes()
    with pytest.raises(ValueError, match=r"holds another run, with another seed, sac\.gamma"):
        train([small_job(peaceful, seed=43, gamma=0.9)], "cpu")
    assert (peaceful / "config.json").read_bytes() == before


def test_a_folder_has_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = (RunFolder(tmp_path, small_job(tmp_path).run, {}, pytest.fail) for _ in range(2))
    first.take()
    with pytest.raises(ValueError, match="is being trained by another process"):
        second.take()
    first.close()
    second.take()
    second.close()


def test_one_folder_that_is_refused_leaves_all_as_they_are(peaceful: Path, tmp_path: Path) -> None:
    """What a shorter run came to goes only when the longer one begins."""
    fresh, shorter, other = (tmp_path / name for name in ("fresh", "shorter", "other"))
    shutil.copytree(peaceful, shorter)
    shutil.copytree(peaceful, other)
    (shorter / "eval.json").write_text("{}")
    before = {path: path.read_bytes() for path in shorter.rglob("*") if path.is_file()}
    longer = SAC.steps + 100
    jobs = [small_job(fresh, steps=longer), small_job(shorter, steps=longer), small_job(other, seed=43, steps=longer)]
    with pytest.raises(ValueError, match="holds another run, with another seed"):
        train(jobs, "cpu")
    assert {path: path.read_bytes() for path in shorter.rglob("*") if path.is_file()} == before
    assert not fresh.exists()


def test_a_folder_that_cannot_be_written_leaves_the_others_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = RunFolder.begin

    def full(self: RunFolder, maker: dict[str, Any]) -> None:
        if self.path.name == "full":
            raise ValueError("no space")
        begin(self, maker)

    monkeypatch.setattr(RunFolder, "begin", full)
    refused: dict[Path, str] = {}
    jobs = [small_job(tmp_path / name) for name in ("full", "other")]
    (progress,) = train(jobs, "cpu", on_refused=lambda job, error: refused.update({job.folder: str(error)}))
    assert refused == {tmp_path / "full": "no space"}
    assert progress.finished


def test_going_on_with_a_run_that_is_over_leaves_an_evaluation_that_is_being_written(
    peaceful: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "seed-42"
    shutil.copytree(peaceful, folder)
    (folder / "eval.json.1.aside").write_text("{")
    train([small_job(folder)], "cpu")
    assert (folder / "eval.json.1.aside").exists()


def test_conclusions_are_made_where_the_run_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the thread that writes, too, which has a default device of its own."""
    places = []

    def conclusion(_: Checkpoint) -> dict[str, Any]:
        places.append(getattr(jax.config, "jax_default_device", None))
        return {}

    monkeypatch.setattr("incrt.engine.run_folder.conclusion", conclusion)
    train([small_job(tmp_path)], "cpu")
    assert places == [jax.devices("cpu")[0]]


def test_what_a_run_is_need_not_be_said_twice(peaceful: Path) -> None:
    """The folder knows seed and settings from the run itself; only the environment is described by the caller."""
    job = small_job(peaceful)
    other = dataclasses.replace(job.run, seed=7)
    with pytest.raises(ValueError, match="another seed"):
        train([Job(other, peaceful, job.about)], "cpu")
    with pytest.raises(ValueError, match=r"about cannot be written as JSON"):
        train([Job(job.run, peaceful, {"gravity": jax.numpy.ones(2)})], "cpu")


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="not the folder of a run"):
        train([small_job(tmp_path)], "cpu")
    with pytest.raises(ValueError, match="cannot be written"):
        train([small_job(tmp_path / "notes.txt" / "seed-42")], "cpu")
    with pytest.raises(ValueError, match="folder of its own"):
        train([small_job(tmp_path / "a"), small_job(tmp_path / "a", seed=43)], "cpu")
    with pytest.raises(ValueError, match="save_every must be"):
        train([small_job(tmp_path / "b")], "cpu", save_every=0)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json does not describe a run"):
        train([small_job(tmp_path / "c")], "cpu")


@pytest.mark.parametrize("content", [b"", b"not a policy", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_what_is_no_policy_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "policy.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="holds no policy"):
        load(path)


def test_a_policy_is_found_in_its_run_s_folder_and_a_checkpoint_is_none(peaceful: Path) -> None:
    assert load(peaceful).encoder == load(peaceful / "policy.safetensors").encoder
    with pytest.raises(ValueError, match="holds no policy: it has no 'incrt', as a policy does"):
        load(next((peaceful / "checkpoint").glob("*.safetensors")))
