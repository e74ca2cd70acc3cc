"""The engine's settings as Stable-Baselines3 has them, and the other way round."""

from typing import Any

import gymnasium as gym
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from incrt.config import SacConfig
from incrt.sb3.networks import Networks


def make_sac(
    env: gym.Env[Any, Any] | VecEnv, sac: SacConfig, policy_kwargs: dict[str, Any], seed: int | None, **others: Any
) -> SAC:
    """Stable-Baselines3's SAC with the engine's settings; it has no penalty on inadmissible actions.

    ``policy_kwargs`` need not name the layers, which are the engine's; ``others`` are SAC's own arguments.
    """
    settings = {
        **sac_arguments(sac),
        "policy_kwargs": {"net_arch": list(sac.hidden), **policy_kwargs},
        "seed": seed,
        **others,
    }
    return SAC("MlpPolicy", env, **settings)


def sac_arguments(sac: SacConfig) -> dict[str, Any]:
    """The engine's settings as arguments of SAC, the layers not among them; sbx's SAC has the same names."""
    return {
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
    }


def settings_of(model: Any, steps: int) -> SacConfig:
    """The settings of a model of SAC or TD3 by the engine's names, as far as the engine has them."""
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
