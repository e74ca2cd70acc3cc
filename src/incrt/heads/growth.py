"""Grow and prune (paper, section 4.2) as pure operations on everything that an event changes.

Shapes stay as they are, so nothing is compiled anew, and ``head`` may be traced, so many runs are a ``vmap``. Whatever
is not in :class:`Learned` an event does not touch: replay, temperature, plant and random streams go on.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.config import OPTIMISER_RULES
from incrt.config.rules import INDEX, one_of
from incrt.heads.adam import AdamState, forget_all, forget_head
from incrt.heads.attention import Heads, head_slots, map_heads, outputs_without_each, soft_init
from incrt.heads.encoders import Encoded


class Learned(NamedTuple):
    """The active mask, the three networks of SAC that have heads, and the optimisers of the two that learn."""

    mask: Array
    actor: Any
    critic: Any
    target: Any
    actor_adam: AdamState
    critic_adam: AdamState


def grow(learned: Learned, head: Array | int, key: Array, optimiser: str, *, anew: bool = True) -> Learned:
    """Grow(i): activate an inactive head, which starts anew by soft initialisation even if it once was active.

    Unless it is to start ``anew`` it keeps its parameters: a frozen head that is to learn from now on.

    The target's head is a copy of the critic's.
    """
    _check_networks(learned)
    check_event(learned.mask, head, active=True)
    actor_key, critic_key = jax.random.split(key)
    if anew:
        learned = learned._replace(
            actor=_start_anew(learned.actor, head, actor_key),
            critic=_start_anew(learned.critic, head, critic_key),
            target=_start_anew(learned.target, head, critic_key),  # the same key, hence the same head
        )
    return learned._replace(
        mask=learned.mask.at[head].set(True),
        actor_adam=_after_event(learned.actor_adam, head, optimiser),
        critic_adam=_after_event(learned.critic_adam, head, optimiser),
    )


def prune(learned: Learned, head: Array | int, optimiser: str) -> Learned:
    """Prune(i): deactivate a head. Its parameters stay as they are; nothing of it is left in the optimisers."""
    _check_networks(learned)
    check_event(learned.mask, head, active=False)
    return learned._replace(
        mask=learned.mask.at[head].set(False),
        actor_adam=_after_event(learned.actor_adam, head, optimiser),
        critic_adam=_after_event(learned.critic_adam, head, optimiser),
    )


def prune_and_compensate(
    learned: Learned, actor_head: Array | int, head: Array | int, optimiser: str, contexts: Array
) -> Learned:
    """Prune the critic's ``head`` and the actor's ``actor_head``; in each network the others make up for it.

    How is said in :func:`incrt.heads.attention.outputs_without_each`, here for a batch of contexts. The order of heads
    means nothing: the actor's other head takes the number that becomes free, with all that belongs to it.
    """
    _check_networks(learned)
    check_event(learned.mask, head, active=False)
    check_event(learned.mask, actor_head, active=False)

    def make_up(encoder: Encoded, gone: Array | int) -> Encoded:
        heads: Heads = encoder.body.heads
        w_o = outputs_without_each(encoder.body, learned.mask, contexts)[gone]
        return encoder._replace(body=encoder.body._replace(heads=heads._replace(w_o=w_o)))

    made_up = learned._replace(
        actor=learned.actor._replace(encoder=make_up(learned.actor.encoder, actor_head)),
        critic=learned.critic._replace(encoder=make_up(learned.critic.encoder, head)),
        target=learned.target._replace(encoder=make_up(learned.target.encoder, head)),
    )
    return prune(_exchange(made_up, actor_head, head), head, optimiser)


def _exchange(learned: Learned, one: Array | int, other: Array | int) -> Learned:
    """The same actor with two of its heads, and all that belongs to them, in each other's places."""
    slots = jnp.arange(learned.mask.shape[-1])
    order = jnp.where(slots == one, other, jnp.where(slots == other, one, slots))

    def ordered(tree: Any) -> Any:
        return map_heads(lambda heads: Heads(*(w[order] for w in heads)), lambda leaf: leaf, tree)

    adam = learned.actor_adam
    return learned._replace(
        actor=ordered(learned.actor),
        actor_adam=adam._replace(head_steps=adam.head_steps[order], mu=ordered(adam.mu), nu=ordered(adam.nu)),
    )


def _check_networks(learned: Learned) -> None:
    for name in ("actor", "critic", "target"):
        slots = head_slots(getattr(learned, name))
        if learned.mask.shape[-1:] != (slots,):
            raise ValueError(f"the mask has shape {learned.mask.shape}, but the {name} has {slots} heads")


def check_event(mask: Any, head: Array | int, *, active: bool) -> None:
    """Refuse a head that there is not, or that is already what it is to become; JAX would let both pass.

    Under ``jit`` and ``vmap`` neither is known, and the caller answers for it.
    """
    if isinstance(mask, jax.core.Tracer) or isinstance(head, jax.core.Tracer):
        return
    index = INDEX("head", head)
    if index >= len(mask):
        raise ValueError(f"head must be from 0 to {len(mask) - 1}, got {index}")
    if bool(mask[index]) == active:
        raise ValueError(f"head {index} is already {'active' if active else 'inactive'}")


def _start_anew(params: Any, head: Array | int, key: Array) -> Any:
    def start(heads: Heads) -> Heads:
        d_model, d_k = heads.w_q.shape[-2:]
        new = soft_init(key[None], d_model, d_k)
        return Heads(*(w.at[head].set(one[0].astype(w.dtype)) for w, one in zip(heads, new, strict=True)))

    return map_heads(start, lambda leaf: leaf, params)


def _after_event(state: AdamState, head: Array | int, optimiser: str) -> AdamState:
    one_of(OPTIMISER_RULES)("optimiser", optimiser)
    return forget_all(state) if optimiser == "rebuild" else forget_head(state, head)
