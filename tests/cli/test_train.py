"""The commands that train and evaluate: contract, table, figures, errors."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incrt.cli import main
from incrt.cli.evaluate import print_results
from incrt.cli.train import Train
from incrt.config import parse_seeds
from incrt.controllers.evaluation import delta_pct, evaluate, headroom_closed
from incrt.engine import Job, Progress, load_policy
from incrt.engine.threads import usable_cores
from incrt.runs import find_runs

SMALL = [
    "--set",
    "task.horizon=40",
    "task.eval_rollouts=1",
    "task.eval_payloads=[0.5]",
    "encoder.d_k=4",
    "sac.batch=16",
    "sac.hidden=[8, 8]",
]
OPTIONS = [
    *("--tau-z", "5", "--seeds", "42-43", "--steps", "700", "--window", "4", "--k-max", "2", "--device", "cpu"),
    *SMALL,
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two short runs."""
    folder = tmp_path_factory.mktemp("trained")
    main(["train", "--out", str(folder / "runs"), "--figures", str(folder / "figures"), "--tensorboard", *OPTIONS])
    return folder


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    main([*arguments, "--json"])
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_train_leaves_evaluated_runs_and_figures(trained: Path) -> None:
    assert sorted(path.name for path in (trained / "runs").iterdir()) == ["seed-42", "seed-43"]
    assert sorted(path.name for path in (trained / "figures").iterdir()) == [
        f"seed-{seed}-{name}.png" for seed in (42, 43) for name in ("heads", "tracking")
    ]
    for seed in (42, 43):
        folder = trained / "runs" / f"seed-{seed}"
        found = json.loads((folder / "eval.json").read_text())
        assert {
            "rmse",
            "baseline_rmse",
            "delta_pct",
            "success",
            "best_constant_rmse",
            "clairvoyant_rmse",
            "headroom_closed",
            "per_payload",
            "max_error",
            "torque_tv",
            "shield_active_pct",
        } <= set(found)
        run = find_runs(folder)[0]
        figures, _ = evaluate(run.config.task, load_policy(folder / "policy.safetensors"))
        assert found["rmse"] == pytest.approx(figures.rmse, rel=1e-6)
        assert found["delta_pct"] == pytest.approx(delta_pct(found["rmse"], found["baseline_rmse"]))
        assert found["headroom_closed"] == pytest.approx(
            headroom_closed(found["rmse"], found["best_constant_rmse"], found["clairvoyant_rmse"])
        )
        steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert steps == [500, 700]  # the last stretch is as long as the run needs
        assert list((folder / "tensorboard").iterdir())


def test_tensorboard_reads_the_figures(trained: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(trained / "runs" / "seed-42" / "tensorboard"))
    board.Reload()
    written = [json.loads(line) for line in (trained / "runs" / "seed-42" / "metrics.jsonl").read_text().splitlines()]
    losses = board.Scalars("train/critic_loss")
    assert [event.step for event in losses] == [500, 700]
    assert [event.value for event in losses] == pytest.approx([line["critic_loss"] for line in written])
    assert [event.value for event in board.Scalars("heads/k")] == [1]


def test_the_same_command_again_trains_nothing(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "--out", str(trained / "runs"), *OPTIONS])
    printed = capsys.readouterr()
    assert "2 of 2 runs are trained already" in printed.err
    for word in ("baseline", "best constant", "clairvoyant", "runtime, seed 42", "runtime, mean of 2", "held", "0/0"):
        assert word in printed.out
    assert max(map(len, printed.out.splitlines())) <= 80


def test_training_that_was_stopped_says_where_and_exits_as_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(jobs: list[Job], *_: Any, **__: Any) -> list[Progress]:
        return [Progress(job.run, step=100 * (i + 1)) for i, job in enumerate(jobs)]

    monkeypatch.setattr("incrt.cli.train.train", stopped)
    with pytest.raises(SystemExit) as error:
        main(["train", "--out", str(tmp_path), *OPTIONS])
    assert error.value.code == 130
    assert "stopped at step 100 of 700; the same command goes on from here" in capsys.readouterr().err


