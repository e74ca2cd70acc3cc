"""How a policy does on the environment that it was trained on, whichever that is."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config.rules import COUNT
from incrt.engine.environment import Environment, from_unit
from incrt.engine.policy import LearnedPolicy
from incrt.engine.progress import Run
from incrt.heads.context import first_context, next_context

LONGEST = 10_000
"""Steps after which an episode is cut off."""


def deterministic_returns(run: Run, policy: LearnedPolicy, episodes: int, key: Array, longest: int = LONGEST) -> Array:
    """Returns of so many episodes of the deterministic policy, each to its own end or to the ``longest`` step."""
    keys = jax.random.split(key, COUNT("episodes", episodes))
    longest = COUNT("longest", longest)
    returns: Array = _compiled_returns(run.environment, longest, run.params, policy, keys)
    return returns


@partial(jax.vmap, in_axes=(None, None, None, None, 0))
def episode_returns(environment: Environment, longest: int, params: Any, policy: LearnedPolicy, key: Array) -> Array:
    """The return of one episode for each key."""
    reset_key, steps_key = jax.random.split(key)
    observation, state = environment.reset_env(reset_key, params)

    def is_going_on(carry: tuple[Any, ...]) -> Array:
        return jnp.logical_and(jnp.logical_not(carry[-1]), carry[0] < longest)

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        count, state, context, total, _ = carry
        observation, state, reward, terminated, _ = environment.step_env(
            jax.random.fold_in(steps_key, count), state, from_unit(environment, params, policy.predict(context)), params
        )
        done = terminated | environment.is_truncated(state, params)
        return count + 1, state, next_context(context, observation), total + reward, done

    start = (0, state, first_context(observation, policy.encoder.window), jnp.zeros(()), jnp.zeros((), bool))
    return jax.lax.while_loop(is_going_on, step, start)[3]


_compiled_returns = jax.jit(episode_returns, static_argnums=(0, 1))
