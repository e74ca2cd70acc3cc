"""The layout in which training on encoders with heads is fast on a CPU: each sample is a column.

The same trees as :class:`incrt.engine.layouts.Rows` has, with every weight matrix transposed, so that a layer is W x
and the batch is the last axis: products need no transposition, and what is elementwise runs along the batch. Only as
many heads are carried along as can be active in the stretch. ``Rows`` is the oracle in the tests.

Two habits of XLA's CPU compiler shape this file:

1. It repeats cheap arithmetic in every kernel that needs its result. A product is a kernel of its own and ends such a
   chain: some products here stand for a cut.
2. It is slow at summing along an axis what is computed on the way. So sums are products, or are written term by term.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import block_diag

from incrt.engine import replay as memory
from incrt.engine.layouts import Layout, Noise, Rows, flat_normal
from incrt.engine.networks import LOG_STD_RANGE, Actor, Critic, squashed_normal
from incrt.engine.replay import Batch, Replay
from incrt.heads.adam import AdamState
from incrt.heads.attention import Attention, Heads, check_mask
from incrt.heads.encoders import Encoded, Encoder, HeadsEncoder
from incrt.heads.growth import Learned
from incrt.heads.layers import NORM_EPS, Dense, Norm

if TYPE_CHECKING:
    from incrt.engine.update import Learner

_WIDEST = 50
"""Entries of an observation up to which columns are surely faster: sums over a window have as many terms."""


class HeadColumns(Heads):
    """The matrices of the heads, transposed: W^Q, W^K, W^V are (heads, d_k, d_model), W^O is (d_model, heads, d_k)."""

    __slots__ = ()

    @property
    def axes(self) -> tuple[int, int, int, int]:
        return (0, 0, 0, 1)


@dataclass(frozen=True)
class Columns:
    """Each sample is a column; ``slots`` heads are carried along, at least as many as are active."""

    encoder: HeadsEncoder
    slots: int
    sample_axis = -1

    # --- between the layouts -----------------------------------------------------------------------------------------

    def pack(self, learner: "Learner") -> "Learner":
        """The learner with its weights transposed, and of its heads those that are active and as many more as fit."""
        places = self._places(learner.learned.mask)

        def columns(heads: Heads, _: Heads) -> HeadColumns:
            w_q, w_k, w_v = (jnp.swapaxes(w[places], 1, 2) for w in heads[:3])
            return HeadColumns(w_q, w_k, w_v, jnp.transpose(heads.w_o[places], (2, 0, 1)))

        def per_head(values: Array, _: Array) -> Array:
            return values[places]

        return _converted(learner, learner, columns, per_head)

    def unpack(self, packed: "Learner", before: "Learner") -> "Learner":
        """The learner with its weights as rows; heads that were not carried along are as they were before."""
        places = self._places(before.learned.mask)

        def rows(heads: HeadColumns, old: Heads) -> Heads:
            w_q, w_k, w_v, w_o = heads
            found = (*(jnp.swapaxes(w, 1, 2) for w in (w_q, w_k, w_v)), jnp.transpose(w_o, (1, 2, 0)))
            return Heads(*(w.at[places].set(new) for w, new in zip(old, found, strict=True)))

        def per_head(values: Array, old: Array) -> Array:
            return old.at[places].set(values)

        return _converted(packed, before, rows, per_head)

    def _places(self, mask: Array) -> Array:
        """The heads that are carried along: active ones first."""
        return jnp.argsort(~mask, stable=True)[: self.slots]

    # --- batches -----------------------------------------------------------------------------------------------------

    def sample(self, replay: Replay, bits: Array, actions: int, learning: Array) -> Batch:
        """Transitions; contexts have shape (d_c, W, B)."""
        window = self.encoder.window

        def drawn() -> tuple[Array, memory.Outcomes]:
            chosen = memory.choose(replay, bits, window)
            frames = memory.windows(replay, chosen, window + 1, samples_last=True)
            return frames, memory.outcomes(replay, chosen, actions)

        def nothing() -> Any:
            return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(drawn))

        # In a branch, since XLA would else fuse what was stored into what is read, and copy the buffer for that.
        frames, outcome = jax.lax.cond(learning, drawn, nothing)
        # Cut out here and not there: whoever reads the windows then reads them where they are.
        return Batch(frames[:, :-1], outcome.action.T, outcome.reward, frames[:, 1:], outcome.terminated)

    def noise(self, key: Array, batch: int, actions: int) -> Noise:
        return Noise(*jnp.swapaxes(flat_normal(key, (2, batch, actions)), 1, 2))

    # --- networks ----------------------------------------------------------------------------------------------------

    def features(self, network: Actor | Critic, mask: Array, contexts: Array) -> Array:
        """From contexts (d_c, W, B) to (d_model, B)."""
        params: Encoded = network.encoder
        y = _attend(params.body, mask, contexts)
        return y if params.norm is None else _layer_norm(params.norm, y)

    def sample_action(self, actor: Actor, features: Array, noise: Array) -> tuple[Array, Array]:
        x = features
        for layer in actor.hidden:
            x = _relu(_dense(layer, x))
        # One product for both, and one that parts them: a cut (habit 1).
        both = _dense(Dense(*(jnp.concatenate(each) for each in zip(actor.mean, actor.log_std, strict=True))), x)
        mean, log_std = (half @ both for half in jnp.split(jnp.eye(len(both), dtype=both.dtype), 2))
        action, terms = squashed_normal(mean, jnp.clip(log_std, *LOG_STD_RANGE), noise)
        return action, reduce(add, terms)  # term by term (habit 2)

    def q_values(self, critic: Critic, features: Array, actions: Array) -> Array:
        first, *others = critic.values
        w = first.w.reshape(-1, first.w.shape[-1])  # both stacks in one product
        seen = len(features)
        # Not of features and actions in one array: the actor's loss needs the slope of the actions alone.
        x: Array = w[:, :seen] @ features + w[:, seen:] @ actions + first.b.reshape(-1, 1)
        if not others:
            return x
        *hidden, last = others
        x = x.reshape(2, -1, x.shape[-1])
        for layer in hidden:
            x = jnp.einsum("nij,njb->nib", layer.w, _relu(x)) + layer.b[..., None]
        x = _relu(x).reshape(-1, x.shape[-1])
        # Two products of one row each XLA would write as arithmetic, and repeat what comes after for every input.
        values: Array = block_diag(*last.w) @ x + last.b
        return values

    def act(self, actor: Actor, mask: Array, context: Array, noise: Array) -> Array:
        features = self.features(actor, mask, context.T[..., None])
        return self.sample_action(actor, features, noise[:, None])[0][:, 0]


def layout_for(encoder: Encoder, heads: int, platform: str) -> Layout:
    """The layout that trains an encoder with so many active heads fastest.

    Slots come in powers of two, so that few programs serve any course of growing and pruning; one slot would be slower
    than two, since XLA then takes products apart. Rows are faster on a GPU, and where observations are wide; and they
    alone know frozen heads.
    """
    is_slower = platform != "cpu" or encoder.is_frozen or encoder.observation_dim > _WIDEST
    if is_slower or not isinstance(encoder, HeadsEncoder):
        return Rows(encoder)
    return Columns(encoder, min(max(2, 1 << (heads - 1).bit_length()), encoder.config.k_max))


# --- parts of the networks -------------------------------------------------------------------------------------------


def _dense(layer: Dense, x: Array) -> Array:
    y: Array = layer.w @ x + layer.b[:, None]
    return y


def _relu(x: Array) -> Array:
    return jnp.where(x <= 0, 0, x)  # NaN stays NaN


def _layer_norm(norm: Norm, y: Array) -> Array:
    mean = jnp.full((1, len(y)), 1 / len(y), y.dtype)  # a sum as a product (habit 2)
    centred = y - mean @ y
    variance = mean @ (centred * centred)
    normed: Array = norm.scale[:, None] * (centred * jax.lax.rsqrt(variance + NORM_EPS)) + norm.shift[:, None]
    return normed


def _attend(params: Attention, mask: Array, contexts: Array) -> Array:
    """VarAttn at the last time step, as :func:`incrt.heads.attention.attend` has it, to (d_model, B)."""
    embed, position, heads = params
    check_mask(mask, len(heads.w_q))
    observed, _, batch = contexts.shape
    table, asking = jnp.concatenate([embed, position]), jnp.concatenate([embed, position[-1:]])
    key, value = (jnp.einsum("kdm,cm->kdc", w, table) for w in (heads.w_k, heads.w_v))
    query = jnp.einsum("kdm,am->kda", heads.w_q, asking) / math.sqrt(heads.w_q.shape[1])
    sought_by = jnp.einsum("kdc,kda->kca", key, query)
    newest = jnp.concatenate([contexts[:, -1], jnp.ones((1, batch), contexts.dtype)])
    sought = (sought_by.reshape(-1, observed + 1) @ newest).reshape(len(mask), -1, batch)
    value = jnp.where(mask[:, None, None], value, 0)
    values = _per_head(value, _read(sought, contexts)).reshape(-1, batch)
    # The embedded observation and what the heads add to it in one product: a sum of two would be a kernel of its own.
    w_o = heads.w_o.reshape(heads.w_o.shape[0], -1)
    out: Array = jnp.concatenate([w_o, asking.T], axis=1) @ jnp.concatenate([values, newest])
    return out


@jax.custom_vjp
def _per_head(w: Array, x: Array) -> Array:
    """The product of each head's own matrices, one head at a time: XLA takes half as long again for all in one."""
    return jnp.stack([w[k] @ x[k] for k in range(len(w))])


