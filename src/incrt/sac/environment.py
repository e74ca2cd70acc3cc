"""What the engine asks of an environment: gymnax's functional convention, with a box of actions."""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Environment(Hashable, Protocol):
    """Pure functions of a state and of ``params``; hashable, since it shapes compiled programs.

    Runs whose environments are equal share a program. Unless its class says otherwise an object equals only itself, so
    make one for all runs.

    An environment with a shield also has ``shield_distance(observation, action, params)``, the distance of an action
    in [-1, 1] to the admissible ones, with finite gradients; the actor is then kept away from actions that the shield
    would change.
    """

    def reset_env(self, key: Array, params: Any) -> tuple[Array, Any]:
        """The first observation and state of an episode."""

    def step_env(
        self, key: Array, state: Any, action: Array, params: Any
    ) -> tuple[Array, Any, Array, Array, dict[Any, Any]]:
        """Observation, state, reward, whether a terminal state is reached, and more; without automatic reset."""

    def is_truncated(self, state: Any, params: Any) -> Array:
        """Whether the time limit is reached, which is no terminal state."""

    def action_space(self, params: Any) -> Any:
        """A box: shape, low, high."""


def dimensions(environment: Environment, params: Any) -> tuple[int, int]:
    """d_c and the number of actions; an environment that the engine cannot train on is refused."""
    for name in ("reset_env", "step_env", "is_truncated", "action_space"):
        if not callable(getattr(environment, name, None)):
            raise ValueError(f"an environment must have {name}, as gymnax has it; {environment!r} has not")
    try:
        hash(environment)
    except TypeError:
        kind = type(environment).__name__
        raise ValueError(
            f"an environment must be hashable, {kind} is not; what varies belongs into its params"
        ) from None
    space = environment.action_space(params)
    if not all(hasattr(space, name) for name in ("low", "high", "shape")) or len(space.shape) != 1:
        raise ValueError(f"the action space must be a box of vectors, got {space!r}")
    if not (np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high)) and np.all(space.low < space.high)):
        raise ValueError(f"the action space must have finite bounds, got {space.low} to {space.high}")
    leaves, structure = jax.tree.flatten(params)
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    return _observed(environment, tuple(space.shape), structure, shapes), int(space.shape[0])


@cache  # to trace an environment takes time, and a hundred runs have the same
def _observed(
    environment: Environment, actions: tuple[int, ...], structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]
) -> int:
    """d_c; observations and steps that are not what the engine takes are refused."""
    params, key = jax.tree.unflatten(structure, shapes), jax.random.key(0)
    observation, _ = jax.eval_shape(environment.reset_env, key, params)
    if not isinstance(observation, jax.ShapeDtypeStruct) or len(observation.shape) != 1:
        raise ValueError(f"observations must be vectors, got {observation}; flatten them first")

    def step(key: Array, params: Any) -> Any:
        _, state = environment.reset_env(key, params)
        return environment.step_env(key, state, jnp.zeros(actions), params)

    found = jax.eval_shape(step, key, params)
    if not isinstance(found, tuple) or len(found) != 5:
        given = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
        raise ValueError(
            f"step_env must give observation, state, reward, terminated and info, without reset; got {given}"
        )
    for name, part, shape in (
        ("observation", found[0], observation.shape),
        ("reward", found[2], ()),
        ("terminated", found[3], ()),
    ):
        if getattr(part, "shape", None) != shape:
            raise ValueError(f"step_env must give for {name} an array of shape {shape}, got {part}")
    if found[3].dtype != bool:
        raise ValueError(f"step_env must give a boolean for terminated, got {found[3].dtype}")
    return int(observation.shape[0])


def from_unit(environment: Environment, params: Any, action: Array) -> Array:
    """The environment's action for one in [-1, 1]."""
    space = environment.action_space(params)
    low, high = (jnp.broadcast_to(jnp.asarray(bound, action.dtype), action.shape) for bound in (space.low, space.high))
    return jnp.clip((low + high) / 2 + action * (high - low) / 2, low, high)


def distance_function(environment: Environment, params: Any) -> Callable[[Array, Array], Array] | None:
    """Distances of a batch of actions to the admissible ones; None for an environment without a shield."""
    distance = getattr(environment, "shield_distance", None)
    if distance is None:
        return None
    return jax.vmap(lambda observation, action: distance(observation, action, params))
