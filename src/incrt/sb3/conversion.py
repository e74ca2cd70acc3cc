"""Policies of the engine as models of Stable-Baselines3, and the other way round."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from incrt.arm.gym import StribeckEnv
from incrt.config import HeadsConfig, TaskConfig
from incrt.config.earlier import read_settings, translated
from incrt.config.heads import WITH_HEADS
from incrt.config.rules import one_of
from incrt.engine import policy
from incrt.engine.checkpoint import newest_learner
from incrt.engine.networks import Actor
from incrt.engine.policy import LearnedPolicy
from incrt.engine.run_folder import made_by
from incrt.engine.update import Algorithm, Learner
from incrt.heads.encoders import make_encoder
from incrt.heads.guarantees import conclude
from incrt.heads.layers import Dense
from incrt.heads.triggers import make_trigger
from incrt.runs import UncheckedRun
from incrt.sb3.callback import Memory
from incrt.sb3.extractor import fill, policy_kwargs
from incrt.sb3.networks import Networks
from incrt.sb3.settings import make_sac, settings_of
from incrt.storage.atomic import write_whole
from incrt.storage.json import read_json, write_json

# --- from the engine -------------------------------------------------------------------------------------------------


def load_policy(run: Path | str, env: gym.Env[Any, Any] | VecEnv | None = None, device: str = "auto") -> SAC:
    """The run in a folder, trained to its end by ``incrt train``, as a model of Stable-Baselines3.

    The model predicts what the policy does, and can be trained further: critic, target and temperature come from the
    run's checkpoint; without one they begin anew, with a warning. Replay, the optimisers' moments, the state
    of the checks and the count of steps always begin anew, so the first ``learning_starts`` actions are random.

    :param run: the folder, or the policy.safetensors in it
    :param env: the Gymnasium form of the environment that the run was trained on; for a run of the task it is made
    """
    folder = Path(run).parent if Path(run).is_file() else Path(run)
    learned = policy.load(folder / "policy.safetensors")
    about = {"task": None, **translated(read_json(folder / "config.json"))}
    config = read_settings({**about, "task": about["task"] or {}}, UncheckedRun)
    one_of(WITH_HEADS)(f"the encoder of {folder}", learned.encoder.config.encoder)
    if about.get("algorithm", "SB3 SAC") != "SB3 SAC":
        raise ValueError(f"{folder} was trained by {about['algorithm']}; load the model that was saved there")
    if env is None:
        if about["task"] is None:
            raise ValueError(
                f"{folder} holds no run of the task; pass env=, what it was trained on in Gymnasium's form"
            )
        env = StribeckEnv(**about["task"])
    _check_spaces(env, learned)
    heads = {name: getattr(learned.encoder.config, name) for name in ("k_max", "k_init", "d_k", "layer_norm")}
    model = make_sac(env, config.sac, policy_kwargs(**heads), about["seed"], device=device)
    actor: Any = model.actor
    actor.features_extractor.take(learned.actor.encoder, learned.mask)
    layers = [*_linears(actor.latent_pi), actor.mu, actor.log_std]
    _set_layers(layers, (*learned.actor.hidden, learned.actor.mean, learned.actor.log_std))
    algorithm = Algorithm(learned.encoder, config.sac, int(learned.actor.mean.b.shape[0]))
    _set_critics(model, newest_learner(folder / "checkpoint", algorithm), learned)
    return model


def _check_spaces(env: gym.Env[Any, Any] | VecEnv, learned: LearnedPolicy) -> None:
    """Refuse an environment that the policy was not made for."""
    needed = (learned.encoder.window, learned.encoder.observation_dim), learned.actor.mean.b.shape
    found = env.observation_space.shape, env.action_space.shape
    if found != needed:
        raise ValueError(
            f"the policy reads observations of shape {needed[0]} and acts in {needed[1]}; the environment has "
            f"{found[0]} and {found[1]}"
        )


def _set_critics(model: SAC, learner: Learner | None, learned: LearnedPolicy) -> None:
    """Critic, target and temperature of a checkpoint; without one they begin anew, with the actor's heads active."""
    networks: list[Any] = [model.critic, model.critic_target]
    if learner is None:
        warnings.warn("there is no checkpoint: the critic begins anew, and training would unlearn first", stacklevel=3)
        for network in networks:
            network.features_extractor.set_mask(learned.mask)
        return
    for network, critic in zip(networks, (learner.learned.critic, learner.learned.target), strict=True):
        network.features_extractor.take(critic.encoder, learner.learned.mask)
        for i, values in enumerate(network.q_networks):
            _set_layers(_linears(values), [Dense(layer.w[i], layer.b[i]) for layer in critic.values])
    if model.log_ent_coef is not None:
        fill(model.log_ent_coef, np.reshape(learner.log_alpha, 1))


def _set_layers(linears: Sequence[nn.Linear], layers: Iterable[Dense]) -> None:
    for linear, layer in zip(linears, layers, strict=True):
        fill(linear.weight, np.transpose(layer.w))
        fill(linear.bias, layer.b)


