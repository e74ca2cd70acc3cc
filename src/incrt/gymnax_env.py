"""The bench as a gymnax environment, so that gymnax's wrappers and what is built on them can use it.

gymnax 1.0 returns six values from ``step``, with terminated and truncated apart; :class:`incrt.bench.Bench` keeps the
five of the releases before it. Automatic reset, and whatever else gymnax does around a step, is gymnax's own here.
"""

from typing import Any

from gymnax.environments import spaces
from gymnax.environments.environment import Environment
from jax import Array

from incrt.bench import Params, State, make_bench
from incrt.config import BenchConfig


class StribeckGymnax(Environment):  # type: ignore[misc]  # gymnax has no types
    """The bench of a configuration."""

    def __init__(self, config: BenchConfig) -> None:
        self._bench, self._params = make_bench(config)

    @property
    def name(self) -> str:
        return self._bench.name

    @property
    def default_params(self) -> Params:
        return self._params

    @property
    def num_actions(self) -> int:
        return self._bench.num_actions

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        return self._bench.reset_env(key, params)

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[str, Array]]:
        return self._bench.step_env(key, state, action, params)

    def is_truncated(self, state: State, params: Params) -> Array:
        return self._bench.is_truncated(state, params)

    def observation_space(self, params: Params) -> Any:
        space = self._bench.observation_space(params)
        return spaces.Box(space.low, space.high, space.shape, space.dtype)

    def action_space(self, params: Params) -> Any:
        space = self._bench.action_space(params)
        return spaces.Box(space.low, space.high, space.shape, space.dtype)
