"""What became of runs: from their folders to rows, tables, figures and back."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from capacity_runs import outcome

from incrt.capacity.figures import draw_all
from incrt.capacity.outcomes import read_outcomes, write_outcomes
from incrt.capacity.plan import load_study
from incrt.capacity.survival import median_steps
from incrt.capacity.tables import table_rows
from incrt.cli import main

STUDY = """
about = "Try."
task = "recall"
channels = [2]
seeds = "0"
solved = 0.3
compare = "growing"
[common]
encoder = { k_max = 3, d_k = 4 }
heads = { grace = 500, tokens = 20, share_batch = 16 }
sac = { steps = 1500, batch = 16, hidden = [8], buffer = 1500, evaluations = 2 }
task = { window = 4, horizon = 20 }
[variants]
growing.heads.trigger = "clock"
"fixed, K = D".encoder = { encoder = "static", k_init = "D" }
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the study above was run, with its declaration beside it."""
    folder = tmp_path_factory.mktemp("capacity")
    (folder / "mine.toml").write_text(STUDY)
    main(["capacity", "run", str(folder / "mine.toml"), "--out", str(folder / "runs"), "--device", "cpu"])
    return folder


def test_rows_say_what_the_runs_folders_say(trained: Path) -> None:
    rows, curves = read_outcomes(trained / "runs/mine")
    assert [(each.variant, each.seed, each.steps) for each in rows] == [("growing", 0, 1500), ("fixed, K = D", 0, 1500)]
    growing, fixed = rows
    assert (growing.grows, growing.k_end, growing.held) == (2, 3, 2)
    assert (fixed.grows, fixed.k_end) == (0, 2)
    for row, curve, name in zip(rows, curves, ("growing", "fixed-K-D"), strict=True):
        lines = (trained / f"runs/mine/D2/{name}/seed-0/metrics.jsonl").read_text().splitlines()
        returns = [json.loads(line)["evaluation"] for line in lines]
        errors = [-each / 20 / 2 for each in returns]
        np.testing.assert_allclose(curve[:, 1], errors, rtol=1e-6)
        assert curve[:, 0].tolist() == [500, 1000, 1500]
        assert row.final_error == pytest.approx(np.mean(errors), rel=1e-5)
        solved = [step for step, error in zip((500, 1000, 1500), errors, strict=True) if error < 0.3]
        assert row.solved_at == (solved[0] if solved else None)
    assert curves[0, :, 2].tolist() == [2, 3, 3]


def test_the_same_command_trains_nothing_again(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.glob("runs/**/policy.safetensors")}
    main(["capacity", "run", str(trained / "mine.toml"), "--out", str(trained / "runs"), "--device", "cpu", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in printed] == ["growing", "fixed, K = D"]
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_command_for_a_part_keeps_the_rows_of_the_others(trained: Path) -> None:
    command = ["capacity", "run", str(trained / "mine.toml"), "--out", str(trained / "runs"), "--device", "cpu"]
    main([*command, "--variants", "growing"])
    rows, curves = read_outcomes(trained / "runs/mine")
    assert sorted(each.variant for each in rows) == ["fixed, K = D", "growing"]
    assert curves.shape == (2, 3, 3)
    with pytest.raises(SystemExit):
        main([*command, "--variants", "nobody"])


def test_rows_of_other_settings_are_not_kept(trained: Path, tmp_path: Path) -> None:
    """What was solved by another standard must not stand beside what is solved by this one."""
    shutil.copytree(trained / "runs", tmp_path / "runs")
    (tmp_path / "mine.toml").write_text(STUDY.replace("solved = 0.3", "solved = 9.0"))
    command = ["capacity", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "runs"), "--device", "cpu"]
    main([*command, "--variants", "growing"])
    rows, _ = read_outcomes(tmp_path / "runs/mine")
    assert [(each.variant, each.solved_at) for each in rows] == [("growing", 500)]
    main(command)
    rows, _ = read_outcomes(tmp_path / "runs/mine")
    assert [each.solved_at for each in rows] == [500, 500]


def test_files_that_do_not_fit_each_other_are_refused_before_anything_is_trained(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "runs", tmp_path / "runs")
    with (tmp_path / "runs/mine/runs.csv").open("a") as file:
        file.write((tmp_path / "runs/mine/runs.csv").read_text().splitlines()[-1] + "\n")
    with pytest.raises(ValueError, match=r"3 runs and curves.npz 2; remove both"):
        read_outcomes(tmp_path / "runs/mine")
    with pytest.raises(ValueError, match=r"holds no outcomes.*there are some in .*runs/mine"):
        read_outcomes(tmp_path / "runs")


def test_a_run_that_failed_counts_as_never_solved() -> None:
    failed = [outcome(solved_at=None, steps=90_000, failure="lost", seed=i) for i in range(9)]
    assert median_steps([*failed, outcome(solved_at=50_000, steps=90_000)]) == math.inf


def test_tables_and_figures_are_made_of_the_rows_alone(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["capacity", "show", str(trained / "runs/mine"), "--figures", str(trained / "figures")])
    printed = capsys.readouterr().out
    assert "how soon" in printed
    assert "how many heads" in printed
    assert {path.name for path in (trained / "figures").iterdir()} == {"found.png", "solved.png", "errors.png"}


def test_rows_survive_their_file(tmp_path: Path) -> None:
    study = load_study("recall")
    assert write_outcomes(study, [], tmp_path) == []
    assert read_outcomes(tmp_path)[0] == []
    with pytest.raises(ValueError, match="holds no outcomes"):
        read_outcomes(tmp_path / "nowhere")


def test_a_table_counts_exactly_d_and_one_beside_it() -> None:
    runs = [outcome(channels=3, k_end=k, seed=k) for k in (2, 3, 3, 5)]
    failed = outcome(channels=3, k_end=3, final_error=None, failure="lost", solved_at=None)
    (row,) = table_rows([*runs, failed], None)
    assert (row["n"], row["exactly_d"], row["within_one"], row["failed"]) == (5, 3, 4, 1)
    assert row["k"] == "2, 3, 5"
    assert row["error"] == pytest.approx(0.01)
    assert (row["prunes"], row["held"], row["events"]) == (5, 15, 15)


def test_a_variant_is_compared_at_the_same_number_of_channels() -> None:
    slow = [outcome(variant="fixed", solved_at=900, seed=i) for i in range(3)]
    rows = table_rows([*slow, *(outcome(seed=i) for i in range(3)), outcome(variant="fixed", channels=9)], "growing")
    ratios = {(row["channels"], row["variant"]): row["ratio"] for row in rows}
    assert ratios == {(2, "fixed"): pytest.approx(1.8), (2, "growing"): None, (9, "fixed"): None}


def test_figures_show_runs_that_never_solve_the_task(tmp_path: Path) -> None:
    runs = [outcome(solved_at=None), dataclasses.replace(outcome(), channels=3)]
    with pytest.raises(ValueError, match="no run of the study is over"):
        draw_all([], np.zeros((0, 0, 3), np.float32), tmp_path / "drawn")
    draw_all(runs, np.full((2, 1, 3), 0.5, np.float32), tmp_path / "drawn")
    assert (tmp_path / "drawn/solved.png").stat().st_size > 1000
