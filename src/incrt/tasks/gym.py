"""The tasks as Gymnasium environments, ``incrt/Recall-v0`` and ``incrt/Actuators-v0``: thin coats over those."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from incrt.tasks.actuators import Actuators, actuators_task
from incrt.tasks.recall import Recall, recall_task

Floats: TypeAlias = npt.NDArray[np.float32]
Task: TypeAlias = Recall | Actuators


@partial(jax.jit, static_argnums=0)
def _reset(task: Any, params: Any, seed: Any) -> Any:
    return task.reset_env(jax.random.split(jax.random.key(seed))[0], params)


@partial(jax.jit, static_argnums=0)
def _step(task: Any, params: Any, seed: Any, state: Any, action: Any) -> Any:
    key = jax.random.fold_in(jax.random.split(jax.random.key(seed))[1], state.time)
    observation, after, reward, *_ = task.step_env(key, state, jnp.clip(action, *task.action_space(params)[1:]), params)
    return observation, after, reward, task.is_truncated(after, params)


@cache
def _host() -> jax.Device:
    """Where the environment runs. A GPU would take longer to be asked for a single step than to compute it."""
    try:
        return jax.devices("cpu")[0]
    except RuntimeError:  # JAX was told to leave the CPU alone
        return jax.devices()[0]


def _on_host(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, as NumPy's arrays, which can be pickled."""
    with jax.default_device(_host()):
        return jax.device_get(function(*arguments))


class WindowEnv(gym.Env[Floats, Floats]):
    """What both environments have in common.

    An observation is a context of shape (W, d_c), the newest step last; the first observation fills it. An action has
    an entry in [-1, 1] for each channel; what is beyond is cut. An episode ends only by its time limit.
    """

    make_task: ClassVar[Callable[..., tuple[Task, Any]]]
    """Makes the task of channels, window, noise and horizon."""

    def __init__(
        self, channels: int = 3, window: int = 8, noise: float = 0.0, horizon: int = 100, **unknown: Any
    ) -> None:
        unknown = {name: value for name, value in unknown.items() if (name, value) != ("render_mode", None)}
        if unknown:
            # A TypeError, as Python's own: Stable-Baselines3's make_vec_env tries render_mode and goes by it.
            names = ", ".join(sorted(unknown))
            raise TypeError(f"unknown option {names}; accepted: channels, window, noise, horizon")
        self.task, params = self.make_task(channels, window, noise=noise, horizon=horizon)
        self._params = jax.device_get(params)
        observed = jax.eval_shape(self.task.reset_env, jax.random.key(0), self._params)[0].shape
        shape = (self.task.window, *observed)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self.task.channels,), np.float32)
        self._context = np.zeros(shape, np.float32)
        self._seed = 0
        self._state: Any = None
        """None while no episode is going on."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start an episode."""
        if options:
            raise ValueError(f"unknown reset option {', '.join(sorted(options))}; none is accepted")
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(2**31))
        observation, self._state = _on_host(_reset, self.task, self._params, self._seed)
        self._context[:] = observation
        return self._context.copy(), {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One step of the task."""
        if self._state is None:
            raise ResetNeeded("the episode has not started or is over; call reset() before step()")
        action = np.asarray(action, np.float32)
        if action.shape != self.action_space.shape:
            raise ValueError(f"action must have shape {self.action_space.shape}, got {action.shape}")
        if not np.isfinite(action).all():
            raise ValueError(f"action must be finite numbers in [-1, 1], got {action}")
        observation, after, reward, over = _on_host(_step, self.task, self._params, self._seed, self._state, action)
        self._state = None if over else after
        self._context[:-1] = self._context[1:]
        self._context[-1] = observation
        return self._context.copy(), float(reward), False, bool(over), {}


class RecallEnv(WindowEnv):
    """Give each channel the value that came with its largest key (:mod:`incrt.tasks.recall`).

    :param channels: D, how many things must be remembered at once
    :param window: W, how many steps back the largest key may lie, and observations in a context
    :param noise: standard deviation of what is added to the keys and values that are seen
    :param horizon: steps of an episode
    """

    make_task = staticmethod(recall_task)


class ActuatorsEnv(WindowEnv):
    """Hold each actuator against the load that its sensor has seen coming (:mod:`incrt.tasks.actuators`).

    :param channels: D, how many actuators must be held, each with a sensor of its own
    :param window: W, how many steps back the strongest event may lie, and observations in a context
    :param noise: standard deviation of what pushes each actuator besides its load
    :param horizon: steps of an episode
    """

    make_task = staticmethod(actuators_task)
