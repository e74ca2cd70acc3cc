"""Replay against a plain list of everything that happened, each window written out; actions in ten bits.

The observation of record i is (i + 1, -i - 1), so whatever a batch holds says where it came from.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from incrt.arm.task import make_task
from incrt.config import TaskConfig
from incrt.engine.replay import (
    Batch,
    Replay,
    add,
    begin,
    empty,
    latest_contexts,
    packed,
    quantised,
    random_bits,
    recent,
    sample,
    unpacked,
)

Vector = npt.NDArray[np.float32]

ACTIONS, BATCH, LONGEST = 4, 32, 6
WINDOWS = (1, 3, LONGEST)
LEVELS = 511

add_step = jax.jit(add)
on_grid = jax.jit(quantised)


@partial(jax.jit, static_argnums=(2, 3, 4))
def draw(replay: Replay, key: jax.Array, batch: int, window: int, actions: int) -> Batch:
    return sample(replay, random_bits(key, batch), window, actions)


look = jax.jit(recent, static_argnums=1)


class Known(NamedTuple):
    """A transition as it was, with windows of the longest kind."""

    context: list[Vector]
    action: Vector
    reward: np.float32
    next_context: list[Vector]
    terminated: bool


def seen(record: int) -> Vector:
    return np.array([record + 1, -record - 1], np.float32)


class History:
    """What happened, in a list that forgets nothing, beside the replay that was told of it."""

    def __init__(self, transitions: int) -> None:
        self.replay: Replay = begin(empty(transitions, 2, ACTIONS), jnp.asarray(seen(0)))
        self.records = self.replay.rewards.shape[0]
        self.contexts = [[seen(0)] * LONGEST]
        """Of every record ever begun."""
        self.transitions: dict[int, Known] = {}
        self._random = np.random.default_rng(0)

    @property
    def size(self) -> int:
        return len(self.contexts)

    @property
    def ends(self) -> set[int]:
        """Records that no transition begins with, the newest excepted."""
        return set(range(self.size - 1)) - self.transitions.keys()

    def step(self, done: bool = False, terminated: bool = False) -> None:
        action = np.asarray(on_grid(self._random.uniform(-1, 1, ACTIONS).astype(np.float32)))
        reward = np.float32(self._random.normal())
        context, observation, first = self.contexts[-1], seen(self.size), seen(self.size + 1)
        after = [*context[1:], observation]
        self.transitions[self.size - 1] = Known(context, action, reward, after, terminated)
        self.contexts.append(after)
        if done:
            self.contexts.append([first] * LONGEST)
        # Of an episode that goes on, the first observation of the next one must leave no trace.
        follows = first if done else np.full(2, 1e6, np.float32)
        self.replay = add_step(self.replay, action, reward, terminated, np.bool(done), observation, follows, True)

    def ghost(self) -> None:
        """A step that does not count."""
        lost = np.full(2, np.nan, np.float32)
        action = self._random.uniform(-1, 1, ACTIONS).astype(np.float32)
        done = np.bool(self._random.random() < 0.5)
        self.replay = add_step(self.replay, action, np.float32(np.nan), True, done, lost, lost, False)

    def play(self, episodes: Sequence[tuple[int, bool]]) -> Iterator[int]:
        """Episodes of such lengths that were terminated or else truncated; yields after every step."""
        for length, terminated in episodes:
            for time in range(1, length + 1):
                done = time == length
                self.step(done, done and terminated)
                yield self.size


def played(transitions: int, episodes: Sequence[tuple[int, bool]]) -> History:
    history = History(transitions)
    for _ in history.play(episodes):
        pass
    return history


def where_from(batch: Batch) -> npt.NDArray[np.int64]:
    """The record of each transition."""
    return np.asarray(batch.context)[:, -1, 0].astype(np.int64) - 1


def assert_true(batch: Batch, history: History, window: int) -> None:
    """All transitions of the batch happened just so, and none of their records has given way."""
    found = where_from(batch)
    assert set(found.tolist()) <= history.transitions.keys()
    assert found.min() > history.size - history.records
    known = [history.transitions[i] for i in found.tolist()]
    np.testing.assert_array_equal(batch.context, [each.context[-window:] for each in known])
    np.testing.assert_array_equal(batch.next_context, [each.next_context[-window:] for each in known])
    np.testing.assert_array_equal(batch.action, [each.action for each in known])
    np.testing.assert_array_equal(batch.reward, [each.reward for each in known])
    np.testing.assert_array_equal(batch.terminated, [each.terminated for each in known])


def same(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


KEYS = list(jax.random.split(jax.random.key(0), 256))
EPISODES = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=12)


@pytest.mark.parametrize("transitions", [12, 200], ids=["wraps", "does not wrap"])
@given(EPISODES, st.integers(1, 4), st.integers(0, 255))
def test_every_transition_drawn_is_one_that_happened(
    transitions: int, episodes: list[tuple[int, bool]], every: int, seed: int
) -> None:
    history = History(transitions)
    for size in history.play(episodes):
        window = WINDOWS[size % len(WINDOWS)]
        assert_true(draw(history.replay, KEYS[size - seed], BATCH, window, ACTIONS), history, window)
        if size % every == 0:
            history.ghost()  # seen by no draw above, since a step that counts follows


@given(EPISODES)
def test_the_latest_contexts_are_those_of_the_latest_records(episodes: list[tuple[int, bool]]) -> None:
    history = History(12)
    for _ in history.play(episodes):
        for window in (1, 3):
            found = latest_contexts(look(history.replay, 8 + window - 1), 8, window)
            expected = [np.concatenate(each[-window:]) for each in history.contexts[-8:]]
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, expected)


def test_no_more_contexts_are_taken_than_asked_for_or_whole() -> None:
    history = played(200, [(20, False)])
    found = look(history.replay, 10)
    np.testing.assert_array_equal(latest_contexts(found, 2, 3)[:, -1], [-history.size + 1, -history.size])
    assert latest_contexts(found, 50, 3).shape == (8, 6)


# An episode has one record more than steps. Which record is the oldest to be drawn turns on the last one's length.
SOME_EPISODES = [(2, True), (7, False), (12, True), (5, False), (1, True), (1, True), (20, False), (2, True)]


@pytest.mark.parametrize(("last", "oldest_is_end"), [(6, False), (7, True)])
def test_all_transitions_but_the_oldest_are_drawn_evenly_and_ends_of_episodes_never(
    last: int, oldest_is_end: bool
) -> None:
    window = 3
    history = played(40, [*SOME_EPISODES, (last, False)])
    oldest, ends = history.size - history.records + window + 2, history.ends
    assert oldest > 0
    assert (oldest in ends) == oldest_is_end
    candidates = range(oldest, history.size - 1)
    batches = [draw(history.replay, key, 256, window, ACTIONS) for key in KEYS]
    for batch in batches[:8]:
        assert_true(batch, history, window)
    counts = Counter(np.concatenate([where_from(batch) for batch in batches]).tolist())

    # An end is drawn anew, and if that is an end too the step before it is taken.
    again = sum(i in ends for i in candidates) / len(candidates)
    chance: defaultdict[int, float] = defaultdict(float)
    for i in candidates:
        chance[i - (i in ends)] += again / len(candidates)
        if i not in ends:
            chance[i] += 1 / len(candidates)
    assert counts.keys() == chance.keys()
    assert sum(chance.values()) == pytest.approx(1)
    observed, expected = zip(*((counts[i], counts.total() * chance[i]) for i in chance), strict=True)
    assert chisquare(observed, expected).pvalue > 0.01


def test_it_holds_as_many_transitions_as_it_is_made_for_but_for_a_window() -> None:
    window = 3
    history = played(200, [(100, False)] * 5)
    found = np.concatenate([where_from(draw(history.replay, key, 256, window, ACTIONS)) for key in KEYS[:32]])
    assert len(np.unique(found)) >= 200 - window


def test_a_buffer_with_a_single_transition_draws_that() -> None:
    for done in (False, True):
        history = played(12, [(1, False)]) if done else History(12)
        if not done:
            history.step()
        batch = draw(history.replay, KEYS[0], BATCH, 3, ACTIONS)
        assert_true(batch, history, 3)
        assert set(where_from(batch).tolist()) == {0}


@pytest.mark.parametrize("steps", [1, 5, 12, 40], ids=["new", "part full", "almost full", "wrapped"])
def test_a_step_that_does_not_count_changes_no_draw(steps: int) -> None:
    history = History(12)
    for _ in range(steps):
        history.step()
    before = history.replay
    for _ in range(3):
        history.ghost()
    for key in KEYS[:4]:
        assert same(draw(before, key, BATCH, 3, ACTIONS), draw(history.replay, key, BATCH, 3, ACTIONS))
    assert same(look(before, 10), look(history.replay, 10))
    assert int(history.replay.size) == int(before.size) == history.size


def test_ages_of_an_endless_episode_stop_and_do_not_start_anew() -> None:
    history = History(12)
    for _ in range(30):
        history.step()
    history.replay = history.replay._replace(ages=history.replay.ages + jnp.uint16(65_500 - 30))
    for step in range(60):
        history.step()
        assert_true(draw(history.replay, KEYS[step], BATCH, LONGEST, ACTIONS), history, LONGEST)
        found = latest_contexts(look(history.replay, 10), 8, 3)
        np.testing.assert_array_equal(found, [np.concatenate(each[-3:]) for each in history.contexts[-8:]])
    ages = np.delete(np.asarray(history.replay.ages), history.size % history.records)  # that one is written in advance
    assert ages.dtype == np.uint16
    assert (ages == 65_535).all()
    for _ in history.play([(1, True), (2, False)]):
        assert_true(draw(history.replay, KEYS[0], BATCH, 3, ACTIONS), history, 3)


def test_the_replay_of_the_task_takes_three_megabytes() -> None:
    task, params = make_task(TaskConfig())
    observed, actions = task.observation_space(params).shape[0], task.num_actions
    assert (observed, actions) == (11, 6)
    shapes = jax.eval_shape(partial(empty, 50_000, observed, actions))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes)) <= 3_000_000


# --- actions in ten bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("actions", range(1, 8))
def test_actions_of_the_grid_are_packed_without_loss(actions: int) -> None:
    levels = np.arange(-LEVELS, LEVELS + 1, dtype=np.float32)
    levels = np.stack([np.roll(levels, 101 * i) for i in range(actions)], axis=-1)
    grid = on_grid(levels / LEVELS)
    np.testing.assert_allclose(grid, levels / LEVELS, rtol=2e-7)
    words = jax.jit(packed)(grid)
    assert words.dtype == np.uint32
    assert words.shape == (len(grid), -(-actions // 3))
    np.testing.assert_array_equal(jax.jit(unpacked, static_argnums=1)(words, actions), grid)
    np.testing.assert_array_equal(on_grid(grid), grid)


def test_the_grid_has_the_centre_and_both_ends_and_is_fine() -> None:
    np.testing.assert_array_equal(quantised(jnp.array([-1.0, 0.0, 1.0])), [-1, 0, 1])
    np.testing.assert_array_equal(unpacked(packed(jnp.array([-1.0, 0.0, 1.0])), 3), [-1, 0, 1])
    action = np.random.default_rng(0).uniform(-1, 1, (5000, 3)).astype(np.float32)
    brought = np.asarray(on_grid(action))
    error = np.abs(brought.astype(np.float64) - action)
    assert error.max() <= 0.5 / LEVELS * (1 + 1e-4)
    assert error.mean() == pytest.approx(0.25 / LEVELS, rel=0.05)
    assert len(np.unique(brought)) == 2 * LEVELS + 1
    # What is stored is what was done, also of an action that was brought onto the grid in another program.
    np.testing.assert_array_equal(unpacked(packed(jnp.asarray(brought)), 3), brought)
