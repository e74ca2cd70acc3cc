"""One run step by step, on an environment whose observations tell all that happened in it."""

import math
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from jax import Array
from scipy.stats import kstest

from incrt.arm.task import make_task
from incrt.config import EncoderConfig, SacConfig, preset
from incrt.engine.environment import dimensions
from incrt.engine.layouts import Rows
from incrt.engine.replay import Batch, Replay, latest_contexts, random_bits, recent, sample, unpacked
from incrt.engine.step import CAUSES, Program, Record, RunState, as_record, as_row, check_key, draw, start, train_step
from incrt.engine.update import Algorithm
from incrt.heads.encoders import make_encoder

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([2.0, 4.0], np.float32)
"""Powers of two, so that actions are rounded alike in every program."""
WINDOW, LEARNING_STARTS, BATCH = 3, 24, 32
TAG, TIME, LIFETIME, ACTION = 0, 1, 2, slice(3, 5)
"""What stands where in an observation."""


class Params(NamedTuple):
    """The numbers of the environment."""

    limit: Any = 1000
    """Steps after which an episode is truncated."""
    longest_life: Any = 1000
    """An episode is terminated after so many steps at most; in short ones after two or more."""
    breaks_at: Any = -1
    """Time in an episode at which something is added to observation and reward."""
    to_observation: Any = 0.0
    to_reward: Any = 0.0
    distance: Any = 0.0


SHORT = Params(limit=5, longest_life=8)
"""Of these episodes some are terminated, some truncated, some both."""


class State(NamedTuple):
    """The state of one episode."""

    tag: Array
    time: Array
    lifetime: Array


@dataclass(frozen=True)
class Plain:
    """Observations are the episode's tag, the time, the time at which it is terminated, and the latest action."""

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        tag_key, life_key = jax.random.split(key)
        low = jnp.where(params.longest_life < 100, 2, params.longest_life)
        lifetime = jax.random.randint(life_key, (), low, params.longest_life + 1)
        state = State(jax.random.uniform(tag_key), jnp.zeros((), jnp.int32), lifetime)
        return self._observe(state, jnp.zeros(2)), state

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[Any, Any]]:
        state = state._replace(time=state.time + 1)
        breaks = state.time == params.breaks_at
        observation = self._observe(state, action).at[TAG].add(jnp.where(breaks, params.to_observation, 0))
        reward = jnp.sum(action) + jax.random.normal(key) + jnp.where(breaks, params.to_reward, 0)
        return observation, state, reward, state.time >= state.lifetime, {}

    def is_truncated(self, state: State, params: Params) -> Array:
        return jnp.asarray(state.time >= params.limit)

    def action_space(self, params: Params) -> Any:
        return SimpleNamespace(low=LOW, high=HIGH, shape=(2,))

    def observation_space(self, params: Params) -> Any:
        return SimpleNamespace(shape=(5,))

    @staticmethod
    def _observe(state: State, action: Array) -> Array:
        numbers = jnp.stack([state.tag, state.time / 16, state.lifetime / 16])  # sixteenths are exact
        return jnp.concatenate([numbers, action])


@dataclass(frozen=True)
class Shielded(Plain):
    """The same with a shield."""

    def shield_distance(self, observation: Array, action: Array, params: Params) -> Array:
        return jnp.asarray(params.distance * (action[0] + 1))


@dataclass(frozen=True)
class Unwilling(Plain):
    """A shield that must not be asked."""

    def shield_distance(self, observation: Array, action: Array, params: Params) -> Array:
        raise AssertionError


