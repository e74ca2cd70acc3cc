"""The functional environment: gymnax's convention, contexts, random streams."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper
from own_robots import Pendulum
from scipy.stats import kstest, spearmanr
from tasks import preset_task

from incrt.arm.gymnax import StribeckGymnax
from incrt.arm.task import Params, Task, make_task
from incrt.config import TaskConfig
from incrt.controllers.classical import Constant
from incrt.controllers.evaluation import rollout
from incrt.heads.context import first_context, next_context

reset, step_env, apply = (
    jax.jit(function, static_argnums=0) for function in (Task.reset_env, Task.step_env, Task.apply)
)


@pytest.fixture(scope="module")
def made() -> tuple[Task, Params]:
    return make_task(preset_task("memory", horizon=5))


def test_step_and_reset_follow_gymnax(made: tuple[Task, Params]) -> None:
    task, params = made
    key = jax.random.key(0)
    obs, state = reset(task, key, params)
    assert obs.shape == task.observation_space(params).shape == (11,)
    assert task.action_space(params).shape == (task.num_actions,) == (6,)
    obs, state, reward, terminated, info = step_env(task, key, state, jnp.zeros(6), params)
    assert (obs.shape, reward.shape, terminated.shape) == ((11,), (), ())
    assert float(reward) < 0
    assert float(info["discount"]) == 1.0


def test_an_episode_ends_by_its_time_limit_alone(made: tuple[Task, Params]) -> None:
    task, params = made
    obs, state = reset(task, jax.random.key(0), params)
    for step in range(1, 6):
        obs, state, _, terminated, _ = step_env(task, jax.random.key(step), state, jnp.zeros(6), params)
        assert not terminated
        assert bool(task.is_truncated(state, params)) == (step == 5)
    assert float(obs[-1]) == 1.0


@pytest.mark.parametrize("wrapper", [LogWrapper, FlattenObservationWrapper])
def test_gymnaxs_wrappers_run_on_it(wrapper: Any) -> None:
    env = wrapper(StribeckGymnax(preset_task("memory", horizon=5)))
    params = env.default_params
    key = jax.random.key(0)
    obs, state = env.reset(key, params)
    for step in range(1, 7):
        action = env.action_space(params).sample(key)
        obs, state, reward, terminated, truncated, info = env.step(key, state, action, params)
        assert not terminated
        assert bool(truncated) == (step == 5)
    assert obs.shape == env.observation_space(params).shape
    assert float(reward) < 0
    if wrapper is LogWrapper:
        assert float(info["returned_episode_lengths"]) == 5


def test_gymnaxs_own_driver_gives_the_same_step(made: tuple[Task, Params]) -> None:
    """gymnax does the automatic reset around it: the observation it gives after the last step is the next episode's."""
    task, params = made
    _, state = reset(task, jax.random.key(3), params)
    driver = StribeckGymnax(preset_task("memory", horizon=5))
    for step in range(6):
        key, action = jax.random.key(step), jnp.linspace(-1, 1, 6)
        obs, after, reward, terminated, truncated, _ = driver.step(key, state, action, params)
        ours = step_env(task, key, state, action, params)
        np.testing.assert_allclose(reward, ours[2], rtol=1e-6)
        assert not terminated
        assert bool(truncated) == bool(task.is_truncated(ours[1], params)) == (step == 4)
        if truncated:
            assert int(after.time) == 0
            assert after.payload != state.payload
        else:
            np.testing.assert_allclose(obs, ours[0], atol=1e-6)
        state = after


def test_observation_is_the_papers(made: tuple[Task, Params]) -> None:
    task, params = made
    _, state = reset(task, jax.random.key(0), params)
    obs, state, *_ = step_env(task, jax.random.key(1), state, jnp.zeros(6), params)
    q_d = [0.5 * np.sin(0.01), 0.3 * np.sin(0.015)]
    dq_d = [0.5 * np.cos(0.01), 0.45 * np.cos(0.015)]
    expected = [*state.plant.q, *state.plant.dq, *q_d, *dq_d, state.payload_estimate, 0.2, 1 / 5]
    np.testing.assert_allclose(obs, expected, rtol=1e-5)


