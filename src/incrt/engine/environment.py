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
    would change. Where its ``shield`` is false that is left out.
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
    if 0 in space.shape:
        raise ValueError("the action space must have at least one action")
    leaves, structure = jax.tree.flatten(params)
    try:
        shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    except TypeError as error:
        raise ValueError(f"an environment's params must be numbers and arrays: {error}") from None
    return _observed(environment, tuple(space.shape), structure, shapes), int(space.shape[0])


@cache  # to trace an environment takes time, and a hundred runs have the same
def _observed(
    environment: Environment, actions: tuple[int, ...], structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]
) -> int:
    """d_c; observations and steps that are not what the engine takes are refused."""
    params, key = jax.tree.unflatten(structure, shapes), jax.eval_shape(jax.random.key, 0)
    observation, begun = jax.eval_shape(environment.reset_env, key, params)
    if not isinstance(observation, jax.ShapeDtypeStruct) or len(observation.shape) != 1:
        raise ValueError(f"observations must be vectors, got {observation}; flatten them first")

    action = jax.ShapeDtypeStruct(actions, jnp.result_type(float))
    found = jax.eval_shape(environment.step_env, key, begun, action, params)
    if not isinstance(found, tuple) or len(found) != 5:
        given = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
        raise ValueError(
            f"step_env must give observation, state, reward, terminated and info, without reset; got {given}"
        )
    after, state, reward, terminated, _ = found
    _check_state(begun, state)
    truncated = jax.eval_shape(environment.is_truncated, state, params)
    for name, part, shape in (
        ("step_env must give for observation", after, observation.shape),
        ("step_env must give for reward", reward, ()),
        ("step_env must give for terminated", terminated, ()),
        ("is_truncated must give", truncated, ()),
    ):
        if getattr(part, "shape", None) != shape:
            raise ValueError(f"{name} an array of shape {shape}, got {part}")
    if after.dtype != observation.dtype:
        raise ValueError(f"reset_env and step_env must give observations of one type, got {observation} and {after}")
    for name, part in (
        ("step_env must give a boolean for terminated", terminated),
        ("is_truncated must give a boolean", truncated),
    ):
        if part.dtype != bool:
            raise ValueError(f"{name}, got {part.dtype}")
    return int(observation.shape[0])


def _check_state(begun: Any, after: Any) -> None:
    """Refuse states that cannot take each other's place, or cannot be kept in a file."""
    structures: list[Any] = [jax.tree.structure(state) for state in (begun, after)]
    if structures[0] != structures[1]:
        raise ValueError(
            f"reset_env and step_env must give states of one structure, got {structures[0]} and {structures[1]}"
        )
    for one, other in zip(jax.tree.leaves(begun), jax.tree.leaves(after), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise ValueError(f"reset_env and step_env must give states of the same arrays, got {one} and {other}")
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            raise ValueError("a state must not hold a typed random key; keep jax.random.key_data of it")


def from_unit(environment: Environment, params: Any, action: Array) -> Array:
    """The environment's action for one in [-1, 1]."""
    space = environment.action_space(params)
    low, high = (jnp.broadcast_to(jnp.asarray(bound, action.dtype), action.shape) for bound in (space.low, space.high))
    return jnp.clip((low + high) / 2 + action * (high - low) / 2, low, high)


def distance_function(
    environment: Environment, params: Any, sample_axis: int = 0
) -> Callable[[Array, Array], Array] | None:
    """Distances of a batch of actions to the admissible ones; None for an environment without a shield.

    ``sample_axis`` of observations and actions counts samples.
    """
    distance = getattr(environment, "shield_distance", None)
    if distance is None or not getattr(environment, "shield", True):
        return None
    return jax.vmap(lambda observation, action: distance(observation, action, params), in_axes=sample_axis)
