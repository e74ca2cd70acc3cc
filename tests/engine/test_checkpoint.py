"""Checkpoints: whole or refused, and the previous one in the place of a damaged one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from small_runs import SAC, small_run

from incrt.engine.checkpoint import latest, save, steps_saved
from incrt.engine.population import Population
from incrt.engine.progress import Checkpoint, Failure
from incrt.storage.json import checksum

LOGS = {"events.jsonl": 10, "metrics.jsonl": 20}


@pytest.fixture(scope="module")
def saved() -> list[Checkpoint]:
    """A run at steps 40, 80 and 120, and at its end."""
    found = [each for news in Population([small_run(42)], "cpu").train(save_every=40) for _, each in news.saved]
    assert [each.progress.step for each in found] == [40, 80, 120, 140]
    return found[:3]


def load(folder: Path, logs: dict[str, int] = LOGS) -> tuple[int | None, list[str]]:
    refused: list[str] = []
    found = latest(folder, "seed 42", small_run(42), logs, refused.append)
    return None if found is None else found[0].progress.step, refused


def write(folder: Path, saved: list[Checkpoint]) -> None:
    for each in saved:
        save(folder, "seed 42", each, LOGS)


def test_what_is_read_is_what_was_written(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved)
    found = latest(tmp_path, "seed 42", small_run(42), LOGS, pytest.fail)
    assert found is not None
    (progress, state), logs = found
    for name in ("step", "heads_state", "ranks", "certificates", "failure"):
        assert getattr(progress, name) == getattr(saved[-1].progress, name)
    assert logs == LOGS
    for x, y in zip(*map(jax.tree.leaves, (state, saved[-1].state)), strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype
    assert type(state) is type(saved[-1].state)


def test_the_two_latest_are_kept(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved)
    assert steps_saved(tmp_path) == [80, 120]
    assert len(list(tmp_path.iterdir())) == 4


def test_no_checkpoint_is_no_error(tmp_path: Path) -> None:
    assert load(tmp_path / "none") == (None, [])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit in the tensors": (lambda path: flip(path.with_suffix(".safetensors")), "another checksum"),
    "half the tensors": (
        lambda path: path.with_suffix(".safetensors").write_bytes(b"x" * 100),
        "another checksum",
    ),
    "no tensors": (lambda path: path.with_suffix(".safetensors").unlink(), "cannot be read"),
    "an empty description": (lambda path: path.with_suffix(".json").write_text(""), "cannot be read"),
    "a description of something else": (lambda path: path.with_suffix(".json").write_text("[1]"), "cannot be read"),
    "a changed step": (
        lambda path: path.with_suffix(".json").write_text(
            path.with_suffix(".json").read_text().replace('"step": 120', '"step": 121')
        ),
        "another checksum",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_serves(
    tmp_path: Path, saved: list[Checkpoint], name: str
) -> None:
    write(tmp_path, saved)
    damage, reason = DAMAGES[name]
    damage(tmp_path / f"{120:09d}")
    step, refused = load(tmp_path)
    assert step == 80
    assert len(refused) == 1
    assert "step 120" in refused[0]
    assert reason in refused[0]


def rewrite(path: Path, **changes: object) -> None:
    """Change a description and give it the checksum that belongs to it."""
    content = {**json.loads(path.read_text())["content"], **changes}
    path.write_text(json.dumps({"content": content, "checksum": checksum(content)}))


def test_another_format_is_refused(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved)
    rewrite(tmp_path / f"{120:09d}.json", format=99)
    step, refused = load(tmp_path)
    assert step == 80
    assert "format is 99" in refused[0]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved[:1])
    save(tmp_path, "seed 43", saved[1], LOGS)
    step, refused = load(tmp_path)
    assert step == 40
    assert "it is of another run" in refused[0]


@pytest.mark.parametrize(
    "change",
    [{"heads_state": {}}, {"certificates": [{}]}, {"failure": {"reason": "?"}}],
    ids=lambda change: next(iter(change)),
)
def test_content_of_another_kind_is_refused(tmp_path: Path, saved: list[Checkpoint], change: dict[str, Any]) -> None:
    write(tmp_path, saved[:2])
    path = tmp_path / f"{80:09d}.json"
    content = {**json.loads(path.read_text())["content"], **change}
    path.write_text(json.dumps({"content": content, "checksum": checksum(content)}))
    step, refused = load(tmp_path)
    assert step == 40
    assert "it is not as this version writes it" in refused[0]


def test_a_refused_checkpoint_does_not_count_as_one_of_the_two(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved[:2])
    flip(tmp_path / f"{80:09d}.safetensors")
    assert load(tmp_path)[0] == 40
    save(tmp_path, "seed 42", saved[2], LOGS)
    assert steps_saved(tmp_path) == [40, 120]
    kept = {path.name for path in tmp_path.iterdir() if path.stem.startswith(f"{80:09d}")}
    assert kept == {f"{80:09d}.{kind}.refused" for kind in ("json", "safetensors")}  # whoever wants to may look


def test_a_failure_is_kept(tmp_path: Path, saved: list[Checkpoint]) -> None:
    failed = saved[0].progress.copy()
    failed.failure = Failure(40, "the critic's loss")
    write(tmp_path, [Checkpoint(failed, saved[0].state)])
    found = latest(tmp_path, "seed 42", small_run(42), LOGS, pytest.fail)
    assert found is not None
    assert found[0].progress.failure == failed.failure
    assert found[0].progress.finished


def test_logs_that_were_cut_refuse_the_checkpoint(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved)
    with pytest.raises(ValueError, match="no checkpoint in"):
        load(tmp_path, {"events.jsonl": 9, "metrics.jsonl": 20})


def test_tensors_of_another_network_are_refused(tmp_path: Path, saved: list[Checkpoint]) -> None:
    write(tmp_path, saved[:1])
    refused: list[str] = []
    other = small_run(42, sac=SAC.replace(hidden=(8, 9)))
    with pytest.raises(ValueError, match="start the run anew"):
        latest(tmp_path, "seed 42", other, LOGS, refused.append)
    assert "shape" in refused[0]


def test_a_write_that_is_cut_short_leaves_the_last_checkpoint(
    tmp_path: Path, saved: list[Checkpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, saved[:2])

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save(tmp_path, "seed 42", saved[2], LOGS)
    monkeypatch.undo()
    assert load(tmp_path) == (80, [])
    assert not list(tmp_path.glob("*.aside"))