def _per_head_forward(w: Array, x: Array) -> tuple[Array, Any]:
    return _per_head(w, x), (w, x)


def _per_head_backward(kept: Any, slope: Array) -> tuple[Array, Array]:
    w, x = kept
    heads = range(len(w))
    return jnp.stack([slope[k] @ x[k].T for k in heads]), jnp.stack([w[k].T @ slope[k] for k in heads])


_per_head.defvjp(_per_head_forward, _per_head_backward)


@jax.custom_vjp
def _read(sought: Array, contexts: Array) -> Array:
    """What each head reads of the window, first of the observations' entries, then of the places in the window.

    :param sought: how much each entry of an observation and each place adds to a score, shape (heads, d_c + W, B)
    :param contexts: shape (d_c, W, B); they get no gradient
    :returns: the mean observation that each head attends to and its attention, shape (heads, d_c + W, B)
    """
    return _read_forward(sought, contexts)[0]


def _read_forward(sought: Array, contexts: Array) -> tuple[Array, Any]:
    by_entry, by_place = jnp.split(sought, [len(contexts)], axis=1)
    scores = _over_entries(by_entry, contexts) + by_place
    unscaled = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
    scale = 1 / jnp.sum(unscaled, axis=1, keepdims=True)
    weights = unscaled * scale
    return jnp.concatenate([_over_places(unscaled, contexts) * scale, weights], axis=1), (weights, contexts)