@pytest.mark.skipif(usable_cores() < 2, reason="on a single core there is nothing to choose")
def test_a_run_that_trains_alone_has_all_threads_first_and_a_single_one_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str | None, int | None]] = []

    def fake(jobs: list[Job], *options: Any, cores: int | None) -> list[Progress]:
        """Three stretches with one head, and three with two."""
        population = SimpleNamespace(progress=[SimpleNamespace(heads=1)])
        tell = options[2]
        given.append((os.environ.get("PJRT_NPROC"), cores))
        for heads, rate in ((1, None), (1, 290.0), (1, 300.0), (2, 295.0), (2, 250.0), (2, 240.0), (2, 245.0)):
            metrics = SimpleNamespace(steps_per_s=rate)
            population.progress[0].heads = heads
            tell(population, SimpleNamespace(reports=[SimpleNamespace(metrics=metrics)] if rate else []))
        return [Progress(job.run) for job in jobs]

    monkeypatch.setenv("INCRT_CACHE", str(tmp_path))
    monkeypatch.setattr("incrt.cli.train.train", fake)
    monkeypatch.setattr("incrt.cli.train.Display.update", lambda *_: None)
    monkeypatch.setenv("PJRT_NPROC", "")  # so that it is given back what it was
    monkeypatch.delenv("PJRT_NPROC")
    for seeds, *cores in (("1",), ("1",), ("1-2",), ("1", "--cores", "1")):
        with pytest.raises(SystemExit):  # nothing was trained
            main(["train", "--out", str(tmp_path / "runs"), "--seeds", seeds, *cores, *SMALL])
    assert given == [(None, None), ("1", None), (None, None), ("1", 1)]
    (measured,) = json.loads((tmp_path / "threads" / "measured.json").read_text()).values()
    assert measured == {"all": {"1": 300.0, "2": 250.0}, "one": {"1": 300.0, "2": 250.0}}


