"""The engine's settings as Stable-Baselines3 has them, and the other way round."""

from typing import Any

import gymnasium as gym
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from incrt.config import SacConfig
from incrt.sb3.networks import Networks


def make_sac(
    env: gym.Env[Any, Any] | VecEnv,
    sac: SacConfig,
    policy_kwargs: dict[str, Any],
    seed: int | None,
    algorithm: type[SAC] = SAC,
    **others: Any,
) -> SAC:
    """Stable-Baselines3's SAC with the engine's settings; it has no penalty on inadmissible actions.

    ``policy_kwargs`` need not name the layers, which are the engine's; ``algorithm`` is another class of SAC that takes
    the same arguments, and ``others`` are SAC's own.
    """
    settings = {
        "learning_rate": sac.learning_rate,
        "buffer_size": sac.buffer,
        "learning_starts": sac.learning_starts,
        "batch_size": sac.batch,
        "tau": sac.tau,
        "gamma": sac.gamma,
        "train_freq": 1,
        "gradient_steps": 1,
        "ent_coef": "auto",
        "target_entropy": "auto" if sac.target_entropy is None else sac.target_entropy,
        "policy_kwargs": {"net_arch": list(sac.hidden), **policy_kwargs},
        "seed": seed,
        **others,
    }
    return algorithm("MlpPolicy", env, **settings)


def settings_of(model: Any, steps: int) -> SacConfig:
    """The settings of a model of SAC, TD3 or TQC by the engine's names, as far as the engine has them."""
    layers = [each for each in Networks(model.policy).downstream.modules() if isinstance(each, nn.Linear)]
    try:
        return SacConfig(
            steps=steps,
            buffer=model.buffer_size,
            learning_starts=model.learning_starts,
            batch=model.batch_size,
            learning_rate=model.lr_schedule(1),
            gamma=model.gamma,
            tau=model.tau,
            hidden=tuple(each.out_features for each in layers[:-1]),
            target_entropy=getattr(model, "target_entropy", None),
            penalty=False,
        )
    except ValueError as error:
        raise ValueError(f"the model has a setting that the engine does not have: {error}") from None
