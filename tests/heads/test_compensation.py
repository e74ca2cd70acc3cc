"""Heads that make up for one that is pruned: the same as least squares solved literally, in each network on its own."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import Array
from literal import literal, literal_head

from incrt.heads.adam import AdamState, adam
from incrt.heads.attention import Attention, Heads, attend, init_attention, outputs_without_each, read_values
from incrt.heads.certificates import Policy
from incrt.heads.encoders import Encoded
from incrt.heads.growth import Learned, prune, prune_and_compensate
from incrt.heads.layers import init_mlp, init_norm

K_MAX, WINDOW, OBSERVED, D_K = 4, 6, 5, 3
D_MODEL = K_MAX * D_K
RIDGE = 1e-3
contexts = jax.random.normal(jax.random.key(9), (64, WINDOW, OBSERVED))
without_each = jax.jit(outputs_without_each)


def block(seed: int) -> Attention:
    """Attention all of whose heads put something out, as far as the mask lets them."""
    return init_attention(jax.random.key(seed), jnp.ones(K_MAX, bool), WINDOW, OBSERVED, D_K)


def masked(*active: int) -> Array:
    return jnp.asarray(np.isin(np.arange(K_MAX), active))


def literal_values(params: Attention, seen: Array) -> np.ndarray:
    """What each head reads at the last time step, (K_max, B, d_k), by eq. (11) without its output matrix."""
    plain = params._replace(heads=params.heads._replace(w_o=jnp.tile(jnp.eye(D_K), (K_MAX, 1, 1))))
    embedded = seen @ params.embed + params.position
    return np.stack([np.asarray(literal_head(plain, i, embedded)[:, -1], np.float64) for i in range(K_MAX)])


def literal_without(params: Attention, mask: Array, head: int, seen: Array) -> np.ndarray:
    """The output matrices without a head, by ridge regression as an ordinary least squares problem with more rows."""
    values, w_o = literal_values(params, seen), np.array(params.heads.w_o, np.float64)
    others = [i for i in range(K_MAX) if mask[i] and i != head]
    if mask[head] and others:
        reads = [values[i] for i in range(K_MAX) if mask[i]]
        size = np.mean(np.concatenate(reads, axis=-1) ** 2)
        known = np.concatenate([values[i] for i in others], axis=-1) / np.sqrt(len(seen))
        rows = np.concatenate([known, np.sqrt(RIDGE * size) * np.eye(known.shape[1])])
        wanted = np.concatenate([values[head] / np.sqrt(len(seen)), np.zeros((known.shape[1], D_K))])
        found = np.linalg.lstsq(rows, wanted, rcond=None)[0].reshape(len(others), D_K, D_K)
        for i, by in zip(others, found, strict=True):
            w_o[i] += by @ w_o[head]
    w_o[head] = 0
    return w_o


def alike(params: Attention, one: int, other: int) -> Attention:
    """The same with two heads that read the same and put it out differently."""
    w_q, w_k, w_v = (w.at[other].set(w[one]) for w in params.heads[:3])
    return params._replace(heads=Heads(w_q, w_k, w_v, params.heads.w_o))


@given(seed=st.integers(0, 1000), active=st.sets(st.integers(0, K_MAX - 1), min_size=1))
def test_output_matrices_are_those_of_least_squares(seed: int, active: set[int]) -> None:
    params, mask = block(seed), masked(*active)
    found = without_each(params, mask, contexts)
    for head in range(K_MAX):
        expected = literal_without(params, mask, head, contexts)
        np.testing.assert_allclose(found[head], expected, atol=5e-3 * np.abs(expected).max(), err_msg=str(head))


def test_in_double_precision_they_are_equal_to_many_digits() -> None:
    with jax.enable_x64(True):
        params, seen = jax.tree.map(lambda x: x.astype(jnp.float64), (block(3), contexts))
        params, mask = alike(params, 0, 2), masked(0, 1, 2)
        found = outputs_without_each(params, mask, seen)
        for head in range(K_MAX):
            np.testing.assert_allclose(found[head], literal_without(params, mask, head, seen), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("gone", "twin"), [(1, 3), (3, 1)])
def test_of_two_heads_that_read_the_same_either_can_go(gone: int, twin: int) -> None:
    """But for the little that keeps the fit small, the block puts out what it did. With no twin a head is missed."""
    params, mask = alike(block(0), gone, twin), masked(0, 1, 3)
    whole = attend(params, mask, contexts)

    def change(mask: Array) -> float:
        w_o = without_each(params, mask, contexts)[gone]
        left = attend(params._replace(heads=params.heads._replace(w_o=w_o)), mask, contexts)
        return float(jnp.linalg.norm(left - attend(params, mask, contexts)))

    dropped = float(jnp.linalg.norm(attend(params, mask.at[gone].set(False), contexts) - whole))
    assert change(mask) < 5e-3 * dropped
    assert change(mask.at[twin].set(False)) > 0.2 * dropped


def test_heads_that_are_inactive_make_up_for_nothing_and_are_not_made_up_for() -> None:
    params, mask = block(1), masked(0, 2)
    found = np.asarray(without_each(params, mask, contexts))
    for head in range(K_MAX):
        inactive = [i for i in (1, 3) if i != head]
        np.testing.assert_array_equal(found[head][inactive], np.asarray(params.heads.w_o)[inactive])
        assert not np.any(found[head][head])
    np.testing.assert_array_equal(found[1][[0, 2]], np.asarray(params.heads.w_o)[[0, 2]])
    assert np.all(np.any(found[0][2] != params.heads.w_o[2], axis=-1))


def test_the_last_head_leaves_nothing_behind() -> None:
    found = without_each(block(1), masked(2), contexts)
    assert np.all(np.isfinite(found))
    assert not np.any(found[2][2])


def test_contexts_that_are_all_zero_give_finite_matrices() -> None:
    params = block(1)
    silent = params._replace(position=jnp.zeros_like(params.position))
    assert np.all(np.isfinite(without_each(silent, masked(0, 1, 2, 3), jnp.zeros_like(contexts))))


# --- the event -------------------------------------------------------------------------------------------------------


def network(key: Array, out: int) -> Policy:
    first, second = jax.random.split(key)
    body = init_attention(first, jnp.ones(K_MAX, bool), WINDOW, OBSERVED, D_K)
    return Policy(Encoded(body, init_norm(D_MODEL)), init_mlp(second, (D_MODEL, 8, out)))


def moments(params: Any, key: Array) -> AdamState:
    """An optimiser in mid-training, with moments and step counts that differ everywhere."""
    leaves, structure = jax.tree.flatten(params)
    mu, nu = (
        jax.tree.unflatten(
            structure, [1 + jax.random.uniform(jax.random.fold_in(key, i + n), x.shape) for i, x in enumerate(leaves)]
        )
        for n in (0, 100)
    )
    return AdamState(jnp.asarray(70), 10 * (1 + jnp.arange(K_MAX)), mu, nu)


def learner(seed: int, *active: int) -> Learned:
    keys = jax.random.split(jax.random.key(seed), 5)
    actor, critic, target = (network(key, out) for key, out in zip(keys[:3], (3, 1, 1), strict=True))
    return Learned(masked(*active), actor, critic, target, moments(actor, keys[3]), moments(critic, keys[4]))


def heads(network: Policy) -> Heads:
    return Heads(*(np.asarray(w) for w in network.encoder.body.heads))


def rest(network: Any) -> list[np.ndarray]:
    """All but the heads."""
    body = network.encoder.body
    kept = network._replace(encoder=network.encoder._replace(body=body._replace(heads=None)))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(kept)]


@pytest.mark.parametrize(("actor_head", "head"), [(2, 0), (0, 2), (3, 3)])
def test_each_network_puts_out_what_least_squares_leaves_of_it(actor_head: int, head: int) -> None:
    before = learner(0, 0, 2, 3)
    after = prune_and_compensate(before, actor_head, head, "carry", contexts)
    np.testing.assert_array_equal(after.mask, before.mask.at[head].set(False))
    for name, gone in (("actor", actor_head), ("critic", head), ("target", head)):
        body = getattr(before, name).encoder.body
        w_o = jnp.asarray(literal_without(body, before.mask, gone, contexts), jnp.float32)
        made_up = body._replace(heads=body.heads._replace(w_o=w_o))
        expected = literal(made_up, before.mask.at[gone].set(False), contexts)
        found = attend(getattr(after, name).encoder.body, after.mask, contexts)
        np.testing.assert_allclose(found, expected, atol=2e-3, err_msg=name)
        for old, new in zip(rest(getattr(before, name)), rest(getattr(after, name)), strict=True):
            np.testing.assert_array_equal(old, new)


def test_the_actors_other_head_takes_the_free_number_with_all_that_belongs_to_it() -> None:
    """The actor loses head 2 and the critic head 0: what was the actor's head 0 is then its head 2."""
    before = learner(0, 0, 2, 3)
    after = prune_and_compensate(before, 2, 0, "carry", contexts)
    old, new = heads(before.actor), heads(after.actor)
    for name in ("w_q", "w_k", "w_v"):
        np.testing.assert_array_equal(getattr(new, name), getattr(old, name)[[2, 1, 0, 3]])
    was, now = before.actor_adam, after.actor_adam
    np.testing.assert_array_equal(now.head_steps, [0, 20, 10, 40])
    for kind in ("mu", "nu"):
        for x, y in zip(heads(getattr(was, kind)), heads(getattr(now, kind)), strict=True):
            np.testing.assert_array_equal(y[1:], x[[1, 0, 3]])
            assert not np.any(y[0])
        for x, y in zip(rest(getattr(was, kind)), rest(getattr(now, kind)), strict=True):
            np.testing.assert_array_equal(x, y)
    assert int(now.steps) == 70


