"""Policies of the engine as models of Stable-Baselines3, and the other way round."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import torch
from jax import Array
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from incrt.config import BenchConfig, RuntimeConfig, SacConfig
from incrt.config.rules import check_name
from incrt.encoders import Encoded, make_encoder
from incrt.env import StribeckEnv
from incrt.files import write_whole
from incrt.jsonable import finite
from incrt.layers import Dense
from incrt.runs import read_json
from incrt.sac import checkpoint, policy
from incrt.sac.folder import made_by
from incrt.sac.learner import Algorithm, Learner, init_learner
from incrt.sac.networks import Actor
from incrt.sac.policy import LearnedPolicy
from incrt.sb3.callback import Memory
from incrt.sb3.extractor import VarHeadExtractor, policy_kwargs
from incrt.sb3.networks import Networks
from incrt.steady_state import conclude


def make_sac(
    env: gym.Env[Any, Any] | VecEnv, sac: SacConfig, policy_kwargs: dict[str, Any], seed: int | None, **others: Any
) -> SAC:
    """Stable-Baselines3's SAC with the engine's settings; it has no penalty on inadmissible actions.

    ``policy_kwargs`` need not name the layers, which are the engine's; ``others`` are SAC's own arguments.
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
    }
    return SAC(
        "MlpPolicy",
        env,
        policy_kwargs={"net_arch": list(sac.hidden), **policy_kwargs},
        seed=seed,
        **{**settings, **others},
    )


# --- from the engine -------------------------------------------------------------------------------------------------


def load_policy(run: Path | str, env: gym.Env[Any, Any] | VecEnv | None = None, device: str = "auto") -> SAC:
    """The run in a folder, trained to its end by ``incrt train``, as a model of Stable-Baselines3.

    The model predicts what the policy does, and can be trained further: critic, target and temperature come from the
    run's checkpoint if it is still there. Replay and the optimisers' moments begin anew.

    :param env: the Gymnasium form of the environment that the run was trained on; for a run of the bench it is made
    """
    folder = Path(run)
    learned = policy.load(folder / "policy.safetensors")
    about = read_json(folder / "config.json")
    encoder = learned.encoder
    check_name(f"the encoder of {folder}", encoder.config.encoder, ("runtime", "static"))
    if env is None:
        if "bench" not in about:
            raise ValueError(
                f"{folder} holds no run of the bench; pass env=, what it was trained on as Gymnasium has it"
            )
        env = StribeckEnv(**about["bench"])
    sac = SacConfig(**about["sac"])
    heads = {name: getattr(encoder.config, name) for name in ("k_max", "k_init", "d_k", "layer_norm")}
    model = make_sac(env, sac, policy_kwargs(**heads), about["seed"], device=device)
    actor: Any = model.actor
    _set_extractor(actor.features_extractor, learned.actor.encoder, learned.mask)
    layers = [*_linears(actor.latent_pi), actor.mu, actor.log_std]
    _set_layers(layers, (*learned.actor.hidden, learned.actor.mean, learned.actor.log_std))
    algorithm = Algorithm(encoder, sac, int(learned.actor.mean.b.shape[0]))
    if (learner := _learner(folder / "checkpoint", algorithm)) is not None:
        _set_critics(model, learner)
    else:
        for critic in (model.critic, model.critic_target):  # the same heads must be active everywhere
            critic.features_extractor.mask = actor.features_extractor.mask.clone()
    return model


