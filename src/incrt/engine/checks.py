"""What happens to a run at a check, as pure functions: what is looked at, the events, and what certifies them."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import HeadsConfig, SacConfig
from incrt.engine import replay as memory
from incrt.engine.networks import Actor, q_values
from incrt.engine.policy import LearnedPolicy
from incrt.engine.replay import Recent
from incrt.engine.rollout import LONGEST, episode_returns
from incrt.engine.signals import measure_signals
from incrt.engine.step import Program, RunState, check_key
from incrt.heads.attention import head_norms, head_slots, outputs_without_each, shares
from incrt.heads.certificates import Evidence, Policy, PruneMeasures, measure_prune, outputs, parameter_energy
from incrt.heads.encoders import Encoded
from incrt.heads.growth import Learned, grow, prune, prune_and_compensate
from incrt.heads.triggers import Decision


class Shaping(NamedTuple):
    """What of the settings shapes the programs of a check. Runs that differ in a threshold share them."""

    tokens: int
    share_batch: int
    optimiser: str
    evaluations: int
    """Episodes of the deterministic policy at each check."""
    signals: tuple[str, ...] = ()
    """What is measured for the triggers of all runs that are checked together."""


def shaping(heads: HeadsConfig, sac: SacConfig) -> Shaping:
    """What shapes the programs of a run with these settings, but for the signals that its trigger wants."""
    return Shaping(heads.tokens, heads.share_batch, heads.optimiser, sac.evaluations)


class Look(NamedTuple):
    """What a check measures on the device."""

    shares: Array
    """pi_i of the actor's heads on a fresh batch, shape (K_max,)."""
    recent: Recent
    """The records of which the rank is taken."""
    signals: dict[str, Array]
    """What else triggers want, by name."""
    evaluation: Array
    """Mean return of the deterministic policy, NaN unless it is asked for."""


def look(program: Program, shaped: Shaping, params: Any, state: RunState) -> Look:
    """The signals of a check."""
    key, _, _ = jax.random.split(check_key(state), 3)
    mask, actor = state.learner.learned.mask, state.learner.learned.actor
    share = jnp.zeros(mask.shape)
    if head_slots(actor):  # an encoder without heads may only want to be evaluated
        share = shares(head_norms(actor.encoder.body, mask, _contexts(program, shaped, state, key)), mask)
    # Keys of their own, so that a run draws the same at its events whatever is measured beside them.
    signals_key, evaluation_key = (jax.random.fold_in(key, i) for i in (1, 2))
    signals, evaluation = {}, jnp.full((), jnp.nan)
    if shaped.signals:
        signals = measure_signals(program, shaped.signals, shaped.share_batch, state, signals_key)
    if shaped.evaluations:
        learned_policy = LearnedPolicy(program.algorithm.encoder, actor, mask)
        returns = episode_returns(
            program.environment, LONGEST, params, learned_policy, jax.random.split(evaluation_key, shaped.evaluations)
        )
        evaluation = jnp.mean(returns)
    recent = memory.recent(state.replay, shaped.tokens + program.window - 1)
    return Look(share, recent, signals, evaluation)


_CODES = ("noop", "grow", "prune", "prune and compensate")
"""What may happen to a run, as the compiled program has it."""


def action_code(decision: Decision) -> int:
    """The place among these of what was decided."""
    compensates = decision.action == "prune" and decision.actor_head is not None
    return len(_CODES) - 1 if compensates else _CODES.index(decision.action)


def act(program: Program, shaped: Shaping, state: RunState, code: Array, actor_head: Array, head: Array) -> RunState:
    """The run after what :func:`action_code` stands for."""
    _, key, _ = jax.random.split(check_key(state), 3)

    def grown(learned: Learned) -> Learned:
        return grow(learned, head, key, shaped.optimiser, anew=not program.algorithm.encoder.is_frozen)

    def pruned(learned: Learned) -> Learned:
        return prune(learned, head, shaped.optimiser)

    def compensated(learned: Learned) -> Learned:
        contexts = _fitted_on(program, shaped, state)
        return prune_and_compensate(learned, actor_head, head, shaped.optimiser, contexts)

    what = [lambda learned: learned, grown, pruned, compensated]
    learned = jax.lax.switch(code, what, state.learner.learned)
    return state._replace(learner=state.learner._replace(learned=learned))


def measure(program: Program, shaped: Shaping, state: RunState, learned: Learned) -> Evidence:
    """What an event that led from ``state`` to ``learned`` did to every output."""
    contexts = certificate_contexts(program, shaped, state)
    # Both sides go through one program, so that what is equal in the equations is equal to the bit.
    sides = jax.tree.map(lambda *both: jnp.stack(both), state.learner.learned, learned)
    with jax.default_matmul_precision("highest"):  # as what is promised of a prune
        found = jax.lax.map(partial(_outputs, program, contexts), sides)
    energy = jax.lax.map(lambda side: parameter_energy(side.actor, side.mask), sides)
    before, after = ({name: output[i] for name, output in found.items()} for i in (0, 1))
    return Evidence(before, after, energy)


def measure_removal(
    program: Program, shaped: Shaping, state: RunState, code: Array, actor_head: Array
) -> PruneMeasures:
    """What a prune of this head of the actor would do to the policy, on the same batch."""
    learned = state.learner.learned
    (body, norm), mask = learned.actor.encoder, learned.mask
    made_up = outputs_without_each(body, mask, _fitted_on(program, shaped, state))[actor_head]
    w_o = jnp.where(code == len(_CODES) - 1, made_up, body.heads.w_o.at[actor_head].set(0))
    encoder = Encoded(body._replace(heads=body.heads._replace(w_o=w_o)), norm)
    before, after = policy(learned.actor), policy(learned.actor._replace(encoder=encoder))
    return measure_prune(before, mask, actor_head, certificate_contexts(program, shaped, state), after)


def _fitted_on(program: Program, shaped: Shaping, state: RunState) -> Array:
    """The contexts on which heads learn to make up for one that is pruned; not those of the certificate."""
    _, key, _ = jax.random.split(check_key(state), 3)
    return _contexts(program, shaped, state, jax.random.fold_in(key, 1))


def policy(actor: Actor) -> Policy:
    """The deterministic policy, as certificates have it."""
    return Policy(actor.encoder, (*actor.hidden, actor.mean))


def _outputs(program: Program, contexts: Array, learned: Learned) -> dict[str, Array]:
    """All that a growth must not change: encoder and policy, and the values of critic and target."""
    encoder, mask = program.algorithm.encoder, learned.mask
    found = outputs(policy(learned.actor), encoder.taking_part(mask), contexts)
    values = {
        name: q_values(critic, encoder.features(critic.encoder, mask, contexts), found["policy"])
        for name, critic in (("critic", learned.critic), ("target", learned.target))
    }
    return {**found, **values}


def certificate_contexts(program: Program, shaped: Shaping, state: RunState) -> Array:
    """The batch on which the events of a check are certified."""
    _, _, key = jax.random.split(check_key(state), 3)
    return _contexts(program, shaped, state, key)


def _contexts(program: Program, shaped: Shaping, state: RunState, key: Array) -> Array:
    algorithm = program.algorithm
    return memory.sample(
        state.replay, memory.random_bits(key, shaped.share_batch), program.window, algorithm.actions
    ).context
