"""The encoders to compare with, each against PyTorch's own."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from incrt.config import ENCODERS, EncoderConfig
from incrt.heads.encoders import _KINDS, Encoded, Encoder, _is_for_gpu, head_features, make_encoder, parameter_count
from incrt.heads.layers import Dense

WINDOW, OBSERVED = 20, 11
contexts = jax.random.normal(jax.random.key(1), (5, WINDOW, OBSERVED))


@cache
def make(kind: str, **changes: Any) -> tuple[Encoder, Encoded]:
    encoder = make_encoder(EncoderConfig(encoder=kind, **changes), WINDOW, OBSERVED)
    params = encoder.init(jax.random.key(0))
    # Biases and norms start at 0 and 1; drawn at random, a wrong use of one shows.
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    noisy = [x + 0.1 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    return encoder, jax.tree.unflatten(structure, noisy)


def torch_of(x: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(x))


def put(module: Any, name: str, weight: Any) -> None:
    getattr(module, name).data = torch_of(weight)


def test_every_name_that_a_configuration_takes_is_an_encoder_and_the_other_way_round() -> None:
    assert tuple(_KINDS) == ENCODERS


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("kind", ENCODERS)
def test_all_encoders_have_one_interface(kind: str, layer_norm: bool) -> None:
    encoder, params = make(kind, layer_norm=layer_norm)
    features = encoder.features(params, encoder.first_mask, contexts)
    assert features.shape == (5, 128)
    one = encoder.features(params, encoder.first_mask, contexts[0])
    np.testing.assert_allclose(one, features[0], atol=2e-5)
    fresh = encoder.features(encoder.init(jax.random.key(0)), encoder.first_mask, contexts)
    if layer_norm:
        np.testing.assert_allclose(jnp.mean(fresh, -1), 0, atol=1e-5)
        np.testing.assert_allclose(jnp.std(fresh, -1), 1, rtol=1e-2)
    else:
        assert params.norm is None
        assert not np.allclose(np.std(fresh, -1), 1, rtol=1e-2)


@pytest.mark.parametrize("kind", [kind for kind in ENCODERS if kind != "none"])
def test_encoders_look_at_the_whole_window_and_none_at_its_end(kind: str) -> None:
    earlier = contexts.at[:, 0].add(1.0)
    for name, looks in ((kind, True), ("none", False)):
        encoder, params = make(name)
        change = encoder.features(params, encoder.first_mask, earlier) - encoder.features(
            params, encoder.first_mask, contexts
        )
        assert bool(np.any(np.abs(change) > 1e-6)) == looks, name


@pytest.mark.parametrize(("kind", "module"), [("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
def test_recurrent_encoders_are_pytorchs(kind: str, module: Any) -> None:
    encoder, params = make(kind, layer_norm=False)
    peer = module(OBSERVED, 128, batch_first=True)
    put(peer, "weight_ih_l0", params.body.observed.w.T)
    put(peer, "bias_ih_l0", params.body.observed.b)
    put(peer, "weight_hh_l0", params.body.hidden.w.T)
    put(peer, "bias_hh_l0", params.body.hidden.b)
    expected = peer(torch_of(contexts))[0][:, -1].detach()
    np.testing.assert_allclose(encoder.features(params, encoder.first_mask, contexts), expected, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_deep_encoder_is_pytorchs_pre_norm_transformer(layers: int) -> None:
    encoder, params = make("deep", layers=layers)
    x = torch_of(contexts @ params.body.embed + params.body.position)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(WINDOW)
    for layer in params.body.layers:
        peer = torch.nn.TransformerEncoderLayer(128, 8, 512, dropout=0.0, batch_first=True, norm_first=True)
        projections = (layer.query, layer.key, layer.value)
        put(peer.self_attn, "in_proj_weight", jnp.concatenate([p.w.T for p in projections]))
        put(peer.self_attn, "in_proj_bias", jnp.concatenate([p.b for p in projections]))
        for name, part in (("out_proj", layer.out),):
            put(getattr(peer.self_attn, name), "weight", part.w.T)
            put(getattr(peer.self_attn, name), "bias", part.b)
        for name, part in zip(("linear1", "linear2"), layer.feed_forward, strict=True):
            put(getattr(peer, name), "weight", part.w.T)
            put(getattr(peer, name), "bias", part.b)
        for name, norm in (("norm1", layer.norm_1), ("norm2", layer.norm_2)):
            put(getattr(peer, name), "weight", norm.scale)
            put(getattr(peer, name), "bias", norm.shift)
        x = peer(x, src_mask=causal)
    assert params.norm is not None
    expected = torch.nn.functional.layer_norm(x, (128,), torch_of(params.norm.scale), torch_of(params.norm.shift))
    found = encoder.features(params, encoder.first_mask, contexts)
    np.testing.assert_allclose(found, expected[:, -1].detach(), atol=5e-5)


def fresh(kind: str) -> Any:
    return make_encoder(EncoderConfig(encoder=kind, layers=3), WINDOW, OBSERVED).init(jax.random.key(0)).body


@pytest.mark.parametrize(
    ("kind", "matrices"),
    [
        ("static", lambda body: [w[i] for w in body.heads[:3] for i in (0, 1)]),
        ("deep", lambda body: [part.w for layer in body.layers for part in layer[1:5]]),
        ("gru", lambda body: jnp.split(body.hidden.w, 3, axis=1)),
        ("lstm", lambda body: jnp.split(body.hidden.w, 4, axis=1)),
    ],
)
def test_fresh_matrices_of_one_shape_are_not_alike(kind: str, matrices: Callable[[Any], list[Any]]) -> None:
    likeness = np.corrcoef([np.ravel(matrix) for matrix in matrices(fresh(kind))])
    np.testing.assert_allclose(likeness, np.eye(len(likeness)), atol=0.1)


def test_none_is_attention_without_heads() -> None:
    encoder, params = make("runtime")
    peer = make_encoder(EncoderConfig(encoder="none"), WINDOW, OBSERVED)
    same = Encoded(Dense(params.body.embed, params.body.position[-1]), params.norm)
    expected = encoder.features(params, jnp.zeros(8, bool), contexts)
    np.testing.assert_allclose(peer.features(same, peer.first_mask, contexts), expected, atol=1e-6)


def test_runtime_starts_with_one_head_and_static_with_all_unless_told() -> None:
    assert int(make("runtime")[0].first_mask.sum()) == 1
    assert int(make("static")[0].first_mask.sum()) == 8
    assert int(make("static", k_init=7)[0].first_mask.sum()) == 7
    assert make("gru")[0].first_mask.shape == (0,)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_features_of_heads_run_in_numpy_and_pytorch(layer_norm: bool) -> None:
    encoder, params = make("runtime", k_init=3, layer_norm=layer_norm)
    expected = encoder.features(params, encoder.first_mask, contexts)
    for convert, xp in ((np.asarray, np), (torch_of, torch)):
        theirs, mask, seen = (jax.tree.map(convert, x) for x in (params, encoder.first_mask, contexts))
        np.testing.assert_allclose(head_features(theirs, mask, seen, xp), expected, atol=2e-6)


def test_parameters_are_counted_by_hand() -> None:
    head, embedding, norm = 4 * 128 * 16, (OBSERVED + WINDOW) * 128, 2 * 128
    encoder, params = make("runtime")
    assert parameter_count(params, encoder.first_mask) == embedding + norm + head
    assert parameter_count(params, jnp.ones(8, bool)) == embedding + norm + 8 * head
    attention, feed_forward = 4 * 128 * 129, 128 * 512 + 512 + 512 * 128 + 128
    for kind, expected in (
        ("none", (OBSERVED + 1) * 128),
        ("gru", 3 * 128 * (OBSERVED + 128 + 2)),
        ("lstm", 4 * 128 * (OBSERVED + 128 + 2)),
        ("deep", embedding + 2 * (attention + feed_forward + 2 * norm)),
    ):
        encoder, params = make(kind)
        assert parameter_count(params, encoder.first_mask) == expected + norm, kind


def test_a_window_that_is_no_count_is_refused() -> None:
    with pytest.raises(ValueError, match="window must be a whole number >= 1"):
        make_encoder(EncoderConfig(), 0, OBSERVED)


@pytest.mark.parametrize("kind", ENCODERS)
def test_contexts_of_another_shape_are_refused(kind: str) -> None:
    encoder, params = make(kind)
    with pytest.raises(ValueError, match=r"\(\.\.\., 20, 11\), got \(5, 19, 11\)"):
        encoder.features(params, encoder.first_mask, contexts[:, 1:])


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recurrent_encoders_are_the_same_unrolled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, params = make(kind)

    def gradient() -> Any:
        return jax.grad(lambda p: jnp.sum(encoder.features(p, encoder.first_mask, contexts) ** 3))(params)

    looped = gradient()
    monkeypatch.setattr("incrt.heads.encoders._is_for_gpu", lambda: True)
    monkeypatch.setattr("incrt.heads.encoders._UNROLLED", 7)  # which does not divide the window
    assert str(jax.make_jaxpr(gradient)()).count("unroll=7") == 2
    for one, other in zip(jax.tree.leaves(gradient()), jax.tree.leaves(looped), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_is_traced_for_a_cpu_is_not_unrolled() -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        assert not _is_for_gpu()