def _read_backward(kept: Any, slopes: Array) -> tuple[Array, None]:
    """By hand: what JAX derives keeps every slice of the sums."""
    weights, contexts = kept
    of_seen, of_weights = jnp.split(slopes, [len(contexts)], axis=1)
    of_weights = of_weights + _over_entries(of_seen, contexts)
    of_scores = weights * (of_weights - jnp.sum(weights * of_weights, axis=1, keepdims=True))
    return jnp.concatenate([_over_places(of_scores, contexts), of_scores], axis=1), None


_read.defvjp(_read_forward, _read_backward)


def _over_entries(x: Array, contexts: Array) -> Array:
    """The sum over the entries c of x_kcb o_cwb, shape (heads, W, B); term by term, so that it becomes one kernel."""
    return reduce(add, (x[:, c, None] * contexts[None, c] for c in range(len(contexts))))


def _over_places(x: Array, contexts: Array) -> Array:
    """The sum over the places w of x_kwb o_cwb, shape (heads, d_c, B)."""
    return reduce(add, (x[:, w, None] * contexts[None, :, w] for w in range(contexts.shape[1])))


# --- trees -----------------------------------------------------------------------------------------------------------


_ConvertHeads: TypeAlias = Callable[[Any, Any], Heads]
"""From the heads to be converted, and those of the other tree, which may be of the other layout."""
_ConvertPerHead: TypeAlias = Callable[[Array, Array], Array]


def _converted(
    learner: "Learner", before: "Learner", convert_heads: _ConvertHeads, per_head: _ConvertPerHead
) -> "Learner":
    """A learner in the other layout; ``convert_heads`` and ``per_head`` see the heads of the other tree as well.

    All other weight matrices are transposed; the rest is the same in both layouts.
    """

    def part(new: Any, old: Any) -> Any:
        if isinstance(new, Heads):
            return convert_heads(new, old)
        return Dense(jnp.swapaxes(new.w, -1, -2), new.b) if isinstance(new, Dense) else new

    def network(new: Any, old: Any) -> Any:
        return jax.tree.map(part, new, old, is_leaf=lambda node: isinstance(node, Heads | Dense))

    def optimiser(new: AdamState, old: AdamState) -> AdamState:
        head_steps = per_head(new.head_steps, old.head_steps)
        return AdamState(new.steps, head_steps, network(new.mu, old.mu), network(new.nu, old.nu))

    new, old = learner.learned, before.learned
    learned = Learned(
        mask=per_head(new.mask, old.mask),
        **{name: network(getattr(new, name), getattr(old, name)) for name in ("actor", "critic", "target")},
        **{name: optimiser(getattr(new, name), getattr(old, name)) for name in ("actor_adam", "critic_adam")},
    )
    return learner._replace(learned=learned)