@dataclass(frozen=True)
class Listening(Plain):
    """Remembers the keys that it is given."""

    heard: list[Array] = field(default_factory=list, compare=False)

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        self.heard.append(key)
        return jnp.zeros(5), State(jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    def step_env(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array, dict[Any, Any]]:
        self.heard.append(key)
        return jnp.zeros(5), state, jnp.zeros(()), jnp.zeros((), bool), {}


def make_program(environment: Plain, **fields: Any) -> Program:
    observed, actions = dimensions(environment, Params())
    encoder = make_encoder(EncoderConfig(k_max=2, d_k=4), WINDOW, observed)
    sac = SacConfig(buffer=80, learning_starts=LEARNING_STARTS, batch=BATCH, hidden=(8,), learning_rate=1e-2)
    return Program(Algorithm(encoder, sac.replace(**fields), actions), environment)


PROGRAM = make_program(Shielded())
FIRST_HEADS = PROGRAM.algorithm.encoder.first_mask, PROGRAM.algorithm.encoder.first_loud
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # compiles in half the time
begin = compiled(partial(start, PROGRAM))


def take_step(program: Program, params: Params, state: RunState) -> tuple[RunState, Record]:
    layout = Rows(program.algorithm.encoder)
    draws = jax.tree.map(lambda leaf: leaf[0], draw(program, layout, state, steps=1))
    return train_step(program, params, layout, state, draws)


step_one = compiled(partial(take_step, PROGRAM))
step_many = compiled(jax.vmap(partial(take_step, PROGRAM)))


@jax.jit
def drawn(replay: Replay, key: Array) -> Batch:
    return sample(replay, random_bits(key, 500), WINDOW, 2)


def typed(params: Params) -> Params:
    """One program for all of them."""
    whole = {"limit", "longest_life", "breaks_at"}
    return Params(*(np.asarray(x, np.int32 if name in whole else np.float32) for name, x in params._asdict().items()))


def started(seed: int, params: Params = SHORT) -> RunState:
    state: RunState = begin(typed(params), jax.random.key(seed), *FIRST_HEADS)
    return state


def trained(state: RunState, steps: int, params: Params = SHORT) -> tuple[list[RunState], Record]:
    """The states before and after each of the steps, and what the steps measured."""
    states, rows = [state], []
    for _ in range(steps):
        state, record = step_one(typed(params), state)
        states.append(state)
        rows.append(np.asarray(as_row(record)))
    return states, as_record(np.stack(rows))


@cache
def short_run() -> tuple[list[RunState], Record]:
    """Thirty updates."""
    return trained(started(0), LEARNING_STARTS + 30)


COUNT, BROKEN = 64, 3


@cache
def many_runs() -> tuple[list[RunState], Record]:
    """As many steps of runs side by side, one of which breaks."""
    each = [typed(SHORT._replace(breaks_at=2 if i == BROKEN else -1, to_reward=math.nan)) for i in range(COUNT)]
    params = jax.tree.map(lambda *x: np.stack(x), *each)
    state = jax.tree.map(lambda *x: jnp.stack(x), *map(started, range(COUNT)))
    states, records = [state], []
    for _ in range(LEARNING_STARTS + 30):
        state, record = step_many(params, state)
        states.append(state)
        records.append(record)
    return states, jax.tree.map(lambda *x: np.stack(x), *records)


def run_of(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda x: x[i], tree)


def taken(state: RunState) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Actions as they are stored and as the environment saw them, in order; of a replay that has not wrapped."""
    size = int(state.replay.size)
    frames, ages = np.asarray(state.replay.frames), np.asarray(state.replay.ages)
    steps = np.flatnonzero(ages[1:size])
    return np.asarray(unpacked(state.replay.actions, 2))[steps], frames[steps + 1][:, ACTION]


def same(one: Any, other: Any) -> bool:
    """Equal to the bit."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


# --- the course of a run ------------------------------------------------------------------------------------------


def test_a_run_starts_with_the_critic_as_its_target_and_two_different_values() -> None:
    state = started(0)
    learner = state.learner
    assert same(learner.learned.critic, learner.learned.target)
    assert not same(learner.learned.critic.encoder, learner.learned.actor.encoder)
    for layer in learner.learned.critic.values:
        assert not np.array_equal(layer.w[0], layer.w[1])
    np.testing.assert_array_equal(learner.learned.mask, [True, False])
    assert (float(learner.log_alpha), float(learner.multiplier)) == (0, 1)
    assert (int(state.step), int(state.cause), int(state.replay.size)) == (0, 0, 1)
    np.testing.assert_array_equal(state.context, [state.replay.frames[0]] * WINDOW)
    assert CAUSES[0] == ""


def test_steps_are_counted_and_learning_starts_when_it_should() -> None:
    states, record = short_run()
    assert [int(state.step) for state in states] == list(range(LEARNING_STARTS + 31))
    assert not any(int(state.cause) for state in states)
    np.testing.assert_array_equal(record.learning, [0] * LEARNING_STARTS + [1] * 30)
    for before, after in pairwise(states):
        for name in ("actor", "critic", "target"):
            learned = (getattr(state.learner.learned, name) for state in (before, after))
            assert same(*learned) == (int(before.step) < LEARNING_STARTS), (name, int(before.step))
        assert same(before.learner, after.learner) == (int(before.step) < LEARNING_STARTS)


def test_actions_are_uniform_before_learning_starts() -> None:
    states, _ = many_runs()
    found = [taken(run_of(states[LEARNING_STARTS], i))[0] for i in range(COUNT) if i != BROKEN]
    actions = np.concatenate(found)
    assert actions.shape == ((COUNT - 1) * LEARNING_STARTS, 2)
    for drawn in (actions[:, 0], actions[:, 1], actions.ravel()):
        assert kstest(drawn, "uniform", (-1, 2)).pvalue > 0.01
    assert np.mean(actions**2) == pytest.approx(1 / 3, abs=0.02)
    successive = np.concatenate([np.column_stack([one[:-1], one[1:]]) for one in found])
    correlation = np.asarray(np.corrcoef(successive.T))
    assert np.abs(correlation - np.eye(4)).max() < 0.08


def test_actions_are_the_actors_from_then_on() -> None:
    state = started(0)
    actor = state.learner.learned.actor
    actor = actor._replace(mean=actor.mean._replace(b=jnp.array([20.0, -20.0])))
    state = state._replace(learner=state.learner._replace(learned=state.learner.learned._replace(actor=actor)))
    states, _ = trained(state, LEARNING_STARTS + 5)
    actions, _ = taken(states[-1])
    assert (np.abs(actions[:LEARNING_STARTS]) < 1).all()
    np.testing.assert_array_equal(actions[LEARNING_STARTS:], [[1, -1]] * 5)


def test_the_actor_explores() -> None:
    """Two runs that differ in nothing but their keys act differently once they learn."""
    states, _ = short_run()
    state = states[LEARNING_STARTS]
    one, other = (step_one(typed(SHORT), each)[0] for each in (state, state._replace(key=started(1).key)))
    assert not np.array_equal(taken(one)[0][-1], taken(other)[0][-1])


def test_the_environment_sees_the_stored_action_in_its_own_bounds() -> None:
    states, _ = short_run()
    stored, seen = taken(states[-1])
    assert len(stored) == LEARNING_STARTS + 30
    np.testing.assert_allclose(stored * 511, np.round(stored * 511), atol=1e-4)
    np.testing.assert_allclose(seen, LOW + (stored + 1) / 2 * (HIGH - LOW), rtol=1e-6, atol=1e-6)


def test_totals_are_the_sums_of_the_rewards_of_each_episode() -> None:
    states, record = short_run()
    time = [round(16 * float(state.context[-1, TIME])) for state in states]
    total = 0.0
    episodes = 0
    for i, reward in enumerate(record.reward.tolist()):
        total += reward
        if time[i + 1] == 0:
            assert float(record.total[i]) == pytest.approx(total, rel=1e-5, abs=1e-5)
            total, episodes = 0.0, episodes + 1
        else:
            assert math.isnan(record.total[i])
        assert float(states[i + 1].total) == pytest.approx(total, rel=1e-5, abs=1e-5)
    assert episodes > 8


def test_the_replay_holds_the_rewards_in_order() -> None:
    states, record = short_run()
    replay = states[-1].replay
    steps = np.flatnonzero(np.asarray(replay.ages)[1 : int(replay.size)])
    # A compiler may make the reward twice, once for each, with other rounding.
    np.testing.assert_allclose(np.asarray(replay.rewards)[steps], record.reward, rtol=1e-5)


def test_the_run_acts_on_the_window_that_the_replay_remembers() -> None:
    states, _ = short_run()
    for state in states:
        latest = latest_contexts(recent(jax.device_get(state.replay), WINDOW), 1, WINDOW)
        np.testing.assert_array_equal(latest[0], np.ravel(state.context))


def test_ends_of_episodes_reach_the_replay_as_what_they_are() -> None:
    runs, _ = many_runs()
    draws = [drawn(run_of(runs[-1].replay, i), jax.random.key(0)) for i in range(COUNT) if i != BROKEN]
    batch: Batch = jax.tree.map(lambda *x: np.concatenate(x), *draws)
    now, then = batch.context[:, -1], batch.next_context[:, -1]
    times, lifetime = 16 * then[:, TIME], 16 * then[:, LIFETIME]
    # The observation after a step is of the same episode, also at its end.
    np.testing.assert_array_equal(now[:, [TAG, LIFETIME]], then[:, [TAG, LIFETIME]])
    np.testing.assert_array_equal(times, 16 * now[:, TIME] + 1)
    np.testing.assert_array_equal(batch.terminated, times == lifetime)
    kinds = set(zip(batch.terminated.tolist(), (times == 5).tolist(), strict=True))
    assert kinds == {(False, False), (True, False), (False, True), (True, True)}
    # A window begins with its episode.
    np.testing.assert_array_equal(batch.context[:, 0, TIME], np.maximum(now[:, TIME] - 2 / 16, 0))
    np.testing.assert_array_equal(batch.context[:, :, TAG], np.repeat(now[:, [TAG]], WINDOW, axis=1))


# --- draws --------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_run_twice_and_another_seed_another() -> None:
    states, record = short_run()
    again, recorded = trained(started(0), LEARNING_STARTS + 30)
    assert same(states, again)
    assert same(record, recorded)
    other = started(1)
    for name in ("key", "learner", "environment", "context"):
        assert not same(getattr(states[0], name), getattr(other, name)), name


@pytest.mark.parametrize("run", [0, 7])
def test_a_run_in_company_is_the_run_alone(run: int) -> None:
    alone, record = short_run() if run == 0 else trained(started(run), LEARNING_STARTS + 30)
    together, records = many_runs()
    company = [run_of(each, run) for each in together]
    # The random phase is the same to the bit.
    for one, other in zip(alone[: LEARNING_STARTS + 1], company, strict=False):
        for name in ("frames", "actions", "ages", "terminated", "size"):
            assert same(getattr(one.replay, name), getattr(other.replay, name)), name
        for name in ("key", "step", "learner", "environment", "context"):
            assert same(getattr(one, name), getattr(other, name)), name
    for x, y in zip(jax.tree.leaves(alone[-1].learner), jax.tree.leaves(company[-1].learner), strict=True):
        assert np.linalg.norm(np.subtract(x, y, dtype=float)) <= 1e-4 * np.linalg.norm(x)
    # The same figures under the same names, whether they went through a row or not.
    for name in ("reward", "total", "learning"):
        np.testing.assert_allclose(getattr(record, name), getattr(records, name)[:, run], rtol=1e-4, atol=1e-5)
    for name, row in record.losses._asdict().items():
        expected = getattr(records.losses, name)[LEARNING_STARTS:, run]
        np.testing.assert_allclose(row[LEARNING_STARTS:], expected, rtol=1e-3, atol=1e-4, err_msg=name)
    assert len({float(each[-1]) for each in record.losses}) >= 6  # a mix-up of figures would show


@pytest.mark.parametrize("block", [7, 50])
def test_a_step_draws_the_same_alone_and_among_others(block: int) -> None:
    environment, params = make_task(preset(task={"window": WINDOW, "tau_z": 5.0}).task)
    observed, actions = dimensions(environment, params)
    encoder = make_encoder(EncoderConfig(k_max=2, d_k=4), WINDOW, observed)
    program = Program(Algorithm(encoder, SacConfig(buffer=80, learning_starts=1), actions), environment)
    draws = jax.jit(partial(draw, program, Rows(encoder)), static_argnames="steps")
    state = start(program, params, jax.random.key(0), *FIRST_HEADS)
    many = draws(state, steps=block)
    for i in range(block):
        single = draws(state._replace(step=jnp.asarray(i, jnp.int32)), steps=1)
        for one, of_many in zip(jax.tree.leaves(single), jax.tree.leaves(many), strict=True):
            np.testing.assert_array_equal(one[0], of_many[i])


def test_no_key_serves_two_draws_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    state = jax.eval_shape(partial(start, PROGRAM), Params(), jax.random.key(0), *FIRST_HEADS)
    environment = Listening()
    program, heard = make_program(environment), environment.heard
    heard.clear()

    def listening(draws: Any, key: Array, *rest: Any, **options: Any) -> Any:
        heard.append(key)
        return draws(key, *rest, **options)

    for name in ("normal", "bits", "uniform"):
        monkeypatch.setattr(jax.random, name, partial(listening, getattr(jax.random, name)))
    jax.eval_shape(partial(take_step, program), Params(), state)
    assert len(heard) == len({id(key) for key in heard}) == 5  # act, step, reset, sample, noise


def test_checks_have_draws_of_their_own_at_every_step() -> None:
    states, _ = short_run()
    keys = [jax.random.key_data(check_key(state)) for state in states[:3]]
    used = [jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(states[0].key[0]), 0))]
    assert len({np.asarray(key).tobytes() for key in [*keys, *used]}) == 4
    assert same(jax.random.key_data(check_key(started(0))), keys[0])


