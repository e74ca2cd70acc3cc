"""The README's examples run as they stand, one after the other."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"


class Model:
    """Stands for a trained model of Stable-Baselines3."""

    def predict(self, contexts: np.ndarray, deterministic: bool) -> tuple[np.ndarray, None]:
        assert deterministic
        return np.zeros((len(contexts), 6)), None


def test_examples_run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 6
    names: dict[str, Any] = {"model": Model()}
    for example in examples:
        exec(example, names)  # noqa: S102
    assert names["figures"].rmse > 0
    assert names["certificate"].holds
    assert names["state"].k == 2  # two heads grown, one pruned
    printed = capsys.readouterr().out.splitlines()
    shown = README.read_text(encoding="utf-8").split("```\n500 noop")[1].split("```")[0]
    for line in f"500 noop{shown}".splitlines():
        assert line == "..." or line in printed
