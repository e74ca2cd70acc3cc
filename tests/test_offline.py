"""Phase 1: the surrogate's gradient against finite differences, its choice against its definition."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import preset_task

from incrt.arm.task import State, make_task
from incrt.config import TaskConfig
from incrt.controllers.evaluation import controller_input, evaluation_draws
from incrt.controllers.tuning import reference_controller
from incrt.offline import Surrogate, _window_gradients, surrogate


def small(**changes: Any) -> TaskConfig:
    return preset_task("memory", tau_z=2.0, horizon=30, window=6, eval_payloads=(0.0, 1.5), eval_rollouts=2, **changes)


@pytest.mark.usefixtures("float64")
def test_gradients_are_those_of_finite_differences() -> None:
    """The cost of one window, rolled out step by step with the memory nudged, by central differences."""
    config = small(noise_position=1e-3, noise_velocity=1e-2)
    task, params = make_task(config, dtype=jnp.float64)
    keys, payloads = evaluation_draws(config)
    baseline = jax.tree.map(lambda x: x.astype(jnp.float64), reference_controller("baseline", config))
    found = _window_gradients(task, config.window, params, baseline, keys, payloads)
    assert found.shape == (4, 25, 6, 2)
    rollout, begin = 3, 17

    @jax.jit
    def cost(pushes: jax.Array) -> jax.Array:
        """Of the window, reached from the start of the episode."""
        start_key, noise_key = jax.random.split(keys[rollout])
        _, first = task.start(start_key, params, payloads[rollout])

        def step(state: State, push: jax.Array) -> tuple[State, jax.Array]:
            state = state._replace(plant=state.plant._replace(z=state.plant.z + push))
            gains, _ = baseline.act(params, None, controller_input(task, params, state))
            state, outcome = task.apply(jax.random.fold_in(noise_key, state.time), state, gains, params)
            return state, -outcome.reward

        return jnp.sum(jax.lax.scan(step, first, jnp.concatenate([jnp.zeros((begin, 2)), pushes]))[1][begin:])

    for step in range(6):
        for joint in range(2):
            nudge = jnp.zeros((6, 2)).at[step, joint].set(1e-4)
            expected = float(cost(nudge) - cost(-nudge)) / 2e-4
            assert float(found[rollout, begin, step, joint]) == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert float(jnp.max(jnp.abs(found[:, :, 0]))) > 0


def test_the_choice_is_the_energy_of_the_autocovariance() -> None:
    config = small()
    task, params = make_task(config)
    keys, payloads = evaluation_draws(config)
    baseline = reference_controller("baseline", config)
    gradients = np.asarray(_window_gradients(task, 6, params, baseline, keys, payloads), float).reshape(-1, 12)
    centred = gradients - gradients.mean(0)
    sigma = np.linalg.svd(centred.T @ centred, compute_uv=False)
    part = sigma / sigma.sum()
    for alpha in (0.5, 0.95, 0.9999):
        found = surrogate(config, alpha)
        np.testing.assert_allclose(found.spectrum, part, atol=1e-9)
        assert found.rank == next(k for k in range(1, 13) if part[:k].sum() >= alpha)
        assert found.k == min(found.rank, 8)
    assert surrogate(config, 0.9999, k_max=2).k == 2
    assert surrogate(config, 0.9999, k_max=2).rank > 2


def test_on_the_papers_task_one_direction_a_joint_is_enough() -> None:
    for tau_z, window in ((1.0, 20), (2.0, 50), (5.0, 20)):
        found = surrogate(preset_task("memory", tau_z=tau_z, window=window))
        assert found.k == 2
        assert len(found.spectrum) == 2 * window


def test_a_cost_that_does_not_depend_on_the_memory_needs_one_head() -> None:
    found = surrogate(small(reward_error=0.0, reward_velocity=0.0))
    assert found == Surrogate((0.0,) * 12, 1, 1)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"alpha": 1.5}, "alpha must be a number > 0 and < 1, got 1.5"),
        ({}, {"alpha": "most"}, "alpha must be a number, got 'most'"),
        ({}, {"k_max": 0}, "k_max must be a whole number >= 1"),
        ({"window": 31}, {}, "window must be at most horizon = 30, got 31"),
        ({"dt": 1.0, "horizon": 100, "shield": False, "viscous": (0.0, 0.0)}, {}, "the baseline diverges"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        surrogate(small().replace(**changes), **options)