# --- runs that break ----------------------------------------------------------------------------------------------


def visible(state: RunState) -> Any:
    """All of a run but what its replay holds beyond its records."""
    replay, size = state.replay, int(state.replay.size)
    records = (replay.frames[:size], replay.ages[:size])
    steps = (replay.actions[: size - 1], replay.rewards[: size - 1], replay.terminated[: size - 1])
    return jax.device_get((state._replace(replay=(size, records, steps)),))  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [10, LEARNING_STARTS + 4], ids=["before learning", "while learning"])
@pytest.mark.parametrize(
    "broken", [{"to_reward": math.nan}, {"to_reward": -math.inf}, {"to_observation": math.nan}], ids=str
)
def test_a_run_whose_environment_breaks_stops_where_it_was(step: int, broken: dict[str, float]) -> None:
    params = Params(breaks_at=step + 1, **broken)
    states, _ = trained(started(0, params), step + 4, params)
    for state in states[: step + 1]:
        assert int(state.cause) == 0
    last = states[step]
    assert int(last.step) == step
    assert int(last.replay.size) == step + 1
    for state in states[step + 1 :]:
        assert CAUSES[int(state.cause)] == "the environment's observation or reward is not finite"
        assert same(visible(state._replace(cause=last.cause)), visible(last))


