"""Variable-head attention: eqs. (10) and (11) of the paper, at the last time step, in a form that is exact and fast.

A context o_1 ... o_W is embedded as h_j = o_j E + p_j. Only the last time step becomes a feature, so only its query is
needed; and queries, keys and values are never materialised, since with the tables E W^Q, p_W W^Q, E W^K, p W^K, E W^V
and p W^V, which do not depend on the context,

    h_W W^Q (h_j W^K)^T  =  ((o_W E + p_W) W^Q) ((E W^K)^T o_j^T + (p W^K)_j^T),
    sum_j a_j h_j W^V    =  (sum_j a_j o_j) (E W^V) + sum_j a_j (p W^V)_j.

The last query may attend to every step of the window, so the causal mask M of eq. (11) has nothing to remove. The tests
hold this against the literal equations. Written for one run; many runs with different masks are a ``vmap``.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from incrt.heads.layers import Array, check_context, softmax, xavier_normal
from incrt.heads.linear import inverse

_TINY = 1e-30
"""Keeps a matrix of zeros invertible."""
POSITION_STD = 0.02
"""Standard deviation with which position embeddings start."""


class Heads(NamedTuple):
    """The matrices of all K_max heads, active or not; the first axis counts heads."""

    w_q: Array
    """W^Q, shape (K_max, d_model, d_k)."""
    w_k: Array
    """W^K, shape (K_max, d_model, d_k)."""
    w_v: Array
    """W^V, shape (K_max, d_model, d_k)."""
    w_o: Array
    """W^O, shape (K_max, d_k, d_model)."""

    @property
    def axes(self) -> tuple[int, int, int, int]:
        """The axis of each that counts heads."""
        return (0, 0, 0, 0)

    def spread(self, values: Array) -> list[Array]:
        """One number a head, shaped so that it broadcasts with each of the matrices."""
        return [values.reshape([-1 if i == axis else 1 for i in range(3)]) for axis in self.axes]


class Attention(NamedTuple):
    """The parameters of the block and of the embedding in front of it. The active mask is kept apart."""

    embed: Array
    """E, shape (d_c, d_model)."""
    position: Array
    """p, shape (W, d_model)."""
    heads: Heads


def attend(params: Attention, mask: Array, context: Array, xp: ModuleType = jnp) -> Array:
    """VarAttn at the last time step, eq. (10): from contexts (..., W, d_c) to (..., d_model).

    ``mask`` has one boolean a head. An inactive head adds nothing and receives no gradient.
    """
    last, _, values = _read(params, mask, context, xp)
    return last + xp.einsum("...kd,kdm->...m", values, params.heads.w_o)


def contributions(params: Attention, mask: Array, context: Array, xp: ModuleType = jnp) -> Array:
    """head_i at the last time step, eq. (11), for each head: (..., K_max, d_model), zero where it is inactive."""
    _, _, values = _read(params, mask, context, xp)
    return xp.einsum("...kd,kdm->...km", values, params.heads.w_o)


def read_values(params: Attention, mask: Array, context: Array, xp: ModuleType = jnp) -> Array:
    """What each head reads before its output matrix: (..., K_max, d_k), zero where it is inactive."""
    return _read(params, mask, context, xp)[2]


def attention_weights(params: Attention, mask: Array, context: Array, xp: ModuleType = jnp) -> Array:
    """The softmax of eq. (11): how each head spreads its attention over the window, oldest first, (..., K_max, W)."""
    return _read(params, mask, context, xp)[1]


def head_norms(params: Attention, mask: Array, contexts: Array, xp: ModuleType = jnp) -> Array:
    """eta_i: the norm of each head's contribution, mean over a batch of contexts (B, W, d_c); shape (K_max,)."""
    if len(contexts.shape) != 3:
        raise ValueError(f"contexts must have shape (B, W, d_c), got {tuple(contexts.shape)}")
    heads = contributions(params, mask, contexts, xp)
    return xp.mean(xp.sqrt(xp.sum(heads * heads, axis=-1)), axis=0)


def shares(norms: Array, mask: Array, xp: ModuleType = jnp) -> Array:
    """pi_i, eq. (20). Where no head puts anything out, none is weaker than another: active heads share evenly."""
    zeros = xp.zeros_like(norms)
    norms = xp.where(mask, norms, zeros)
    norms = xp.where(xp.sum(norms) == 0, xp.where(mask, xp.ones_like(norms), zeros), norms)
    return norms / xp.sum(norms)


def _read(params: Attention, mask: Array, context: Array, xp: ModuleType) -> tuple[Array, Array, Array]:
    """The last embedded step h_W, each head's attention, and what each active head reads of it, (..., K_max, d_k)."""
    if not isinstance(params, Attention):
        raise ValueError(f"only the heads encoder has heads: Attention is needed, got {type(params).__name__}")
    embed, position, (w_q, w_k, w_v, _) = params
    observed = embed.shape[0]
    check_context(context, position.shape[0], observed)
    check_mask(mask, len(w_q))
    table = xp.concatenate([embed, position])
    key, value = xp.einsum("cm,kmd->kcd", table, w_k), xp.einsum("cm,kmd->kcd", table, w_v)
    asking = xp.concatenate([embed, position[-1:]])
    query = xp.einsum("am,kmd->kad", asking, w_q) / math.sqrt(w_q.shape[-1])
    sought_by = xp.einsum("kad,kcd->akc", query, key)
    newest = context[..., -1, :]
    sought = xp.einsum("...a,akc->...kc", newest, sought_by[:-1]) + sought_by[-1]
    scores = xp.einsum("...kc,...wc->...kw", sought[..., :observed], context) + sought[..., observed:]
    weights = softmax(scores, xp)
    seen = xp.einsum("...kw,...wc->...kc", weights, context)
    values = xp.einsum("...kc,kcd->...kd", xp.concatenate([seen, weights], axis=-1), value)
    return newest @ embed + position[-1], weights, xp.where(mask[:, None], values, xp.zeros_like(values))


