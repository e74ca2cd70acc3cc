"""The attention written out for Stable-Baselines3 is the paper's."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from gymnasium import spaces
from literal import literal

from incrt.config import EncoderConfig
from incrt.heads.encoders import Encoded, head_features, make_encoder
from incrt.sb3.literal import LiteralAttention

WINDOW, OBSERVED = 20, 11
contexts = np.random.default_rng(0).standard_normal((5, WINDOW, OBSERVED), np.float32)


def torch_of(x: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(x))


def make(layer_norm: bool) -> tuple[LiteralAttention, Encoded]:
    """The peer's extractor and the engine's encoder with the same weights."""
    config = EncoderConfig(encoder="static", layer_norm=layer_norm)
    params = make_encoder(config, WINDOW, OBSERVED).init(jax.random.key(0))
    body = params.body._replace(position=10 * params.body.position)  # so that where a step stands matters
    peer = LiteralAttention(spaces.Box(-np.inf, np.inf, (WINDOW, OBSERVED), np.float32), config)
    weights = {"embed.weight": body.embed.T, "position": body.position}
    for i, matrices in enumerate(zip(*body.heads, strict=True)):
        names = (f"heads.{i}.{part}.weight" for part in ("query", "key", "value", "out"))
        weights |= {name: w.T for name, w in zip(names, matrices, strict=True)}
    norm = params.norm
    if norm is not None:
        norm = norm._replace(scale=norm.scale + jnp.linspace(-0.5, 0.5, 128), shift=jnp.linspace(1, -1, 128))
        weights |= {"norm.weight": norm.scale, "norm.bias": norm.shift}
    peer.load_state_dict({name: torch_of(w) for name, w in weights.items()})
    return peer, Encoded(body, norm)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_features_are_those_of_the_engine(layer_norm: bool) -> None:
    peer, params = make(layer_norm)
    expected = head_features(params, jnp.ones(8, bool), contexts)
    np.testing.assert_allclose(peer(torch_of(contexts)).detach(), expected, atol=1e-5)


def test_features_are_those_of_the_literal_equations() -> None:
    peer, params = make(layer_norm=False)
    expected = literal(params.body, jnp.ones(8, bool), jnp.asarray(contexts))
    np.testing.assert_allclose(peer(torch_of(contexts)).detach(), expected, atol=1e-5)


def test_no_time_step_sees_a_later_one() -> None:
    peer, _ = make(layer_norm=False)
    head = peer.heads[0]
    h = torch_of(contexts) @ peer.embed.weight.T
    change = head(h + torch.eye(WINDOW)[9, :, None], peer.causal) - head(h, peer.causal)
    moved = change.detach().abs().amax((0, 2))
    assert bool((moved[:9] == 0).all())
    assert bool((moved[9:] > 1e-3).all())


def test_an_encoder_without_heads_cannot_be_written_out() -> None:
    with pytest.raises(ValueError, match="encoder must be one of runtime, static; got 'gru'"):
        LiteralAttention(spaces.Box(-1, 1, (WINDOW, OBSERVED), np.float32), EncoderConfig(encoder="gru"))
