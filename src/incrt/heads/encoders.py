"""Encoders: from a context (..., W, d_c) to features (..., d_model). One interface for what is to be compared.

All have the same width K_max d_k and end in the same optional layer normalisation. ``runtime`` and ``static`` are one
network; they differ in who may change the mask. The others are what a reader would try instead of heads.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from incrt.config import EncoderConfig
from incrt.config.rules import COUNT
from incrt.heads.attention import (
    POSITION_STD,
    Attention,
    Heads,
    attend,
    check_mask,
    head_slots,
    init_attention,
    map_heads,
)
from incrt.heads.layers import (
    Array,
    Dense,
    Norm,
    check_context,
    dense,
    init_dense,
    init_mlp,
    init_norm,
    layer_norm,
    mlp,
    softmax,
    xavier_normal,
)


class Encoded(NamedTuple):
    """The parameters of an encoder."""

    body: Any
    norm: Norm | None


@dataclass(frozen=True)
class Encoder(ABC):
    """Pure functions of parameters, mask and contexts; :func:`make_encoder` gives the encoder that is asked for."""

    config: EncoderConfig
    window: int
    observation_dim: int

    @property
    def first_mask(self) -> jax.Array:
        """Which heads are active at the start; empty for an encoder without heads."""
        return jnp.asarray(np.zeros(0, bool), bool)

    @property
    def first_loud(self) -> jax.Array:
        """Which heads put out something at the start."""
        return self.first_mask

    @property
    def is_frozen(self) -> bool:
        """Whether heads that are not active yet put out something, but learn nothing."""
        return self.config.head_start == "frozen"

    def taking_part(self, mask: jax.Array) -> jax.Array:
        """Which heads put out something: those of the mask, or all where the others are frozen."""
        return jnp.ones_like(mask) if self.is_frozen else mask

    def init(self, key: jax.Array, loud: jax.Array | None = None) -> Encoded:
        """Fresh parameters, of which these heads put out something; None stands for those of the configuration."""
        body = self.init_body(key, self.first_loud if loud is None else loud)
        return Encoded(body, init_norm(self.config.d_model) if self.config.layer_norm else None)

    def features(self, params: Encoded, mask: jax.Array, context: jax.Array) -> jax.Array:
        """The features of a context; encoders without heads ignore the mask."""
        context = jnp.asarray(context)
        check_context(context, self.window, self.observation_dim)
        return jnp.asarray(normalised(params.norm, self.body(params.body, mask, context)))

    @abstractmethod
    def init_body(self, key: jax.Array, loud: jax.Array) -> Any:
        """Fresh parameters of all but the normalisation."""

    @abstractmethod
    def body(self, params: Any, mask: jax.Array, context: jax.Array) -> jax.Array:
        """The features before normalisation."""


def make_encoder(config: EncoderConfig, window: int, observation_dim: int) -> Encoder:
    """The encoder of a configuration, for contexts of the given shape."""
    window, observation_dim = COUNT("window", window), COUNT("observation_dim", observation_dim)
    return _KINDS[config.encoder](config, window, observation_dim)


def head_features(params: Encoded, mask: Array, context: Array, xp: ModuleType = jnp) -> Array:
    """Features of the ``runtime`` and ``static`` encoders, for arrays of JAX, PyTorch or NumPy."""
    return normalised(params.norm, attend(params.body, mask, context, xp), xp)


def normalised(norm: Norm | None, x: Array, xp: ModuleType = jnp) -> Array:
    """Layer normalisation where there is one."""
    return x if norm is None else layer_norm(norm, x, xp)


def parameter_count(params: Any, mask: jax.Array) -> int:
    """Parameters in use: those of inactive heads are not counted."""
    check_mask(mask, head_slots(params))
    active = int(mask.sum())

    def in_heads(heads: Heads) -> int:
        return sum(int(w[0].size) * active for w in heads)

    return sum(jax.tree.leaves(map_heads(in_heads, lambda leaf: int(leaf.size), params)))


class HeadsEncoder(Encoder):
    """Variable-head attention: ``runtime`` and ``static``."""

    @property
    def first_mask(self) -> jax.Array:
        return jnp.asarray(np.arange(self.config.k_max) < self.config.heads_at_start, bool)

    @property
    def first_loud(self) -> jax.Array:
        if self.config.head_start == "active":
            return self.first_mask
        return jnp.full(self.config.k_max, self.is_frozen)

    def init_body(self, key: jax.Array, loud: jax.Array) -> Attention:
        return init_attention(key, loud, self.window, self.observation_dim, self.config.d_k)

    def body(self, params: Attention, mask: jax.Array, context: jax.Array) -> jax.Array:
        if self.is_frozen:
            heads = params.heads
            learning = zip(heads.spread(mask), heads, strict=True)
            held = Heads(*(jnp.where(on, w, jax.lax.stop_gradient(w)) for on, w in learning))
            params = params._replace(heads=held)
        return jnp.asarray(attend(params, self.taking_part(mask), context))


class LastObservation(Encoder):
    """``none``: the last observation alone, embedded as the heads encoder embeds it."""

    def init_body(self, key: jax.Array, loud: jax.Array) -> Dense:
        return init_dense(key, self.observation_dim, self.config.d_model)

    def body(self, params: Dense, mask: jax.Array, context: jax.Array) -> jax.Array:
        return jnp.asarray(dense(params, context[..., -1, :]))


class Layer(NamedTuple):
    """One pre-norm layer: attention of K_max heads, then a feed-forward network four times as wide as the model."""

    norm_1: Norm
    query: Dense
    key: Dense
    value: Dense
    out: Dense
    norm_2: Norm
    feed_forward: tuple[Dense, ...]


class Deep(NamedTuple):
    """Embedding, positions and layers."""

    embed: jax.Array
    position: jax.Array
    layers: tuple[Layer, ...]


class DeepTransformer(Encoder):
    """``deep``: causal pre-norm Transformer layers, of which the last is computed at the last time step alone."""

    def init_body(self, key: jax.Array, loud: jax.Array) -> Deep:
        width = self.config.d_model
        embed_key, position_key, layers_key = jax.random.split(key, 3)

        def layer(key: jax.Array) -> Layer:
            *attention, feed_forward = jax.random.split(key, 5)
            query, key_, value, out = (init_dense(each, width, width) for each in attention)
            widths = (width, 4 * width, width)
            return Layer(init_norm(width), query, key_, value, out, init_norm(width), init_mlp(feed_forward, widths))

        return Deep(
            embed=xavier_normal(embed_key, (self.observation_dim, width)),
            position=POSITION_STD * jax.random.normal(position_key, (self.window, width)),
            layers=tuple(layer(each) for each in jax.random.split(layers_key, self.config.layers)),
        )

    def body(self, params: Deep, mask: jax.Array, context: jax.Array) -> jax.Array:
        x = context @ params.embed + params.position
        *before, last = params.layers
        for layer in before:
            x = self._fed_forward(layer, x + self._attend(layer, jnp.asarray(layer_norm(layer.norm_1, x))))
        seen = jnp.asarray(layer_norm(last.norm_1, x))
        return self._fed_forward(last, x[..., -1, :] + self._attend_last(last, seen))

    def _fed_forward(self, layer: Layer, x: jax.Array) -> jax.Array:
        return jnp.asarray(x + mlp(layer.feed_forward, layer_norm(layer.norm_2, x)))

    def _attend(self, layer: Layer, seen: jax.Array) -> jax.Array:
        """What attention makes of every time step, each of which sees itself and what came before."""
        query, key, value = (
            jnp.moveaxis(self._by_head(dense(each, seen)), -2, -3) for each in (layer.query, layer.key, layer.value)
        )
        scores = query @ jnp.swapaxes(key, -1, -2) / math.sqrt(self.config.d_k)
        later = ~jnp.tri(self.window, dtype=bool)
        mixed = jnp.moveaxis(softmax(jnp.where(later, -jnp.inf, scores)) @ value, -3, -2)
        return jnp.asarray(dense(layer.out, mixed.reshape(seen.shape)))

    def _attend_last(self, layer: Layer, seen: jax.Array) -> jax.Array:
        """The same at the last time step, which sees all: keys and values of the others need not be made for that.

        q (s_j W + b)^T is (q W^T) s_j^T and a term that all steps have in common, which no softmax sees; and weights
        that sum to one mix s_j W + b into (sum_j a_j s_j) W + b.
        """
        query = self._by_head(dense(layer.query, seen[..., -1, :])) / math.sqrt(self.config.d_k)
        sought = jnp.einsum("...kd,mkd->...km", query, self._by_head(layer.key.w))
        weights = softmax(jnp.einsum("...km,...wm->...kw", sought, seen))
        mixed = jnp.einsum("...kw,...wm->...km", weights, seen)
        values = jnp.einsum("...km,mkd->...kd", mixed, self._by_head(layer.value.w))
        return jnp.asarray(dense(layer.out, values.reshape(seen[..., -1, :].shape) + layer.value.b))

    def _by_head(self, x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:-1], self.config.k_max, self.config.d_k)


class Gates(NamedTuple):
    """Weights of all gates of a recurrent network side by side, for the observation and for the hidden state."""

    observed: Dense
    hidden: Dense


_UNROLLED = 64
"""Most steps of a recurrent network that are compiled one behind the other; compiling takes longer with each."""


def _is_for_gpu() -> bool:
    """Whether what is being traced will run on a GPU, as far as can be known: tracing has no device."""
    device = getattr(jax.config, "jax_default_device", None)  # what jax.default_device sets
    return (jax.default_backend() if device is None else getattr(device, "platform", device)) == "gpu"


class Recurrent(Encoder):
    """A recurrent network run over the window from a hidden state of zero; its last hidden state is the feature."""

    gates: ClassVar[int]

    def init_body(self, key: jax.Array, loud: jax.Array) -> Gates:
        width = self.config.d_model
        observed_key, hidden_key = jax.random.split(key)
        orthogonal = jax.nn.initializers.orthogonal()
        blocks = [orthogonal(each, (width, width)) for each in jax.random.split(hidden_key, self.gates)]
        return Gates(
            observed=init_dense(observed_key, self.observation_dim, self.gates * width),
            hidden=Dense(jnp.concatenate(blocks, axis=1), jnp.zeros(self.gates * width)),
        )

    def body(self, params: Gates, mask: jax.Array, context: jax.Array) -> jax.Array:
        silent = jnp.zeros((*context.shape[:-2], self.config.d_model), params.hidden.w.dtype)
        observed = jnp.asarray(dense(params.observed, context))  # of all steps at once: one large product

        def step(state: tuple[jax.Array, jax.Array], now: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            return self.step(params.hidden, *state, now), None

        # A GPU waits longer for the host to turn the loop than a step takes; a CPU would only have to compile more.
        unroll = min(self.window, _UNROLLED) if _is_for_gpu() else 1
        return jax.lax.scan(step, (silent, silent), jnp.moveaxis(observed, -2, 0), unroll=unroll)[0][0]

    @abstractmethod
    def step(self, hidden: Dense, h: jax.Array, cell: jax.Array, observed: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Hidden state and cell after one observation, of which the gates' part is given."""


