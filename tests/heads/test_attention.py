"""Variable-head attention against the paper's equations, written out literally."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jax import Array
from literal import literal, literal_head

from incrt.heads.attention import (
    Attention,
    Heads,
    attend,
    contributions,
    head_norms,
    head_slots,
    hold_inactive,
    init_attention,
    shares,
    soft_init,
)

OBSERVED, D_K = 11, 4


def make(seed: int, k_max: int, window: int, batch: tuple[int, ...], scale: float) -> tuple[Attention, Array]:
    """Parameters in which every head is live and where a step stands matters, and contexts."""
    draws = np.random.default_rng(seed)
    d_model = k_max * D_K

    def normal(std: float, *shape: int) -> Array:
        return jnp.asarray(std * draws.standard_normal(shape), jnp.float32)

    into, out = (k_max, d_model, D_K), (k_max, D_K, d_model)
    std = math.sqrt(2 / (d_model + D_K))
    heads = Heads(normal(std, *into), normal(std, *into), normal(std, *into), normal(std, *out))
    embed = normal(math.sqrt(2 / (OBSERVED + d_model)), OBSERVED, d_model)
    return Attention(embed, normal(0.2, window, d_model), heads), normal(scale, *batch, window, OBSERVED)


def largest_score(params: Attention, context: Array) -> float:
    embed, position, (w_q, w_k, _, _) = jax.tree.map(np.asarray, params)
    h = np.asarray(context) @ embed + position
    query, key = (np.einsum("...wm,kmd->...kwd", h, w) for w in (w_q, w_k))
    return float(np.max(np.abs(np.einsum("...kd,...kwd->...kw", query[..., -1, :], key))) / np.sqrt(D_K))


def relative(found: Any, expected: Any) -> float:
    """Largest difference of any array of a tree, relative to the largest entry of that array."""
    pairs = zip(*(map(np.asarray, jax.tree.leaves(tree)) for tree in (found, expected)), strict=True)
    return max(float(np.max(np.abs(x - y)) / max(np.max(np.abs(y)), 1e-30)) for x, y in pairs)


def squares(form: Any, params: Attention, mask: Array, context: Array) -> Array:
    return jnp.sum(form(params, mask, context) ** 2)


@partial(jax.jit, static_argnums=0)
def value_and_gradient(form: Any, params: Attention, mask: Array, context: Array) -> tuple[Array, Attention]:
    return form(params, mask, context), jax.grad(partial(squares, form))(params, mask, context)


shapes = st.sampled_from([(3, 1, (5,)), (3, 20, ()), (3, 20, (2, 3)), (8, 20, (5,)), (8, 2, (5,)), (1, 50, (5,))])
scales = st.sampled_from([0.1, 1.0, 3.0, 10.0, 100.0])
masks = st.lists(st.booleans(), min_size=8, max_size=8)


@given(seed=st.integers(0, 10_000), shape=shapes, bits=masks, scale=scales)
def test_fast_and_literal_agree_in_value_and_gradient(
    seed: int, shape: tuple[int, int, tuple[int, ...]], bits: list[bool], scale: float
) -> None:
    params, context = make(seed, *shape, scale)
    mask = jnp.array(bits[: shape[0]])
    fast, fast_gradient = value_and_gradient(attend, params, mask, context)
    slow, slow_gradient = value_and_gradient(literal, params, mask, context)
    # A score is good to about 1e-7 of its size, and the softmax turns that into an error of the weights: with scores
    # in the hundreds single precision itself, in either form, is no longer good to 1e-5.
    loss = max(1.0, largest_score(params, context) / 50)
    assert relative(fast, slow) < 1e-5 * loss
    assert relative(fast_gradient, slow_gradient) < 1e-4 * loss


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
@given(seed=st.integers(0, 10_000), shape=shapes, bits=masks, scale=scales)
def test_in_double_precision_they_agree_to_ten_digits(
    seed: int, shape: tuple[int, int, tuple[int, ...]], bits: list[bool], scale: float
) -> None:
    params, context = jax.tree.map(lambda x: x.astype(jnp.float64), make(seed, *shape, scale))
    mask = jnp.array(bits[: shape[0]])
    fast, fast_gradient = value_and_gradient(attend, params, mask, context)
    slow, slow_gradient = value_and_gradient(literal, params, mask, context)
    assert relative(fast, slow) < 1e-10
    assert relative(fast_gradient, slow_gradient) < 1e-10


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_in_single_precision_the_fast_form_is_as_good_as_the_literal_one(scale: float) -> None:
    exact = jax.tree.map(lambda x: x.astype(jnp.float64), make(0, 8, 20, (200,), scale))
    params, context = jax.tree.map(lambda x: x.astype(jnp.float32), exact)
    exact = jax.tree.map(lambda x: x.astype(jnp.float64), (params, context))
    mask = jnp.ones(8, bool)
    truth = value_and_gradient(literal, exact[0], mask, exact[1])

    def distances(form: Any) -> list[float]:
        """Of value and gradients from the truth: root mean squares."""
        pairs = zip(*map(jax.tree.leaves, (value_and_gradient(form, params, mask, context), truth)), strict=True)
        return [float(jnp.sqrt(jnp.mean((found - exactly) ** 2))) for found, exactly in pairs]

    (fast, *fast_gradient), (slow, *slow_gradient) = distances(attend), distances(literal)
    assert fast < 4 * slow
    if scale <= 30:  # beyond, the gradient is that of a few near ties, and which form meets them better is chance
        assert all(x < 4 * y for x, y in zip(fast_gradient, slow_gradient, strict=True))


def test_contributions_are_the_heads_of_the_paper() -> None:
    params, context = make(1, 3, 20, (5,), 1.0)
    mask = jnp.array([True, False, True])
    found = contributions(params, mask, context)
    h = context @ params.embed + params.position
    for i in (0, 2):
        assert relative(found[:, i], literal_head(params, i, h)[:, -1]) < 1e-5
    assert not np.any(found[:, 1])
    assert relative(attend(params, mask, context), h[:, -1] + found.sum(1)) < 1e-6


def test_shares_are_norms_over_their_sum() -> None:
    params, contexts = make(2, 4, 20, (64,), 1.0)
    mask = jnp.array([True, False, True, True])
    h = contexts @ params.embed + params.position
    norms = np.array([np.linalg.norm(literal_head(params, i, h)[:, -1], axis=-1).mean() for i in range(4)])
    norms[1] = 0
    np.testing.assert_allclose(head_norms(params, mask, contexts), norms, rtol=1e-5)
    np.testing.assert_allclose(shares(jnp.asarray(norms), mask), norms / norms.sum(), rtol=1e-6)


def test_heads_that_put_nothing_out_share_evenly() -> None:
    mask = jnp.array([True, False, True])
    np.testing.assert_array_equal(shares(jnp.zeros(3), mask), [0.5, 0, 0.5])
    np.testing.assert_array_equal(shares(jnp.array([1.0, jnp.nan, 3.0]), mask), [0.25, 0, 0.75])


def test_an_inactive_head_gets_no_gradient_and_the_others_all_do() -> None:
    params, context = make(3, 3, 20, (5,), 1.0)
    _, gradient = value_and_gradient(attend, params, jnp.array([True, False, True]), context)
    for w in gradient.heads:
        np.testing.assert_array_equal(np.any(np.asarray(w), axis=(1, 2)), [True, False, True])


def test_what_an_inactive_head_holds_does_not_matter() -> None:
    params, context = make(3, 3, 20, (5,), 1.0)
    lost = params._replace(heads=params.heads._replace(w_v=params.heads.w_v.at[1].set(jnp.nan)))
    mask = jnp.array([True, False, True])
    np.testing.assert_array_equal(attend(lost, mask, context), attend(params, mask, context))


def test_a_new_head_has_xavier_spread_and_puts_out_nothing() -> None:
    heads = soft_init(jax.random.split(jax.random.key(0), 5), 128, 16)
    for w in heads[:3]:
        assert w.shape == (5, 128, 16)
        assert float(jnp.std(w)) == pytest.approx(np.sqrt(2 / (128 + 16)), rel=0.02)
    assert heads.w_o.shape == (5, 16, 128)
    assert not np.any(heads.w_o)
    energy = sum(float(jnp.sum(w**2)) for w in heads) / 5
    assert energy == pytest.approx(85.3, rel=0.03)  # 6 d_model d_k / (d_model + d_k), docs/paper.md
    flat = np.concatenate([np.asarray(w).reshape(5, -1) for w in heads[:3]], axis=1)
    assert np.max(np.abs(np.corrcoef(flat) - np.eye(5))) < 0.05  # no two heads alike
    assert abs(np.corrcoef(heads.w_q.ravel(), heads.w_k.ravel())[0, 1]) < 0.05


def test_heads_active_at_the_start_put_something_out_and_the_others_would_not() -> None:
    mask = jnp.array([True, True, False])
    params = init_attention(jax.random.key(0), mask, 20, OBSERVED, D_K)
    assert np.all(np.any(np.asarray(params.heads.w_o), axis=(1, 2)) == np.asarray(mask))
    assert head_slots((params, {"other": jnp.zeros(3)})) == 3
    assert head_slots({"other": jnp.zeros(3)}) == 0


def test_many_runs_with_different_masks_are_a_vmap() -> None:
    runs = [make(seed, 3, 20, (5,), 1.0) for seed in range(4)]
    masks = jnp.array([[True, False, False], [True, True, False], [False, True, True], [True, True, True]])
    params, contexts = jax.tree.map(lambda *x: jnp.stack(x), *runs)
    together = jax.vmap(attend)(params, masks, contexts)
    for run, mask, found in zip(runs, masks, together, strict=True):
        assert relative(found, attend(run[0], mask, run[1])) < 1e-6


@pytest.mark.parametrize("batch", [(), (7,)])
def test_numpy_and_pytorch_run_the_same_text(batch: tuple[int, ...]) -> None:
    params, context = make(5, 3, 20, batch, 1.0)
    mask = np.array([True, False, True])
    value, gradient = value_and_gradient(attend, params, jnp.asarray(mask), context)
    with_numpy = attend(jax.tree.map(np.asarray, params), mask, np.asarray(context), np)
    assert with_numpy.dtype == np.float32
    np.testing.assert_allclose(with_numpy, value, rtol=0, atol=1e-6)

    tensors = jax.tree.map(lambda x: torch.tensor(np.asarray(x), requires_grad=True), params)
    arguments = tensors, torch.tensor(mask), torch.tensor(np.asarray(context)), torch
    out = attend(*arguments)
    np.testing.assert_allclose(out.detach(), with_numpy, rtol=0, atol=1e-6)
    (out**2).sum().backward()
    assert relative(jax.tree.map(lambda x: jnp.asarray(x.grad.numpy()), tensors), gradient) < 1e-5
    if batch:
        np.testing.assert_allclose(
            shares(head_norms(*arguments), torch.tensor(mask), torch).detach(),
            shares(head_norms(params, jnp.asarray(mask), context), jnp.asarray(mask)),
            rtol=1e-5,
        )


def test_holding_keeps_inactive_heads_alone() -> None:
    before, _ = make(6, 3, 20, (), 1.0)
    after = jax.tree.map(lambda x: x + 1, before)
    held = hold_inactive(jnp.array([True, False, True]), {"net": before}, {"net": after})["net"]
    np.testing.assert_array_equal(held.embed, after.embed)
    for old, new, found in zip(before.heads, after.heads, held.heads, strict=True):
        np.testing.assert_array_equal(found[1], old[1])
        np.testing.assert_array_equal(found[::2], new[::2])


def test_a_context_or_mask_of_the_wrong_shape_is_refused_with_the_right_one() -> None:
    params, context = make(7, 3, 20, (5,), 1.0)
    with pytest.raises(ValueError, match=r"\(\.\.\., 20, 11\), got \(5, 20, 10\)"):
        attend(params, jnp.ones(3, bool), context[..., :-1])
    with pytest.raises(ValueError, match="mask must have 3 entries"):
        attend(params, jnp.ones(1, bool), context)