def test_evaluate_gives_references_and_runs(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(capsys, "evaluate", str(trained / "runs"))
    assert rows_of(capsys, "train", "--out", str(trained / "runs"), *OPTIONS) == rows
    assert [row["controller"] for row in rows] == ["baseline", "best_constant", "clairvoyant", "runtime", "runtime"]
    assert [row.get("seed") for row in rows] == [None, None, None, 42, 43]
    assert rows[3]["baseline_rmse"] == rows[0]["rmse"]
    assert len(rows_of(capsys, "evaluate", str(trained / "runs" / "seed-43"))) == 4


def test_other_conditions_are_tested_and_leave_the_files_alone(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trained / "runs" / "seed-42" / "eval.json"
    before = path.read_bytes()
    rows = rows_of(capsys, "evaluate", str(trained / "runs" / "seed-42"), "--payloads", "3", "--delay", "1")
    assert list(rows[-1]["per_payload"]) == ["3.0"]
    assert rows[-1]["rmse"] != json.loads(before)["rmse"]
    assert path.read_bytes() == before


def test_a_condition_that_cannot_be_is_refused_before_any_folder_is_made(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", str(trained / "runs"), "--trajectory", "absent.csv", "--figures", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert "absent.csv holds no trajectory" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_run_that_failed_is_named_and_left_out_of_the_mean(capsys: pytest.CaptureFixture[str]) -> None:
    def row(seed: int, rmse: float, group: int = 0, failure: Any = None) -> dict[str, Any]:
        training = {"heads": 3, "failure": failure, "guarantees": None}
        figures = dict.fromkeys(("delta_pct", "headroom_closed", "max_error", "torque_tv"), 0.5)
        found = {"controller": "static", "tau_z": 5.0, "seed": seed, "group": group, "rmse": rmse}
        return {**found, **figures, "success": rmse < 0.1, "training": training}

    cause = {"step": 60, "cause": "the critic's loss is not finite"}
    print_results("title", [row(1, 0.02), row(2, 0.04), row(3, 9.0, failure=cause), row(4, 0.5, group=1)])
    printed = capsys.readouterr().out
    (mean,) = (line for line in printed.splitlines() if "mean of" in line)
    assert mean.split()[:6] == ["5", "static,", "mean", "of", "2", "0.0300"]
    assert "tau_z = 5 s, static: 2 of 2 succeed" in printed
    assert "tau_z = 5 s, static: 0 of 1 succeed" in printed
    assert "seed 3 failed at step 60: the critic's loss is not finite" in printed


def test_options_reach_the_configuration(tmp_path: Path) -> None:
    train = Train(
        out=tmp_path,
        preset="paper",
        tau_z=2.0,
        seeds="7",
        steps=900,
        encoder="static",
        window=50,
        k_max=4,
        k_init=2,
        shield=False,
        penalty=False,
    )
    (job,) = train.jobs()
    run = job.run
    assert job.folder == tmp_path / "seed-7"
    assert (run.seed, run.window, run.sac.steps) == (7, 50, 900)
    assert (run.encoder.encoder, run.encoder.k_max, run.encoder.k_init) == ("static", 4, 2)
    assert (run.encoder.layer_norm, run.heads.optimiser) == (False, "rebuild")
    assert not run.environment.shield  # type: ignore[attr-defined]
    assert not run.sac.penalty
    assert job.about["task"]["tau_z"] == 2.0
    (job,) = Train(out=tmp_path, seeds="7", grace=3000, share="relative").jobs()
    assert (job.run.heads.grace, job.run.heads.share) == (3000, "relative")


def test_options_that_would_make_no_difference_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--grace goes with encoder runtime, not with static"):
        Train(out=tmp_path, encoder="static", grace=3000).jobs()
    with pytest.raises(ValueError, match="--k-init goes with encoder runtime or static, not with gru"):
        Train(out=tmp_path, encoder="gru", k_init=2).jobs()


def test_seeds_are_numbers_and_ranges() -> None:
    assert parse_seeds("42-44") == [42, 43, 44]
    assert parse_seeds("1, 5,7-9,5") == [1, 5, 7, 8, 9]
    for text in ("", "a", "1-", "5-3", "1,,2", "-1", "0-99999999999"):
        with pytest.raises(ValueError, match="seeds must be"):
            parse_seeds(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--out", "X", "--seeds", "x"], "seeds must be"),
        (["train", "--out", "X", "--steps", "0"], "steps must be a whole number >= 1"),
        (["train", "--out", "X", "--k-init", "9"], "k_init must be at most k_max = 8"),
        (["train", "--out", "X", "--device", "gpu"], "there is no gpu here"),
        (["train", "--out", "X", "--save-every", "0"], "save_every must be"),
        (["train", "--out", "X", "--cores", "0"], "cores must be a whole number >= 1"),
        (["train", "--out", "X", "--cores", "9999"], "which is how many this process may use; got 9999"),
        (["evaluate", "X"], "holds no run"),
        (["bench", "gpu"], "there is no gpu here"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert not (tmp_path / "X").exists()
    assert len(printed.err.strip().splitlines()) == 1


def test_runs_that_are_not_over_are_refused_by_name_or_left_out(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (trained / "runs" / "seed-42" / "config.json").read_text()
    (tmp_path / "seed-42").mkdir()
    (tmp_path / "seed-42" / "config.json").write_text(config)
    with pytest.raises(ValueError, match=r"no run in .* is trained to its end"):
        find_runs(tmp_path)
    with pytest.raises(ValueError, match="seed-42 is not trained to its end"):
        find_runs(tmp_path / "seed-42")
    shutil.copytree(trained / "runs" / "seed-43", tmp_path / "seed-43")
    capsys.readouterr()
    main(["evaluate", str(tmp_path), "--json"])
    assert "seed-42 is left out" in capsys.readouterr().err
    (tmp_path / "seed-42" / "config.json").write_text('{"seed": 42}')
    with pytest.raises(ValueError, match="holds no run of an arm"):
        find_runs(tmp_path / "seed-42")
