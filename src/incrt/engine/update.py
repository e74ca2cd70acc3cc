"""One update of Soft Actor-Critic: target, critic, actor, temperature, Polyak.

The temperature and the penalty's multiplier of the losses are those from before the update.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from incrt.config import SacConfig
from incrt.engine.layouts import Layout, Noise, Rows
from incrt.engine.losses import Distance, actor_loss, critic_loss, soft_target, temperature_loss
from incrt.engine.networks import init_actor, init_critic
from incrt.engine.replay import Batch
from incrt.heads.adam import AdamState, adam
from incrt.heads.attention import head_slots, hold_inactive
from incrt.heads.encoders import Encoder
from incrt.heads.growth import Learned


@dataclass(frozen=True)
class Algorithm:
    """What shapes an update."""

    encoder: Encoder
    sac: SacConfig
    actions: int

    @property
    def target_entropy(self) -> float:
        return -float(self.actions) if self.sac.target_entropy is None else self.sac.target_entropy


class Learner(NamedTuple):
    """All that an update changes."""

    learned: Learned
    """Mask, networks and their optimisers: what an event changes too."""
    log_alpha: Array
    log_alpha_adam: AdamState
    multiplier: Array
    """Of the penalty on inadmissible actions."""


class Losses(NamedTuple):
    """What an update measured; all but ``temperature`` and ``multiplier`` are means over the batch."""

    critic_loss: Array
    actor_loss: Array
    temperature: Array
    entropy: Array
    q: Array
    distance: Array
    """Of the actor's actions to the admissible ones."""
    multiplier: Array


def init_learner(algorithm: Algorithm, key: Array, mask: Array | None = None, loud: Array | None = None) -> Learner:
    """A learner before its first update, whose target is a copy of the critic.

    ``mask`` and ``loud`` say which heads are active and which put out something, if not as configured.
    """
    actor_key, critic_key = jax.random.split(key)
    encoder, hidden = algorithm.encoder, algorithm.sac.hidden
    mask = encoder.first_mask if mask is None else mask
    actor = init_actor(actor_key, encoder, hidden, algorithm.actions, loud)
    critic = init_critic(critic_key, encoder, hidden, algorithm.actions, loud)
    optimiser = adam(algorithm.sac.learning_rate)
    log_alpha = jnp.zeros(())
    return Learner(
        learned=Learned(mask, actor, critic, critic, optimiser.init(actor), optimiser.init(critic)),
        log_alpha=log_alpha,
        log_alpha_adam=optimiser.init(log_alpha),
        multiplier=jnp.ones(()),
    )


def update(
    algorithm: Algorithm,
    learner: Learner,
    batch: Batch,
    noise: Noise,
    distance: Distance | None,
    go: Array,
    layout: Layout | None = None,
) -> tuple[Learner, Losses]:
    """One update. Where ``go`` is false, or a loss is not finite, nothing that depends on it changes.

    Learner, batch and noise are in the given layout, rows if there is none.
    """
    sac, layout = algorithm.sac, layout or Rows(algorithm.encoder)
    mask, actor, critic, target, actor_adam, critic_adam = learner.learned
    alpha = jnp.exp(learner.log_alpha)

    # target and critic
    wanted = soft_target(actor, target, layout, mask, batch, noise.later, alpha, sac.gamma)
    (loss_q, q), slope = jax.value_and_grad(critic_loss, has_aux=True)(critic, layout, mask, batch, wanted)
    go = go & jnp.isfinite(loss_q)
    critic, critic_adam = _descend(sac.learning_rate, go, critic, slope, critic_adam)

    # actor
    (loss_pi, info), slope = jax.value_and_grad(actor_loss, has_aux=True)(
        actor, critic, layout, mask, batch, noise.now, alpha, learner.multiplier, distance
    )
    go = go & jnp.isfinite(loss_pi)
    actor, actor_adam = _descend(sac.learning_rate, go, actor, slope, actor_adam)

    # temperature and multiplier
    slope = jax.grad(temperature_loss)(learner.log_alpha, info.log_prob, algorithm.target_entropy)
    log_alpha, log_alpha_adam = _descend(sac.learning_rate, go, learner.log_alpha, slope, learner.log_alpha_adam)
    multiplier = learner.multiplier
    if distance is not None:
        rise = sac.penalty_rate * (info.distance - sac.penalty_limit)
        multiplier = jnp.where(go, jnp.maximum(multiplier + rise, 0), multiplier)

    # Polyak
    moved = jax.tree.map(lambda old, new: jnp.where(go, old + sac.tau * (new - old), old), target, critic)
    target = hold_inactive(mask, target, moved) if head_slots(target) else moved

    learned = Learned(mask, actor, critic, target, actor_adam, critic_adam)
    losses = Losses(loss_q, loss_pi, alpha, -info.log_prob, q, info.distance, learner.multiplier)
    return Learner(learned, log_alpha, log_alpha_adam, multiplier), losses


def _descend(learning_rate: float, go: Array, params: Any, slope: Any, state: AdamState) -> tuple[Any, AdamState]:
    """One step of Adam where ``go`` is true."""
    step, after = adam(learning_rate).update(slope, state)
    moved = (optax.apply_updates(params, step), after)
    params, state = jax.tree.map(partial(jnp.where, go), moved, (params, state))
    return params, state
