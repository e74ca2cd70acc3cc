"""Variable-head attention as a features extractor: PyTorch's own attention, the engine's, and what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_models import DEVICES
from stable_baselines3 import SAC

import incrt
from incrt.heads.encoders import head_features
from incrt.sb3 import VarHeadExtractor, policy_kwargs

WINDOW, OBSERVED = 6, 3
SPACE = spaces.Box(-np.inf, np.inf, (WINDOW, OBSERVED), np.float32)
contexts = np.random.default_rng(0).standard_normal((5, WINDOW, OBSERVED), np.float32)


def make(seed: int = 0, **settings: Any) -> VarHeadExtractor:
    torch.manual_seed(seed)
    extractor = VarHeadExtractor(SPACE, **{"k_max": 4, "d_k": 5, **settings})
    with torch.no_grad():
        extractor.position.mul_(20)  # so that where a step stands matters
        if extractor.scale is not None and extractor.shift is not None:
            extractor.scale.uniform_(0.5, 2)
            extractor.shift.uniform_(-1, 1)
    return extractor


@pytest.mark.parametrize("layer_norm", [True, False])
def test_with_all_heads_it_is_pytorchs_multi_head_attention(layer_norm: bool) -> None:
    extractor = make(k_init=4, layer_norm=layer_norm)
    features = extractor(torch.tensor(contexts))
    features.square().sum().backward()

    width = extractor.config.d_model
    peer = torch.nn.MultiheadAttention(width, 4, bias=False, batch_first=True)
    body = extractor.encoded().body
    inward = [torch.cat(list(matrices), dim=1).T for matrices in (body.heads.w_q, body.heads.w_k, body.heads.w_v)]
    peer.in_proj_weight.data = torch.cat(inward).detach()
    peer.out_proj.weight.data = torch.cat(list(body.heads.w_o)).T.detach().contiguous()
    h = torch.tensor(contexts) @ extractor.embed.detach() + extractor.position.detach()
    causal = torch.nn.Transformer.generate_square_subsequent_mask(WINDOW)
    out = (h + peer(h, h, h, attn_mask=causal, need_weights=False)[0])[:, -1]
    if extractor.scale is not None and extractor.shift is not None:
        out = torch.nn.functional.layer_norm(out, (width,), extractor.scale.detach(), extractor.shift.detach())
    out.square().sum().backward()

    torch.testing.assert_close(features, out, rtol=1e-6, atol=1e-6)
    assert peer.in_proj_weight.grad is not None
    assert peer.out_proj.weight.grad is not None
    for ours, theirs in zip(
        (extractor.w_q, extractor.w_k, extractor.w_v), torch.split(peer.in_proj_weight.grad, width), strict=True
    ):
        torch.testing.assert_close(torch.cat([w.grad for w in ours], dim=1).T, theirs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        torch.cat([w.grad for w in extractor.w_o]).T, peer.out_proj.weight.grad, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("layer_norm", [True, False])
def test_values_and_gradients_are_the_engines(layer_norm: bool) -> None:
    extractor = make(k_init=2, layer_norm=layer_norm)
    params = jax.tree.map(lambda x: jnp.asarray(x.detach().numpy()), extractor.encoded())
    mask = jnp.asarray(extractor.mask.numpy())
    weight = np.random.default_rng(1).standard_normal((5, 20), np.float32)

    features = extractor(torch.tensor(contexts))
    (features * torch.tensor(weight)).sum().backward()
    expected = head_features(params, mask, jnp.asarray(contexts))
    slope = jax.grad(lambda p: jnp.sum(head_features(p, mask, jnp.asarray(contexts)) * weight))(params)
    np.testing.assert_allclose(features.detach(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.asarray(extractor.embed.grad), slope.body.embed, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(extractor.position.grad), slope.body.position, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(
        (extractor.w_q, extractor.w_k, extractor.w_v, extractor.w_o), slope.body.heads, strict=True
    ):
        found = np.stack([np.zeros(w.shape) if w.grad is None else np.asarray(w.grad) for w in ours])
        np.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-5)
    if layer_norm:
        for mine, engines in ((extractor.scale, slope.norm.scale), (extractor.shift, slope.norm.shift)):
            assert mine is not None
            np.testing.assert_allclose(np.asarray(mine.grad), engines, rtol=1e-5, atol=1e-5)


def test_it_begins_with_k_init_heads_and_room_for_k_max() -> None:
    assert make().mask.tolist() == [True, False, False, False]
    extractor = make(k_init=3)
    assert (extractor.k, extractor.features_dim) == (3, 20)
    assert [bool(w.any()) for w in extractor.w_o] == [True, True, True, False]


@pytest.mark.parametrize("device", DEVICES)
def test_a_head_that_is_grown_changes_nothing_at_first(device: str) -> None:
    extractor = make().to(device)
    before = extractor(torch.tensor(contexts, device=device))
    extractor.grow(2, np.random.default_rng(0))
    assert extractor.mask.tolist() == [True, False, True, False]
    assert torch.equal(extractor(torch.tensor(contexts, device=device)), before)
    assert not extractor.w_o[2].any()


def test_a_head_starts_anew_by_xavier_each_time_it_is_grown() -> None:
    torch.manual_seed(0)
    extractor = VarHeadExtractor(SPACE, k_max=2, d_k=100)
    generator = np.random.default_rng(0)
    extractor.grow(1, generator)
    first = [w.clone() for w in extractor.head(1)]
    extractor.w_o[1].data.fill_(1)
    extractor.prune(1)
    extractor.grow(1, generator)
    assert not extractor.w_o[1].any()
    for w, old in zip(list(extractor.head(1))[:3], first, strict=False):
        assert float(w.detach().std()) == pytest.approx((2 / 300) ** 0.5, rel=0.02)
        assert not torch.equal(w, old)


def test_a_head_that_is_pruned_is_as_if_it_put_out_nothing() -> None:
    extractor, silent = make(k_init=3), make(k_init=3)
    extractor.prune(1)
    silent.w_o[1].data.zero_()
    assert torch.equal(extractor(torch.tensor(contexts)), silent(torch.tensor(contexts)))
    with pytest.raises(ValueError, match="head 1 is already inactive"):
        extractor.prune(1)
    with pytest.raises(ValueError, match="head 0 is already active"):
        extractor.grow(0, np.random.default_rng(0))


def test_inactive_heads_get_no_gradient() -> None:
    extractor = make(k_init=2)
    extractor(torch.tensor(contexts)).square().sum().backward()
    for index, active in enumerate(extractor.mask.tolist()):
        for w in extractor.head(index):
            assert (w.grad is not None and bool(w.grad.any())) == active
    extractor.prune(1)
    assert all(w.grad is None for w in extractor.head(1))


def test_what_the_user_froze_stays_frozen() -> None:
    extractor = make(k_init=2)
    extractor.requires_grad_(False)
    extractor.grow(2, np.random.default_rng(0))
    assert [w.requires_grad for w in extractor.w_q] == [False, False, True, False]


def test_which_heads_learn_travels_with_the_state() -> None:
    extractor, other = make(k_init=3), make()
    extractor.prune(1)
    other.load_state_dict(extractor.state_dict())
    assert [w.requires_grad for w in other.w_q] == [True, False, True, False]
    assert torch.equal(other(torch.tensor(contexts)), extractor(torch.tensor(contexts)))


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            spaces.Box(-1, 1, (3,)),
            r"got \(3,\), which has no window; wrap the environment: incrt.env.ContextWindow",
        ),
        (spaces.Box(-1, 1, (8, 8, 3)), r"got \(8, 8, 3\); flatten them by .*FlattenObservation.*ContextWindow"),
        (spaces.Discrete(3), r"must be a Box of shape \(W, d\), got Discrete\(3\).*FlattenObservation.*ContextWindow"),
        (spaces.Dict({"a": spaces.Discrete(2)}), r"must be a Box of shape \(W, d\), got Dict"),
    ],
)
def test_an_observation_without_a_window_is_refused_with_what_to_do(space: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VarHeadExtractor(space)


def test_wrong_heads_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="k_init must be at most k_max = 4, got 5"):
        policy_kwargs(k_max=4, k_init=5)
    with pytest.raises(ValueError, match="k_max must be a whole number >= 1"):
        policy_kwargs(k_max=0)
    with pytest.raises(ValueError, match="features_extractor_class cannot be chosen"):
        policy_kwargs(features_extractor_class=torch.nn.Identity)


def test_parameters_of_another_k_max_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"k_max = 4, and this one has k_max = 2; make it with .*k_max=4"):
        make(k_max=2).load_state_dict(make().state_dict())


def test_policy_kwargs_are_stable_baselines3s() -> None:
    found = policy_kwargs(k_max=6, net_arch=[8])
    assert found == {
        "features_extractor_class": VarHeadExtractor,
        "features_extractor_kwargs": {"k_max": 6, "k_init": None, "d_k": 16, "layer_norm": True},
        "net_arch": [8],
    }
    model = SAC("MlpPolicy", "incrt:incrt/Stribeck-v0", policy_kwargs=found, buffer_size=10, device="cpu")
    extractors = [each.features_extractor for each in (model.actor, model.critic, model.critic_target)]
    assert len({id(each) for each in extractors}) == 3
    assert all(isinstance(each, VarHeadExtractor) and each.k == 1 for each in extractors)
    assert incrt.sb3.policy_kwargs is policy_kwargs