def test_reward_is_the_presets() -> None:
    for name, weights in (("memory", (1 / 0.13**2, 0.01)), ("paper", (1.0, 2e-4))):
        task, params = make_task(preset_task(name))
        _, state = reset(task, jax.random.key(0), params)
        obs, state, reward, _, info = step_env(task, jax.random.key(1), state, jnp.zeros(6), params)
        e, de = obs[4:6] - obs[:2], obs[6:8] - obs[2:4]
        np.testing.assert_allclose(info["e"], e, atol=1e-6)
        assert float(reward) == pytest.approx(-(weights[0] * float(e @ e) + weights[1] * float(de @ de)), rel=1e-4)


def test_the_draws_of_an_episode() -> None:
    task, params = make_task(TaskConfig())
    _, states = jax.jit(jax.vmap(task.reset_env, in_axes=(0, None)))(jax.random.split(jax.random.key(0), 4000), params)
    payload, error = np.asarray(states.payload), np.asarray(states.payload_estimate - states.payload)
    position = np.asarray(states.plant.q)
    assert kstest(payload / 1.5, "uniform").pvalue > 0.01
    assert kstest(error / 0.05, "norm").pvalue > 0.01
    assert kstest(position.ravel() / 0.01, "norm").pvalue > 0.01
    draws = np.column_stack([payload, error, position])
    correlation = spearmanr(draws).statistic
    assert np.abs(correlation - np.eye(4)).max() < 0.06, "the draws of an episode are independent"
    state = jax.tree.map(lambda x: x[0], states)
    after, _ = apply(task, jax.random.key(1), state, params.law.box.lower, params)
    assert after.payload_estimate == state.payload_estimate


def test_context_starts_with_its_first_observation_and_slides() -> None:
    context = first_context(jnp.array([1.0, 2.0]), 3)
    np.testing.assert_array_equal(context, [[1, 2]] * 3)
    context = next_context(next_context(context, jnp.array([3.0, 4.0])), jnp.array([5.0, 6.0]))
    np.testing.assert_array_equal(context, [[1, 2], [3, 4], [5, 6]])


def test_tasks_that_differ_in_numbers_share_a_program_and_a_batch() -> None:
    tasks, params = zip(*(make_task(TaskConfig(tau_z=tau_z)) for tau_z in (1.0, 2.0, 5.0)), strict=True)
    assert len(set(tasks)) == 1
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *params)
    key, gains = jax.random.key(0), params[0].law.box.upper
    run = partial(rollout, tasks[0])
    batch = jax.jit(jax.vmap(lambda p: run(p, Constant(gains), key, jnp.asarray(0.5)).e))(stacked)
    for i, one in enumerate(params):
        alone = jax.jit(run)(one, Constant(gains), key, jnp.asarray(0.5)).e
        np.testing.assert_allclose(batch[i], alone, atol=1e-5)
    assert len({float(jnp.abs(e).mean()) for e in batch}) == 3


def test_measurement_noise_reaches_law_and_observation_but_not_the_plant() -> None:
    task, params = make_task(TaskConfig(noise_position=0.1, noise_velocity=0.2))
    keys = jax.random.split(jax.random.key(0), 2000)
    _, state = reset(task, jax.random.key(1), params)
    states, outcomes = jax.vmap(lambda k: apply(task, k, state, params.law.box.lower, params))(keys)
    assert np.ptp(np.asarray(states.plant.q), axis=0).max() == 0
    assert np.asarray(states.measured_q - states.plant.q).std() == pytest.approx(0.1, rel=0.1)
    assert np.asarray(states.measured_dq - states.plant.dq).std() == pytest.approx(0.2, rel=0.1)
    assert np.ptp(np.asarray(outcomes.e), axis=0).max() == 0
    torques = jax.vmap(lambda k, s: apply(task, k, s, params.law.box.lower, params)[1].torque)(keys, states)
    assert np.asarray(torques).std(0).min() > 1


