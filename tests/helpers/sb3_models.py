"""Small models of Stable-Baselines3 whose heads grow, for the tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import TQC
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from torch import nn

from incrt.engine.networks import Actor, Critic
from incrt.env import ContextWindow
from incrt.heads.adam import AdamState
from incrt.heads.attention import Attention, Heads
from incrt.heads.encoders import Encoded
from incrt.heads.growth import Learned
from incrt.heads.layers import Dense, Norm
from incrt.sb3 import RuntimeHeads, policy_kwargs
from incrt.sb3.extractor import VarHeadExtractor

WINDOW, OBSERVED = 4, 3
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

ALGORITHMS: dict[str, tuple[type[BaseAlgorithm], dict[str, Any]]] = {
    "SAC": (SAC, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "SAC-shared": (SAC, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "TD3": (TD3, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "TD3-shared": (TD3, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "DDPG": (DDPG, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "TQC": (TQC, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "PPO": (PPO, {"n_steps": 8, "batch_size": 8, "n_epochs": 2}),
    "PPO-separate": (PPO, {"n_steps": 8, "batch_size": 8, "n_epochs": 2}),
    "A2C": (A2C, {"n_steps": 4}),
}


class Noise(gym.Env[Any, Any]):
    """Observations that know nothing of each other, so that their windows have full rank; acting costs."""

    def __init__(self, action_space: spaces.Space[Any] | None = None) -> None:
        self.observation_space = spaces.Box(-10, 10, (OBSERVED,), np.float32)
        self.action_space = spaces.Box(-2, 2, (2,), np.float32) if action_space is None else action_space
        self._steps = 0

    def _observe(self) -> npt.NDArray[np.float32]:
        return self.np_random.standard_normal(OBSERVED).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self._observe(), -float(np.sum(np.square(action))), False, self._steps >= 13, {}


def make_env(envs: int = 1, **noise: Any) -> VecEnv:
    return DummyVecEnv([lambda: ContextWindow(Noise(**noise), WINDOW)] * envs)


def make_model(name: str, env: VecEnv | None = None, seed: int = 0, device: str = "cpu", **heads: Any) -> Any:
    """A model of the named kind; heads are K_max = 3 unless said otherwise."""
    algorithm, settings = ALGORITHMS[name]
    if name.startswith(("TD3", "DDPG")):
        settings = {**settings, "action_noise": NormalActionNoise(np.zeros(2), 0.1 * np.ones(2))}
    chosen: dict[str, Any] = (
        {"share_features_extractor": not name.endswith("separate")} if name.startswith("PPO") else {}
    )
    if name.endswith("shared"):
        chosen["share_features_extractor"] = True
    if name == "TQC":
        chosen["n_quantiles"] = 5
    kwargs = policy_kwargs(**{"k_max": 3, "d_k": 4, "net_arch": [8], **chosen, **heads})
    model = algorithm("MlpPolicy", env or make_env(), policy_kwargs=kwargs, seed=seed, device=device, **settings)
    model.set_logger(Logger(None, []))
    return model


def grower(folder: Path, **fields: Any) -> RuntimeHeads:
    """The callback with a cadence for tests: events at steps 30, 70, ... unless said otherwise."""
    settings = {"check_every": 10, "grace": 20, "tokens": 40, "share_batch": 16, **fields}
    return RuntimeHeads(events=folder / "events.jsonl", **settings)


def optimisers(model: Any) -> dict[str, torch.optim.Optimizer]:
    """By name, all that there are."""
    found = {
        name: getattr(part, attribute, None)
        for name, part, attribute in (
            ("policy", model.policy, "optimizer"),
            ("actor", getattr(model, "actor", None), "optimizer"),
            ("critic", getattr(model, "critic", None), "optimizer"),
            ("temperature", model, "ent_coef_optimizer"),
        )
    }
    return {name: optimiser for name, optimiser in found.items() if optimiser is not None}


def parameters(model: Any) -> dict[str, torch.Tensor]:
    """All that training changes, copied."""
    found = {name: value.clone() for name, value in model.policy.state_dict().items()}
    if isinstance(model, SAC | TQC) and model.log_ent_coef is not None:
        found["temperature"] = model.log_ent_coef.detach().clone()
    for owner, optimiser in optimisers(model).items():
        for number, state in optimiser.state_dict()["state"].items():
            found |= {f"optimiser {owner} {number} {key}": torch.as_tensor(x).clone() for key, x in state.items()}
    return found


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """To the bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name].cpu(), value.cpu()), name


# --- as the engine has it --------------------------------------------------------------------------------------------

Read = Callable[[torch.Tensor], Any]
"""From a parameter to numbers of its shape: its own, or what an optimiser keeps of it."""


def own(parameter: torch.Tensor) -> Any:
    return parameter.detach().cpu().numpy()


def _encoded(extractor: VarHeadExtractor, read: Read) -> Encoded:
    heads = Heads(*(np.stack([read(w) for w in getattr(extractor, name)]) for name in Heads._fields))
    norm = None
    if extractor.scale is not None and extractor.shift is not None:
        norm = Norm(read(extractor.scale), read(extractor.shift))
    return Encoded(Attention(read(extractor.embed), read(extractor.position), heads), norm)


def _layers(module: nn.Module, read: Read) -> tuple[Dense, ...]:
    linears = [each for each in module.modules() if isinstance(each, nn.Linear)]
    return tuple(Dense(read(each.weight).T, read(each.bias)) for each in linears)


def as_actor(actor: Any, read: Read = own) -> Actor:
    """An actor of SAC or TQC as the engine has it."""
    (mean,), (log_std,) = (_layers(each, read) for each in (actor.mu, actor.log_std))
    found = Actor(_encoded(actor.features_extractor, read), _layers(actor.latent_pi, read), mean, log_std)
    return Actor(*on_device(found))


def as_critic(critic: Any, read: Read = own) -> Critic:
    """A critic of SAC as the engine has it."""
    stacks = [_layers(each, read) for each in critic.q_networks]
    values = tuple(Dense(*map(np.stack, zip(*layers, strict=True))) for layers in zip(*stacks, strict=True))
    return Critic(*on_device(Critic(_encoded(critic.features_extractor, read), values)))


def as_learned(model: Any) -> Learned:
    """All that an event of the engine changes, of a model of SAC."""

    def as_adam(network: Any, convert: Callable[[Any, Read], Any]) -> AdamState:
        state = network.optimizer.state

        def kept(name: str) -> Read:
            return lambda parameter: own(state[parameter][name] if parameter in state else torch.zeros_like(parameter))

        counts = [int(state[w]["step"]) if w in state else 0 for w in network.features_extractor.w_o]
        moments = (convert(network, kept(name)) for name in ("exp_avg", "exp_avg_sq"))
        steps = max(int(each["step"]) for each in state.values()) if state else 0
        return AdamState(jnp.asarray(steps), jnp.asarray(counts), *moments)

    return Learned(
        mask=jnp.asarray(own(model.actor.features_extractor.mask)),
        actor=as_actor(model.actor),
        critic=as_critic(model.critic),
        target=as_critic(model.critic_target),
        actor_adam=as_adam(model.actor, as_actor),
        critic_adam=as_adam(model.critic, as_critic),
    )


def on_device(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)
