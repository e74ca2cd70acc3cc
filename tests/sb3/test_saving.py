"""What is saved of a training of Stable-Baselines3 is all of it: it goes on to the bit, in another process too."""

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.utils import EzPickle
from sb3_models import DEVICES, WINDOW, Noise, assert_same, grower, make_env, make_model, parameters
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize

from incrt.env import ContextWindow
from incrt.sb3 import SaveEvery, load, policy_kwargs, save

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to run .* on the GPU")

contexts = np.random.default_rng(0).standard_normal((32, WINDOW, 3), np.float32)


def disturb() -> None:
    """Draw from every generator that belongs to the process."""
    random.random()  # noqa: S311
    np.random.rand()  # noqa: NPY002
    torch.rand(1)


def restore(folder: Path, **options: Any) -> Any:
    model = load(folder, **options)
    model.set_logger(Logger(None, []))
    return model


def events(folder: Path) -> list[dict[str, Any]]:
    """What is in events.jsonl, but for the name of the training."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "training"} for line in lines]


# --- SB3's own save and load ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SAC", "SAC-shared", "TD3-shared", "PPO", "PPO-separate"])
def test_heads_and_their_state_travel_with_the_model(name: str, tmp_path: Path) -> None:
    model = make_model(name)
    model.learn(48, callback=grower(tmp_path))
    model.save(tmp_path / "model")
    found = type(model).load(tmp_path / "model", env=make_env(), device="cpu")
    assert_same(parameters(found), parameters(model))
    assert found.runtime_heads.heads_state == model.runtime_heads.heads_state
    assert found.runtime_heads.heads_state.k == 2
    np.testing.assert_array_equal(*(each.predict(contexts, deterministic=True)[0] for each in (found, model)))
    found.set_logger(Logger(None, []))
    found.learn(32, callback=grower(tmp_path), reset_num_timesteps=False)
    assert found.runtime_heads.step == 80
    assert found.runtime_heads.heads_state.k == 3


PROGRAM = """
import sys
from pathlib import Path
import numpy as np, torch
from sb3_models import grower, parameters
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger
from incrt.sb3 import load

