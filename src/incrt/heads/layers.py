"""The parts that networks are made of.

The forward passes here and in :mod:`incrt.heads.attention` are one text for JAX, PyTorch and NumPy: ``xp`` is the
namespace whose arrays are passed, ``jax.numpy`` unless said otherwise.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

Array: TypeAlias = Any
"""An array of JAX, PyTorch or NumPy."""


class Dense(NamedTuple):
    """x w + b."""

    w: Array
    b: Array


class Norm(NamedTuple):
    """Scale and shift of a layer normalisation."""

    scale: Array
    shift: Array


NORM_EPS = 1e-5
"""Added to the variance by a layer normalisation."""


def dense(layer: Dense, x: Array) -> Array:
    """One affine layer."""
    return x @ layer.w + layer.b


def mlp(layers: Sequence[Dense], x: Array, xp: ModuleType = jnp) -> Array:
    """Affine layers with ReLU between them."""
    for layer in layers[:-1]:
        x = dense(layer, x)
        x = xp.where(x <= 0, xp.zeros_like(x), x)  # written so that NaN stays NaN
    return dense(layers[-1], x)


def layer_norm(norm: Norm, x: Array, xp: ModuleType = jnp) -> Array:
    """Each vector brought to mean 0 and variance 1, then scaled and shifted."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return norm.scale * centred / xp.sqrt(variance + NORM_EPS) + norm.shift


def softmax(scores: Array, xp: ModuleType = jnp) -> Array:
    """Weights that sum to one over the last axis; the largest score is taken off first, so that none overflows."""
    weights = xp.exp(scores - xp.amax(_constant(scores), axis=-1, keepdims=True))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def _constant(x: Array) -> Array:
    """The array without its gradient. What is taken off every score has none, and to compute that zero takes time."""
    if isinstance(x, jax.Array):
        return jax.lax.stop_gradient(x)
    return x.detach() if hasattr(x, "detach") else x


def check_context(context: Array, window: int, observation_dim: int) -> None:
    """Refuse contexts that are not W observations each."""
    if tuple(context.shape[-2:]) != (window, observation_dim):
        raise ValueError(f"contexts must have shape (..., {window}, {observation_dim}), got {tuple(context.shape)}")


def xavier_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Normal draws of variance 2 / (fan in + fan out); axes before the last two count matrices."""
    return jnp.sqrt(2 / (shape[-2] + shape[-1])) * jax.random.normal(key, shape)


def init_dense(key: jax.Array, fan_in: int, fan_out: int) -> Dense:
    """Xavier-normal weights, no bias."""
    return Dense(xavier_normal(key, (fan_in, fan_out)), jnp.zeros(fan_out))


def init_mlp(key: jax.Array, widths: Sequence[int]) -> tuple[Dense, ...]:
    """Layers from the first width to the last."""
    keys = jax.random.split(key, len(widths) - 1)
    return tuple(init_dense(*each) for each in zip(keys, widths[:-1], widths[1:], strict=True))


def init_norm(width: int) -> Norm:
    """No scaling, no shift."""
    return Norm(jnp.ones(width), jnp.zeros(width))