class Gru(Recurrent):
    """Gated recurrent unit; it has no cell beside its hidden state."""

    gates = 3

    def step(self, hidden: Dense, h: jax.Array, cell: jax.Array, observed: jax.Array) -> tuple[jax.Array, jax.Array]:
        reset_o, update_o, new_o = jnp.split(observed, 3, axis=-1)
        reset_h, update_h, new_h = jnp.split(dense(hidden, h), 3, axis=-1)
        update = jax.nn.sigmoid(update_o + update_h)
        new = jnp.tanh(new_o + jax.nn.sigmoid(reset_o + reset_h) * new_h)
        return (1 - update) * new + update * h, cell


class Lstm(Recurrent):
    """Long short-term memory."""

    gates = 4

    def step(self, hidden: Dense, h: jax.Array, cell: jax.Array, observed: jax.Array) -> tuple[jax.Array, jax.Array]:
        enter, forget, new, leave = jnp.split(observed + dense(hidden, h), 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell


_KINDS: Mapping[str, type[Encoder]] = {
    "runtime": HeadsEncoder,
    "static": HeadsEncoder,
    "deep": DeepTransformer,
    "gru": Gru,
    "lstm": Lstm,
    "none": LastObservation,
}
"""What the names of :data:`incrt.config.ENCODERS` stand for; a test keeps the two lists equal."""
