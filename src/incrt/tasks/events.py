"""What the tasks have in common: channels report events, and the strongest of each within the window counts.

An event is a key, which says how strong it is, and a value. What was drawn in one step is a vector of D keys and then D
values, and a window is an array of the latest W of them, (W, 2 D), the oldest first.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

VALUE_VARIANCE = 1 / 3
"""Of a value, which is drawn evenly from [-1, 1]. The value of the strongest event has it too: keys tell nothing."""


class Box(NamedTuple):
    """The actions: one in [-1, 1] for each channel."""

    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0


def draw(key: Array, channels: int) -> Array:
    """An event of each channel, evenly from [-1, 1]."""
    return jax.random.uniform(key, (2 * channels,), minval=-1.0, maxval=1.0)


def first_window(drawn: Array, window: int) -> Array:
    """The first events of an episode fill the window, as the first observation fills the policy's."""
    return jnp.tile(drawn, (window, 1))


def next_window(events: Array, drawn: Array) -> Array:
    """The window one step later."""
    return jnp.concatenate([events[1:], drawn[None]])


def strongest(events: Array) -> Array:
    """The value of each channel that came with its largest key."""
    keys, values = jnp.split(events, 2, axis=1)
    return jnp.take_along_axis(values, jnp.argmax(keys, axis=0)[None], axis=0)[0]