def test_an_infinite_critic_loss_ends_the_run_before_anything_is_learned_from_it() -> None:
    params = Params(breaks_at=4, to_reward=1e30)
    states, _ = trained(started(0, params), LEARNING_STARTS + 12, params)
    causes = [int(state.cause) for state in states]
    at = causes.index(2)
    assert at > LEARNING_STARTS
    assert causes == [0] * at + [2] * (len(causes) - at)
    assert CAUSES[2] == "the critic's loss is not finite"
    for state in states[at:]:
        assert int(state.step) == at - 1
        assert same(state.learner, states[at - 1].learner)
        assert same(visible(state), visible(states[at]))


def test_an_actor_loss_that_is_not_finite_ends_the_run_and_leaves_the_actor() -> None:
    params = Params(distance=math.nan)
    states, _ = trained(started(0, params), LEARNING_STARTS + 4, params)
    assert [int(state.cause) for state in states] == [0] * (LEARNING_STARTS + 1) + [3] * 4
    assert CAUSES[3] == "the actor's loss is not finite"
    for state in states[LEARNING_STARTS + 1 :]:
        assert int(state.step) == LEARNING_STARTS
        assert same(state.learner.learned.actor, states[0].learner.learned.actor)
        assert same(state.learner.log_alpha, states[0].learner.log_alpha)
        assert same(visible(state), visible(states[LEARNING_STARTS + 1]))


