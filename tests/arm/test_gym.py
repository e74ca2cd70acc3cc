"""The Gymnasium environment: checkers, seeds, parity with the functional one, refusals."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from tasks import preset_task

from incrt.arm.gym import StribeckEnv
from incrt.arm.robots import DecoupledArm
from incrt.arm.task import make_task

ARM = """
import jax, jax.numpy as jnp
from typing import NamedTuple

class Arm(NamedTuple):
    inertia: jax.Array = jnp.full(2, {inertia})
    dof = 2

    def mass_and_bias(self, q, dq, payload):
        return self.inertia, jnp.zeros_like(dq)
"""


def make(**fields: Any) -> gym.Env[Any, Any]:
    return gym.make("incrt/Stribeck-v0", **fields)


@pytest.mark.parametrize(
    "fields", [{}, {"preset": "paper", "tau_z": 2, "window": 50}, {"robot": "two_link", "trajectory": "two_tone"}]
)
def test_checkers_pass(fields: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # Both checkers advise against unbounded or two-dimensional observations; that is advice, not failure.
        warnings.simplefilter("ignore")
        check_env(make(render_mode="rgb_array", **fields).unwrapped)
        sb3_check_env(make(**fields).unwrapped)


def test_make_finds_it_in_a_fresh_process_without_an_import() -> None:
    program = "import gymnasium; print(gymnasium.make('incrt:incrt/Stribeck-v0', window=7).observation_space.shape)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(7, 11)"


def test_fields_reach_the_configuration() -> None:
    env = make(preset="paper", tau_z=2.0, window=50, torque_limit=(60, 40)).unwrapped
    assert isinstance(env, StribeckEnv)
    assert env.config == preset_task("paper", tau_z=2.0, window=50, torque_limit=(60, 40))
    assert env.observation_space.shape == (50, 11)
    assert env.action_space.shape == (6,)


def episode(seed: int, **fields: Any) -> tuple[np.ndarray, np.ndarray]:
    env = make(horizon=60, **fields)
    rng = np.random.default_rng(0)
    obs, _ = env.reset(seed=seed)
    observations, rewards = [obs], []
    truncated = False
    while not truncated:
        obs, reward, terminated, truncated, _ = env.step(rng.uniform(-1, 1, 6).astype(np.float32))
        assert not terminated
        observations.append(obs)
        rewards.append(reward)
    return np.asarray(observations), np.asarray(rewards)


@pytest.mark.parametrize("fields", [{}, {"noise_velocity": 0.1}])
def test_same_seed_same_episode(fields: dict[str, Any]) -> None:
    first, second, other = episode(7, **fields), episode(7, **fields), episode(8, **fields)
    assert len(first[1]) == 60
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
    assert not np.array_equal(first[0], other[0])


def test_successive_episodes_differ() -> None:
    env = make()
    payloads = {env.reset(seed=3)[1]["payload"], env.reset()[1]["payload"], env.reset()[1]["payload"]}
    assert len(payloads) == 3


def test_environment_and_vmapped_task_give_the_same_trajectory() -> None:
    config = preset_task("memory", horizon=200, initial_std=0.0, payload_std=0.0)
    task, params = make_task(config)
    payloads = np.linspace(0, 1.5, 4)
    actions = np.random.default_rng(1).uniform(-1, 1, (200, 6)).astype(np.float32)

    def functional(payload: jnp.ndarray) -> tuple[Any, Any]:
        observation, state = task.start(jax.random.key(0), params, payload)

        def step(state: Any, action: jnp.ndarray) -> tuple[Any, tuple[Any, Any]]:
            obs, state, reward, _, _ = task.step_env(jax.random.key(0), state, action, params)
            return state, (obs, reward)

        return observation, jax.lax.scan(step, state, jnp.asarray(actions))[1]

    first, (observations, rewards) = jax.jit(jax.vmap(functional))(jnp.asarray(payloads, jnp.float32))
    env = make(horizon=200, initial_std=0.0, payload_std=0.0, window=3)
    for i, payload in enumerate(payloads):
        context, info = env.reset(options={"payload": payload})
        assert info["payload"] == pytest.approx(payload)
        np.testing.assert_allclose(context, np.tile(first[i], (3, 1)), atol=1e-6)
        stream = [np.asarray(first[i])] * 3
        for t, action in enumerate(actions):
            context, reward, _, truncated, _ = env.step(action)
            stream.append(np.asarray(observations[i, t]))
            np.testing.assert_allclose(context, stream[-3:], atol=1e-6)
            assert reward == pytest.approx(float(rewards[i, t]), rel=1e-5, abs=1e-6)
        assert truncated


def test_info_tells_error_torque_and_shield() -> None:
    env = make()
    env.reset(seed=0)
    context, _, _, _, info = env.step(np.zeros(6, np.float32))
    np.testing.assert_allclose(info["e"], context[-1, 4:6] - context[-1, :2], atol=1e-6)
    assert info["torque"].shape == (2,)
    assert info["shield_active"] is False
    assert info["shield_feasible"] is True
    assert info["shield_distance"] == 0.0


def test_info_tells_when_the_shield_steps_in() -> None:
    """The softest gains with the feed-forward at its bound drive the arm away until the shield corrects them."""
    env = make()
    env.reset(seed=0)
    action = np.array([-1, -1, -1, -1, 1, 1], np.float32)
    infos = [env.step(action)[-1] for _ in range(400)]
    active = np.array([info["shield_active"] for info in infos])
    distance = np.array([info["shield_distance"] for info in infos])
    assert active.any()
    assert not active.all()
    assert np.array_equal(active, distance > 0)


def test_noise_is_fresh_and_tells_nothing_of_the_payload() -> None:
    env = make(noise_position=0.1, initial_std=0.0, window=1)
    firsts, payloads = [], []
    zero = np.zeros(6, np.float32)
    for seed in range(200):
        start, info = env.reset(seed=seed)
        after = env.step(zero)[0]
        firsts.append([start[0, 0], start[0, 1], after[0, 0], after[0, 1]])
        payloads.append(info["payload"])
    correlation = np.corrcoef(np.column_stack([firsts, payloads]).T)
    assert np.abs(correlation - np.eye(5)).max() < 0.25
    positions = np.array([env.step(zero)[0][0, :2] for _ in range(100)])
    jitter = np.diff(positions, n=2, axis=0).std()  # second differences leave the noise and take away the motion
    assert jitter == pytest.approx(0.1 * np.sqrt(6), rel=0.3)


@pytest.mark.parametrize("started", [False, True])
def test_a_pickled_environment_goes_on_where_it_was(started: bool) -> None:
    env = StribeckEnv(noise_velocity=0.1, render_mode="rgb_array")
    if started:
        env.reset(seed=0)
        env.step(np.zeros(6, np.float32))
        env.render()
    copy = pickle.loads(pickle.dumps(env))  # noqa: S301
    if not started:
        assert np.array_equal(env.reset(seed=1)[0], copy.reset(seed=1)[0])
    for _ in range(3):
        assert np.array_equal(env.step(np.ones(6, np.float32))[0], copy.step(np.ones(6, np.float32))[0])


def test_a_worker_started_afresh_runs_it() -> None:
    envs = gym.make_vec(
        "incrt:incrt/Stribeck-v0", 1, vectorization_mode="async", vector_kwargs={"context": "spawn"}, window=3
    )
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (1, 3, 11)
    assert envs.step(envs.action_space.sample())[0].shape == (1, 3, 11)
    envs.close()


def test_an_unstable_loop_is_reported_and_not_learned_from() -> None:
    env = StribeckEnv(dt=0.3)
    env.reset(seed=0)

    def episode() -> None:
        for _ in range(500):
            env.step(np.ones(6, np.float32))

    with pytest.raises(FloatingPointError, match="the arm diverged at step"):
        episode()


def test_observations_are_not_overwritten_later() -> None:
    env = make()
    obs, _ = env.reset(seed=0)
    kept = obs.copy()
    env.step(np.ones(6, np.float32))
    assert np.array_equal(obs, kept)


def test_render_draws_the_arm_and_changes_as_it_moves() -> None:
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    first = np.asarray(env.render())
    for _ in range(50):
        env.step(np.zeros(6, np.float32))
    last = np.asarray(env.render())
    assert first.shape == last.shape
    assert first.dtype == np.uint8
    assert first.shape[-1] == 3
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 10
    assert np.any(first != last)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.full(6, np.nan), "action must be finite"),
        (np.array([0, 0, 0, 0, 0, np.inf]), "action must be finite"),
        (np.zeros(5), r"action must have shape \(6,\), got \(5,\)"),
        (np.zeros((1, 6)), r"action must have shape \(6,\), got \(1, 6\)"),
    ],
)
def test_a_bad_action_is_refused_and_costs_nothing(action: np.ndarray, message: str) -> None:
    env = StribeckEnv()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    after_refusal = env.step(np.zeros(6, np.float32))[0]
    env.reset(seed=0)
    assert np.array_equal(after_refusal, env.step(np.zeros(6, np.float32))[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"preset": "huge"}, "preset must be one of memory, paper"),
        ({"tau_z": 0}, "tau_z must be a number > 0"),
        ({"window": 0}, "window must be a whole number >= 1"),
        ({"k_d_range": (40, 20)}, r"k_d_range must be \(min, max\)"),
        ({"gravity": 9.81}, "unknown field gravity; accepted: "),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array'"),
    ],
)
def test_a_bad_field_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StribeckEnv(**fields)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"payload": 2.0}, r"payload must be a number in \[0.0, 1.5\] kg, got 2.0"),
        ({"payload": -0.1}, "payload must be a number in"),
        ({"payload": float("nan")}, "payload must be a number in"),
        ({"payload": None}, "payload must be a number in"),
        ({"payload": "heavy"}, "payload must be a number in"),
        ({"mass": 1.0}, "unknown reset option mass; accepted: payload"),
    ],
)
def test_a_bad_reset_option_is_refused_and_the_episode_goes_on(options: dict[str, Any], message: str) -> None:
    env = StribeckEnv()
    env.reset(seed=0)
    env.step(np.zeros(6, np.float32))
    with pytest.raises(ValueError, match=message):
        env.reset(seed=9, options=options)
    env.step(np.zeros(6, np.float32))
    undisturbed = StribeckEnv()
    undisturbed.reset(seed=0)
    assert np.array_equal(env.reset()[0], undisturbed.reset()[0]), "a refused reset must not reseed"


def test_step_before_reset_and_after_the_end_is_refused() -> None:
    env = StribeckEnv(horizon=1)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(np.zeros(6, np.float32))
    env.reset(seed=0)
    env.step(np.zeros(6, np.float32))
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(np.zeros(6, np.float32))


def test_a_robot_whose_class_was_written_anew_is_another_one() -> None:
    """As in a notebook: the same name and numbers, and another mass matrix; no compiled step of the first may serve."""

    def moved(factor: float) -> np.ndarray:
        class Arm(DecoupledArm):
            def mass_and_bias(self, q: jax.Array, dq: jax.Array, payload: jax.Array) -> tuple[jax.Array, jax.Array]:
                return factor * self.inertia, jnp.zeros_like(dq)

        env = StribeckEnv(robot=Arm(jnp.ones(2), jnp.ones(2)), shield=False, initial_std=0.0)
        env.reset(seed=0)
        for _ in range(5):
            context, *_ = env.step(np.ones(6, np.float32))
        return context[-1, :2]

    assert np.abs(moved(1.0) - moved(5.0)).max() > 1e-3


@pytest.mark.parametrize(("name", "part"), [("arm.py:Arm", "robot"), ("points.csv", "trajectory")])
def test_a_file_that_was_changed_makes_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, part: str
) -> None:
    monkeypatch.chdir(tmp_path)

    def reward(number: float) -> float:
        Path("arm.py").write_text(ARM.format(inertia=number))
        Path("points.csv").write_text(f"t,q1,q2\n0,0,0\n1,{number},0\n")
        env = StribeckEnv(**{part: name}, shield=False, initial_std=0.0)
        env.reset(seed=0)
        return [env.step(np.ones(6, np.float32))[1] for _ in range(5)][-1]

    assert reward(1.0) != reward(2.0)
