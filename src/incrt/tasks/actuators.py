"""Actuators: each must be held at rest against a load that only its own sensor has seen coming.

D actuators are independent of each other. Sensor i reports an event at each step, a strength and a load, both drawn
anew; the load that acts on actuator i is that of the strongest event of sensor i within the last W steps, the present
one included. The position error of the actuator follows

    x' = A x + FORCE u - load + noise, kept between its stops at -1 and 1,

and the reward is minus the sum of the x'^2. The observation is x, then the strengths, then the loads. FORCE lets u
in [-1, 1] bring x' to 0 from wherever x may be, whatever the load. So the best action for this step is the best for all
that follow, and any discount factor finds the same policy.

One head compares one strength: with D heads every sensor has its own. The position needs none, since the encoder passes
the newest observation along by itself. Without a head an actuator is not quite at the mercy of its load, for a load
lasts: the same one acts in the next step with probability (W - 1) / (W + 1), and where the position is says what it
was. That helps until the load changes; only the sensor tells that it does.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config.rules import COUNT, NON_NEGATIVE
from incrt.tasks.events import VALUE_VARIANCE, Box, draw, first_window, next_window, strongest

A = 0.8
"""How much of its position error an actuator that is left alone keeps."""

FORCE = 1 + A
"""What the action 1 moves: at a stop, and with the largest load, the best action is just reached."""

KNOWING_NOTHING = VALUE_VARIANCE
"""Squared error a channel of the action -A x / FORCE, which undoes the drift and knows nothing of the load.

That of the wanted action is the square of ``noise``. Feedback c x in place of the drift, which makes use of the fact
that loads last, comes down to 0.22, 0.18 and 0.15 for W = 4, 8 and 16, and no further.
"""


class Params(NamedTuple):
    """Numbers of the task; runs that differ in nothing else share a program."""

    noise: Array
    """Standard deviation of what pushes each actuator besides its load, and is never seen coming."""


class State(NamedTuple):
    """What was drawn within the window, (W, 2 D), the positions, (D,), and the steps since the episode began."""

    drawn: Array
    position: Array
    time: Array


@dataclass(frozen=True)
class Actuators:
    """The task for D ``channels`` and a window of W steps, in gymnax's convention."""

    channels: int
    window: int
    horizon: int = 100

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        """The actuators stand anywhere between their stops; the first events fill the window."""
        drawn_key, position_key = jax.random.split(key)
        drawn = draw(drawn_key, self.channels)
        position = jax.random.uniform(position_key, (self.channels,), minval=-1.0, maxval=1.0)
        state = State(first_window(drawn, self.window), position, jnp.zeros((), jnp.int32))
        return jnp.concatenate([position, drawn]), state

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Any]]:
        """The actuators move under the loads of the window that the action was chosen from; then sensors report."""
        drawn_key, noise_key = jax.random.split(key)
        pushed = params.noise * jax.random.normal(noise_key, state.position.shape)
        moved = A * state.position + FORCE * action - strongest(state.drawn) + pushed
        position = jnp.clip(moved, -1.0, 1.0)
        drawn = draw(drawn_key, self.channels)
        after = State(next_window(state.drawn, drawn), position, state.time + 1)
        return jnp.concatenate([position, drawn]), after, -jnp.sum(position**2), jnp.zeros((), bool), {}

    def is_truncated(self, state: State, params: Params) -> Array:
        return state.time >= self.horizon

    def action_space(self, params: Params) -> Box:
        return Box((self.channels,))

    def wanted(self, state: State) -> Array:
        """The action that leaves no error but the noise."""
        return (strongest(state.drawn) - A * state.position) / FORCE


def actuators_task(channels: int, window: int, *, noise: float = 0.0, horizon: int = 100) -> tuple[Actuators, Params]:
    """The task and its numbers, as :class:`incrt.Run` takes them.

    :param channels: D, how many actuators must be held, each with a sensor of its own
    :param window: W, how many steps back the strongest event may lie
    :param noise: standard deviation of what pushes each actuator besides its load
    :param horizon: steps of an episode
    """
    task = Actuators(COUNT("channels", channels), COUNT("window", window), COUNT("horizon", horizon))
    return task, Params(jnp.asarray(NON_NEGATIVE("noise", noise), jnp.float32))
