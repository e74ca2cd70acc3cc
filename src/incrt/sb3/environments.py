"""Environments on disk, in the middle of their episodes."""

import io
import pickle
import warnings
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.utils import EzPickle
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize, unwrap_vec_normalize


class _WholePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Refuses what would come back as it began, wherever it is held."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, EzPickle) and type(obj).__getstate__ is EzPickle.__getstate__:
            raise ValueError(f"{type(obj).__name__} pickles how it was made, not where it stands")
        return super().reducer_override(obj)


def pickled(env: VecEnv | None) -> dict[str, bytes | None]:
    """What can be kept of an environment: all that it is in the middle of, and the statistics of a VecNormalize."""
    kept: dict[str, bytes | None] = {"inner": None, "normaliser": None}
    if env is None:
        return kept
    try:
        if (normaliser := unwrap_vec_normalize(env)) is not None:
            kept["normaliser"] = cloudpickle.dumps((normaliser, normaliser.returns))
        inner = env.venv if isinstance(env, VecNormalize) else env
        if type(inner) is not DummyVecEnv:  # other wrappers leave part of themselves behind, subprocesses all of it
            raise ValueError(f"{type(inner).__name__} cannot be pickled whole")  # noqa: TRY301
        whole = io.BytesIO()
        _WholePickler(whole).dump(inner)
        kept["inner"] = whole.getvalue()
    except Exception as error:  # noqa: BLE001  # an environment may raise anything, and training must not end by it
        warnings.warn(f"the environment cannot be saved ({error}); incrt.sb3.load will need env=", stacklevel=3)
    return kept


def unpickled(kept: dict[str, bytes | None]) -> VecEnv | None:
    """What :func:`pickled` kept; None if it could not keep the environment."""
    if kept["inner"] is None:
        return None
    inner: VecEnv = pickle.loads(kept["inner"])  # noqa: S301  # as SB3's own files, said in save()
    return inner if kept["normaliser"] is None else _normalised(kept["normaliser"], inner)


def in_place_of(kept: dict[str, bytes | None], other: GymEnv) -> GymEnv:
    """Another environment with the statistics that were kept: in its own VecNormalize, or else in one around it."""
    if kept["normaliser"] is None:
        return other
    if not isinstance(other, VecEnv):
        single: Any = other if is_wrapped(other, Monitor) else Monitor(other)
        other = DummyVecEnv([lambda: single])
    own = unwrap_vec_normalize(other)
    if own is None:
        found = _normalised(kept["normaliser"], other)
        found.returns = np.zeros(other.num_envs)
        return found
    saved, _ = pickle.loads(kept["normaliser"])  # noqa: S301
    own.obs_rms, own.ret_rms = saved.obs_rms, saved.ret_rms
    return other


def _normalised(normaliser: bytes, inner: VecEnv) -> VecNormalize:
    found: VecNormalize
    found, returns = pickle.loads(normaliser)  # noqa: S301
    found.set_venv(inner)
    found.returns = returns
    return found


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