def test_a_run_that_breaks_in_company_disturbs_no_other() -> None:
    states, _ = many_runs()
    causes = np.stack([state.cause for state in states])
    assert causes[1, BROKEN] == 0
    assert (causes[2:, BROKEN] == 1).all()
    assert not np.delete(causes, BROKEN, axis=1).any()
    np.testing.assert_array_equal(states[-1].step, np.where(np.arange(COUNT) == BROKEN, 1, LEARNING_STARTS + 30))


# --- shields ------------------------------------------------------------------------------------------------------


def test_the_shield_is_asked_for_distances_unless_there_is_none_or_no_penalty() -> None:
    state = jax.eval_shape(partial(start, PROGRAM), Params(), jax.random.key(0), *FIRST_HEADS)
    with pytest.raises(AssertionError):
        jax.eval_shape(partial(take_step, make_program(Unwilling())), Params(), state)
    for program in (make_program(Unwilling(), penalty=False), make_program(Plain())):
        jax.eval_shape(partial(take_step, program), Params(), state)


def test_distances_reach_the_multiplier() -> None:
    for distance, sign in ((1.0, 1), (0.0, -1)):
        params = Params(distance=distance)
        states, record = trained(started(0, params), LEARNING_STARTS + 2, params)
        assert np.sign(float(states[-1].learner.multiplier) - 1) == sign
        assert (record.losses.distance[-1] > 0) == (sign > 0)
