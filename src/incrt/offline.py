"""Phase 1 of INCRT-1L: the head count chosen before training, where runtime heads find it while training.

How many directions of the hidden memory matter for the tracking cost? The baseline is rolled out, the gradient of the
cost over a window is taken with respect to the memory state at every step of it, and the leading eigenvalues of that
gradient's autocovariance are counted. The other way, which trains, is examples/head_search.py.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.arm.task import Params, State, Task, make_task
from incrt.config import TaskConfig
from incrt.config.rules import COUNT, FRACTION
from incrt.controllers.base import Controller
from incrt.controllers.evaluation import controller_input, evaluation_draws
from incrt.controllers.tuning import reference_controller
from incrt.heads.rank import energy_rank


@dataclass(frozen=True)
class Surrogate:
    """What the surrogate found."""

    spectrum: tuple[float, ...]
    """Eigenvalues of the autocovariance as parts of their sum, largest first, W n of them."""
    rank: int
    """How many of them make up the fraction alpha."""
    k: int
    """The head count to train with: the rank, at most k_max."""


def surrogate(config: TaskConfig, alpha: float = 0.95, k_max: int = 8) -> Surrogate:
    """Choose K for a task from the baseline's rollouts, without training."""
    alpha, k_max = FRACTION("alpha", alpha), COUNT("k_max", k_max)
    if config.window > config.horizon:
        raise ValueError(f"window must be at most horizon = {config.horizon}, got {config.window}")
    task, params = make_task(config)
    keys, payloads = evaluation_draws(config)
    baseline = reference_controller("baseline", config)
    gradients = np.asarray(_window_gradients(task, config.window, params, baseline, keys, payloads), np.float64)
    gradients = gradients.reshape(-1, config.window * config.dof)
    if not np.all(np.isfinite(gradients)):
        raise ValueError("the gradient of the tracking cost is not finite: the baseline diverges on this task")
    autocovariance = np.atleast_2d(np.cov(gradients, rowvar=False))
    eigenvalues = np.maximum(np.linalg.eigvalsh(autocovariance)[::-1], 0)
    rank = energy_rank(eigenvalues, alpha)
    spectrum = eigenvalues / eigenvalues.sum() if eigenvalues.sum() > 0 else eigenvalues
    return Surrogate(tuple(float(part) for part in spectrum), rank, min(rank, k_max))


@partial(jax.jit, static_argnums=(0, 1))
def _window_gradients(
    task: Task, window: int, params: Params, controller: Controller, keys: Array, payloads: Array
) -> Array:
    """d(cost of a window)/d(z at each of its steps), for every window of every rollout: (rollouts, windows, W, n)."""

    def step(noise_key: Array, carry: tuple[State, Any], push: Array) -> tuple[tuple[State, Any], tuple[Any, Array]]:
        """One control step after the memory state was pushed."""
        state, memory = carry
        pushed = state._replace(plant=state.plant._replace(z=state.plant.z + push))
        gains, memory = controller.act(params, memory, controller_input(task, params, pushed))
        after, outcome = task.apply(jax.random.fold_in(noise_key, state.time), pushed, gains, params)
        return (after, memory), (carry, -outcome.reward)

    def one(key: Array, payload: Array) -> Array:
        start_key, noise_key = jax.random.split(key)
        _, state = task.start(start_key, params, payload)
        start = (state, controller.start(params, controller_input(task, params, state)))
        unpushed = jnp.zeros((task.horizon, task.dof))
        _, (passed, _) = jax.lax.scan(partial(step, noise_key), start, unpushed)

        def cost(pushes: Array, begin: tuple[State, Any]) -> Array:
            return jnp.sum(jax.lax.scan(partial(step, noise_key), begin, pushes)[1][1])

        begins = jax.tree.map(lambda x: x[: task.horizon - window + 1], passed)
        return jnp.asarray(jax.vmap(jax.grad(cost), in_axes=(None, 0))(unpushed[:window], begins))

    return jnp.asarray(jax.lax.map(lambda draw: one(*draw), (keys, payloads)))
