"""The context: the window of the latest observations that an encoder reads."""

import jax.numpy as jnp
from jax import Array


def first_context(observation: Array, window: int) -> Array:
    """c(0): at the start of an episode its first observation fills the window, shape (W, d_c)."""
    return jnp.tile(observation, (window, 1))


def next_context(context: Array, observation: Array) -> Array:
    """c(t): the last W observations, the newest last, eq. (9)."""
    return jnp.concatenate([context[1:], observation[None]])
