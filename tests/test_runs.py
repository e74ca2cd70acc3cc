"""Trained runs read from disk, and what stands beside them."""

from pathlib import Path

import pytest

from incrt.config import TaskConfig
from incrt.runs import reference_rmse


def test_a_reference_is_evaluated_again_where_a_file_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = TaskConfig(trajectory="points.csv", horizon=20, eval_payloads=(0.5,), eval_rollouts=1)

    def error(end: float) -> float:
        Path("points.csv").write_text(f"t,q1,q2\n0,0,0\n1,{end},0\n")
        return reference_rmse("baseline", config, config)

    assert error(1.0) != error(2.0)
