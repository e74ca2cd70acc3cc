"""Replay that stores every observation once and gathers windows by index.

A record is one step of an episode: its observation, what was done there and what it brought. The observation after the
last step has a record too, whose action was never taken, so a record's successor is always the next one. A record knows
its age, the steps since its episode began, so a window never reaches into the episode before: where it would, the
first observation fills it, as at the start of an episode (:func:`incrt.heads.context.first_context`).

Actions are kept in ten bits each. :func:`quantised` brings an action onto that grid before it is taken, so what is
stored is what was done.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

_LEVELS = 511
"""Steps of the grid from 0 to 1."""
_PER_WORD = 3
"""Actions in one word of 32 bits."""
_SHIFTS = np.arange(_PER_WORD, dtype=np.uint32) * np.uint32(10)
_TEN_BITS = np.uint32(1023)
_OLDEST = np.uint16(2**16 - 2)
"""Where ages stop; no window is as long."""


class Replay(NamedTuple):
    """A ring of records. ``size`` counts all that were ever begun; the newest has an observation and no action yet."""

    frames: Array
    """Observations, shape (records, d_c)."""
    actions: Array
    """Packed actions, shape (records, words)."""
    rewards: Array
    ages: Array
    terminated: Array
    """Whether the episode ended for good with this step; a time limit is no such end."""
    size: Array


class Batch(NamedTuple):
    """Transitions, as rows; as columns the last axis counts samples. Time is the middle axis of a context in both."""

    context: Array
    """Shape (B, W, d_c), or (d_c, W, B)."""
    action: Array
    reward: Array
    next_context: Array
    terminated: Array


def empty(transitions: int, observation_dim: int, actions: int) -> Replay:
    """A buffer without any record, for so many transitions and the ends of episodes of a hundred steps or more."""
    records = transitions + transitions // 100 + 3
    return Replay(
        frames=jnp.zeros((records, observation_dim)),
        actions=jnp.zeros((records, -(-actions // _PER_WORD)), jnp.uint32),
        rewards=jnp.zeros(records),
        ages=jnp.zeros(records, jnp.uint16),
        terminated=jnp.zeros(records, bool),
        size=jnp.zeros((), jnp.int32),
    )


def begin(replay: Replay, observation: Array) -> Replay:
    """The buffer with the first record of its first episode."""
    return replay._replace(frames=replay.frames.at[0].set(observation), size=jnp.ones((), jnp.int32))


def add(
    replay: Replay,
    action: Array,
    reward: Array,
    terminated: Array,
    done: Array,
    observation: Array,
    first: Array,
    counts: Array,
) -> Replay:
    """One step: what was done and came of it, and the observation after it.

    Where the episode is done the ``first`` observation of the next one follows. A step that does not count leaves
    nothing behind.
    """
    records = replay.rewards.shape[0]
    newest, following, after = ((replay.size + i) % records for i in (-1, 0, 1))
    age = jnp.minimum(replay.ages[newest], _OLDEST) + jnp.uint16(1)
    return Replay(
        # Unless the episode is done the second of these is written over at the next step.
        frames=replay.frames.at[following].set(observation).at[after].set(first),
        ages=replay.ages.at[following].set(age).at[after].set(jnp.uint16(0)),
        actions=replay.actions.at[newest].set(packed(action)),
        rewards=replay.rewards.at[newest].set(reward),
        terminated=replay.terminated.at[newest].set(terminated),
        size=replay.size + jnp.where(counts, 1 + done.astype(jnp.int32), 0),
    )


def random_bits(key: Array, batch: int) -> Array:
    """What chooses so many transitions."""
    return jax.random.bits(key, (2, batch))


def sample(replay: Replay, bits: Array, window: int, actions: int) -> Batch:
    """Transitions drawn evenly from those whose windows are whole, by the bits of :func:`random_bits`."""
    chosen = choose(replay, bits, window)
    frames = windows(replay, chosen, window + 1)
    found = outcomes(replay, chosen, actions)
    return Batch(frames[:, :-1], found.action, found.reward, frames[:, 1:], found.terminated)


def choose(replay: Replay, bits: Array, window: int) -> Array:
    """The records of transitions drawn evenly from those whose windows are whole."""
    records = replay.rewards.shape[0]
    # Two more than a window needs: the step before may be taken, and a step that does not count writes ahead.
    oldest = jnp.where(replay.size < records - 1, 0, replay.size - records + window + 2)
    count = jnp.maximum(replay.size - 1 - oldest, 1)
    # With 32 bits the remainder favours some of a million records by a four-thousandth.
    drawn = oldest + (bits % count.astype(jnp.uint32)).astype(jnp.int32)
    # The record at the end of an episode is no transition; a second draw takes its place, or else the step before it.
    is_end = replay.ages[(drawn + 1) % records] == 0
    return jnp.where(is_end[0], drawn[1] - is_end[1], drawn[0])


class Outcomes(NamedTuple):
    """What was done at each of some records, and what came of it."""

    action: Array
    reward: Array
    terminated: Array


def outcomes(replay: Replay, chosen: Array, actions: int) -> Outcomes:
    """Of the chosen records."""
    place = chosen % replay.rewards.shape[0]
    return Outcomes(unpacked(replay.actions[place], actions), replay.rewards[place], replay.terminated[place])


def windows(replay: Replay, newest: Array, length: int, *, samples_last: bool = False) -> Array:
    """The frames up to one after each of ``newest``, so many of each; none from before its episode.

    Their shape is (B, length, d_c), or (d_c, length, B).
    """
    records = replay.rewards.shape[0]
    start = newest - replay.ages[newest % records].astype(jnp.int32)
    wanted = newest[:, None] + jnp.arange(2 - length, 2)
    places = jnp.maximum(wanted, start[:, None]) % records
    if samples_last:
        return replay.frames[places.T.reshape(-1)].T.reshape(-1, length, len(newest))
    return replay.frames[places]


# --- the latest contexts, for the rank ---------------------------------------------------------------------------


class Recent(NamedTuple):
    """The latest records in order, the newest last; those before the first are of no meaning."""

    frames: Array
    ages: Array
    size: Array


def recent(replay: Replay, count: int) -> Recent:
    """So many of the latest records."""
    records = replay.rewards.shape[0]
    places = (replay.size + jnp.arange(-count, 0)) % records
    return Recent(replay.frames[places], replay.ages[places], replay.size)


def latest_contexts(found: Recent, count: int, window: int) -> npt.NDArray[np.float32]:
    """The contexts of the latest ``count`` records, or of as many as there are, flattened: (N, W d_c). On the host."""
    frames, ages = np.asarray(found.frames), np.asarray(found.ages, int)
    known = min(count, int(found.size), len(frames) - window + 1)
    newest = np.arange(len(frames) - known, len(frames))
    wanted = newest[:, None] + np.arange(1 - window, 1)
    contexts: npt.NDArray[np.float32] = frames[np.maximum(wanted, (newest - ages[newest])[:, None])]
    return contexts.reshape(known, -1)


# --- actions in ten bits -----------------------------------------------------------------------------------------


def quantised(action: Array) -> Array:
    """The nearest action of the grid."""
    return jnp.round(action * _LEVELS) / _LEVELS


def packed(action: Array) -> Array:
    """An action of the grid, shape (..., actions), in words."""
    levels = (jnp.round(action * _LEVELS) + _LEVELS).astype(jnp.uint32)
    missing = -action.shape[-1] % _PER_WORD
    levels = jnp.pad(levels, [(0, 0)] * (levels.ndim - 1) + [(0, missing)])
    levels = levels.reshape(*levels.shape[:-1], -1, _PER_WORD)
    return jnp.sum(levels << _SHIFTS, axis=-1, dtype=jnp.uint32)


def unpacked(words: Array, actions: int) -> Array:
    """The actions of :func:`packed`."""
    levels = (words[..., None] >> _SHIFTS) & _TEN_BITS
    levels = levels.reshape(*words.shape[:-1], -1)[..., :actions]
    return (levels.astype(jnp.float32) - _LEVELS) / _LEVELS
