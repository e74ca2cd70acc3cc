"""The reference controllers of a configuration, each tuned as far as its form allows, and their evaluation.

Tuning minimises the evaluation RMSE itself. That favours the references, which is the side to err on: a learned policy
never sees the evaluation. Results are kept on disk by configuration and source text, so that a search runs once.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.bench import Bench, Params, make_bench
from incrt.config import BenchConfig
from incrt.control import Gains
from incrt.controllers import Adaptive, Clairvoyant, Constant, Controller, FeedForward, Observer, OpenLoop
from incrt.evaluation import evaluation_draws, rmse, rollouts
from incrt.files import write_whole
from incrt.search import minimise

CONTROLLERS = ("baseline", "best_constant", "adaptive", "observer", "clairvoyant")
"""The reference controllers, the least informed first; other programs read these rows of ``incrt baselines``."""
BESIDE_STUDIES = ("baseline", "best_constant", "feedforward", "open_loop", "adaptive", "observer", "clairvoyant")
"""What stands beside the results of a study: also two that have no memory, one of them with a clock."""


def reference_controller(name: str, config: BenchConfig) -> Controller:
    """The named reference controller, tuned for this configuration."""
    if name not in BESIDE_STUDIES:
        raise ValueError(f"controller must be one of {', '.join(BESIDE_STUDIES)}; got {name!r}")
    _, params = make_bench(config)
    gains = Gains(
        k_d=jnp.full_like(params.law.box.lower.k_d, config.baseline_k_d),
        lam=jnp.full_like(params.law.box.lower.lam, config.baseline_lam),
        eta=jnp.zeros_like(params.law.box.lower.eta),
    )
    if name == "baseline":
        return Constant(gains)
    if name != "best_constant":  # these keep the K_d and Lambda of the best constant, and choose eta themselves
        gains = params.law.box.from_unit(_tuned_point("best_constant", config, gains))
    if name == "open_loop":
        return OpenLoop(gains, _rehearsed(config))
    return _families(config)[name].build(params, gains, _tuned_point(name, config, gains))


def _rehearsed(config: BenchConfig) -> Array:
    """What the clairvoyant feeds forward at each step, mean over the rollouts of the evaluation."""
    bench, params = make_bench(config)
    found = rollouts(bench, params, reference_controller("clairvoyant", config), *evaluation_draws(config))
    return jnp.mean(found.gains.eta, 0)


Build = Callable[[Params, Gains, Array], Controller]


class Family(NamedTuple):
    """Controllers of one form: ``build`` turns a point of [-1, 1]^dim into one, given the gains it keeps."""

    build: Build
    dim: int


def _families(config: BenchConfig) -> dict[str, Family]:
    return {
        "best_constant": Family(_constant, config.action_dim),
        "feedforward": Family(_feedforward, 2 * len(config.inertia)),
        "adaptive": Family(_adaptive, 5),
        "observer": Family(_observer, 1),
        "clairvoyant": Family(_clairvoyant, 1),
    }


def _constant(params: Params, gains: Gains, x: Array) -> Constant:
    del gains
    return Constant(params.law.box.from_unit(x))


def _feedforward(params: Params, gains: Gains, x: Array) -> FeedForward:
    """Chosen by its torques at two speeds: coefficients would pull at each other, and the search would be long."""
    slow, fast = 0.1, 0.5
    bound = jnp.sum(params.law.box.upper.eta, 0)
    at_slow, at_fast = (bound * (part + 1) for part in jnp.split(x, 2))
    viscous = (at_fast - at_slow) / (fast - slow)
    return FeedForward(gains, coulomb=at_slow - viscous * slow, viscous=viscous)


def _adaptive(params: Params, gains: Gains, x: Array) -> Adaptive:
    del params
    return Adaptive(
        gains,
        rate_payload=_spread(x[0], 1e-3, 1e2),
        rate_coulomb=_spread(x[1], 1e1, 1e4),
        rate_viscous=_spread(x[2], 1e0, 1e4),
        rate_memory=_spread(x[3], 1e1, 1e5),
        filter_time=_spread(x[4], 0.3, 30.0),
    )


def _observer(params: Params, gains: Gains, x: Array) -> Observer:
    del params
    return Observer(gains, bandwidth=_spread(x[0], 1.0, 1e3))


def _clairvoyant(params: Params, gains: Gains, x: Array) -> Clairvoyant:
    del params
    return Clairvoyant(gains, approach=_spread(x[0], 1.0, 1e2))


def _spread(x: Array, low: float, high: float) -> Array:
    """A number from low to high, even in its logarithm, as x goes from -1 to 1."""
    return low * (high / low) ** ((x + 1) / 2)


def _tuned_point(name: str, config: BenchConfig, gains: Gains) -> Array:
    """The best point of a family, from the cache where it is known."""
    family = _families(config)[name]
    path = cache_folder() / f"{name}-{_digest(config)}.json"
    try:
        point = jnp.asarray(json.loads(path.read_text())["point"])
        if point.shape == (family.dim,) and bool(jnp.all(jnp.abs(point) <= 1)):
            return point
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not searched yet, or unreadable: search
    bench, params = make_bench(config)
    keys, payloads = evaluation_draws(config)
    found = minimise(partial(_scores, bench, family.build, params, gains, keys, payloads), family.dim)
    _write(path, {"controller": name, "point": found.point, "rmse": found.value})
    return jnp.asarray(found.point)


@partial(jax.jit, static_argnums=(0, 1))
def _scores(
    bench: Bench, build: Build, params: Params, gains: Gains, keys: Array, payloads: Array, points: Array
) -> Array:
    """Evaluation RMSE of each candidate point."""

    def score(point: Array) -> Array:
        return jnp.mean(rmse(rollouts(bench, params, build(params, gains, point), keys, payloads).e))

    return jax.vmap(score)(points)


def cache_folder() -> Path:
    """Where tuned points are kept: $INCRT_CACHE, or ``incrt`` in the user's cache folder."""
    if folder := os.environ.get("INCRT_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "incrt"


def _digest(config: BenchConfig) -> str:
    """Identifies all that a search depends on: configuration, source text, JAX. No reference sees a window."""
    text = json.dumps(dataclasses.asdict(config.replace(window=1)), sort_keys=True) + _source() + jax.__version__
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def _source() -> str:
    names = (
        "config/rules",
        "config/bench",
        "plant",
        "control",
        "shield",
        "bench",
        "controllers",
        "evaluation",
        "tuning",
        "search",
    )
    return "".join((Path(__file__).parent / f"{name}.py").read_text() for name in names)


def _write(path: Path, content: dict[str, Any]) -> None:
    """Without a writable folder there is no cache."""
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(content).encode())
