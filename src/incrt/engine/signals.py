"""What a check can be asked about the heads, beside rank and shares: functions of one run and one batch from replay.

Each is a signal by which some method decides when to grow or what to prune (:mod:`incrt.heads.triggers` has their
names and sources). A trigger names those that it wants, and only they are measured.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.engine import replay as memory
from incrt.engine.layouts import Rows
from incrt.engine.losses import soft_target
from incrt.engine.networks import Critic, mean_action, q_values
from incrt.engine.replay import Batch
from incrt.engine.step import Program, RunState
from incrt.heads.attention import Attention, attend, contributions, outputs_without_each, read_values, soft_init
from incrt.heads.encoders import normalised
from incrt.heads.linear import inverse, spectral_norm

_DAMPING = 1e-3
"""Added to a covariance before it is inverted, relative to the mean of its diagonal."""
_TINY = float(np.finfo(np.float32).tiny)
"""Keeps quotients finite."""


def measure_signals(
    program: Program, names: Sequence[str], batch_size: int, state: RunState, key: Array
) -> dict[str, Array]:
    """The signals of these names."""
    algorithm, learner = program.algorithm, state.learner
    learned = learner.learned
    batch_key, noise_key, probe_key = jax.random.split(key, 3)
    both = memory.sample(state.replay, memory.random_bits(batch_key, 2 * batch_size), program.window, algorithm.actions)
    # What a network is fitted on says too little of what it does elsewhere.
    batch, other = jax.tree.map(lambda leaf: leaf[::2], both), jax.tree.map(lambda leaf: leaf[1::2], both)
    found: dict[str, Array] = {}
    wanted = set(names)
    if "removal_jumps" in wanted:
        found["removal_jumps"] = removal_jumps(learned.actor, learned.mask, other.context, batch.context)
    if not wanted - {"rank", "shares", "removal_jumps"}:
        return found
    noise = jax.random.normal(noise_key, (batch_size, algorithm.actions))
    layout, alpha = Rows(algorithm.encoder), jnp.exp(learner.log_alpha)
    target = soft_target(learned.actor, learned.target, layout, learned.mask, batch, noise, alpha, algorithm.sac.gamma)
    if wanted & {"residual", "spread", "worth"}:
        found["residual"], found["worth"] = worth(learned.critic, learned.mask, other.context, batch, target)
        found["spread"] = jnp.var(target)
    if wanted & {"importance", "gradients"}:
        found["importance"], found["gradients"] = gradient_importance(learned.critic, learned.mask, batch, target)
    if wanted & {"potential", "expansion"}:
        found["potential"], found["expansion"] = probe(learned.critic, learned.mask, batch, target, probe_key)
    return {name: found[name] for name in names if name in found}


def without_each(body: Attention, mask: Array, fitted_on: Array, contexts: Array) -> Array:
    """The output of the attention block without each head in turn, and last as it is: (K_max + 1, B, d_model).

    The others make up for the one that is gone, as far as they can.
    """
    outputs = jnp.concatenate([outputs_without_each(body, mask, fitted_on), body.heads.w_o[None]])
    values = read_values(body, mask, contexts)
    newest = contexts[:, -1] @ body.embed + body.position[-1]
    found: Array = newest + jnp.einsum("bkd,nkdm->nbm", values, outputs)
    return found


def removal_jumps(actor: Any, mask: Array, fitted_on: Array, contexts: Array) -> Array:
    """By how much the deterministic policy would change without each head: mean norm over the contexts, (K_max,)."""
    blocks = without_each(actor.encoder.body, mask, fitted_on, contexts)
    outputs = mean_action(actor, normalised(actor.encoder.norm, blocks))
    return jnp.mean(jnp.linalg.norm(outputs[:-1] - outputs[-1], axis=-1), axis=-1)


def worth(critic: Critic, mask: Array, fitted_on: Array, batch: Batch, target: Array) -> tuple[Array, Array]:
    """Mean squared error of the critic's mean value, and by how much it would be larger without each head."""
    blocks = without_each(critic.encoder.body, mask, fitted_on, batch.context)

    def residual(block: Array) -> Array:
        error = _values(critic, block, batch.action) - target
        return jnp.mean(jnp.mean(error, axis=0) ** 2)

    left = jax.lax.map(residual, blocks)
    return left[-1], left[:-1] - left[-1]


