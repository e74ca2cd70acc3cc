"""Variable-head attention as a features extractor of Stable-Baselines3."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from incrt.config import EncoderConfig
from incrt.heads.attention import POSITION_STD, Attention, Heads, read_values
from incrt.heads.encoders import Encoded, head_features
from incrt.heads.growth import check_event
from incrt.heads.layers import Norm

_RIDGE, _TINY = 1e-3, 1e-30
"""Of the fit by which heads make up for one; those of :mod:`incrt.heads.attention`, a test keeps the results equal."""


class VarHeadExtractor(BaseFeaturesExtractor):
    """From a window of observations, shape (W, d), the newest last, to K_max d_k features.

    Shapes do not change when heads come and go: all K_max heads are there from the start, and ``mask`` says which are
    active. It is part of the state, so Stable-Baselines3 saves and loads it with the weights. Each matrix of each head
    is a parameter of its own, because PyTorch's optimisers keep their moments and step counts by parameter; those of
    inactive heads require no gradient, so that no optimiser moves them, weight decay included.

    :param observation_space: a Box of shape (W, d)
    :param k_max: K_max, the largest number of heads
    :param k_init: K_init, heads active at the start; None stands for one
    :param d_k: key and value dimension of a head
    :param layer_norm: whether the features are layer-normalised
    """

    mask: Tensor
    scale: nn.Parameter | None
    shift: nn.Parameter | None

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        k_max: int = EncoderConfig.k_max,
        k_init: int | None = None,
        d_k: int = EncoderConfig.d_k,
        layer_norm: bool = EncoderConfig.layer_norm,  # noqa: FBT001  # Stable-Baselines3 passes names
    ) -> None:
        window, observation_dim = _window_of(observation_space)
        config = EncoderConfig(k_max=k_max, k_init=k_init, d_k=d_k, layer_norm=layer_norm)
        width = config.d_model
        super().__init__(observation_space, width)
        self.config, self.window, self.observation_dim = config, window, observation_dim
        self.embed = _xavier_normal(observation_dim, width)
        self.position = nn.Parameter(POSITION_STD * torch.randn(window, width))
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.ParameterList(_xavier_normal(*shape) for _ in range(config.k_max))
            for shape in (*3 * [(width, config.d_k)], (config.d_k, width))
        )
        for silent in self.w_o[config.heads_at_start :]:
            nn.init.zeros_(silent)
        self.scale, self.shift = (
            (nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))) if layer_norm else (None, None)
        )
        self.register_buffer("mask", torch.arange(config.k_max) < config.heads_at_start)
        self._follow_mask([True] * config.k_max)

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = head_features(self.encoded(), self.mask, observations, torch)
        return features

    def encoded(self) -> Encoded:
        """The parameters as the rest of the library has them."""
        heads = Heads(*(torch.stack(list(each)) for each in (self.w_q, self.w_k, self.w_v, self.w_o)))
        norm = None if self.scale is None else Norm(self.scale, self.shift)
        return Encoded(Attention(self.embed, self.position, heads), norm)

    def extra_repr(self) -> str:
        return f"K = {self.k} of {self.config.k_max} heads"

    @property
    def k(self) -> int:
        """K: number of active heads."""
        return int(self.mask.sum())

    def head(self, index: int) -> Heads:
        """The parameters of one head."""
        return Heads(self.w_q[index], self.w_k[index], self.w_v[index], self.w_o[index])

    @torch.no_grad()
    def grow(self, index: int, generator: np.random.Generator) -> None:
        """Grow(i): activate a head, which starts anew by soft initialisation; its output is exactly zero."""
        check_event(self.mask, index, active=True)
        w_q, w_k, w_v, w_o = self.head(index)
        std = (2 / sum(w_q.shape)) ** 0.5
        for matrix in (w_q, w_k, w_v):
            matrix.copy_(torch.from_numpy(std * generator.standard_normal(tuple(matrix.shape))))
        w_o.zero_()
        self._set_active(index, active=True)

    @torch.no_grad()
    def copy_head(self, index: int, source: "VarHeadExtractor") -> None:
        """Take one head as it is in another extractor, active or not."""
        for mine, other in zip(self.head(index), source.head(index), strict=True):
            mine.copy_(other)
        self._set_active(index, active=bool(source.mask[index]))

    def prune(self, index: int) -> None:
        """Prune(i): deactivate a head; its parameters stay as they are."""
        check_event(self.mask, index, active=False)
        self._set_active(index, active=False)

    @torch.no_grad()
    def outputs_without_each(self, contexts: Tensor) -> Tensor:
        """The output matrices without each head in turn, (K_max, K_max, d_k, d_model), the others making up for it.

        :func:`incrt.heads.attention.outputs_without_each` in PyTorch; the fit is in double precision.
        """
        body, count = self.encoded().body, self.config.k_max
        w_o, d_k = body.heads.w_o.double(), self.config.d_k
        read = read_values(body, self.mask, contexts, torch).double().flatten(1)
        gram = read.T @ read / len(read)
        ridge = _RIDGE * gram.trace() / (self.k * d_k) + _TINY
        fit = torch.linalg.inv(gram + ridge * torch.eye(count * d_k, dtype=gram.dtype, device=gram.device))
        precision = fit.reshape(count, d_k, count, d_k)
        found = w_o.repeat(count, 1, 1, 1)
        for head in range(count):
            if self.mask[head]:
                column = precision[:, :, head]
                made_up = -column @ torch.linalg.inv(column[head]) @ w_o[head]
                found[head, self.mask] += made_up[self.mask]
            found[head, head] = 0
        outputs: Tensor = found.to(body.heads.w_o.dtype)
        return outputs

    @torch.no_grad()
    def make_up_for(self, index: int, contexts: Tensor) -> None:
        """Let the other heads put out what this one does, as far as they can; its own output becomes zero."""
        for matrix, output in zip(self.w_o, self.outputs_without_each(contexts)[index], strict=True):
            matrix.copy_(output)

    @torch.no_grad()
    def exchange(self, one: int, other: int) -> None:
        """Put two active heads in each other's places. The features stay the same but for rounding."""
        if not (self.mask[one] and self.mask[other]):
            raise ValueError(f"heads {one} and {other} must both be active")
        for first, second in zip(self.head(one), self.head(other), strict=True):
            kept = first.clone()
            first.copy_(second)
            second.copy_(kept)

    def take(self, params: Encoded, mask: Any) -> None:
        """Take over the parameters of an encoder of the engine."""
        if (params.norm is None) != (self.scale is None):
            raise ValueError("one of the two encoders has a layer normalisation, the other has none")
        heads = zip((self.w_q, self.w_k, self.w_v, self.w_o), params.body.heads, strict=True)
        pairs: list[tuple[Any, Any]] = [(self.embed, params.body.embed), (self.position, params.body.position)]
        pairs += [pair for matrices, values in heads for pair in zip(matrices, values, strict=True)]
        if params.norm is not None:
            pairs += [(self.scale, params.norm.scale), (self.shift, params.norm.shift)]
        for tensor, value in pairs:
            fill(tensor, value)
        self.set_mask(mask)

    def set_mask(self, mask: Any) -> None:
        """Choose the active heads without touching their parameters."""
        before = self.mask.tolist()
        fill(self.mask, mask)
        self._follow_mask(before)

    def _set_active(self, index: int, *, active: bool) -> None:
        before = self.mask.tolist()
        self.mask[index] = active
        self._follow_mask(before)

    def _follow_mask(self, before: list[bool]) -> None:
        """Let heads learn that have become active, and no others; what the user has frozen stays so."""
        for index, (was, active) in enumerate(zip(before, self.mask.tolist(), strict=True)):
            if was != active:
                for matrix in self.head(index):
                    matrix.requires_grad_(active)
                    matrix.grad = None

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Refuse the heads of another K_max, where PyTorch would list every tensor that does not fit."""
        mask = state_dict.get(f"{prefix}mask")
        if mask is not None and len(mask) != self.config.k_max:
            # Not a ValueError: SB3's load() takes that for an old file of DQN and hides it behind a KeyError.
            raise RuntimeError(
                f"these are parameters of a policy with k_max = {len(mask)}, and this one has k_max = "
                f"{self.config.k_max}; make it with policy_kwargs=incrt.sb3.policy_kwargs(k_max={len(mask)})"
            )
        before = self.mask.tolist()
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        self._follow_mask(before)


def policy_kwargs(
    k_max: int = EncoderConfig.k_max,
    *,
    k_init: int | None = None,
    d_k: int = EncoderConfig.d_k,
    layer_norm: bool = EncoderConfig.layer_norm,
    **others: Any,
) -> dict[str, Any]:
    """What to pass to a model as ``policy_kwargs``; ``others`` are Stable-Baselines3's own, such as net_arch."""
    heads: dict[str, Any] = {"k_max": k_max, "k_init": k_init, "d_k": d_k, "layer_norm": layer_norm}
    EncoderConfig(**heads)  # refuses what is wrong by name
    if taken := sorted(others.keys() & {"features_extractor_class", "features_extractor_kwargs"}):
        raise ValueError(f"{', '.join(taken)} cannot be chosen: the heads are the features extractor")
    return {"features_extractor_class": VarHeadExtractor, "features_extractor_kwargs": heads, **others}