@pytest.mark.usefixtures("float64")
def test_double_precision_runs_through() -> None:
    task, params = make_task(TaskConfig(noise_velocity=0.1, delay=1), jnp.float64)
    obs, state = reset(task, jax.random.key(0), params)
    obs, state, reward, *_ = step_env(task, jax.random.key(1), state, jnp.zeros(6), params)
    floats = [x for x in jax.tree.leaves((obs, state, reward)) if jnp.issubdtype(x.dtype, jnp.floating)]
    assert {x.dtype for x in floats} == {jnp.dtype("float64")}


def test_noise_differs_from_step_to_step() -> None:
    task, params = make_task(TaskConfig(noise_velocity=0.1, horizon=50))
    found = rollout(task, params, Constant(params.law.box.lower), jax.random.key(0), jnp.asarray(0.5))
    quiet, quiet_params = make_task(TaskConfig(horizon=50))
    calm = rollout(quiet, quiet_params, Constant(params.law.box.lower), jax.random.key(0), jnp.asarray(0.5))
    # K_d times a velocity error that jumps independently: successive torque differences have correlation -1/2.
    jumps = np.diff(np.asarray(found.torque - calm.torque)[5:], axis=0)
    assert np.all([np.corrcoef(jumps[1:, i], jumps[:-1, i])[0, 1] < -0.2 for i in range(2)])


@pytest.mark.parametrize("shape", [(5,), (7,), (1, 6), ()])
def test_an_action_of_the_wrong_shape_is_refused(made: tuple[Task, Params], shape: tuple[int, ...]) -> None:
    task, params = made
    _, state = reset(task, jax.random.key(0), params)
    with pytest.raises(ValueError, match=r"action must have shape \(6,\), got"):
        step_env(task, jax.random.key(1), state, jnp.zeros(shape), params)


def test_three_joints_work_like_two() -> None:
    three = TaskConfig(
        inertia=(1.2, 0.6, 0.3),
        payload_inertia=(0.8, 0.4, 0.2),
        coulomb=(12, 8, 4),
        breakaway=(18, 12, 6),
        viscous=(3, 2, 1),
        memory_gain=(25, 20, 10),
        eta_max=(25, 20, 10),
        shield_friction=(33, 20, 10),
        initial_std=0.0,
    )
    task, params = make_task(three)
    obs, state = reset(task, jax.random.key(0), params)
    obs, state, *_ = step_env(task, jax.random.key(1), state, jnp.zeros(9), params)
    assert obs.shape == (15,)
    assert np.all(np.asarray(state.plant.dq) > 0)


def test_a_robot_of_ones_own_takes_the_place_of_the_arm(without_friction: dict[str, Any]) -> None:
    """An arm under gravity: with an exact model and no friction the law cancels gravity, with a weightless one not."""
    heavy, weightless = Pendulum(jnp.asarray(10.0)), Pendulum(jnp.asarray(0.0))
    config = TaskConfig(robot=heavy, initial_std=0.0, dt=1e-3, horizon=1000, **without_friction)
    last = {}
    for model in (None, weightless):
        task, params = make_task(config.replace(model=model))
        gains = params.law.box.upper._replace(eta=jnp.zeros(2))
        found = jax.jit(partial(rollout, task))(params, Constant(gains), jax.random.key(0), params.law.payload)
        last[model is None] = np.abs(np.asarray(found.e)[-1]).max()
    assert last[True] < 0.02  # the start is the only error: the arm rests while the trajectory moves
    assert last[False] > 0.05


def test_an_action_outside_the_cube_is_cut_to_it(made: tuple[Task, Params]) -> None:
    task, params = made
    _, state = reset(task, jax.random.key(0), params)
    beyond = step_env(task, jax.random.key(1), state, jnp.full(6, 5.0), params)
    edge = step_env(task, jax.random.key(1), state, jnp.ones(6), params)
    np.testing.assert_array_equal(beyond[0], edge[0])