folder = Path(sys.argv[1])
model = SAC.load(folder / "model.zip", device="cpu")
assert model.policy.actor.features_extractor.k == 5
np.save(folder / "actions.npy", model.predict(np.load(folder / "contexts.npy"), deterministic=True)[0])
model = load(folder / "saved")
model.set_logger(Logger(None, []))
model.learn(40, callback=grower(folder), reset_num_timesteps=False)
torch.save(parameters(model), folder / "parameters.pt")
"""


def test_a_fresh_process_predicts_the_same_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    model = make_model("SAC", k_max=6)
    model.learn(160, callback=grower(tmp_path))
    assert model.runtime_heads.heads_state.k == 5
    model.save(tmp_path / "model.zip")
    save(model, tmp_path / "saved")
    np.save(tmp_path / "contexts.npy", contexts)
    actions = model.predict(contexts, deterministic=True)[0]
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, cwd=Path(__file__).parents[1] / "helpers"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "actions.npy"), actions)
    model.learn(40, callback=grower(tmp_path / "here"), reset_num_timesteps=False)
    assert_same(torch.load(tmp_path / "parameters.pt"), parameters(model))
    assert events(tmp_path / "here") == events(tmp_path)
    assert model.runtime_heads.heads_state.k == 6


def test_another_k_max_is_refused_with_what_to_do(tmp_path: Path) -> None:
    make_model("SAC").save(tmp_path / "model")
    message = r"k_max = 3, and this one has k_max = 2; make it with policy_kwargs=incrt.sb3.policy_kwargs\(k_max=3\)"
    with pytest.raises(RuntimeError, match=message):
        make_model("SAC", k_max=2).set_parameters(tmp_path / "model")
    other = policy_kwargs(k_max=2, d_k=4, net_arch=[8])
    with pytest.raises(RuntimeError, match=message):
        SAC.load(tmp_path / "model", custom_objects={"policy_kwargs": other})


# --- the whole training --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["SAC", "TD3", "PPO"])
def test_it_goes_on_to_the_bit(name: str, device: str, tmp_path: Path) -> None:
    straight = make_model(name, device=device)
    straight.learn(48, callback=grower(tmp_path / "straight"))
    straight.learn(48, callback=grower(tmp_path / "straight"), reset_num_timesteps=False)

    model = make_model(name, device=device)
    model.learn(48, callback=grower(tmp_path))
    save(model, tmp_path / "saved")
    disturb()
    found = restore(tmp_path / "saved")
    assert type(found) is type(model)
    assert found.device == model.device
    found.learn(48, callback=grower(tmp_path), reset_num_timesteps=False)
    assert_same(parameters(found), parameters(straight))
    assert found.runtime_heads.checks == straight.runtime_heads.checks
    assert events(tmp_path) == events(tmp_path / "straight")


class Fall(BaseCallback):
    """Ends the training where nobody expects it."""

    def _on_step(self) -> bool:
        if self.num_timesteps == 57:
            raise KeyboardInterrupt
        return True


def test_an_interrupted_training_goes_on_from_its_last_save(tmp_path: Path) -> None:
    straight = make_model("SAC")
    straight.learn(80, callback=grower(tmp_path / "straight"))

    model = make_model("SAC")
    with pytest.raises(KeyboardInterrupt):
        model.learn(80, callback=[grower(tmp_path), SaveEvery(tmp_path / "saved", 12), Fall()])
    disturb()
    found = restore(tmp_path / "saved")
    assert found.num_timesteps == 48
    found.learn(80 - 48, callback=[grower(tmp_path), SaveEvery(tmp_path / "saved", 12)], reset_num_timesteps=False)
    assert_same(parameters(found), parameters(straight))
    assert events(tmp_path) == events(tmp_path / "straight")
    assert restore(tmp_path / "saved").num_timesteps == 80


def test_random_actions_of_the_beginning_go_on_too(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(8)
    save(model, tmp_path)
    found = restore(tmp_path)
    found.learn(6, reset_num_timesteps=False)
    straight = make_model("SAC")
    straight.learn(14)
    np.testing.assert_array_equal(found.replay_buffer.actions[:14], straight.replay_buffer.actions[:14])
    np.testing.assert_array_equal(found.replay_buffer.observations[:14], straight.replay_buffer.observations[:14])


def test_another_training_is_not_overwritten(tmp_path: Path) -> None:
    save(make_model("SAC").learn(9), tmp_path)
    with pytest.raises(ValueError, match=r"holds another training; incrt.sb3.load goes on with it, or choose another"):
        make_model("SAC").learn(3, callback=SaveEvery(tmp_path))
    with pytest.raises(ValueError, match="holds another training"):
        save(make_model("SAC"), tmp_path)
    model = restore(tmp_path)
    assert model.num_timesteps == 9
    save(model.learn(3), tmp_path)
    assert restore(tmp_path).num_timesteps == 3
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="holds another training"):  # what begins from a model is a new one
        save(SAC.load(tmp_path / "model", env=make_env()), tmp_path)


def test_only_the_newest_is_kept_and_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "notes.txt").chmod(0o400)
    (tmp_path / "000045.aside").mkdir()  # left behind by a kill
    (tmp_path / "42").mkdir()
    (tmp_path / "000043").mkdir()
    model = make_model("SAC")
    for steps in (4, 9):
        model.learn(steps)
        save(model, tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["000043", "000045", "42", "notes.txt"]
    assert restore(tmp_path).num_timesteps == 9


@pytest.mark.parametrize("name", ["SAC", "PPO"])
def test_normalisation_goes_on_too(name: str, tmp_path: Path) -> None:
    def learn(model: Any) -> None:
        model.learn(48, callback=grower(tmp_path / "events" / str(id(model))), reset_num_timesteps=False)

    straight = make_model(name, VecNormalize(make_env()))
    learn(straight)
    learn(straight)
    model = make_model(name, VecNormalize(make_env()))
    learn(model)
    save(model, tmp_path)
    disturb()
    found = restore(tmp_path)
    learn(found)
    assert_same(parameters(found), parameters(straight))
    count = model.get_vec_normalize_env().obs_rms.count
    for env in (make_env(), VecNormalize(make_env(), norm_reward=False), VecMonitor(VecNormalize(make_env()))):
        other = restore(tmp_path, env=env)
        assert other.get_vec_normalize_env().obs_rms.count == count
        assert [isinstance(other.env, VecNormalize), isinstance(other.env, VecMonitor)].count(True) == 1
        assert other.get_vec_normalize_env().norm_reward == (not isinstance(env, VecNormalize))


def test_an_environments_own_normalisation_is_left_alone(tmp_path: Path) -> None:
    save(make_model("SAC").learn(9), tmp_path)
    env = VecNormalize(make_env())
    assert restore(tmp_path, env=env).get_vec_normalize_env() is env


class Ezra(Noise, EzPickle):
    """Pickles how it was made."""

    def __init__(self) -> None:
        Noise.__init__(self)
        EzPickle.__init__(self)


class Holder(Noise):
    """Holds one of these."""

    def __init__(self) -> None:
        super().__init__()
        self.game = Ezra()


class Stubborn(Noise):
    """Cannot be pickled at all."""

    def __getstate__(self) -> Any:
        raise RuntimeError("never")


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (DummyVecEnv([lambda: ContextWindow(Ezra(), WINDOW)]), "Ezra pickles how it was made, not where it stands"),
        (DummyVecEnv([lambda: ContextWindow(Holder(), WINDOW)]), "Ezra pickles how it was made, not where it stands"),
        (DummyVecEnv([lambda: ContextWindow(Stubborn(), WINDOW)]), "never"),
        (VecMonitor(make_env()), "VecMonitor cannot be pickled whole"),
    ],
)
def test_an_environment_that_cannot_be_saved_is_asked_for(env: VecEnv, why: str, tmp_path: Path) -> None:
    model = make_model("SAC", env)
    model.learn(20)
    with pytest.warns(UserWarning, match=rf"environment cannot be saved \({why}\); incrt.sb3.load will need env="):
        save(model, tmp_path)
    with pytest.raises(ValueError, match=r"environment could not be saved with .*; pass env="):
        load(tmp_path)
    found = restore(tmp_path, env=make_env())
    found.learn(20, reset_num_timesteps=False)
    assert found.num_timesteps == 40


class Stop(BaseCallback):
    """Ends the training, which Stable-Baselines3 does before it has stored the step."""

    def _on_step(self) -> bool:
        return self.num_timesteps < 20


def test_a_training_that_a_callback_ended_goes_on_with_a_new_episode(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(30, callback=[SaveEvery(tmp_path), Stop()])
    found = restore(tmp_path)
    found.learn(20, reset_num_timesteps=False)
    replay = found.replay_buffer
    assert replay.pos == 39  # Stable-Baselines3 stored 19 steps
    for step in range(1, 39):
        starts = np.all(replay.observations[step] == replay.observations[step, :, :1])  # one observation fills it
        assert starts or np.array_equal(replay.observations[step], replay.next_observations[step - 1])
    assert np.all(replay.observations[19] == replay.observations[19, :, :1])


def test_what_is_not_a_saved_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere holds no training that incrt.sb3.save wrote"):
        load(tmp_path / "nowhere")
    save(make_model("SAC"), tmp_path)
    rest = tmp_path / "000001" / "rest.pkl"
    written = pickle.loads(rest.read_bytes())  # noqa: S301
    for found, writer in (({}, "incrt 0.1"), ({"format": 1}, "another version of incrt")):
        rest.write_bytes(pickle.dumps({**{name: written[name] for name in written if name != "format"}, **found}))
        with pytest.raises(ValueError, match=rf"{writer} wrote .*000001; this version cannot go on with it"):
            load(tmp_path)
    rest.write_bytes(b"")
    with pytest.raises(ValueError, match=r"000001 cannot be read \(EOFError"):
        load(tmp_path)
    with pytest.raises(ValueError, match="steps must be a whole number >= 1"):
        SaveEvery(tmp_path, 0)
