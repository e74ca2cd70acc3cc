"""Adam in which each attention head has its own step count.

Adam divides its moments by 1 - beta^t to undo their start at zero. optax counts t once for all parameters, so a head
whose moments start at zero in mid-training would be divided by almost 1 and move at its peak more than six times as far
as a fresh parameter. Here a grown head starts at t = 0 and the others go on where they were. Without events
this is Adam as PyTorch and optax have it.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from incrt.config.rules import NON_NEGATIVE
from incrt.heads.attention import Heads, head_slots, map_heads

_B1, _B2, _EPS = 0.9, 0.999, 1e-8
"""Decay of the first and of the second moments, and what keeps the quotient finite: the values of PyTorch and optax."""


class AdamState(NamedTuple):
    """Moments and step counts of one network."""

    steps: Array
    """Steps of all parameters outside the heads."""
    head_steps: Array
    """Steps of each head, shape (K_max,); empty in a network without heads."""
    mu: Any
    """First moments, shaped like the parameters."""
    nu: Any
    """Second moments, shaped like the parameters."""


def adam(learning_rate: float) -> optax.GradientTransformation:
    """The optimiser, as optax has it: ``init(params)`` and ``update(gradients, state)``."""
    learning_rate = NON_NEGATIVE("learning_rate", learning_rate)

    def init(params: Any) -> AdamState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AdamState(jnp.zeros((), jnp.int32), jnp.zeros(head_slots(params), jnp.int32), zeros, zeros)

    def update(gradients: Any, state: AdamState, params: Any = None) -> tuple[Any, AdamState]:
        del params
        steps, head_steps = state.steps + 1, state.head_steps + 1
        mu = jax.tree.map(lambda m, g: _B1 * m + (1 - _B1) * g, state.mu, gradients)
        nu = jax.tree.map(lambda v, g: _B2 * v + (1 - _B2) * g * g, state.nu, gradients)

        def step(t: Array, m: Array, v: Array) -> Array:
            return -learning_rate * (m * (1 / _missing(_B1, t))) / (jnp.sqrt(v * (1 / _missing(_B2, t))) + _EPS)

        def heads_step(m: Heads, v: Heads) -> Heads:
            return type(m)(*map(step, m.spread(head_steps), m, v))

        updates = map_heads(heads_step, lambda m, v: step(steps, m, v), mu, nu)
        return updates, AdamState(steps, head_steps, mu, nu)

    return optax.GradientTransformation(init, update)


def _missing(decay: float, t: Array) -> Array:
    """1 - decay^t, without the cancellation that it suffers in single precision while decay^t is close to one."""
    return -jnp.expm1(t * math.log(decay))


def forget_head(state: AdamState, head: Array | int) -> AdamState:
    """The state with one head's moments and steps at zero."""

    def forget(moments: Heads) -> Heads:
        return Heads(*(m.at[head].set(0) for m in moments))

    mu, nu = (map_heads(forget, lambda m: m, moments) for moments in (state.mu, state.nu))
    return state._replace(head_steps=state.head_steps.at[head].set(0), mu=mu, nu=nu)


def forget_all(state: AdamState) -> AdamState:
    """The state as it was before the first step."""
    return AdamState(*jax.tree.map(jnp.zeros_like, state))