def test_the_critics_heads_stay_in_their_places() -> None:
    before = learner(0, 0, 2, 3)
    after = prune_and_compensate(before, 2, 0, "carry", contexts)
    for name in ("critic", "target"):
        for old, new in zip(heads(getattr(before, name))[:3], heads(getattr(after, name))[:3], strict=True):
            np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(after.critic_adam.head_steps, [0, 20, 30, 40])
    for x, y in zip(heads(before.critic_adam.mu), heads(after.critic_adam.mu), strict=True):
        np.testing.assert_array_equal(y[1:], x[1:])
        assert not np.any(y[0])


def test_rebuild_forgets_all_moments() -> None:
    after = prune_and_compensate(learner(0, 0, 2, 3), 2, 0, "rebuild", contexts)
    for found, params in ((after.actor_adam, after.actor), (after.critic_adam, after.critic)):
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(adam(1e-3).init(params)), strict=True):
            np.testing.assert_array_equal(x, y)


def test_what_others_can_do_is_kept_where_a_plain_prune_loses_it() -> None:
    before = learner(4, 0, 1, 2)
    body = alike(before.actor.encoder.body, 0, 1)
    before = before._replace(actor=before.actor._replace(encoder=before.actor.encoder._replace(body=body)))
    whole = attend(body, before.mask, contexts)
    made_up, plain = prune_and_compensate(before, 1, 2, "carry", contexts), prune(before, 1, "carry")
    missing = [
        float(jnp.linalg.norm(attend(each.actor.encoder.body, each.mask, contexts) - whole))
        for each in (made_up, plain)
    ]
    assert missing[0] < 0.01 * missing[1]


