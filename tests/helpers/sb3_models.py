"""Small models of Stable-Baselines3 whose heads grow, for the tests."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from incrt.env import ContextWindow
from incrt.sb3 import RuntimeHeads, policy_kwargs

WINDOW, OBSERVED = 4, 3
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

ALGORITHMS: dict[str, tuple[type[BaseAlgorithm], dict[str, Any]]] = {
    "SAC": (SAC, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "SAC-shared": (SAC, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "TD3": (TD3, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "TD3-shared": (TD3, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
    "DDPG": (DDPG, {"learning_starts": 5, "batch_size": 8, "buffer_size": 200}),
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
    chosen = {"share_features_extractor": not name.endswith("separate")} if name.startswith("PPO") else {}
    if name.endswith("shared"):
        chosen["share_features_extractor"] = True
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
    if isinstance(model, SAC) and model.log_ent_coef is not None:
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
