"""What the engine's speed is held against: stock Stable-Baselines3 SAC with the paper's attention written out.

Eqs. (10) and (11) as they stand on paper: every head has matrices of its own and makes queries, keys and values of all
time steps, and the last time step of the result becomes the features. All K_max heads are active.
"""

from dataclasses import fields
from time import perf_counter

import torch
from gymnasium import spaces
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from incrt.arm.gym import StribeckEnv
from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.config.heads import WITH_HEADS
from incrt.config.rules import COUNT, one_of
from incrt.engine.placement import usable_cores
from incrt.heads.attention import POSITION_STD
from incrt.heads.layers import NORM_EPS
from incrt.sb3.settings import make_sac

RANDOM_STEPS = 50
"""Steps before the first update. Batches are drawn with replacement, so an update costs the same from the first on."""
WARM_UP = 50
"""Steps with an update each before the clock is read: compilers, caches and threads get ready in them."""


class LiteralHead(nn.Module):
    """head_i, eq. (11)."""

    def __init__(self, d_model: int, d_k: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_k, bias=False)
        self.out = nn.Linear(d_k, d_model, bias=False)
        self._scale = d_k**-0.5

    def forward(self, h: Tensor, causal: Tensor) -> Tensor:
        """From (B, W, d_model) to the same; ``causal`` is the mask M, shape (W, W)."""
        scores = self.query(h) @ self.key(h).transpose(-2, -1) * self._scale + causal
        attended: Tensor = self.out(torch.softmax(scores, dim=-1) @ self.value(h))
        return attended


class LiteralAttention(BaseFeaturesExtractor):
    """VarAttn, eq. (10), with the embedding in front of it and the optional layer normalisation behind it."""

    def __init__(self, observation_space: spaces.Box, encoder: EncoderConfig) -> None:
        super().__init__(observation_space, encoder.d_model)
        window, observed = observation_space.shape
        width = encoder.d_model
        self.embed = nn.Linear(observed, width, bias=False)
        self.position = nn.Parameter(POSITION_STD * torch.randn(window, width))
        self.heads = nn.ModuleList(LiteralHead(width, encoder.d_k) for _ in range(encoder.k_max))
        self.norm = nn.LayerNorm(width, eps=NORM_EPS) if encoder.layer_norm else nn.Identity()
        self.causal: Tensor
        self.register_buffer("causal", torch.full((window, window), -torch.inf).triu(1), persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        h = self.embed(observations) + self.position
        out = h
        for head in self.heads:
            out = out + head(h, self.causal)
        features: Tensor = self.norm(out[:, -1])
        return features


class _Clock(BaseCallback):
    """Reads the clock after the warm-up and again so many steps later, and then ends the training.

    SB3 calls it between a step of the environment and the update that follows, so each step from one reading to the
    other is one of both.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._begin = RANDOM_STEPS + WARM_UP
        self.last = self._begin + steps
        self.readings: list[float] = []

    def _on_step(self) -> bool:
        if self.num_timesteps in (self._begin, self.last):
            self.readings.append(perf_counter())
        return self.num_timesteps < self.last


def make_sb3(config: TaskConfig, encoder: EncoderConfig, sac: SacConfig, seed: int = 0) -> SAC:
    """Stock SAC on the Gymnasium environment of this task, with the engine's settings but an early first update."""
    one_of(WITH_HEADS)("encoder", encoder.encoder)
    literal = {
        "features_extractor_class": LiteralAttention,
        "features_extractor_kwargs": {"encoder": encoder},
        "share_features_extractor": False,
    }
    model = make_sac(
        StribeckEnv(**{field.name: getattr(config, field.name) for field in fields(config)}),
        sac,
        literal,
        seed,
        learning_starts=RANDOM_STEPS,
        device="cpu",
    )
    model.set_logger(Logger(None, []))  # SB3's own would leave a folder behind
    return model


def time_sb3(config: TaskConfig, encoder: EncoderConfig, sac: SacConfig, steps: int, seed: int = 0) -> float:
    """Steps a second of the peer, with every core that this process may use."""
    steps = COUNT("steps", steps)
    return steps_per_second(make_sb3(config, encoder, sac, seed), steps, usable_cores())


def steps_per_second(model: SAC, steps: int, threads: int) -> float:
    """Each a step of the environment and an update, over so many steps once learning has started."""
    clock = _Clock(steps)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model.learn(clock.last, callback=clock)
    finally:
        torch.set_num_threads(before)
    begin, end = clock.readings
    return steps / (end - begin)