def _window_of(space: spaces.Space[Any]) -> tuple[int, int]:
    """W and d of an observation space; what has no window is refused with what to do."""
    if not isinstance(space, spaces.Box):
        raise ValueError(
            f"observations must be a Box of shape (W, d), got {space}; gymnasium.wrappers.FlattenObservation makes a "
            "flat Box of it, and incrt.env.ContextWindow(env, window=8) a window of the latest ones"
        )
    if len(space.shape) == 1:
        raise ValueError(
            f"observations must have shape (W, d), got {space.shape}, which has no window; wrap the environment: "
            "incrt.env.ContextWindow(env, window=8), or make_vec_env(..., wrapper_class=incrt.env.ContextWindow)"
        )
    if len(space.shape) != 2:
        raise ValueError(
            f"observations must have shape (W, d), got {space.shape}; flatten them by "
            "gymnasium.wrappers.FlattenObservation, then add a window by incrt.env.ContextWindow(env, window=8)"
        )
    return space.shape


@torch.no_grad()
def fill(tensor: Any, value: Any) -> None:
    """Copy numbers into a tensor of the same shape; PyTorch would spread those of another."""
    if tuple(tensor.shape) != tuple(np.shape(value)):
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} cannot take one of shape {tuple(np.shape(value))}")
    tensor.copy_(torch.from_numpy(np.array(value)))


def _xavier_normal(*shape: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_normal_(torch.empty(*shape)))
