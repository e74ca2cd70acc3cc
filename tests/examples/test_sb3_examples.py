"""The examples with Stable-Baselines3, shortened: what a newcomer runs first must work."""

import json
from pathlib import Path

import numpy as np
import pytest
from by_path import load

from incrt.runs import find_runs


@pytest.fixture(autouse=True)
def events_in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the examples say nothing, Stable-Baselines3 logs there."""
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path / "log"))


def test_the_arm_with_sac(tmp_path: Path) -> None:
    example = load("examples/sb3_stribeck.py")
    model = example.train(tmp_path, steps=170, grace=40, check_every=20)
    (run,) = find_runs(tmp_path / "run")
    assert (run.seed, run.conclusion["steps"], run.conclusion["heads"]) == (42, 170, 2)
    assert (tmp_path / "model.zip").exists()
    assert model.actor.features_extractor.k == 2
    with pytest.raises(SystemExit, match="is not empty; choose another folder"):
        example.main(tmp_path)


def test_the_pendulum_with_sac(tmp_path: Path) -> None:
    example = load("examples/sb3_pendulum.py")
    observation, _ = example.make_env("last observation").reset(seed=0)
    context, _ = example.make_env("heads that grow").reset(seed=0)
    np.testing.assert_array_equal(context, np.tile(observation, (8, 1)))
    assert np.hypot(*observation) == pytest.approx(1)  # cosine and sine, no velocity
    model = example.train("heads that grow", seed=0, steps=170, grace=20, check_every=20)
    assert model.actor.features_extractor.k > 1
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    assert [line["jump"] for line in lines if line["action"] == "grow"] == [0] * (model.actor.features_extractor.k - 1)
    for policy in ("last observation", "flat window"):
        example.train(policy, seed=0, steps=5)


def test_the_pole_with_ppo() -> None:
    example = load("examples/sb3_ppo.py")
    assert example.make_env("last observation").reset(seed=0)[0].shape == (2,)
    model = example.train("heads that grow", seed=0, steps=520, grace=50, check_every=50, delta_grow=1)
    assert model.n_envs == 4
    assert [(each.step, each.jump) for each in model.runtime_heads.certificates] == [(552, 0)]  # after a first update
