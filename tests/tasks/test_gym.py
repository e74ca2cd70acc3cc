"""The tasks as Gymnasium environments: checkers, seeds, parity with the functions, refusals."""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env

import incrt

NAMES = ["incrt/Recall-v0", "incrt/Actuators-v0"]
both = pytest.mark.parametrize("name", NAMES)
MAKERS: dict[str, Any] = dict(zip(NAMES, (incrt.recall_task, incrt.actuators_task), strict=True))


def small(name: str, **options: Any) -> gym.Env[Any, Any]:
    return gym.make(name, **{"channels": 2, "window": 3, "horizon": 6, **options}).unwrapped


def actions(count: int, channels: int = 2) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (count, channels)).astype(np.float32)


@both
@pytest.mark.parametrize("options", [{}, {"channels": 1, "window": 1, "noise": 0.1, "horizon": 5}])
def test_checkers_pass(name: str, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # Both checkers advise against unbounded or two-dimensional observations; that is advice, not failure.
        warnings.simplefilter("ignore")
        check_env(gym.make(name, **options).unwrapped)
        sb3_check_env(gym.make(name, **options).unwrapped)


@both
def test_make_finds_it_in_a_fresh_process_without_an_import(name: str) -> None:
    program = f"import gymnasium; print(gymnasium.make('incrt:{name}', channels=2).observation_space.shape)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("(8, 4)" if "Recall" in name else "(8, 6)")


@both
@pytest.mark.parametrize(("channels", "window", "noise", "horizon"), [(2, 3, 0.0, 12), (1, 5, 0.2, 7)])
def test_it_is_the_functional_task_step_by_step(
    name: str, channels: int, window: int, noise: float, horizon: int
) -> None:
    task, params = MAKERS[name](channels, window, noise=noise, horizon=horizon)
    env = small(name, channels=channels, window=window, noise=noise, horizon=horizon)
    reset_key, steps_key = jax.random.split(jax.random.key(int(np_random(7)[0].integers(2**31))))
    observation, state = task.reset_env(reset_key, params)
    context, info = env.reset(seed=7)
    seen = [np.asarray(observation)] * window
    assert info == {}
    for t, action in enumerate(actions(horizon, channels)):
        np.testing.assert_allclose(context, seen[-window:], atol=1e-6)
        key = jax.random.fold_in(steps_key, t)
        observation, state, expected, *_ = task.step_env(key, state, action, params)
        seen.append(np.asarray(observation))
        context, reward, terminated, truncated, info = env.step(action)
        assert reward == pytest.approx(float(expected), rel=1e-5, abs=1e-6)
        assert (terminated, truncated, info) == (False, t == horizon - 1, {})
    np.testing.assert_allclose(context, seen[-window:], atol=1e-6)
    assert context.dtype == np.float32


@both
def test_same_seed_same_episodes(name: str) -> None:
    def episodes(seed: int) -> np.ndarray:
        env = small(name, noise=0.1)
        found = []
        for again in (seed, None):
            found.append(env.reset(seed=again)[0])
            found += [env.step(action)[0] for action in actions(6)]
        return np.array(found)[..., -4:]  # the events; actuators may well stand at the same stops

    first, second, other = episodes(3), episodes(3), episodes(4)
    np.testing.assert_array_equal(first, second)
    assert np.all(first != other)
    assert np.all(first[:7] != first[7:]), "successive episodes are the same"


@both
@pytest.mark.parametrize("started", [False, True])
def test_a_pickled_environment_goes_on_where_it_was(name: str, started: bool) -> None:
    env = small(name, noise=0.1)
    if started:
        env.reset(seed=0)
        env.step(actions(1)[0])
    copy = pickle.loads(pickle.dumps(env))  # noqa: S301
    if not started:
        np.testing.assert_array_equal(env.reset(seed=1)[0], copy.reset(seed=1)[0])
    for action in actions(3):
        (context, reward, *_), (same, equal, *_) = env.step(action), copy.step(action)
        np.testing.assert_array_equal(context, same)
        assert reward == equal


@both
def test_what_is_beyond_the_actions_is_cut(name: str) -> None:
    rewards = []
    for size in (1, 50):
        env = small(name)
        env.reset(seed=0)
        rewards.append(env.step(np.array([size, -size], np.float32))[1])
    assert rewards[0] == rewards[1]


@both
def test_observations_are_not_overwritten_later(name: str) -> None:
    env = small(name)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    env.step(actions(1)[0])
    np.testing.assert_array_equal(first, kept)


@both
@pytest.mark.filterwarnings("ignore:.*render_modes")  # Stable-Baselines3 asks for pictures, which there are none of
def test_it_can_be_made_again_and_vectorised(name: str) -> None:
    spec = small(name).spec
    assert spec is not None
    assert gym.make(spec, render_mode=None).observation_space == small(name).observation_space
    assert np.asarray(make_vec_env(name, 2, env_kwargs={"window": 4}).reset()).shape[:2] == (2, 4)
    assert gym.make_vec(name, 2, window=5).reset(seed=0)[0].shape[:2] == (2, 5)


@both
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"channels": 0}, ValueError, "channels must be a whole number >= 1"),
        ({"window": 1.5}, ValueError, "window must be a whole number >= 1"),
        ({"noise": -1}, ValueError, "noise must be a number >= 0"),
        ({"horizon": None}, ValueError, "horizon must be a number, got None"),
        ({"gravity": 9.81}, TypeError, "unknown option gravity; accepted: channels, window, noise, horizon"),
        ({"render_mode": "human"}, TypeError, "unknown option render_mode; accepted: "),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render_modes")
def test_a_bad_option_is_refused(name: str, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        small(name, **options)


@both
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.array([0, np.nan]), "action must be finite numbers"),
        (np.zeros(3), r"action must have shape \(2,\), got \(3,\)"),
    ],
)
def test_a_bad_action_is_refused_and_costs_nothing(name: str, action: np.ndarray, message: str) -> None:
    env, undisturbed = small(name), small(name)
    for each in (env, undisturbed):
        each.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    np.testing.assert_array_equal(env.step(actions(1)[0])[0], undisturbed.step(actions(1)[0])[0])


@both
def test_a_bad_reset_option_is_refused_and_the_seed_stays(name: str) -> None:
    env, undisturbed = small(name), small(name)
    for each in (env, undisturbed):
        each.reset(seed=0)
    with pytest.raises(ValueError, match="unknown reset option payload; none is accepted"):
        env.reset(seed=9, options={"payload": 1.0})
    np.testing.assert_array_equal(env.reset()[0], undisturbed.reset()[0])


@both
def test_step_before_reset_and_after_the_end_is_refused(name: str) -> None:
    env = small(name, horizon=1)
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(actions(1)[0])
        env.reset(seed=0)
        env.step(actions(1)[0])
