"""A training of Stable-Baselines3 on disk, whole: so that it goes on as if it had never stopped.

Beside what Stable-Baselines3 saves, a model's weights, optimisers and settings, this is its replay buffer, the state of
every random generator, and the environment where it can be pickled (:mod:`incrt.sb3.environments`).
"""

import pickle
import random
import re
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import cloudpickle
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv

from incrt.config.rules import COUNT
from incrt.sb3 import environments
from incrt.storage.atomic import ASIDE, settle, settle_entries

_MODEL, _REPLAY, _REST = "model.zip", "replay_buffer.pkl", "rest.pkl"
_FORMAT = 2
"""Raised when what a model remembers of its heads changes; version 0.1 wrote none."""

_trainings: WeakKeyDictionary[BaseAlgorithm, str] = WeakKeyDictionary()
"""Tells trainings apart. Not kept on the model, so that models begun from one file of model.save are different ones."""


def save(model: BaseAlgorithm, folder: Path | str) -> None:
    """Add the training to a folder as it stands; what was saved there before goes once this is there whole.

    To be called after learn(), or from a callback when a rollout begins, as :class:`SaveEvery` does. A folder of
    another training is refused. Like all files of Stable-Baselines3 these are pickles: load only what you trust.
    """
    folder = Path(folder)
    saved = _own(model, folder)
    for left_behind in folder.glob(f"*{ASIDE}"):  # by a kill
        if _is_number(left_behind.stem):
            shutil.rmtree(left_behind)
    number = f"{1 + max((int(each.name) for each in folder.glob('*') if _is_number(each.name)), default=0):06d}"
    aside = folder / f"{number}{ASIDE}"
    aside.mkdir(parents=True)
    model.save(aside / _MODEL)
    if isinstance(model, OffPolicyAlgorithm):
        model.save_replay_buffer(aside / _REPLAY)
    rest = {
        "format": _FORMAT,
        "training": _trainings[model],
        "algorithm": cloudpickle.dumps(type(model)),
        "action_space": model.action_space,  # with the generator of the first random actions, which load() seeds anew
        "device": str(model.device),
        "environment": environments.pickled(model.get_env()),
        "is_between_steps": environments.is_between_steps(model),
        "random": _random_state(model.device),
    }
    (aside / _REST).write_bytes(pickle.dumps(rest))
    settle(aside)
    aside.rename(folder / number)
    settle_entries(folder)
    for old in saved:
        shutil.rmtree(old.rename(old.with_name(f"{old.name}{ASIDE}")))


def load(folder: Path | str, env: GymEnv | None = None, device: str | None = None) -> Any:
    """The model of the training in a folder; ``learn(..., reset_num_timesteps=False)`` goes on with it.

    :param env: takes the place of the environment that was saved, and starts a new episode; it is needed where the
        environment could not be saved, which :func:`save` warns of. A VecNormalize gets the statistics that were saved.
    :param device: where to go on; None stands for where it was trained, if that is there
    """
    saved = _saved(Path(folder))
    if not saved:
        raise ValueError(f"{folder} holds no training that incrt.sb3.save wrote; files of model.save are for SAC.load")
    newest = saved[-1]
    rest = _read_rest(newest)
    try:
        algorithm = pickle.loads(rest["algorithm"])  # noqa: S301
        found: GymEnv | None = environments.unpickled(rest["environment"]) if env is None else None
    except Exception as error:  # a pickle may raise anything
        words = f"{newest} cannot be read here ({type(error).__name__}: {error})"
        raise ValueError(f"{words}; if that is the environment, pass env=, one like it") from error
    if env is not None:
        found = environments.in_place_of(rest["environment"], env)
    elif found is None:
        raise ValueError(f"the environment could not be saved with {newest}; pass env=, one like it")
    if device is None:
        device = rest["device"] if _is_there(torch.device(rest["device"])) else "auto"
    model = algorithm.load(newest / _MODEL, device=device)
    # Not by load(), which would seed the environment anew.
    model.set_env(found, force_reset=env is not None or not rest["is_between_steps"])
    if isinstance(model, OffPolicyAlgorithm):
        model.load_replay_buffer(newest / _REPLAY)
    model.action_space = rest["action_space"]
    _set_random_state(rest["random"])
    if env is not None:
        model.get_env().seed()  # by a draw from what was just restored
    _trainings[model] = rest["training"]
    return model


class SaveEvery(BaseCallback):
    """Saves the training every so many environment steps, and at its end.

    It does so where one rollout has been learned from and the next has not begun, so that nothing is lost of either.
    Where a callback ends the training, which it does in the middle of a step, a new episode begins when it goes on.
    """

    def __init__(self, folder: Path | str, steps: int = 5000) -> None:
        super().__init__()
        self.folder, self.steps = Path(folder), COUNT("steps", steps)
        self._saved_at = 0

    def _on_training_start(self) -> None:
        _own(self.model, self.folder)
        self._saved_at = self.model.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps - self._saved_at >= self.steps:
            self._save()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._save()

    def _save(self) -> None:
        save(self.model, self.folder)
        self._saved_at = self.model.num_timesteps


def _saved(folder: Path) -> list[Path]:
    """What was saved, the newest last; folders of others are none of it."""
    return sorted(each for each in folder.glob("*") if _is_number(each.name) and (each / _REST).exists())


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[0-9]{6}", name) is not None


def _own(model: BaseAlgorithm, folder: Path) -> list[Path]:
    """What was saved of this training, the newest last; a folder of another training is refused."""
    saved = _saved(folder)
    name = _trainings.setdefault(model, uuid4().hex)
    if saved and _read_rest(saved[-1])["training"] != name:
        raise ValueError(f"{folder} holds another training; incrt.sb3.load goes on with it, or choose another folder")
    return saved


def _is_there(device: torch.device) -> bool:
    return device.type != "cuda" or (device.index or 0) < torch.cuda.device_count()


def _read_rest(saved: Path) -> dict[str, Any]:
    try:
        rest: dict[str, Any] = pickle.loads((saved / _REST).read_bytes())  # noqa: S301  # as SB3's own, said in save()
    except Exception as error:
        raise ValueError(f"{saved} cannot be read ({type(error).__name__}: {error})") from error
    if rest.get("format") != _FORMAT:
        writer = "incrt 0.1" if "format" not in rest else "another version of incrt"
        raise ValueError(f"{writer} wrote {saved}; this version cannot go on with it, train anew in another folder")
    return rest


def _random_state(device: torch.device) -> dict[str, Any]:
    """Of the generators that Stable-Baselines3 draws from; they belong to the process, not to a model."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if device.type == "cuda" else [],
    }


def _set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():  # another machine goes on with its own
        torch.cuda.set_rng_state_all(state["cuda"])
