"""How a policy does on the environment that it was trained on, whichever that is."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from incrt.bench import first_context, next_context
from incrt.config.rules import COUNT, whole
from incrt.sac.environment import from_unit
from incrt.sac.networks import Actor, mean_action
from incrt.sac.progress import Run
from incrt.sac.run import Program, RunState


def deterministic_returns(run: Run, state: RunState, episodes: int, key: Array) -> Array:
    """Returns of so many episodes of the deterministic policy, the actor's mean, each to its own end."""
    keys = jax.random.split(key, whole("episodes", episodes, COUNT))
    learned = jax.tree.map(jnp.asarray, state.learner.learned)
    returns: Array = _returns(run.program(), run.params, learned.actor, learned.mask, keys)
    return returns


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, None, None, None, 0))
def _returns(program: Program, params: Any, actor: Actor, mask: Array, key: Array) -> Array:
    environment, encoder = program.environment, program.algorithm.encoder
    reset_key, steps_key = jax.random.split(key)
    observation, state = environment.reset_env(reset_key, params)

    def is_going_on(carry: tuple[Any, ...]) -> Array:
        return jnp.logical_not(carry[-1])

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        count, state, context, total, _ = carry
        action = mean_action(actor, encoder.features(actor.encoder, mask, context))
        observation, state, reward, terminated, _ = environment.step_env(
            jax.random.fold_in(steps_key, count), state, from_unit(environment, params, action), params
        )
        done = terminated | environment.is_truncated(state, params)
        return count + 1, state, next_context(context, observation), total + reward, done

    start = (0, state, first_context(observation, encoder.window), jnp.zeros(()), jnp.zeros((), bool))
    return jax.lax.while_loop(is_going_on, step, start)[3]
