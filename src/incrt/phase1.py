"""Phase 1 of INCRT-1L: the head count chosen before training, which the runtime controller makes unnecessary.

Two ways. :func:`surrogate` asks how many directions of the hidden memory matter for the tracking cost: it rolls out the
baseline, takes the gradient of the cost over a window with respect to the memory state at every step of it, and counts
the leading eigenvalues of that gradient's autocovariance. :func:`search` trains: Bayesian search over (K, W).
"""

import itertools
import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.bench import Bench, Params, State, make_bench
from incrt.config import BenchConfig
from incrt.config.rules import COUNT, FRACTION, check, whole
from incrt.controllers import Controller
from incrt.evaluation import evaluation_draws, see
from incrt.rank import energy_rank
from incrt.tuning import reference_controller

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Surrogate:
    """What the surrogate found."""

    spectrum: tuple[float, ...]
    """Eigenvalues of the autocovariance as parts of their sum, largest first, W n of them."""
    rank: int
    """How many of them make up the part alpha."""
    k: int
    """The head count to train with: the rank, at most k_max."""


def surrogate(config: BenchConfig, alpha: float = 0.95, k_max: int = 8) -> Surrogate:
    """Choose K for a bench from the baseline's rollouts, without training."""
    check("alpha", alpha, FRACTION)
    k_max = _count("k_max", k_max)
    if config.window > config.horizon:
        raise ValueError(f"window must be at most horizon = {config.horizon}, got {config.window}")
    bench, params = make_bench(config)
    keys, payloads = evaluation_draws(config)
    baseline = reference_controller("baseline", config)
    gradients = np.asarray(_window_gradients(bench, config.window, params, baseline, keys, payloads), np.float64)
    gradients = gradients.reshape(-1, config.window * config.dof)
    if not np.all(np.isfinite(gradients)):
        raise ValueError("the gradient of the tracking cost is not finite: the baseline diverges on this bench")
    autocovariance = np.atleast_2d(np.cov(gradients, rowvar=False))
    eigenvalues = np.maximum(np.linalg.eigvalsh(autocovariance)[::-1], 0)
    rank = int(energy_rank(eigenvalues, alpha, np))
    spectrum = eigenvalues / eigenvalues.sum() if eigenvalues.sum() > 0 else eigenvalues
    return Surrogate(tuple(float(part) for part in spectrum), rank, min(rank, k_max))


@partial(jax.jit, static_argnums=(0, 1))
def _window_gradients(
    bench: Bench, window: int, params: Params, controller: Controller, keys: Array, payloads: Array
) -> Array:
    """d(cost of a window)/d(z at each of its steps), for every window of every rollout: (rollouts, windows, W, n)."""

    def step(noise_key: Array, carry: tuple[State, Any], push: Array) -> tuple[tuple[State, Any], tuple[Any, Array]]:
        """One control step after the memory state was pushed."""
        state, memory = carry
        pushed = state._replace(plant=state.plant._replace(z=state.plant.z + push))
        gains, memory = controller.act(params, memory, see(bench, params, pushed))
        after, outcome = bench.apply(jax.random.fold_in(noise_key, state.time), pushed, gains, params)
        return (after, memory), (carry, -outcome.reward)

    def one(key: Array, payload: Array) -> Array:
        start_key, noise_key = jax.random.split(key)
        _, state = bench.start(start_key, params, payload)
        start = (state, controller.start(params, see(bench, params, state)))
        unpushed = jnp.zeros((bench.horizon, bench.dof))
        _, (passed, _) = jax.lax.scan(partial(step, noise_key), start, unpushed)

        def cost(pushes: Array, begin: tuple[State, Any]) -> Array:
            return jnp.sum(jax.lax.scan(partial(step, noise_key), begin, pushes)[1][1])

        begins = jax.tree.map(lambda x: x[: bench.horizon - window + 1], passed)
        return jnp.asarray(jax.vmap(jax.grad(cost), in_axes=(None, 0))(unpushed[:window], begins))

    return jnp.asarray(jax.lax.map(lambda draw: one(*draw), (keys, payloads)))


Train: TypeAlias = Callable[[int, int], float]
"""Trains with K heads and windows of W steps and says how badly that went, by its evaluation RMSE for example."""


@dataclass(frozen=True)
class Found:
    """What the search found."""

    k: int
    window: int
    value: float
    tried: dict[tuple[int, int], float]
    """Every (K, W) that was trained, with its value."""


def search(
    train: Train,
    k_max: int = 8,
    windows: Sequence[int] = (10, 20, 50),
    trials: int = 12,
    seed: int = 0,
    journal: Path | None = None,
) -> Found:
    """Bayesian search over K = 1 ... k_max and W with Optuna, for the smallest value; no pair is trained twice.

    :param trials: how many pairs to train at most
    :param journal: a file in which finished trainings are kept; a search that was interrupted goes on from it
    """
    optuna = _optuna()
    k_max, trials = _count("k_max", k_max), _count("trials", trials)
    windows = [_count("windows", window) for window in windows]
    pairs = list(itertools.product(range(1, k_max + 1), windows))
    if not pairs:
        raise ValueError("windows must hold at least one window")
    study = optuna.create_study(storage=_storage(journal), study_name="phase1", load_if_exists=True)
    space = {
        "k": optuna.distributions.IntDistribution(1, k_max),
        "window": optuna.distributions.CategoricalDistribution(windows),
    }
    finished = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    tried = {(trial.params["k"], trial.params["window"]): trial.value for trial in finished}
    # With the same seed a search that goes on would propose what it proposed before.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(tried))
    chance = random.Random(seed + len(tried))  # noqa: S311  # nothing secret
    while len(tried) < min(trials, len(pairs)):
        trial = study.ask(space)
        pair = trial.params["k"], trial.params["window"]
        if pair in tried:  # the sampler cannot be told not to: try one that is new
            k, window = chance.choice([other for other in pairs if other not in tried])
            study.enqueue_trial({"k": k, "window": window})
        else:
            value = float(train(*pair))
            tried[pair] = math.inf if math.isnan(value) else value
            _log.info("K = %d, W = %d: %g (%d of %d)", *pair, tried[pair], len(tried), min(trials, len(pairs)))
        study.tell(trial, tried[pair])
    k, window = min(tried, key=lambda pair: tried[pair])
    return Found(k, window, tried[k, window], tried)


def _count(name: str, value: int) -> int:
    check(name, whole(name, value, COUNT), COUNT)
    return int(value)


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ValueError("the search needs Optuna: pip install incrt[search]") from error
    return optuna


def _storage(journal: Path | None) -> Any:
    if journal is None:
        return None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(journal)))
    except OSError as error:
        raise ValueError(f"journal cannot be written: {error}") from error
