"""What docs/task.md says of parts of one's own runs as it stands."""

import re
from pathlib import Path
from typing import Any

import tyro

from incrt.cli.train import Train

TEXT = (Path(__file__).parents[2] / "docs" / "task.md").read_text(encoding="utf-8")


def test_the_parts_shown_make_a_task() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example.replace("horizon=200", "horizon=20, eval_payloads=(0.5,)"), names)  # noqa: S102
    assert 0 < names["metrics"].rmse < 0.1


def test_the_settings_shown_are_accepted() -> None:
    train = tyro.cli(Train, args=["--set", "task.eta_max=[8, 5.5]", "task.delay=1", "--seeds", "42", "--out", "runs"])
    assert train.config().task.eta_max == (8.0, 5.5)
    assert train.config().task.delay == 1
