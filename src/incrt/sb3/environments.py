"""Environments on disk, in the middle of their episodes."""

import pickle
import warnings
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.utils import EzPickle
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize


def pickled(env: VecEnv | None) -> dict[str, Any]:
    """What can be kept of an environment: all that it is in the middle of, and the statistics of a VecNormalize."""
    kept: dict[str, Any] = {"inner": None, "normaliser": None}
    if isinstance(env, VecNormalize):
        kept["normaliser"] = (pickle.dumps(env), env.returns)
        env = env.venv
    if env is None:
        return kept
    try:
        _check_pickles_whole(env)
        kept["inner"] = cloudpickle.dumps(env)
    except Exception as error:  # noqa: BLE001  # an environment may raise anything, and training must not end by it
        warnings.warn(f"the environment cannot be saved ({error}); incrt.sb3.load will need env=", stacklevel=3)
    return kept


def _check_pickles_whole(env: VecEnv) -> None:
    """Refuse what leaves part of itself behind: other wrappers, subprocesses, environments that pickle how to begin."""
    if type(env) is not DummyVecEnv:
        raise ValueError(f"{type(env).__name__} cannot be pickled whole")
    for env_ in env.envs:
        layer: Any = env_
        while layer is not None:
            if isinstance(layer, EzPickle) and type(layer).__getstate__ is EzPickle.__getstate__:
                raise ValueError(f"{type(layer).__name__} pickles how it was made, not where it stands")
            layer = getattr(layer, "env", None)


def unpickled(kept: dict[str, Any], other: GymEnv | None) -> GymEnv | None:
    """What :func:`pickled` kept, or the other environment with the same normalisation; None if there is neither."""
    inner: Any = other.venv if isinstance(other, VecNormalize) else other
    if other is None and kept["inner"] is not None:
        inner = pickle.loads(kept["inner"])  # noqa: S301  # as SB3's own files, said in save()
    if inner is None or kept["normaliser"] is None:
        return inner  # type: ignore[no-any-return]
    if not isinstance(inner, VecEnv):
        single: Any = Monitor(inner)
        inner = DummyVecEnv([lambda: single])
    written, returns = kept["normaliser"]
    normaliser: VecNormalize = pickle.loads(written)  # noqa: S301
    normaliser.set_venv(inner)
    normaliser.returns = returns if other is None else np.zeros(inner.num_envs)
    return normaliser


def is_between_steps(model: BaseAlgorithm) -> bool:
    """Whether the next action is chosen from what the environment gave last.

    It is not where a callback has ended the training: Stable-Baselines3 then forgets the last step.
    """
    env, last = model.get_env(), getattr(model, "_last_obs", None)
    inner = env.venv if isinstance(env, VecNormalize) else env
    if last is None or not isinstance(inner, DummyVecEnv) or list(inner.buf_obs) != [None]:
        return False
    given: Any = next(iter(inner.buf_obs.values()))
    seen: Any = env.normalize_obs(given) if isinstance(env, VecNormalize) else given
    return np.array_equal(last, seen)
