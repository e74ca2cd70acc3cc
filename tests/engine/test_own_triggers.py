"""Runs of the engine in which a trigger of the user's own decides."""

import json
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from small_runs import ENCODER, HEADS, RUN, SAC, small_run

from incrt.config.registry import description
from incrt.engine import Job, Population, make_job, train
from incrt.engine.batch import Stack
from incrt.engine.checkpoint import FORMAT
from incrt.engine.device_loop import Group
from incrt.engine.progress import first_progress
from incrt.engine.run_folder import TENSORBOARD, RunFolder, made_by
from incrt.heads.check import Check
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision, Signals, make_trigger
from incrt.runs import find_runs


class Sums:
    """Decides by all that it has been shown, and remembers it: one difference would change every later reason."""

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        shown = [*(signals.shares or ()), *signals.losses.values(), signals.rank or 0.0, signals.returns or 0.0]
        seen = {"sum": (state or {"sum": 0.0})["sum"] + sum(shown)}
        if not all(signals.mask):
            return Decision("grow", f"sum {seen['sum']!r}"), seen
        return Decision("prune", f"sum {seen['sum']!r}", 1), seen


OWN = HEADS.replace(trigger=Sums())


def checks_of(population: Population) -> list[Check]:
    return [report.check for news in population.train() for report in news.reports if report.check is not None]


def test_it_decides_and_is_shown_what_was_learned() -> None:
    shown: list[Signals] = []

    class Watcher(Sums):
        def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
            shown.append(signals)
            return super().decide(signals, state)

    population = Population([small_run(42, heads=HEADS.replace(trigger=Watcher()))], "cpu")
    checks = checks_of(population)
    assert [check.decision.action for check in checks] == ["grow", "grow", "prune", "grow", "prune", "grow", "prune"]
    assert [check.k for check in checks] == [2, 3, 2, 3, 2, 3, 2]
    assert [check.decision.head for check in checks] == [1, 2, 1, 1, 1, 1, 1]
    assert all(check.certificate is not None and check.certificate.holds for check in checks)
    assert [signals.returns is None for signals in shown] == [True, False, True, False, True, False, True]
    assert all({"critic_loss", "actor_loss", "q"} <= set(signals.losses) for signals in shown)