def _learner(checkpoints: Path, algorithm: Algorithm) -> Learner | None:
    """Networks and temperature of the newest checkpoint; None where there is none."""
    steps = checkpoint.steps_saved(checkpoints)
    if not steps:
        return None
    with safetensors.safe_open(checkpoints / f"{steps[-1]:09d}.safetensors", "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys() if name.startswith("learner.")}  # noqa: SIM118
    template = jax.eval_shape(partial(init_learner, algorithm), jax.random.key(0))
    found: Learner = checkpoint.unnamed(tensors, {"learner": template})["learner"]
    return found


@torch.no_grad()
def _set_critics(model: SAC, learner: Learner) -> None:
    for network, critic in ((model.critic, learner.learned.critic), (model.critic_target, learner.learned.target)):
        _set_extractor(network.features_extractor, critic.encoder, learner.learned.mask)
        for i, values in enumerate(network.q_networks):
            _set_layers(_linears(values), [Dense(layer.w[i], layer.b[i]) for layer in critic.values])
    if model.log_ent_coef is not None:
        model.log_ent_coef.fill_(float(learner.log_alpha))


@torch.no_grad()
def _set_extractor(extractor: nn.Module, params: Encoded, mask: Array) -> None:
    if not isinstance(extractor, VarHeadExtractor):
        raise TypeError(f"a VarHeadExtractor is needed, got {type(extractor).__name__}")
    extractor.embed.copy_(_tensor(params.body.embed))
    extractor.position.copy_(_tensor(params.body.position))
    for matrices, values in zip(
        (extractor.w_q, extractor.w_k, extractor.w_v, extractor.w_o), params.body.heads, strict=True
    ):
        for matrix, value in zip(matrices, values, strict=True):
            matrix.copy_(_tensor(value))
    if params.norm is not None and extractor.scale is not None and extractor.shift is not None:
        extractor.scale.copy_(_tensor(params.norm.scale))
        extractor.shift.copy_(_tensor(params.norm.shift))
    extractor.mask.copy_(_tensor(mask))


@torch.no_grad()
def _set_layers(linears: Sequence[nn.Linear], layers: Iterable[Dense]) -> None:
    for linear, layer in zip(linears, layers, strict=True):
        linear.weight.copy_(_tensor(layer.w).T)
        linear.bias.copy_(_tensor(layer.b))


def _linears(module: nn.Module) -> list[nn.Linear]:
    return [each for each in module.modules() if isinstance(each, nn.Linear)]


def _tensor(x: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(x))


# --- to the engine ---------------------------------------------------------------------------------------------------


def save_policy(model: BaseAlgorithm, folder: Path | str, bench: BenchConfig | None = None) -> None:
    """Write what a model of SAC or TD3 has learned on the bench as the folder of a run, for ``incrt evaluate``.

    :param bench: what it was trained on; None stands for that of the model's environment
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; choose another folder")
    learned = _as_learned(model)
    bench = _bench_of(model) if bench is None else bench
    if (bench.window, bench.observation_dim) != (learned.encoder.window, learned.encoder.observation_dim):
        raise ValueError(
            f"the bench gives windows of shape {(bench.window, bench.observation_dim)}, the model reads "
            f"{(learned.encoder.window, learned.encoder.observation_dim)}"
        )
    memory: Memory | None = getattr(model, "runtime_heads", None)
    about = {
        "seed": model.seed,
        "window": bench.window,
        "encoder": asdict(learned.encoder.config),
        "runtime": asdict(RuntimeConfig() if memory is None else memory.config),
        "sac": asdict(_settings(model)),
        "bench": asdict(bench),
        "algorithm": f"{type(model).__name__} of Stable-Baselines3",
        "made_by": [{"from_step": 0, **made_by(str(model.device), ("torch", "stable_baselines3", "numpy"))}],
    }
    conclusion = {
        "steps": model.num_timesteps if memory is None else memory.step,
        "heads": int(learned.mask.sum()),
        "failure": None,
        "guarantees": None if memory is None else _guarantees(model, memory),
    }
    policy.save(folder / "policy.safetensors", learned)
    write_whole(folder / "events.jsonl", (memory.lines() if memory is not None else "").encode())
    for name, content in (("config.json", about), ("conclusion.json", conclusion)):
        write_whole(folder / name, (json.dumps(finite(content), indent=2, allow_nan=False) + "\n").encode())


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
            f"{names}. incrt.evaluate_policy(bench, lambda contexts: model.predict(contexts, deterministic=True)[0]) "
            "evaluates any model"
        )
    *hidden, mean = [Dense(*(x.detach().cpu().numpy() for x in (each.weight.T, each.bias))) for each in linears]
    log_std = Dense(np.zeros_like(mean.w), np.zeros_like(mean.b))
    if isinstance(found := getattr(model.policy.actor, "log_std", None), nn.Linear):
        log_std = Dense(*(x.detach().cpu().numpy() for x in (found.weight.T, found.bias)))
    config = extractor.config
    if not hasattr(model, "runtime_heads"):
        config = config.replace(encoder="static", k_init=extractor.k)
    params = jax.tree.map(lambda x: x.detach().cpu().numpy(), extractor.encoded())
    actor = Actor(params, tuple(hidden), mean, log_std)
    encoder = make_encoder(config, extractor.window, extractor.observation_dim)
    return LearnedPolicy(encoder, *jax.tree.map(jnp.asarray, (actor, extractor.mask.cpu().numpy())))


def _bench_of(model: BaseAlgorithm) -> BenchConfig:
    env = model.get_env()
    try:
        config = None if env is None else env.get_attr("config", 0)[0]
    except AttributeError:
        config = None
    if not isinstance(config, BenchConfig):
        raise ValueError("the model has no environment of the bench; pass bench=, what it was trained on")
    return config


def _settings(model: Any) -> SacConfig:
    """The settings of a model by the engine's names, as far as the engine has them."""
    return SacConfig(
        steps=model.num_timesteps,
        buffer=model.buffer_size,
        learning_starts=model.learning_starts,
        batch=model.batch_size,
        learning_rate=model.lr_schedule(1),
        gamma=model.gamma,
        tau=model.tau,
        hidden=tuple(each.out_features for each in _linears(Networks(model.policy).downstream)[:-1]),
        target_entropy=getattr(model, "target_entropy", None),
        penalty=False,
    )


def _guarantees(model: BaseAlgorithm, memory: Memory) -> dict[str, Any] | None:
    """The paper's guarantees on a whole run."""
    ranks = [each.rank for each in memory.checks if each.rank is not None]
    if not ranks:
        return None
    networks = Networks(model.policy)
    shares = networks.shares(networks.contexts(list(memory.recent)))
    return conclude(memory.config, memory.controller.mask, ranks, shares, memory.certificates).to_json()
