"""The paper's attention written out, as a features extractor: what the engine's speed and values are held against.

Eqs. (10) and (11) as they stand on paper: every head has matrices of its own and makes queries, keys and values of all
time steps, and the last time step of the result becomes the features. All K_max heads are active.
"""

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from incrt.config import EncoderConfig
from incrt.config.heads import WITH_HEADS
from incrt.config.rules import one_of
from incrt.heads.attention import POSITION_STD
from incrt.heads.layers import NORM_EPS


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
        one_of(WITH_HEADS)("encoder", encoder.encoder)
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