def test_a_run_that_goes_on_from_a_checkpoint_has_the_same_events(tmp_path: Path) -> None:
    for name, lengths in (("whole", (140,)), ("parts", (60, 100, 140))):
        for steps in lengths:
            config = RUN.replace(heads={"trigger": Sums()}, sac={"steps": steps}, seed=3)
            train([make_job(tmp_path / name, config)], "cpu")
    whole, parts = ((tmp_path / name / "events.jsonl").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    assert b"sum" in whole
    conclusion = json.loads((tmp_path / "whole" / "conclusion.json").read_text())["guarantees"]
    assert (conclusion["grows"], conclusion["prunes"], conclusion["certificates_held"]) == (4, 3, 7)
    assert (conclusion["inside"], conclusion["cumulative_holds"]) == (None, None)


def test_a_device_waits_for_a_trigger_that_may_always_act() -> None:
    def advanced(*, lags: bool) -> list[dict[str, Any]]:
        population = Population([small_run(42, heads=OWN)], "cpu")
        group = Group(population.groups[0].stacks, jax.devices("cpu")[0], lags=lags)
        found = []
        while not group.finished:
            found += [report.check.to_json() for report in group.advance() if report.check is not None]
        return found

    assert advanced(lags=True) == advanced(lags=False)


def test_nonsense_ends_the_training_with_a_sentence_and_the_last_checkpoint_stays(tmp_path: Path) -> None:
    class Late:
        def decide(self, signals: Signals, state: Any) -> Any:
            return None if signals.step > 60 else (Decision("noop", "wait"), state)

    config = RUN.replace(heads={"trigger": Late()})
    with pytest.raises(ValueError, match="trigger Late: decide returned None; accepted is a pair of a Decision"):
        train([make_job(tmp_path / "run", config)], "cpu", save_every=20)
    (newest,) = sorted((tmp_path / "run" / "checkpoint").glob("*60.json"))
    written = json.loads(newest.read_text())["content"]
    assert written["format"] == FORMAT
    assert written["heads_state"] == {"mask": [True, False, False], "last_check": 60, "state": None}


class Nonsense:
    """Answers with a word."""

    def decide(self, signals: Signals, state: Any) -> Any:
        return "grow"


def test_nonsense_of_one_run_leaves_the_others_be(tmp_path: Path) -> None:
    def jobs() -> list[Job]:
        bad = RUN.replace(heads={"trigger": Nonsense()})
        return [make_job(tmp_path / "bad", bad), make_job(tmp_path / "good", RUN)]

    refused: list[tuple[Path, str]] = []
    progress = train(jobs(), "cpu", on_refused=lambda job, error: refused.append((job.folder, str(error))))
    assert [each.finished for each in progress] == [False, True]
    ((folder, why),) = refused
    assert folder == tmp_path / "bad"
    assert "trigger Nonsense: decide returned 'grow'" in why
    assert (tmp_path / "good" / "policy.safetensors").exists()
    with pytest.raises(ValueError, match="trigger Nonsense"):  # without on_refused, once the others are trained
        train(jobs(), "cpu")


def test_a_run_of_a_stack_whose_trigger_answers_nonsense_ends_alone() -> None:
    """As on a GPU, where all runs of one pace advance together."""
    runs = [small_run(0), small_run(1, heads=HEADS.replace(trigger=Nonsense()))]
    stack = Stack([0, 1], [first_progress(run) for run in runs], None)
    group = Group([stack], jax.devices("cpu")[0], lags=True)
    reports = []
    while not group.finished:
        reports += group.advance()
    good, bad = stack.members
    assert good.finished
    assert {report.number for report in reports if report.metrics.step >= HEADS.check_every} == {0}
    assert "trigger Nonsense: decide returned 'grow'" in str(bad.refused)
    assert bad.step == HEADS.check_every
    assert list(group.states()) == [0]


def test_a_run_whose_rank_cannot_be_taken_ends_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.Lock()
    failed: list[bool] = []

    def fails_once(*given: Any) -> float:
        with lock:
            if not failed:
                failed.append(True)
                raise np.linalg.LinAlgError("no convergence")
        return effective_rank(*given)

    monkeypatch.setattr("incrt.engine.batch.effective_rank", fails_once)
    told: list[str] = []
    jobs = [make_job(tmp_path / str(seed), RUN.replace(seed=seed)) for seed in (1, 2)]
    progress = train(jobs, "cpu", on_refused=lambda _, error: told.append(str(error)))
    assert sorted(each.finished for each in progress) == [False, True]
    assert [words.partition(" (")[0] for words in told] == ["a rank of its contexts cannot be taken: no convergence"]


def test_a_folder_in_which_other_files_lie_can_be_used_once_the_trigger_is_mended(tmp_path: Path) -> None:
    job = make_job(tmp_path / "run", RUN.replace(heads={"trigger": Nonsense()}))
    with pytest.raises(ValueError, match="trigger Nonsense"):
        train([job], "cpu", on_news=lambda *_: (tmp_path / "run" / "notes.txt").touch())
    (progress,) = train([make_job(tmp_path / "run", RUN)], "cpu")
    assert progress.finished


def test_nothing_half_built_is_left_of_runs_whose_triggers_answer_nonsense_at_once(tmp_path: Path) -> None:
    bad = RUN.replace(heads={"trigger": Nonsense()})

    def draw(*_: Any) -> None:
        for name in ("one", "other"):
            (tmp_path / name / TENSORBOARD).mkdir(exist_ok=True)
            (tmp_path / name / TENSORBOARD / "events.out.tfevents.1").touch()

    with pytest.raises(ValueError, match="trigger Nonsense"):
        train([make_job(tmp_path / name, bad) for name in ("one", "other")], "cpu", on_news=draw)
    assert not list(tmp_path.iterdir())


def test_a_run_that_was_killed_before_its_first_checkpoint_makes_room_for_another(tmp_path: Path) -> None:
    job = make_job(tmp_path / "run", RUN.replace(heads={"trigger": Nonsense()}))
    folder = RunFolder(job.folder, job.run, job.about, pytest.fail)
    folder.take()
    folder.begin(made_by("cpu"))
    folder.close()
    (progress,) = train([make_job(tmp_path / "run", RUN.replace(heads={"trigger": Sums()}))], "cpu")
    assert progress.finished
    assert "Sums" in json.loads((tmp_path / "run" / "config.json").read_text())["heads"]["trigger"]["class"]
    with pytest.raises(ValueError, match=r"holds another run, with another heads\.trigger"):
        train([make_job(tmp_path / "run", RUN.replace(heads={"trigger": Nonsense()}))], "cpu")


def test_a_run_whose_trigger_was_an_object_is_read_and_its_trigger_is_gone(tmp_path: Path) -> None:
    config = RUN.replace(heads={"trigger": Sums()})
    train([make_job(tmp_path / "run", config)], "cpu")
    (run,) = find_runs(tmp_path / "run")
    assert run.config.to_json() == config.to_json()
    with pytest.raises(ValueError, match=r"an object of the user's own \(.*Sums\), which no file holds"):
        run.config.heads.trigger.decide(None, None)


def test_a_file_of_the_users_own_that_has_changed_since_is_named(tmp_path: Path) -> None:
    file, motion = tmp_path / "mine.py", tmp_path / "motion.csv"
    text = (
        "from incrt.heads.triggers import Decision\n"
        "class Mine:\n    def decide(self, signals, state):\n        return Decision('noop', 'never'), state\n"
    )
    file.write_text(text)
    motion.write_text("t,q1,q2\n0,0,0\n1,0.1,0\n")
    config = RUN.replace(task={"trajectory": str(motion)}, heads={"trigger": f"{file}:Mine"})
    for _ in range(2):
        train([make_job(tmp_path / "run", config)], "cpu", warn=pytest.fail)
        assert find_runs(tmp_path / "run")[0].changed == ()
    file.write_text(f"# changed\n{text}")
    motion.write_text("t,q1,q2\n0,0,0\n1,0.1,0 \n")
    said: list[str] = []
    for _ in range(2):
        assert find_runs(tmp_path / "run")[0].changed == (str(motion),)  # its trigger has no part in an evaluation
        train(
            [make_job(tmp_path / "run", config)], "cpu", warn=said.append
        )  # nothing is trained with what they say now
    assert said == 2 * [f"{name} has changed since the run in {tmp_path / 'run'} was begun" for name in (file, motion)]


def test_own_code_may_import_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waiting_time.py").write_text("CHECKS = 7\n")
    (tmp_path / "waits.py").write_text(
        "from waiting_time import CHECKS\nfrom incrt.heads.triggers import Decision\n"
        "class Waits:\n    checks = CHECKS\n"
        "    def decide(self, signals, state):\n        return Decision('noop', 'waits'), state\n"
    )
    assert vars(type(make_trigger(HEADS.replace(trigger=f"{tmp_path / 'waits.py'}:Waits"))))["checks"] == 7
    monkeypatch.chdir(tmp_path)
    assert vars(type(make_trigger(HEADS.replace(trigger="waits:Waits"))))["checks"] == 7
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "waiting_time.py").write_text("CHECKS = 9\n")
    (tmp_path / "other" / "waits.py").write_text((tmp_path / "waits.py").read_text())
    monkeypatch.delitem(sys.modules, "waiting_time")
    assert vars(type(make_trigger(HEADS.replace(trigger="other/waits.py:Waits"))))["checks"] == 9


