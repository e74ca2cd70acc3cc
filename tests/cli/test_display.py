"""What a run reports: the figures of a stretch, the line and the table that show them."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from small_runs import SAC, small_run
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from incrt.cli import display as display_module
from incrt.cli.display import Display
from incrt.engine.population import News
from incrt.engine.progress import Failure, Metrics, Progress, Report, first_progress, summarise
from incrt.engine.step import Record
from incrt.engine.update import Losses
from incrt.heads.certificates import GrowCertificate
from incrt.heads.check import Check
from incrt.heads.triggers import Decision

STEPS = SAC.steps


# --- figures of a stretch ------------------------------------------------------------------------------------------


def test_losses_are_means_over_updates_and_returns_over_episodes() -> None:
    losses: list[Any] = [np.array([100.0, 100.0, i, i + 2.0]) for i in range(len(Losses._fields))]
    reward: Any = np.array([1.0, 2.0, 3.0, 6.0])
    total: Any = np.array([np.nan, 5.0, np.nan, 8.0])
    learning: Any = np.array([0.0, 0.0, 1.0, 1.0])
    record = Record(Losses(*losses), reward, total, learning)
    found = summarise(40, record, steps_per_s=7.0)
    assert (found.step, found.episode_return, found.reward, found.steps_per_s) == (40, 6.5, 3.0, 7.0)
    assert {name: getattr(found, name) for name in Losses._fields} == {
        name: i + 1.0 for i, name in enumerate(Losses._fields)
    }


def test_where_nothing_was_measured_there_is_no_figure() -> None:
    zero: Any = np.array([0.0])
    record = Record(Losses(*[zero] * len(Losses._fields)), zero, zero * np.nan, zero)
    found = summarise(1, record, steps_per_s=1.0)
    assert found.episode_return is None
    assert found.critic_loss is None
    assert found.reward == 0


# --- what is shown ---------------------------------------------------------------------------------------------------


def report(number: int, step: int, episode_return: float | None, head: int | None = None) -> Report:
    """News of a run, with the growth of a head if one is given."""
    nothing: dict[str, Any] = dict.fromkeys(Metrics._fields)
    figures = Metrics(**{**nothing, "step": step, "episode_return": episode_return})
    if head is None:
        return Report(number, figures, None)
    mask = tuple(i <= head for i in range(3))
    shares = tuple(float(i == 0) for i in range(3))
    certificate = GrowCertificate(step, head, {"policy": 0.0}, 1.0, 1.0)
    return Report(number, figures, Check(step, Decision("grow", "rank", head), 9.0, shares, mask, certificate))


def population(*progress: Progress) -> Any:
    return SimpleNamespace(progress=list(progress))


def at(step: int, **changes: Any) -> Progress:
    found = first_progress(small_run(0))
    found.step = step
    for name, value in changes.items():
        setattr(found, name, value)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set by the test."""
    now = [100.0]
    monkeypatch.setattr(display_module, "time", SimpleNamespace(perf_counter=lambda: now[0], time=lambda: now[0]))
    return now


def lines_of(text: io.StringIO) -> list[str]:
    return text.getvalue().splitlines()


def test_plain_lines_say_pace_heads_events_and_returns(clock: list[float]) -> None:
    text = io.StringIO()
    with Display([Path("seed-1"), Path("seed-2")], Console(file=text, width=200), tensorboard=False) as display:
        display.update(population(at(20), at(0)), News([], []))
        clock[0] += 60  # which compiling took
        display.update(population(at(40), at(0)), News([report(0, 40, -6.0)], []))
        clock[0] += 8
        news = News([report(0, 80, -5.0, head=1), report(1, 40, -50.0)], [])
        display.update(population(at(80), at(40)), news)  # too soon for another line
        clock[0] += 2
        display.update(population(at(100), at(40)), News([report(0, 100, -5.0)], []))
    resumed, first, one_stretch, line = lines_of(text)
    assert first == "training 2 runs; compiling comes first"
    assert resumed == "1 of 2 runs go on from their checkpoints"
    assert one_stretch == f"{100 * 40 / (2 * STEPS):.0f} % of 2 runs, K 1, return -6 (best) to -6"
    # Since the first stretch was over 100 of 140 steps were made, in ten seconds; 140 are left.
    assert line == (
        f"{100 * 140 / (2 * STEPS):.0f} % of 2 runs, 10 steps/s, {140 / 10 / 60:.1f} min left, K 1, "
        "last event: grow of head 1 at 80, return -5 (best) to -50"
    )


def test_failed_runs_are_named_and_have_nothing_left_to_do(clock: list[float]) -> None:
    text = io.StringIO()
    failed = at(60, failure=Failure(60, "the critic's loss is not finite"))
    with Display([Path("seed-1"), Path("seed-2")], Console(file=text, width=200), tensorboard=False) as display:
        display.update(population(at(0), at(0)), News([], []))
        display.update(population(at(0), at(20)), News([report(1, 20, -5.0)], []))
        clock[0] += 10
        display.update(population(at(60), failed), News([report(0, 60, -5.0)], []))
    *_, line = lines_of(text)
    assert "10 steps/s, 0.1 min left" in line
    assert line.endswith("failed: seed-2 at step 60")


def test_on_a_terminal_every_run_has_a_row(clock: list[float]) -> None:
    text = io.StringIO()
    console = Console(file=text, width=100, force_terminal=True, color_system=None)
    folders = [Path(f"seed-{i}") for i in range(20)]
    with Display(folders, console, tensorboard=False) as display:
        display.update(population(*(at(0) for _ in folders)), News([], []))
        clock[0] += 10
        runs = [at(20 * (i % 3)) for i in range(20)]
        runs[1].failure = Failure(20, "the actor's action is not finite")
        display.update(population(*runs), News([report(0, 20, -7.5, head=2), report(2, 40, -3.0)], []))
    shown = text.getvalue()
    assert any(" % of 20 runs, " in line[:20] for line in shown.splitlines())  # below the bar, not behind it
    assert "and 4 more" in shown
    assert "seed-15" in shown
    assert "seed-16" not in shown
    rows = {line.split()[0]: line for line in shown.splitlines() if line.startswith("seed-")}
    assert rows["seed-0"].split() == ["seed-0", "0", "1", "-7.5", "grow", "of", "head", "2", "at", "20"]
    assert "failed: the actor's action is not finite" in rows["seed-1"]
    assert rows["seed-2"].split()[:4] == ["seed-2", "40", "1", "-3"]


def test_tensorboard_has_heads_and_events(tmp_path: Path) -> None:
    with Display([tmp_path], Console(file=io.StringIO()), tensorboard=True) as display:
        display.update(population(at(0)), News([], []))
        display.update(population(at(20)), News([report(0, 20, -5.0, head=2)], []))
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    shown = {name: [(each.step, each.value) for each in board.Scalars(name)] for name in board.Tags()["scalars"]}
    for name, value in {"k": 3, "rank": 9, "share_0": 1, "share_1": 0, "grow": 2, "jump": 0, "holds": 1}.items():
        assert shown[f"heads/{name}"] == [(20, value)]
    assert "heads/share_2" not in shown  # it was not active when shares were measured
    assert shown["train/return"] == [(20, -5.0)]


def test_runs_that_are_over_are_counted() -> None:
    text = io.StringIO()
    with Display([Path("seed-1"), Path("seed-2")], Console(file=text, width=200), tensorboard=False) as display:
        display.update(population(at(STEPS), at(0)), News([], []))
    assert lines_of(text) == ["1 of 2 runs are trained already", "training 1 run; compiling comes first"]
