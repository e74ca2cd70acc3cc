"""Recall: several things must be remembered at once, and one head can follow one of them.

At each step an observation with D keys and D values is drawn anew. The action for channel i is to be the value that
came with the largest key of channel i within the last W steps; the reward is minus the sum of the squared errors. What
happens does not depend on what was done, so all that is to be learned is what to attend to.

One head compares one key: with D heads every channel has its own, with fewer some channels have none. That D are needed
and enough is for a study to show (docs/capacity.md). "The Effect of Attention Head Count" (arXiv 2510.06662) has the
theory: from D heads on the parameters that are needed do not depend on the length of the window.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config.rules import COUNT, NON_NEGATIVE
from incrt.tasks.events import VALUE_VARIANCE, Box, draw, first_window, next_window, strongest

KNOWING_NOTHING = VALUE_VARIANCE
"""Squared error a channel of the action 0, the best that knows nothing of the window; the wanted action has none."""


class Params(NamedTuple):
    """Numbers of the task; runs that differ in nothing else share a program."""

    noise: Array
    """Standard deviation of what is added to the keys and values that are seen."""


class State(NamedTuple):
    """What was drawn within the window, (W, 2 D), the oldest first, and the steps since the episode began."""

    drawn: Array
    time: Array


@dataclass(frozen=True)
class Recall:
    """The task for D ``channels`` and a window of W steps, in gymnax's convention."""

    channels: int
    window: int
    horizon: int = 100

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        """The first observation fills the window, as it fills the policy's."""
        drawn_key, seen_key = jax.random.split(key)
        drawn = draw(drawn_key, self.channels)
        state = State(first_window(drawn, self.window), jnp.zeros((), jnp.int32))
        return self._see(seen_key, drawn, params), state

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Any]]:
        """The action is judged by the window that it was chosen from; then the next keys and values are drawn."""
        reward = -jnp.sum((action - self.wanted(state)) ** 2)
        drawn_key, seen_key = jax.random.split(key)
        drawn = draw(drawn_key, self.channels)
        after = State(next_window(state.drawn, drawn), state.time + 1)
        return self._see(seen_key, drawn, params), after, reward, jnp.zeros((), bool), {}

    def is_truncated(self, state: State, params: Params) -> Array:
        return state.time >= self.horizon

    def action_space(self, params: Params) -> Box:
        return Box((self.channels,))

    def wanted(self, state: State) -> Array:
        """The action that leaves no error."""
        return strongest(state.drawn)

    def _see(self, key: Array, drawn: Array, params: Params) -> Array:
        return drawn + params.noise * jax.random.normal(key, drawn.shape)


def recall_task(channels: int, window: int, *, noise: float = 0.0, horizon: int = 100) -> tuple[Recall, Params]:
    """The task and its numbers, as :class:`incrt.Run` takes them.

    :param channels: D, how many things must be remembered at once
    :param window: W, how many steps back the largest key may lie
    :param noise: standard deviation of what is added to the keys and values that are seen
    :param horizon: steps of an episode
    """
    task = Recall(COUNT("channels", channels), COUNT("window", window), COUNT("horizon", horizon))
    return task, Params(jnp.asarray(NON_NEGATIVE("noise", noise), jnp.float32))