def test_a_trigger_is_described_the_same_in_every_process() -> None:
    class Draws:
        def __init__(self) -> None:
            self.random, self.odds = np.random.default_rng(0), np.array([0.5, 0.25])

        def decide(self, signals: Signals, state: Any) -> Any: ...

    class Named(NamedTuple):
        mode: str = "fast"

        def decide(self, signals: Signals, state: Any) -> Any: ...

    assert description(Draws()) == description(Draws())
    assert description(Named()) != description(Named("slow"))
    for one, other in ((np.float32(0.1), np.float32(0.2)), ({1}, {2}), (Path("a"), Path("b")), (Draws(), None)):
        first, second = Draws(), Draws()
        vars(first)["odds"], vars(second)["odds"] = one, other
        assert description(first) != description(second)


def test_a_reference_that_cannot_be_loaded_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"trigger 'mine.py:Mine' cannot be loaded"):
        make_job(tmp_path / "run", RUN.replace(heads={"trigger": "mine.py:Mine"}))
    assert not list(tmp_path.iterdir())


def test_runs_with_different_triggers_share_a_program() -> None:
    runs = [small_run(0), small_run(0, heads=OWN), small_run(0, encoder=ENCODER, sac=SAC)]
    assert len({run.program() for run in runs}) == 1
