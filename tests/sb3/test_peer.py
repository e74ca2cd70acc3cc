"""The peer of the engine: that its attention is the paper's, and that its clock counts what it says."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from gymnasium import spaces
from literal import literal
from stable_baselines3 import SAC

from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.heads.encoders import Encoded, head_features, make_encoder
from incrt.sb3 import peer as sb3_peer
from incrt.sb3.peer import LiteralAttention, make_sb3, time_sb3

WINDOW, OBSERVED = 20, 11
contexts = np.random.default_rng(0).standard_normal((5, WINDOW, OBSERVED), np.float32)
TINY = (TaskConfig(window=4), EncoderConfig(k_max=2, d_k=2), SacConfig(batch=4, buffer=200, hidden=(8,)))


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


def test_the_model_is_stock_and_has_the_engines_settings() -> None:
    sac = SacConfig(batch=32, buffer=1000, learning_rate=1e-3, gamma=0.9, tau=0.1, hidden=(16, 8), target_entropy=-2)
    config = TaskConfig(window=7, tau_z=1.0)
    model = make_sb3(config, EncoderConfig(k_max=3), sac)
    assert type(model) is SAC
    assert model.env is not None
    assert model.env.get_attr("config") == [config]
    assert (model.batch_size, model.buffer_size, model.gamma, model.tau) == (32, 1000, 0.9, 0.1)
    assert (model.lr_schedule(1), model.target_entropy, model.gradient_steps) == (1e-3, -2.0, 1)
    assert model.policy.net_arch == [16, 8]
    for network in (model.actor, model.critic, model.critic_target):
        extractor = network.features_extractor
        assert isinstance(extractor, LiteralAttention)
        assert (len(extractor.heads), extractor.features_dim) == (3, 48)


def test_each_timed_step_is_one_update(monkeypatch: pytest.MonkeyPatch) -> None:
    updates = []
    train = SAC.train

    def counted(model: SAC, gradient_steps: int, batch_size: int) -> None:
        updates.append(gradient_steps)
        train(model, gradient_steps, batch_size)

    monkeypatch.setattr(SAC, "train", counted)
    monkeypatch.setattr(sb3_peer, "usable_cores", lambda: 1)  # threads that wait for one another cost as if they worked
    monkeypatch.setattr(sb3_peer, "perf_counter", lambda: sum(updates))  # a clock that counts updates
    assert time_sb3(*TINY, steps=7) == 1.0
    assert sum(updates) >= sb3_peer.WARM_UP


def test_it_gives_a_speed_and_leaves_pytorchs_threads_alone() -> None:
    before = torch.get_num_threads()
    assert 0 < time_sb3(*TINY, steps=10) < 1e5
    assert torch.get_num_threads() == before


def test_only_encoders_with_heads_have_this_peer() -> None:
    with pytest.raises(ValueError, match="encoder must be one of runtime, static; got 'gru'"):
        time_sb3(TaskConfig(), EncoderConfig(encoder="gru"), SacConfig(), steps=1)
    with pytest.raises(ValueError, match="steps must be a whole number >= 1"):
        time_sb3(*TINY, steps=0)