def check_mask(mask: Array, k_max: int) -> None:
    """Refuse a mask that has not one entry a head; a single one would pass for all of them."""
    if tuple(mask.shape) != (k_max,):
        raise ValueError(f"mask must have {k_max} entries, one a head; its shape is {tuple(mask.shape)}")


_RIDGE = 1e-3
"""Keeps what makes up for a head small where the fit leaves it open, relative to the mean square of what is read."""


def outputs_without_each(params: Attention, mask: jax.Array, contexts: jax.Array) -> jax.Array:
    """The output matrices without each head in turn, (K_max, K_max, d_k, d_model), where the others make up for it.

    Least squares on a batch of contexts: what the head put out is written as a linear map of what the others read, and
    that joins their output matrices. Heads that follow the same things can stand in for each other; what one head alone
    has read is lost. (Channels of convolutions are pruned like that, arXiv 1707.06168.)

    The best map from the others to what head i reads is -P_ji / P_ii, with P the inverse of all that is read: one
    inverse serves every head.
    """
    with jax.default_matmul_precision("highest"):  # both sides of a certificate, whatever program they are in
        return _outputs_without_each(params, mask, contexts)


def _outputs_without_each(params: Attention, mask: jax.Array, contexts: jax.Array) -> jax.Array:
    w_o = params.heads.w_o
    count, d_k, _ = w_o.shape
    flat = read_values(params, mask, contexts).reshape(len(contexts), count * d_k)
    gram = flat.T @ flat / len(flat)
    size = jnp.trace(gram) / jnp.maximum(jnp.sum(mask) * d_k, 1)
    precision = inverse(gram + (_RIDGE * size + _TINY) * jnp.eye(count * d_k)).reshape(count, d_k, count, d_k)

    def without(head: jax.Array) -> jax.Array:
        column = precision[:, :, head]
        made_up = -column @ inverse(column[head]) @ w_o[head]
        others = (jnp.arange(count) != head)[:, None, None]
        return jnp.where(others, w_o + jnp.where(mask[:, None, None] & mask[head], made_up, 0), 0)

    found: jax.Array = jax.vmap(without)(jnp.arange(count))
    return found


# --- parameters -------------------------------------------------------------------------------------------------


def init_attention(key: jax.Array, mask: jax.Array, window: int, observation_dim: int, d_k: int) -> Attention:
    """Xavier normal throughout; the output matrices of heads that are not active yet are zero."""
    embed_key, position_key, heads_key, output_key = jax.random.split(key, 4)
    k_max = mask.shape[0]
    d_model = k_max * d_k
    heads = soft_init(jax.random.split(heads_key, k_max), d_model, d_k)
    w_o = jnp.where(mask[:, None, None], xavier_normal(output_key, (k_max, d_k, d_model)), 0)
    return Attention(
        embed=xavier_normal(embed_key, (observation_dim, d_model)),
        position=POSITION_STD * jax.random.normal(position_key, (window, d_model)),
        heads=heads._replace(w_o=w_o),
    )


def soft_init(keys: jax.Array, d_model: int, d_k: int) -> Heads:
    """Soft initialisation, eqs. (13) and (14), one head for each key: the new head puts out exactly zero."""

    def one(key: jax.Array) -> Heads:
        w_q, w_k, w_v = xavier_normal(key, (3, d_model, d_k))
        return Heads(w_q, w_k, w_v, jnp.zeros((d_k, d_model)))

    return Heads(*jax.vmap(one)(keys))


# --- heads inside larger trees -----------------------------------------------------------------------------------


def map_heads(on_heads: Callable[..., Any], on_rest: Callable[..., Any], *trees: Any) -> Any:
    """Map over trees of one structure (parameters, gradients, moments): ``on_heads`` takes each :class:`Heads` whole.

    ``on_rest`` takes every other leaf.
    """

    def one(first: Any, *others: Any) -> Any:
        return on_heads(first, *others) if isinstance(first, Heads) else on_rest(first, *others)

    return jax.tree.map(one, *trees, is_leaf=lambda node: isinstance(node, Heads))


def head_slots(tree: Any) -> int:
    """K_max of the network that these are parameters of; 0 if it has no heads."""
    found = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Heads))
    return max((node.w_q.shape[0] for node in found if isinstance(node, Heads)), default=0)


def hold_inactive(mask: jax.Array, before: Any, after: Any) -> Any:
    """The parameters after an update, with inactive heads as they were before it.

    Their gradient is zero, but Polyak averaging, weight decay or old moments would move them.
    """
    check_mask(mask, head_slots(before))

    def hold(old: Heads, new: Heads) -> Heads:
        return type(old)(*(jnp.where(on, y, x) for on, x, y in zip(old.spread(mask), old, new, strict=True)))

    return map_heads(hold, lambda _, new: new, before, after)
