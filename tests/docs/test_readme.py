"""The examples of README and docs run as they stand, one after the other; only training is shortened."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# SB3 silences its progress bar's warning when it is loaded, and pytest undoes that.
pytestmark = pytest.mark.filterwarnings("ignore:rich is experimental")

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"


class Model:
    """Stands for a trained model of Stable-Baselines3."""

    def predict(self, contexts: np.ndarray, deterministic: bool) -> tuple[np.ndarray, None]:
        assert deterministic
        return np.zeros((len(contexts), 6)), None


def shortened(text: str) -> str:
    """A training of Stable-Baselines3 that is over in a second and grows a head."""
    text = re.sub(r"learn\(\d+_000,", "learn(150,", text)
    return text.replace("grace=2_000, check_every=500", "grace=20, check_every=10")


def test_examples_run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (DOCS / "guide.md").read_text(encoding="utf-8")
    text = guide.replace('"steps": 1000', '"steps": 110')
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 6
    names: dict[str, Any] = {"model": Model()}
    for example in examples:
        exec(example, names)  # noqa: S102
    assert names["metrics"].rmse > 0
    assert names["certificate"].holds
    assert names["state"].k == 2  # two heads grown, one pruned
    printed = capsys.readouterr().out.splitlines()
    shown = guide.split("```\n500 noop")[1].split("```")[0]
    for line in f"500 noop{shown}".splitlines():
        assert line == "..." or line in printed


@pytest.mark.slow
def test_an_environment_of_ones_own_trains(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "engine.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example.replace("steps=20_000", "steps=110"), {})  # noqa: S102
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sorted(line[:2] for line in printed) == [["0", "110"], ["1", "110"]]
    assert all(float(line[2]) < 0 for line in printed)


def test_what_is_said_of_stable_baselines3_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path / "log"))
    (lines,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    text = (DOCS / "sb3.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", shortened(text), re.DOTALL)
    assert len(examples) == 2
    assert set(lines.splitlines()) <= set(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0].splitlines())
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)  # noqa: S102
    assert names["model"].runtime_heads.step == 300
    assert (tmp_path / "pendulum.zip").exists()
