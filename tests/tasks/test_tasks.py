"""Recall and actuators against loops that say literally what their pages say, and what is known of their errors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import incrt
from incrt.engine.environment import dimensions
from incrt.tasks import actuators, recall

Floats = npt.NDArray[np.float64]
MAKERS = [incrt.recall_task, incrt.actuators_task]
STEPS = 20
sizes = {  # few enough that their programs are soon compiled, with windows that an episode does not fill
    "channels": st.integers(1, 3),
    "window": st.sampled_from([1, 2, 7, 30]),
    "seed": st.integers(0, 2**31 - 1),
}


def episode(task: Any, params: Any, seed: int, policy: Callable[[Any, Any], Any], steps: int = STEPS) -> Any:
    """States and observations, the first ones included, and the actions, rewards and other answers of each step.

    ``policy`` gives the action for a state and a random key.
    """
    reset_key, steps_key = jax.random.split(jax.random.key(seed))
    observation, state = task.reset_env(reset_key, params)

    def step(state: Any, key: Any) -> Any:
        action_key, step_key = jax.random.split(key)
        action = policy(state, action_key)
        observation, after, reward, terminated, _ = task.step_env(step_key, state, action, params)
        return after, (after, observation, action, reward, terminated, task.is_truncated(after, params))

    _, (states, observations, *rest) = jax.lax.scan(step, state, jax.random.split(steps_key, steps))

    def joined(first: Any, later: Any) -> Any:
        return jnp.concatenate([first[None], later])

    return jax.tree.map(joined, state, states), joined(observation, observations), *rest


def at_random(task: Any) -> Callable[[Any, Any], Any]:
    return lambda _, key: jax.random.uniform(key, (task.channels,), minval=-1.0, maxval=1.0)


@partial(jax.jit, static_argnums=0)
def random_episode(task: Any, params: Any, seed: Any) -> Any:
    """One with actions that are drawn."""
    return episode(task, params, seed, at_random(task))


def mean_error(task: Any, params: Any, policy: Callable[[Any, Any], Any], episodes: int = 400) -> float:
    """Squared error a channel, over whole episodes."""

    def rewards(seed: Any) -> Any:
        return episode(task, params, seed, policy, task.horizon)[3]

    found: Any = jax.jit(jax.vmap(rewards))(jnp.arange(episodes))
    return -float(jnp.mean(found)) / int(task.channels)


def literal_values(drawn: Floats, window: int) -> Floats:
    """For each step and channel the value with the largest key; ``drawn`` has the keys and values of each step."""
    channels = drawn.shape[1] // 2
    past = [drawn[0]] * window
    found = []
    for now, latest in enumerate(drawn):
        if now > 0:
            past = [*past[1:], latest]
        values = []
        for i in range(channels):
            best = past[0]
            for row in past:
                if row[i] > best[i]:
                    best = row
            values.append(best[channels + i])
        found.append(values)
    return np.array(found)


@given(**sizes)
def test_recall_is_what_its_page_says(channels: int, window: int, seed: int) -> None:
    task, params = incrt.recall_task(channels, window, horizon=STEPS)
    states, observations, actions, rewards, *_ = jax.device_get(random_episode(task, params, seed))
    assert observations.shape == (STEPS + 1, 2 * channels)
    assert np.abs(observations).max() <= 1
    wanted = literal_values(observations, window)
    np.testing.assert_array_equal(jax.vmap(task.wanted)(states), wanted.astype(np.float32))
    expected = [-sum((actions[t, i] - wanted[t, i]) ** 2 for i in range(channels)) for t in range(STEPS)]
    np.testing.assert_allclose(rewards, expected, rtol=1e-5, atol=1e-6)


@given(**sizes)
def test_actuators_are_what_their_page_says(channels: int, window: int, seed: int) -> None:
    task, params = incrt.actuators_task(channels, window, horizon=STEPS)
    states, observations, actions, rewards, *_ = jax.device_get(random_episode(task, params, seed))
    assert observations.shape == (STEPS + 1, 3 * channels)
    loads = literal_values(observations[:, channels:], window)
    x = observations[0, :channels].tolist()
    wanted, expected = [], []
    for t in range(STEPS + 1):
        np.testing.assert_allclose(observations[t, :channels], x, atol=1e-5)
        wanted.append([(loads[t, i] - 0.8 * x[i]) / 1.8 for i in range(channels)])
        if t < STEPS:
            x = [max(-1, min(1, 0.8 * x[i] + 1.8 * actions[t, i] - loads[t, i])) for i in range(channels)]
            expected.append(-sum(error**2 for error in x))
    np.testing.assert_allclose(rewards, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(task.wanted)(states), wanted, atol=1e-5)


@pytest.mark.parametrize("make", MAKERS)
def test_the_first_events_fill_the_window(make: Any) -> None:
    task, params = make(3, 5)
    observation, state = task.reset_env(jax.random.key(0), params)
    np.testing.assert_array_equal(state.drawn, np.tile(observation[-6:], (5, 1)))
    again, _ = task.reset_env(jax.random.key(1), params)
    assert np.all(observation != again)


@pytest.mark.parametrize("make", MAKERS)
def test_an_episode_ends_by_its_time_limit_alone(make: Any) -> None:
    task, params = make(2, 3, horizon=7)
    *_, terminated, truncated = episode(task, params, 0, at_random(task), 8)
    assert terminated.tolist() == [False] * 8
    assert truncated.tolist() == [False] * 6 + [True] * 2


def test_noise_of_recall_is_added_to_what_is_seen_and_to_nothing_else() -> None:
    (task, clear), (_, noisy) = incrt.recall_task(2, 4), incrt.recall_task(2, 4, noise=0.3)
    plain, blurred = (episode(task, params, 5, at_random(task), 2000) for params in (clear, noisy))
    jax.tree.map(np.testing.assert_array_equal, plain[0], blurred[0])
    np.testing.assert_array_equal(plain[3], blurred[3])
    added = np.asarray(blurred[1] - plain[1])
    np.testing.assert_allclose(added.std(axis=0), 0.3, rtol=0.1)
    np.testing.assert_allclose(np.corrcoef(added.T), np.eye(4), atol=0.1)


@pytest.mark.parametrize(("make", "noise"), [(MAKERS[0], 0.0), (MAKERS[0], 0.2), (MAKERS[1], 0.0)])
def test_the_wanted_action_leaves_no_error(make: Any, noise: float) -> None:
    task, params = make(3, 8, noise=noise)
    assert mean_error(task, params, lambda state, _: task.wanted(state), 20) == pytest.approx(0, abs=1e-9)


def test_the_wanted_action_leaves_actuators_the_noise_alone() -> None:
    task, params = incrt.actuators_task(3, 8, noise=0.1)
    assert mean_error(task, params, lambda state, _: task.wanted(state)) == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("window", [1, 8])
def test_knowing_nothing_leaves_the_variance_of_a_value(window: int) -> None:
    task, params = incrt.recall_task(2, window)
    assert mean_error(task, params, lambda *_: jnp.zeros(2)) == pytest.approx(recall.KNOWING_NOTHING, abs=0.01)
    moved, numbers = incrt.actuators_task(2, window)
    error = mean_error(moved, numbers, lambda state, _: -actuators.A * state.position / actuators.FORCE)
    assert error == pytest.approx(actuators.KNOWING_NOTHING, abs=0.01)


@pytest.mark.parametrize(("window", "least"), [(4, 0.22), (8, 0.18), (16, 0.15)])
def test_feedback_without_sensors_comes_no_further_than_is_said(window: int, least: float) -> None:
    task, params = incrt.actuators_task(1, window)

    def error(c: Any) -> Any:
        def rewards(seed: Any) -> Any:
            feedback = lambda state, _: (c - actuators.A) * state.position / actuators.FORCE  # noqa: E731
            return episode(task, params, seed, feedback, task.horizon)[3]

        return -jnp.mean(jax.vmap(rewards)(jnp.arange(400)))

    errors = jax.jit(jax.vmap(error))(jnp.linspace(-0.95, 0.95, 39))
    assert float(errors.min()) == pytest.approx(least, abs=0.01)


@pytest.mark.parametrize("window", [1, 4, 8])
def test_a_load_acts_again_as_often_as_is_said(window: int) -> None:
    task, params = incrt.actuators_task(1, window, horizon=100)

    def again(seed: Any) -> Any:
        states = episode(task, params, seed, at_random(task), task.horizon)[0]
        loads = jax.vmap(task.wanted)(states._replace(position=jnp.zeros_like(states.position)))
        return (loads[1:] == loads[:-1])[window:]  # the filled window is no stationary one

    found = float(jnp.mean(jax.jit(jax.vmap(again))(jnp.arange(400))))
    assert found == pytest.approx((window - 1) / (window + 1), abs=0.01)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_wanted_action_is_just_reached_from_a_stop(side: float) -> None:
    task, params = incrt.actuators_task(1, 2)
    state = actuators.State(jnp.array([[0.0, side], [-1.0, 0.0]]), jnp.array([-side]), jnp.array(0))
    assert task.wanted(state).tolist() == pytest.approx([side])
    _, after, reward, *_ = task.step_env(jax.random.key(0), state, jnp.array([side]), params)
    assert after.position.tolist() == pytest.approx([0], abs=1e-6)
    assert float(reward) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("make", "observed"), [(incrt.recall_task, 6), (incrt.actuators_task, 9)])
def test_the_engine_takes_it_and_equal_tasks_share_a_program(make: Any, observed: int) -> None:
    task, params = make(3, 8)
    assert dimensions(task, params) == (observed, 3)

    def run(window: int, noise: float) -> incrt.Run:
        task, params = make(3, window, noise=noise)
        return incrt.Run(0, task, params, window=8)

    assert run(8, 0.0).program() == run(8, 0.1).program()
    assert run(8, 0.0).program() != run(7, 0.0).program()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("channels", "window", "more", "message"),
    [
        (0, 8, {}, "channels must be a whole number >= 1 .*got 0"),
        (2.5, 8, {}, "channels must be a whole number"),
        (2, "long", {}, "window must be a number, got 'long'"),
        (2, 0, {}, "window must be a whole number >= 1"),
        (2, 8, {"noise": -0.1}, "noise must be a number >= 0"),
        (2, 8, {"noise": float("nan")}, "noise must be a number >= 0"),
        (2, 8, {"horizon": 0}, "horizon must be a whole number >= 1"),
    ],
)
def test_what_makes_no_task_is_refused(make: Any, channels: Any, window: Any, more: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(channels, window, **more)
