"""The wrapper that gives any environment with flat observations a window of them."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env

import incrt
from incrt.arm.gym import StribeckEnv
from incrt.env import ContextWindow


class Counter(gym.Env[Any, Any]):
    """Observes how many steps were taken since it was made."""

    def __init__(self, space: spaces.Space[Any] | None = None) -> None:
        self.observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64) if space is None else space
        self.action_space = spaces.Discrete(2)
        self._count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.array([self._count, -self._count], float), {"reset": True}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._count += 1
        return np.array([self._count, -self._count], float), 0.5, self._count % 7 == 0, False, {}


@given(window=st.integers(1, 6), steps=st.integers(0, 12))
def test_a_context_holds_the_latest_observations_of_its_episode(window: int, steps: int) -> None:
    env = ContextWindow(Counter(), window)
    context, info = env.reset(seed=0)
    assert info == {"reset": True}
    seen = [0] * window
    for count in range(1, steps + 1):
        np.testing.assert_array_equal(context[:, 0], seen)
        np.testing.assert_array_equal(context[:, 1], -np.array(seen))
        context, reward, terminated, _, _ = env.step(0)
        seen = [*seen[1:], count]
        assert reward == 0.5
        if terminated:
            np.testing.assert_array_equal(context[:, 0], seen)
            context, _ = env.reset()
            seen = [count] * window
    assert context.shape == env.observation_space.shape == (window, 2)


def test_a_context_is_a_copy() -> None:
    env = ContextWindow(Counter(), 3)
    first, _ = env.reset()
    env.step(0)
    np.testing.assert_array_equal(first[:, 0], [0, 0, 0])


@pytest.mark.filterwarnings("ignore:.*WARN")  # of what Pendulum-v1 is, and that it is wrapped
def test_gymnasium_accepts_it_and_can_make_it_again() -> None:
    env = ContextWindow(gym.make("Pendulum-v1"), window=5)
    check_env(env, skip_render_check=True)
    assert env.spec is not None
    again = gym.make(env.spec)
    assert again.observation_space == env.observation_space
    assert isinstance(env.observation_space, spaces.Box)
    assert env.observation_space.shape == (5, 3)
    np.testing.assert_array_equal(env.reset(seed=3)[0], again.reset(seed=3)[0])


def test_it_serves_as_a_wrapper_class_of_vectorised_environments() -> None:
    env = make_vec_env("Pendulum-v1", 3, wrapper_class=ContextWindow, wrapper_kwargs={"window": 4})
    assert np.asarray(env.reset()).shape == (3, 4, 3)
    assert incrt.env.ContextWindow is ContextWindow


@pytest.mark.parametrize(
    ("env", "window", "message"),
    [
        (
            Counter(spaces.Discrete(3)),
            8,
            r"must be a flat Box, got Discrete\(3\); .*FlattenObservation makes one of it",
        ),
        (Counter(spaces.Box(0, 1, (4, 4, 3))), 8, r"must be flat, got shape \(4, 4, 3\); .*FlattenObservation first"),
        (StribeckEnv(), 8, r"got shape \(20, 11\); one that is a window \(W, d\) already needs no ContextWindow"),
        (make_vec_env("Pendulum-v1"), 8, r"must be a gymnasium.Env, got DummyVecEnv; .*wrapper_class="),
        (Counter(), 0, "window must be a whole number >= 1"),
        (Counter(), 2.5, "window must be a whole number >= 1 .*got 2.5"),
    ],
)
def test_what_has_no_flat_observations_is_refused_with_what_to_do(env: Any, window: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContextWindow(env, window)


def test_what_the_messages_advise_works() -> None:
    env = ContextWindow(FlattenObservation(Counter(spaces.Box(0, 1, (2, 3), np.float32))), 4)
    assert env.observation_space.shape == (4, 6)