def _linears(module: nn.Module) -> list[nn.Linear]:
    return [each for each in module.modules() if isinstance(each, nn.Linear)]


# --- to the engine ---------------------------------------------------------------------------------------------------


def save_policy(model: BaseAlgorithm, folder: Path | str, task: TaskConfig | None = None) -> None:
    """Write what a model of SAC, TD3 or TQC has learned on the task as the folder of a run, for ``incrt evaluate``.

    :param task: what it was trained on; None stands for that of the model's environment
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not an empty folder; choose another")
    memory: Memory | None = getattr(model, "runtime_heads", None)
    normaliser = model.get_vec_normalize_env()
    if (memory is not None and memory.is_normalised) or (normaliser is not None and normaliser.norm_obs):
        raise ValueError(
            "the model reads what VecNormalize has normalised, a run of the engine does not; evaluate the model by "
            "incrt.evaluate_policy, with a function that normalises contexts before it predicts"
        )
    steps = max(model.num_timesteps, 0 if memory is None else memory.step)
    if steps == 0:
        raise ValueError("the model has not been trained")
    learned = _as_learned(model)
    task = _task_of(model) if task is None else task
    if (task.window, task.observation_dim) != (learned.encoder.window, learned.encoder.observation_dim):
        raise ValueError(
            f"the task gives windows of shape {(task.window, task.observation_dim)}, the model reads "
            f"{(learned.encoder.window, learned.encoder.observation_dim)}"
        )
    about = {
        "seed": model.seed,
        "window": task.window,
        "encoder": learned.encoder.config.to_json(),
        "heads": (HeadsConfig() if memory is None else memory.config).to_json(),
        "sac": settings_of(model, steps).to_json(),
        "task": task.to_json(),
        "files": task.files(),
        "algorithm": f"SB3 {type(model).__name__}",
        "made_by": [{"from_step": 0, **made_by(str(model.device), ("torch", "stable_baselines3", "numpy"))}],
    }
    conclusion = {
        "steps": steps,
        "heads": int(learned.mask.sum()),
        "failure": None,
        "guarantees": None if memory is None else _guarantees(model, memory),
    }
    policy.save(folder / "policy.safetensors", learned)
    write_whole(folder / "events.jsonl", (memory.lines() if memory is not None else "").encode())
    write_json(folder / "config.json", about)
    write_json(folder / "conclusion.json", conclusion)


def _as_learned(model: BaseAlgorithm) -> LearnedPolicy:
    """The model's deterministic policy as the engine has it: ReLU layers, then tanh."""
    networks = Networks(model.policy)
    extractor, layers = networks.extractor, networks.downstream
    linears = _linears(layers)
    parts = [type(each) for each in layers.modules() if not isinstance(each, nn.Sequential)]
    if parts != [*(len(linears) - 1) * [nn.Linear, nn.ReLU], nn.Linear, nn.Tanh]:
        names = ", ".join(part.__name__ for part in parts)
        raise ValueError(
            "only a policy of ReLU layers that ends in tanh, as SAC and TD3 make it, can be a run of the engine; got "
            f"{names}. incrt.evaluate_policy(task, lambda contexts: model.predict(contexts, deterministic=True)[0]) "
            "evaluates any model"
        )
    *hidden, mean = map(_dense, linears)
    spread = getattr(model.policy.actor, "log_std", None)
    log_std = _dense(spread) if isinstance(spread, nn.Linear) else Dense(np.zeros_like(mean.w), np.zeros_like(mean.b))
    config = extractor.config
    if not hasattr(model, "runtime_heads"):
        config = config.replace(encoder="static", k_init=extractor.k)
    params = jax.tree.map(_array, extractor.encoded())
    actor = Actor(params, tuple(hidden), mean, log_std)
    encoder = make_encoder(config, extractor.window, extractor.observation_dim)
    return LearnedPolicy(encoder, *jax.tree.map(jnp.asarray, (actor, extractor.mask.cpu().numpy())))


def _dense(linear: nn.Linear) -> Dense:
    return Dense(_array(linear.weight).T, _array(linear.bias))


def _array(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.detach().cpu().numpy()
    return array


def _task_of(model: BaseAlgorithm) -> TaskConfig:
    env = model.get_env()
    try:
        config = None if env is None else env.get_attr("config", 0)[0]
    except AttributeError:
        config = None
    if not isinstance(config, TaskConfig):
        raise ValueError("the model has no environment of the task; pass task=, what it was trained on")
    return config


def _guarantees(model: BaseAlgorithm, memory: Memory) -> dict[str, Any] | None:
    """The paper's guarantees on a whole run."""
    if memory.heads_state.last_check == 0:
        return None
    networks = Networks(model.policy)
    shares = networks.shares(networks.contexts(list(memory.recent)))
    ranks = [each.rank for each in memory.checks if each.rank is not None]
    trigger = make_trigger(memory.config)
    return conclude(trigger, memory.heads_state.mask, ranks, shares, memory.certificates).to_json()
