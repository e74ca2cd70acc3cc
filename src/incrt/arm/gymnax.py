"""The task as a gymnax environment, so that gymnax's wrappers and what is built on them can use it.

gymnax 1.0 returns six values from ``step``, with terminated and truncated apart; :class:`incrt.arm.task.Task` keeps the
five of the releases before it. Automatic reset, and whatever else gymnax does around a step, is gymnax's own here.
"""

from typing import Any

from gymnax.environments import spaces
from gymnax.environments.environment import Environment
from jax import Array

from incrt.arm.task import Params, State, make_task
from incrt.config import TaskConfig


class StribeckGymnax(Environment):  # type: ignore[misc]  # gymnax has no types
    """The task of a configuration."""

    def __init__(self, config: TaskConfig) -> None:
        self._task, self._params = make_task(config)

    @property
    def name(self) -> str:
        return self._task.name

    @property
    def default_params(self) -> Params:
        return self._params

    @property
    def num_actions(self) -> int:
        return self._task.num_actions

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        return self._task.reset_env(key, params)

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Array]]:
        return self._task.step_env(key, state, action, params)

    def is_truncated(self, state: State, params: Params) -> Array:
        return self._task.is_truncated(state, params)

    def observation_space(self, params: Params) -> Any:
        space = self._task.observation_space(params)
        return spaces.Box(space.low, space.high, space.shape, space.dtype)

    def action_space(self, params: Params) -> Any:
        space = self._task.action_space(params)
        return spaces.Box(space.low, space.high, space.shape, space.dtype)
