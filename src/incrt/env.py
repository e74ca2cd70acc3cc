"""The wrapper that gives any Gymnasium environment the window of observations that heads read."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import FrameStackObservation

from incrt.config.rules import COUNT


class ContextWindow(FrameStackObservation[Any, Any, Any]):
    """Gives an environment with flat observations, shape (d,), contexts of the latest ones, shape (window, d).

    The newest is last; the first observation of an episode fills the window.

    :param window: W, how many observations make a context
    """

    def __init__(self, env: gym.Env[Any, Any], window: int = 8) -> None:
        if not isinstance(env, gym.Env):
            raise ValueError(
                f"env must be a gymnasium.Env, got {type(env).__name__}; vectorised environments take the wrapper "
                "inside: make_vec_env(..., wrapper_class=incrt.env.ContextWindow)"
            )
        space = env.observation_space
        if not isinstance(space, spaces.Box):
            raise ValueError(
                f"observations must be a flat Box, got {space}; gymnasium.wrappers.FlattenObservation makes one of it"
            )
        if len(space.shape) != 1:
            raise ValueError(
                f"observations must be flat, got shape {space.shape}; one that is a window (W, d) already needs no "
                "ContextWindow, others gymnasium.wrappers.FlattenObservation first"
            )
        window = COUNT("window", window)
        RecordConstructorArgs.__init__(self, window=window)  # the first call counts, and the base makes another
        super().__init__(env, window)
