"""The command line: contract, errors, files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tasks import preset_task

from incrt import __version__
from incrt.cli import main
from incrt.controllers.evaluation import evaluate
from incrt.controllers.tuning import CONTROLLERS, reference_controller
from incrt.offline import surrogate

SHORT = ["--set", "task.horizon=40", "task.eval_rollouts=1", "task.eval_payloads=[0.5]"]
"""With these episodes the controllers are soon tuned; small studies have them too."""


def test_json_has_one_row_a_controller_and_regime_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    main(["baselines", "--tau-z", "5", "--json", *SHORT])
    printed = capsys.readouterr()
    rows = json.loads(printed.out)
    assert [(row["controller"], row["tau_z"]) for row in rows] == [(name, 5) for name in CONTROLLERS]
    for row in rows:
        assert row["rmse"] > 0
        assert (row["delta_pct"] == 0) == (row["controller"] == "baseline")
    assert "tau_z = 5 s: baseline" in printed.err


@pytest.mark.usefixtures("hears_signals")
def test_interrupted_while_it_compiles_it_ends_as_interrupted(tmp_path: Path) -> None:
    """Threads that compile do not survive the end of the interpreter: it ended by a fault of segmentation."""
    command = [sys.executable, "-m", "incrt", "baselines", "--tau-z", "5"]
    environment = {**os.environ, "INCRT_CACHE": str(tmp_path), "XLA_FLAGS": ""}  # it compiles as long as for users
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        while "baseline done" not in running.stderr.readline():
            pass
        time.sleep(0.5)  # the next controller is being compiled
        running.send_signal(signal.SIGINT)
        assert "interrupted" in running.stderr.read()
    assert running.returncode == 130


def test_table_and_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "new folder" / "tracking.png"
    main(["baselines", "--preset", "paper", "--tau-z", "5", "--figure", str(figure), *SHORT])
    printed = capsys.readouterr().out
    for word in (*(name.replace("_", " ") for name in CONTROLLERS), "RMSE", "Δ%", "paper"):
        assert word in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_conditions_change_the_test_and_not_the_tuning(capsys: pytest.CaptureFixture[str]) -> None:
    main(["baselines", "--tau-z", "5", "--json", "--trajectory", "fast", "--payloads", "3", "--delay", "1", *SHORT])
    nominal = preset_task("memory", tau_z=5.0, horizon=40, eval_rollouts=1, eval_payloads=(0.5,))
    tested = nominal.replace(trajectory="fast", eval_payloads=(3.0,), delay=1)
    for row in json.loads(capsys.readouterr().out):
        expected, _ = evaluate(tested, reference_controller(row["controller"], nominal))
        assert row["rmse"] == pytest.approx(expected.rmse, rel=1e-6)


def test_a_controller_that_diverges_is_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["baselines", "--tau-z", "5", "--json", "--set", "task.dt=1.0", "task.viscous=[0, 0]", *SHORT[1:]])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    rows = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert [row["rmse"] for row in rows] == [None] * len(CONTROLLERS)


def test_phase1_prints_the_spectrum_and_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--set", "task.horizon=60", "task.eval_rollouts=1"]
    main(["phase1", "--tau-z", "2", "--window", "30", *few])
    table = capsys.readouterr().out
    expected = surrogate(preset_task("memory", tau_z=2.0, window=30, horizon=60, eval_rollouts=1))
    row = next(line.split() for line in table.splitlines() if line.split()[:2] == ["2", "30"])
    assert row[2:5] == ["0.95", str(expected.k), str(expected.rank)]
    assert row[5:] == [f"{100 * part:.1f}" for part in expected.spectrum[:6]]
    assert max(map(len, table.splitlines())) <= 80

    main(["phase1", "--preset", "paper", "--tau-z", "1", "5", "--alpha", "0.999", "--k-max", "3", "--json", *few])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["preset"], row["tau_z"], row["window"]) for row in rows] == [("paper", 1, 20), ("paper", 5, 20)]
    for row in rows:
        assert row["k"] == 3 < row["rank"]
        assert sum(row["spectrum"]) == pytest.approx(1)
        assert sum(row["spectrum"][: row["rank"]]) >= 0.999 > sum(row["spectrum"][: row["rank"] - 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["baselines", "--tau-z", "0"], "tau_z must be a number > 0 and <= 1e+09, got 0.0"),
        (["baselines", "--delay", "-1"], "delay must be a whole number >= 0 and <= 1e+09, got -1"),
        (["baselines", "--payloads", "-1"], "eval_payloads must be a number >= 0"),
        (
            ["baselines", "--trajectory", "circle"],
            "trajectory must be one of paper, slow, fast, shifted, two_tone, a file that ends in .csv, a reference",
        ),
        (["baselines", "--tau-z"], "at least one"),
        (["baselines", "--figure", "x.foo"], "figure must end in .png, .svg or .pdf"),
        (["baselines", "--figure", "/proc/no/x.png"], "figure cannot be written"),
        (["phase1", "--tau-z"], "at least one"),
        (["phase1", "--window", "0"], "window must be a whole number >= 1"),
        (["phase1", "--window", "501"], "window must be at most horizon = 500"),
        (["phase1", "--set", "task.dt=0"], "dt must be a number > 0"),
        (["phase1", "--friction", "mine.py:F"], "friction 'mine.py:F' cannot be loaded"),
        (["phase1", "--alpha", "1"], "alpha must be a number > 0 and < 1"),
        (["phase1", "--k-max", "0"], "k_max must be a whole number >= 1"),
    ],
)
def test_bad_options_end_with_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert message in printed.err.replace("\n", " ")
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_unknown_preset_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["baselines", "--preset", "huge"])
    assert ended.value.code == 2
    assert "preset must be one of memory, paper; got 'huge'" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out == f"incrt {__version__}\n"
