"""The losses of Soft Actor-Critic; each gives a scalar to minimise, and what else is worth knowing.

Written for one run and one batch. ``alpha`` is the temperature, held fixed in every loss but its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.engine.layouts import Layout
from incrt.engine.networks import Actor, Critic
from incrt.engine.replay import Batch

Distance = Callable[[Array, Array], Array]
"""From observations and actions of a batch to the actions' distances to the admissible ones."""


def soft_target(
    actor: Actor, target: Critic, layout: Layout, mask: Array, batch: Batch, noise: Array, alpha: Array, gamma: float
) -> Array:
    """r + gamma (min Q'(c', a') - alpha log pi(a'|c')), without the value of what follows a terminal state."""
    contexts = batch.next_context
    action, log_prob = layout.sample_action(actor, layout.features(actor, mask, contexts), noise)
    values = layout.q_values(target, layout.features(target, mask, contexts), action)
    value = jnp.min(values, axis=0) - alpha * log_prob
    return batch.reward + gamma * jnp.where(batch.terminated, 0, value)


def critic_loss(critic: Critic, layout: Layout, mask: Array, batch: Batch, target: Array) -> tuple[Array, Array]:
    """Half the squared error of both values, summed over the two; also gives their mean value."""
    values = layout.q_values(critic, layout.features(critic, mask, batch.context), batch.action)
    return 0.5 * jnp.sum(jnp.mean((values - target) ** 2, axis=-1)), jnp.mean(values)


class ActorInfo(NamedTuple):
    """What the actor's loss was made of."""

    log_prob: Array
    """Mean logarithm of the actions' density: minus the entropy."""
    distance: Array
    """Mean distance of the actions to the admissible ones."""


def actor_loss(
    actor: Actor,
    critic: Critic,
    layout: Layout,
    mask: Array,
    batch: Batch,
    noise: Array,
    alpha: Array,
    multiplier: Array,
    distance: Distance | None,
) -> tuple[Array, ActorInfo]:
    """alpha log pi - min Q, plus the multiplier times the distance to the admissible actions."""
    action, log_prob = layout.sample_action(actor, layout.features(actor, mask, batch.context), noise)
    features = jax.lax.stop_gradient(layout.features(critic, mask, batch.context))
    value = jnp.min(layout.q_values(critic, features, action), axis=0)
    loss = jnp.mean(alpha * log_prob - value)
    away = jnp.zeros(())
    if distance is not None:
        away = jnp.mean(distance(batch.context[:, -1], action))  # time is the middle axis in every layout
        loss = loss + multiplier * away
    return loss, ActorInfo(jnp.mean(log_prob), away)


def temperature_loss(log_alpha: Array, log_prob: Array, target_entropy: float) -> Array:
    """Its slope raises the temperature while the entropy is below its target."""
    return -log_alpha * (log_prob + target_entropy)