def test_prunes_of_many_runs_are_a_vmap() -> None:
    runs = [learner(seed, 0, 1, 2, 3) for seed in range(3)]
    together = jax.tree.map(lambda *x: jnp.stack(x), *runs)
    actors, critics = jnp.array([1, 3, 0]), jnp.array([2, 3, 3])
    event = partial(prune_and_compensate, optimiser="carry")
    found = jax.jit(jax.vmap(lambda learned, a, c: event(learned, a, c, contexts=contexts)))(together, actors, critics)
    for i, run in enumerate(runs):
        alone = event(run, int(actors[i]), int(critics[i]), contexts=contexts)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(x[i], y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("actor_head", "head", "wrong"), [(1, 0, 1), (0, 1, 1)])
def test_a_head_that_is_inactive_is_refused_in_either_network(actor_head: int, head: int, wrong: int) -> None:
    with pytest.raises(ValueError, match=f"head {wrong} is already inactive"):
        prune_and_compensate(learner(0, 0, 2, 3), actor_head, head, "carry", contexts)
    with pytest.raises(ValueError, match="head must be from 0 to 3, got 4"):
        prune_and_compensate(learner(0, 0, 2, 3), 4, 0, "carry", contexts)


@pytest.mark.parametrize(("k_max", "d_k", "window", "observed"), [(8, 16, 8, 6), (8, 16, 4, 3), (16, 8, 8, 4)])
def test_heads_that_read_fewer_things_than_they_have_dimensions_are_made_up_for_as_in_double_precision(
    k_max: int, d_k: int, window: int, observed: int
) -> None:
    """What is read is then nearly singular. Elimination without pivots left a hundred times the error here."""
    mask, keys = jnp.ones(k_max, bool), [jax.random.key(i) for i in range(3)]
    body = init_attention(keys[0], mask, window, observed, d_k)
    body = body._replace(heads=body.heads._replace(w_q=3 * body.heads.w_q, w_k=3 * body.heads.w_k))
    fitted_on, others = (jax.random.normal(key, (256, window, observed)) for key in keys[1:])

    def left(dtype: Any) -> Any:
        """Of each head, what is not made up for on other contexts, relative to what it put out."""
        params, seen, unseen = jax.tree.map(lambda leaf: leaf.astype(dtype), (body, fitted_on, others))
        values = read_values(params, mask, unseen)
        without = jnp.einsum("bkd,nkdm->nbm", values, outputs_without_each(params, mask, seen))
        whole = jnp.einsum("bkd,kdm->bm", values, params.heads.w_o)
        own = jnp.einsum("bkd,kdm->kbm", values, params.heads.w_o)
        return jnp.sum((without - whole) ** 2, axis=(1, 2)) / jnp.sum(own**2, axis=(1, 2))

    with jax.enable_x64(True):
        exact = np.asarray(left(jnp.float64))
    np.testing.assert_allclose(np.asarray(left(jnp.float32)), exact, rtol=0.02)
    assert np.median(exact) < 0.9
