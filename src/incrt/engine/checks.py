"""What happens to a run at a check, as pure functions: what is looked at, the events, and what certifies them."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import HeadsConfig
from incrt.engine import replay as memory
from incrt.engine.networks import Actor, q_values
from incrt.engine.replay import Recent
from incrt.engine.step import Program, RunState, check_key
from incrt.heads.attention import head_norms, shares
from incrt.heads.certificates import Evidence, Policy, PruneMeasures, measure_prune, outputs, parameter_energy
from incrt.heads.growth import Learned, grow, prune


class Shaping(NamedTuple):
    """What of the settings shapes the programs of a check. Runs that differ in a threshold share them."""

    tokens: int
    share_batch: int
    optimiser: str


def shaping(heads: HeadsConfig) -> Shaping:
    """What shapes the programs of a run with these settings."""
    return Shaping(heads.tokens, heads.share_batch, heads.optimiser)


class Look(NamedTuple):
    """What a check measures on the device."""

    shares: Array
    """pi_i of the actor's heads on a fresh batch, shape (K_max,)."""
    recent: Recent
    """The records of which the rank is taken."""


def look(program: Program, shaped: Shaping, state: RunState) -> Look:
    """The signals of a check."""
    key, _, _ = jax.random.split(check_key(state), 3)
    mask, actor = state.learner.learned.mask, state.learner.learned.actor
    norms = head_norms(actor.encoder.body, mask, _contexts(program, shaped, state, key))
    return Look(shares(norms, mask), memory.recent(state.replay, shaped.tokens + program.window - 1))


def act(shaped: Shaping, state: RunState, action: Array, head: Array) -> RunState:
    """The run after an action on a head, given by its place in :data:`incrt.heads.check.ACTIONS`."""
    _, key, _ = jax.random.split(check_key(state), 3)

    def grown(learned: Learned) -> Learned:
        return grow(learned, head, key, shaped.optimiser)

    def pruned(learned: Learned) -> Learned:
        return prune(learned, head, shaped.optimiser)

    learned = jax.lax.switch(action, [lambda learned: learned, grown, pruned], state.learner.learned)
    return state._replace(learner=state.learner._replace(learned=learned))


def measure(program: Program, shaped: Shaping, state: RunState, learned: Learned) -> Evidence:
    """What an event that led from ``state`` to ``learned`` did to every output."""
    contexts = _certificate_contexts(program, shaped, state)
    # Both sides go through one program, so that what is equal in the equations is equal to the bit.
    sides = jax.tree.map(lambda *both: jnp.stack(both), state.learner.learned, learned)
    found = jax.lax.map(partial(_outputs, program, contexts), sides)
    energy = jax.lax.map(lambda side: parameter_energy(side.actor, side.mask), sides)
    before, after = ({name: output[i] for name, output in found.items()} for i in (0, 1))
    return Evidence(before, after, energy)


def measure_removal(program: Program, shaped: Shaping, state: RunState, head: Array) -> PruneMeasures:
    """What the removal of a head from ``state`` does to the policy, on the same batch."""
    learned = state.learner.learned
    contexts = _certificate_contexts(program, shaped, state)
    return measure_prune(policy(learned.actor), learned.mask, head, contexts)


def policy(actor: Actor) -> Policy:
    """The deterministic policy, as certificates have it."""
    return Policy(actor.encoder, (*actor.hidden, actor.mean))


def _outputs(program: Program, contexts: Array, learned: Learned) -> dict[str, Array]:
    """All that a growth must not change: encoder and policy, and the values of critic and target."""
    encoder, mask = program.algorithm.encoder, learned.mask
    found = outputs(policy(learned.actor), mask, contexts)
    values = {
        name: q_values(critic, encoder.features(critic.encoder, mask, contexts), found["policy"])
        for name, critic in (("critic", learned.critic), ("target", learned.target))
    }
    return {**found, **values}


def _certificate_contexts(program: Program, shaped: Shaping, state: RunState) -> Array:
    _, _, key = jax.random.split(check_key(state), 3)
    return _contexts(program, shaped, state, key)


def _contexts(program: Program, shaped: Shaping, state: RunState, key: Array) -> Array:
    algorithm = program.algorithm
    return memory.sample(
        state.replay, memory.random_bits(key, shaped.share_batch), program.window, algorithm.actions
    ).context
