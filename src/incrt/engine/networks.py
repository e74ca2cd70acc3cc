"""Actor and critic: each an encoder of its own and the layers that follow it.

The functions here take the features that the network's own encoder made of the contexts.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.heads.encoders import Encoded, Encoder
from incrt.heads.layers import Dense, dense, init_dense, init_mlp, mlp

LOG_STD_RANGE = (-20.0, 2.0)
"""Where the logarithm of the standard deviation is cut off."""

_SQUASH_EPS = 1e-6
"""Keeps log(1 - tanh^2) finite where tanh has saturated; Stable-Baselines3's."""


class Actor(NamedTuple):
    """A Gaussian over unsquashed actions, given a context."""

    encoder: Encoded
    hidden: tuple[Dense, ...]
    mean: Dense
    log_std: Dense


class Critic(NamedTuple):
    """Twin Q: one encoder, and two stacks of layers from features and action to a value."""

    encoder: Encoded
    values: tuple[Dense, ...]
    """The layers; the first axis of each array counts the two stacks."""


def init_actor(key: Array, encoder: Encoder, hidden: tuple[int, ...], actions: int, loud: Array | None = None) -> Actor:
    """Fresh parameters, of which these heads put out something."""
    encoder_key, hidden_key, mean_key, std_key = jax.random.split(key, 4)
    widths = (encoder.config.d_model, *hidden)
    return Actor(
        encoder=encoder.init(encoder_key, loud),
        hidden=init_mlp(hidden_key, widths),
        mean=init_dense(mean_key, widths[-1], actions),
        log_std=init_dense(std_key, widths[-1], actions),
    )


def init_critic(
    key: Array, encoder: Encoder, hidden: tuple[int, ...], actions: int, loud: Array | None = None
) -> Critic:
    """Fresh parameters, different in the two stacks, of which these heads put out something."""
    encoder_key, values_key = jax.random.split(key)
    widths = (encoder.config.d_model + actions, *hidden, 1)
    values = jax.vmap(lambda each: init_mlp(each, widths))(jax.random.split(values_key))
    return Critic(encoder.init(encoder_key, loud), values)


def distribution(actor: Actor, features: Array) -> tuple[Array, Array]:
    """Mean and logarithm of the standard deviation of the unsquashed actions."""
    latent = jax.nn.relu(mlp(actor.hidden, features)) if actor.hidden else features
    return dense(actor.mean, latent), jnp.clip(dense(actor.log_std, latent), *LOG_STD_RANGE)


def mean_action(actor: Actor, features: Array) -> Array:
    """The deterministic policy."""
    return jnp.tanh(distribution(actor, features)[0])


def sample_action(actor: Actor, features: Array, noise: Array) -> tuple[Array, Array]:
    """Actions in [-1, 1] for standard normal ``noise``, and the logarithm of their density."""
    action, terms = squashed_normal(*distribution(actor, features), noise)
    return action, jnp.sum(terms, axis=-1)


def squashed_normal(mean: Array, log_std: Array, noise: Array) -> tuple[Array, Array]:
    """The entries of an action in [-1, 1], and the logarithm of the density of each."""
    unsquashed = mean + jnp.exp(log_std) * noise
    normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    # 1 - tanh^2 from what is squashed: in single precision tanh is exactly 1 from 8 on, and its slope is lost.
    decay = jnp.exp(-2 * jnp.abs(unsquashed))
    slope = 4 * decay / (1 + decay) ** 2
    return jnp.tanh(unsquashed), normal - jnp.log(slope + _SQUASH_EPS)


def q_values(critic: Critic, features: Array, actions: Array) -> Array:
    """Both values of each action, shape (2, B)."""
    seen = jnp.concatenate([features, actions], axis=-1)
    return jax.vmap(lambda layers: jnp.asarray(mlp(layers, seen))[..., 0])(critic.values)
