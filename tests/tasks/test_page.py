"""What docs/tasks.md shows runs as it stands; only training is shortened."""

import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    training, gymnasium = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(training.replace("steps=70_000", "steps=500"), {})  # noqa: S102
    step, k, error = capsys.readouterr().out.split()
    assert (step, k) == ("500", "1")
    assert 0.2 < float(error) < 0.5
    names: dict[str, Any] = {}
    exec(gymnasium, names)  # noqa: S102
    assert names["context"].shape == (8, 9)
