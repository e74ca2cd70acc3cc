"""The task as a Gymnasium environment, ``incrt/Stribeck-v0``: a thin coat over the functional one."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from jax import Array
from jax.flatten_util import ravel_pytree

from incrt.arm.task import State, make_task
from incrt.config import TaskConfig
from incrt.config import preset as named_preset

Floats: TypeAlias = npt.NDArray[np.float32]


class _Programs(NamedTuple):
    """The compiled functions of one configuration.

    The state goes in and out as one vector, and so do the results of a step: every array that crosses between Python
    and JAX costs several microseconds, more than the arithmetic of a step.
    """

    reset: Callable[[Array], tuple[Array, Array]]
    start: Callable[[Array, float], tuple[Array, Array]]
    step: Callable[[Array, Array, Floats], tuple[Array, Array]]
    state: Callable[[Array], State]
    """The state that a vector stands for."""


def _programs(config: TaskConfig) -> _Programs:
    return _programs_of(config, tuple(config.files().items()))


@lru_cache(maxsize=32)
def _programs_of(config: TaskConfig, files: tuple[tuple[str, str], ...]) -> _Programs:
    del files  # a file that was changed since makes another task
    task, params = make_task(config)
    _, example = task.reset_env(jax.random.key(0), params)
    _, unravel = ravel_pytree(example)

    def reset(key: Array) -> tuple[Array, Array]:
        observation, state = task.reset_env(key, params)
        return ravel_pytree(state)[0], observation

    def start(key: Array, payload: float) -> tuple[Array, Array]:
        observation, state = task.start(key, params, jnp.asarray(payload))
        return ravel_pytree(state)[0], observation

    def step(key: Array, vector: Array, action: Floats) -> tuple[Array, Array]:
        state = unravel(vector)
        step_key = jax.random.fold_in(key, state.time)
        observation, state, reward, _, info = task.step_env(step_key, state, jnp.asarray(action), params)
        scalars = [reward, info["shield_distance"], info["shield_active"], info["shield_feasible"]]
        results = jnp.concatenate([observation, info["e"], info["torque"], jnp.stack(scalars)])
        return ravel_pytree(state)[0], results

    return _Programs(jax.jit(reset), jax.jit(start), jax.jit(step), unravel)


def _host() -> jax.Device:
    """Where the environment runs. A GPU would take longer to be asked for a single step than to compute it."""
    try:
        return jax.devices("cpu")[0]
    except RuntimeError:  # JAX was told to leave the CPU alone
        return jax.devices()[0]


class StribeckEnv(gym.Env[Floats, Floats]):
    """Schedule the gains of a computed-torque law on an arm whose friction has memory.

    An observation is a context of shape (W, d_c), the newest step last. An action in [-1, 1]^dim is a point of the box
    P in the order K_d, Lambda, eta; entries beyond that range are cut to it. An episode ends only by its time limit.

    :param preset: which preset to start from, ``memory`` or ``paper``
    :param render_mode: ``rgb_array``, or None
    :param fields: any field of :class:`incrt.config.TaskConfig`, such as ``tau_z``, ``robot`` or ``trajectory``
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium declares it so
        "render_modes": ["rgb_array"],
        "render_fps": 100,
    }

    def __init__(self, preset: str = "memory", render_mode: str | None = None, **fields: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.config = named_preset(preset, task=fields).task
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(1 / self.config.dt)}
        shape = (self.config.window, self.config.observation_dim)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self.config.action_dim,), np.float32)
        self._programs = _programs(self.config)
        self._context = np.zeros(shape, np.float32)
        self._state: Array | None = None
        self._steps = 0
        self._errors: list[Floats] = []
        self._drawing: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start an episode; ``options={"payload": kg}`` fixes its payload, otherwise one is drawn."""
        payload = self._chosen_payload(options or {})
        super().reset(seed=seed)
        key = jax.device_put(jax.random.key(int(self.np_random.integers(2**31))), _host())
        start_key, self._noise_key = jax.random.split(key)
        if payload is None:
            self._state, observation = self._programs.reset(start_key)
        else:
            self._state, observation = self._programs.start(start_key, payload)
        self._context[:] = observation
        self._steps = 0
        self._errors = []
        return self._context.copy(), {"payload": float(self._programs.state(self._state).payload)}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control interval."""
        if self._state is None or self._steps >= self.config.horizon:
            raise ResetNeeded("the episode has not started or is over; call reset() before step()")
        action = np.asarray(action, np.float32)
        if action.shape != self.action_space.shape:
            raise ValueError(f"action must have shape {self.action_space.shape}, got {action.shape}")
        if not np.isfinite(action).all():
            raise ValueError(f"action must be finite numbers in [-1, 1], got {action}")
        self._state, results = self._programs.step(self._noise_key, self._state, action)
        values = np.asarray(results)
        if not np.isfinite(values).all():
            raise FloatingPointError(
                f"the arm diverged at step {self._steps + 1}: dt, delay or the gains make this closed loop unstable"
            )
        n, d_c = self.config.dof, self.config.observation_dim
        self._context[:-1] = self._context[1:]
        self._context[-1] = values[:d_c]
        self._steps += 1
        error = values[d_c : d_c + n]
        if self.render_mode is not None:
            self._errors.append(error)
        reward, distance, active, feasible = values[d_c + 2 * n :].tolist()
        info = {
            "e": error,
            "torque": values[d_c + n : d_c + 2 * n],
            "shield_distance": distance,
            "shield_active": bool(active),
            "shield_feasible": bool(feasible),
        }
        return self._context.copy(), reward, False, self._steps >= self.config.horizon, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The arm, where it should be and the error so far, as an RGB picture."""
        if self.render_mode is None:
            gym.logger.warn("render() does nothing without render_mode='rgb_array'")
            return None
        if self._state is None:
            raise ResetNeeded("call reset() before render()")
        from incrt.arm.drawing import ArmDrawing  # matplotlib takes a while to import and few environments draw

        if self._drawing is None:
            self._drawing = ArmDrawing(self.config.dof, self.config.horizon, self.config.dt)
        n = self.config.dof
        errors = np.asarray(self._errors, np.float32).reshape(-1, n)
        q, q_d = np.asarray(self._programs.state(self._state).plant.q), self._context[-1, 2 * n : 3 * n]
        picture: npt.NDArray[np.uint8] = self._drawing.frame(q, q_d, errors)
        return picture

    def __getstate__(self) -> dict[str, Any]:
        """Compiled programs and pictures stay behind; the other side makes its own."""
        state = {**self.__dict__, "_programs": None, "_drawing": None}
        if self._state is not None:
            state["_state"] = np.asarray(self._state)
            state["_noise_key"] = np.asarray(jax.random.key_data(self._noise_key))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._programs = _programs(self.config)
        if self._state is not None:
            self._state = jax.device_put(self._state, _host())
            self._noise_key = jax.random.wrap_key_data(jax.device_put(self._noise_key, _host()))

    def _chosen_payload(self, options: dict[str, Any]) -> float | None:
        if unknown := sorted(set(options) - {"payload"}):
            raise ValueError(f"unknown reset option {', '.join(unknown)}; accepted: payload")
        if "payload" not in options:
            return None
        payload, (low, high) = options["payload"], self.config.payload_range
        if not (isinstance(payload, (int, float, np.number)) and low <= payload <= high):
            raise ValueError(
                f"payload must be a number in [{low}, {high}] kg, got {payload!r}; payload_range sets these bounds"
            )
        return float(payload)