def gradient_importance(critic: Critic, mask: Array, batch: Batch, target: Array) -> tuple[Array, Array]:
    """Of each head: |contribution . slope of the loss| as a share of all heads', and the mean size of its gradient.

    The first is the head importance of Michel et al. (arXiv 1905.10650), the second GraMa's measure of a neuron that
    no longer learns (arXiv 2505.24061), as a ratio to the mean of the active heads.
    """
    body = critic.encoder.body
    _, slopes, _ = _slopes(critic, mask, batch, target)
    each = contributions(body, mask, batch.context)
    importance = jnp.mean(jnp.abs(jnp.einsum("bkm,bm->bk", each, slopes)), axis=0)

    def loss(body: Attention) -> Array:
        return _loss(critic, attend(body, mask, batch.context), batch, target) / len(target)

    gradients = jax.grad(loss)(body).heads
    sizes = jnp.mean(jnp.stack([jnp.mean(jnp.abs(each), axis=(1, 2)) for each in gradients]), axis=0)
    mean = jnp.sum(sizes) / jnp.maximum(jnp.sum(mask), 1)
    return importance / jnp.maximum(jnp.sum(importance), _TINY), sizes / jnp.maximum(mean, _TINY)


def probe(critic: Critic, mask: Array, batch: Batch, target: Array, key: Array) -> tuple[Array, Array]:
    """How much a silent head that began now could lower the critic's loss, by its first gradient.

    First GradMax's measure (arXiv 2201.05125): the largest gradient that an output matrix of zeros can have, over all
    value matrices of norm one, relative to what it would be if all samples agreed. Then SENN's natural expansion score
    (arXiv 2307.04526): half of g^T F^-1 g, with F in Kronecker factors, as a fraction of the loss.
    """
    body = critic.encoder.body
    d_model, d_k = body.heads.w_q.shape[1:]
    fresh = soft_init(key[None], d_model, d_k)
    alone = jnp.ones(1, bool)
    loss, slopes, jacobians = _slopes(critic, mask, batch, target)
    everything = fresh._replace(w_v=jnp.eye(d_model)[None])
    read = read_values(body._replace(heads=everything), alone, batch.context)[:, 0]
    gradient = read.T @ slopes / len(slopes)
    agreed = jnp.sqrt(jnp.mean(jnp.sum(read**2, axis=-1)) * jnp.mean(jnp.sum(slopes**2, axis=-1)))
    potential = spectral_norm(gradient) / jnp.maximum(agreed, _TINY)

    values = read_values(body._replace(heads=fresh), alone, batch.context)[:, 0]
    inside = _damped(values.T @ values / len(values))
    outside = _damped(jnp.einsum("tbm,tbn->mn", jacobians, jacobians) / len(values))
    gradient = values.T @ slopes / len(slopes)
    natural = inverse(inside) @ gradient @ inverse(outside)
    return potential, 0.5 * jnp.sum(gradient * natural) / jnp.maximum(loss / len(slopes), _TINY)


def _values(critic: Critic, block: Array, action: Array) -> Array:
    return q_values(critic, normalised(critic.encoder.norm, block), action)


def _loss(critic: Critic, block: Array, batch: Batch, target: Array) -> Array:
    """The critic's loss, summed over the batch."""
    return 0.5 * jnp.sum((_values(critic, block, batch.action) - target) ** 2)


def _slopes(critic: Critic, mask: Array, batch: Batch, target: Array) -> tuple[Array, Array, Array]:
    """The critic's loss; of each sample its slope at the block, (B, d_model), and each value's, (2, B, d_model)."""
    block = attend(critic.encoder.body, mask, batch.context)
    loss, slopes = jax.value_and_grad(lambda block: _loss(critic, block, batch, target))(block)

    def of_value(twin: int) -> Array:
        slope: Array = jax.grad(lambda block: jnp.sum(_values(critic, block, batch.action)[twin]))(block)
        return slope

    return loss, slopes, jnp.stack([of_value(0), of_value(1)])


def _damped(covariance: Array) -> Array:
    size = jnp.trace(covariance) / len(covariance)
    damped: Array = covariance + (_DAMPING * size + _TINY) * jnp.eye(len(covariance))
    return damped
