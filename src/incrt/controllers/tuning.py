"""The reference controllers of a configuration, each tuned as far as its form allows, and their evaluation.

Tuning minimises the evaluation RMSE itself. That favours the references, which is the side to err on: a learned policy
never sees the evaluation. Results are kept on disk by configuration and source text, so that a search runs once.
"""

import contextlib
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

import incrt.arm
import incrt.config
from incrt.arm.law import Gains
from incrt.arm.task import Params, Task, make_task
from incrt.config import TaskConfig
from incrt.config.registry import description
from incrt.config.rules import COUNT, one_of
from incrt.controllers.base import Controller
from incrt.controllers.classical import Adaptive, Clairvoyant, Constant, FeedForward, Observer, OpenLoop
from incrt.controllers.evaluation import evaluation_draws, make_controller, rmse, rollouts, with_arrays
from incrt.controllers.search import Minimum, minimise
from incrt.storage.atomic import write_whole
from incrt.storage.cache import cache_folder

Build = Callable[[Params, Gains, Array], Controller]
"""Turns a point of [-1, 1]^dim into a controller of one form, given the gains that it keeps."""
Make = Callable[[TaskConfig, Task, Params, Gains], Controller]
"""Makes a controller with nothing of its own to tune, given the gains that it keeps."""


class Family(NamedTuple):
    """Controllers of one form, and how many numbers of it are tuned for a robot of n joints."""

    build: Build
    dim: Callable[[int], int]


def reference_controller(name: str, config: TaskConfig) -> Controller:
    """The named reference controller, tuned for this configuration."""
    one_of(CONTROLLERS)("controller", name)
    task, params = make_task(config)
    lower = params.law.box.lower
    gains = Gains(
        k_d=jnp.asarray(config.by_joint("baseline_k_d"), lower.k_d.dtype),
        lam=jnp.asarray(config.by_joint("baseline_lam"), lower.lam.dtype),
        eta=jnp.zeros_like(lower.eta),
    )
    if name not in {"baseline", "best_constant"}:
        # The others keep the K_d and Lambda of the best constant, and choose eta themselves.
        gains = params.law.box.from_unit(_tuned_point("best_constant", _CONSTANTS, config, task, params, gains))
    form = _FORMS[name]
    if isinstance(form, Family):
        return form.build(params, gains, _tuned_point(name, form, config, task, params, gains))
    return form(config, task, params, gains)


def tune(config: TaskConfig, build: Callable[[Params, Array], Controller], dim: int) -> Controller:
    """A controller of one's own, tuned as the reference controllers are: on the evaluation's error.

    ``build`` makes a controller of a point of [-1, 1]^dim; it is compiled, so it is a function of arrays.
    """
    dim = COUNT("dim", dim)
    task, params = make_task(config)
    make_controller(task, params, build(params, jnp.zeros(dim)))  # refuses what is wrong before the search

    def built(params: Params, _: Any, point: Array) -> Controller:
        return with_arrays(params, build(params, point))

    found = _search(config, task, params, built, (), dim)
    return built(params, (), jnp.asarray(found.point))


def _baseline(config: TaskConfig, task: Task, params: Params, gains: Gains) -> Constant:
    del config, task, params
    return Constant(gains)


def _open_loop(config: TaskConfig, task: Task, params: Params, gains: Gains) -> OpenLoop:
    """Plays what the clairvoyant feeds forward at each step, mean over the rollouts of the evaluation."""
    found = rollouts(task, params, reference_controller("clairvoyant", config), *evaluation_draws(config))
    return OpenLoop(gains, jnp.mean(found.gains.eta, 0))


def _constant(params: Params, gains: Gains, x: Array) -> Constant:
    del gains
    return Constant(params.law.box.from_unit(x))


def _feedforward(params: Params, gains: Gains, x: Array) -> FeedForward:
    """Chosen by its torques at two speeds: coefficients would pull at each other, and the search would be long."""
    slow, fast = 0.1, 0.5
    bound = params.law.box.upper.eta
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


_CONSTANTS = Family(_constant, lambda n: 3 * n)

_FORMS: Mapping[str, Family | Make] = {
    "baseline": _baseline,
    "best_constant": _CONSTANTS,
    "feedforward": Family(_feedforward, lambda n: 2 * n),
    "open_loop": _open_loop,
    "adaptive": Family(_adaptive, lambda _: 5),
    "observer": Family(_observer, lambda _: 1),
    "clairvoyant": Family(_clairvoyant, lambda _: 1),
}
"""The least informed first; one more line here is one more row of ``incrt baselines`` and beside every study."""

CONTROLLERS = tuple(_FORMS)
"""The reference controllers by name, the least informed first; other programs read these rows of ``incrt baselines``.
"""


def _tuned_point(name: str, family: Family, config: TaskConfig, task: Task, params: Params, gains: Gains) -> Array:
    """The best point of a family, from the cache where it is known."""
    dim = family.dim(task.dof)
    path = cache_folder() / f"{name}-{_digest(config, params)}.json"
    try:
        point = jnp.asarray(json.loads(path.read_text())["point"])
        if point.shape == (dim,) and bool(jnp.all(jnp.abs(point) <= 1)):
            return point
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not searched yet, or unreadable: search
    found = _search(config, task, params, family.build, gains, dim)
    with contextlib.suppress(OSError):  # without a writable folder there is no cache
        write_whole(path, json.dumps({"controller": name, "point": found.point, "rmse": found.value}).encode())
    return jnp.asarray(found.point)


def _search(config: TaskConfig, task: Task, params: Params, build: Build, gains: Any, dim: int) -> Minimum:
    keys, payloads = evaluation_draws(config)
    return minimise(partial(_scores, task, build, params, gains, keys, payloads), dim)


@partial(jax.jit, static_argnums=(0, 1))
def _scores(task: Task, build: Build, params: Params, gains: Any, keys: Array, payloads: Array, points: Array) -> Array:
    """Evaluation RMSE of each candidate point."""

    def score(point: Array) -> Array:
        return jnp.mean(rmse(rollouts(task, params, build(params, gains, point), keys, payloads).e))

    return jax.vmap(score)(points)


def _digest(config: TaskConfig, params: Params) -> str:
    """Identifies all that a search depends on: configuration, numbers, source texts, JAX. No controller sees a window.

    A reference such as my_arm.py:ARM stays the same when the file changes, so numbers and texts count too.
    """
    settings = json.dumps(config.replace(window=1).to_json(), sort_keys=True)
    parts = (params.plant.robot, params.plant.friction, params.trajectory, params.law.model)
    own = json.dumps([description(part) for part in parts]) + "".join(map(_source_of, parts))
    files = [
        each.rpartition(":")[0]
        for each in (config.robot, config.model, config.friction, config.trajectory)
        if isinstance(each, str)
    ]
    texts = "".join(Path(file).read_text() for file in files if file.endswith(".py"))
    return hashlib.sha256((settings + own + texts + _source() + jax.__version__).encode()).hexdigest()[:24]


def _source_of(part: Any) -> str:
    """Of a class that the user may have changed."""
    try:
        return inspect.getsource(type(part))
    except (OSError, TypeError):  # typed into a prompt, or from a file that was run
        return ""


@cache
def _source() -> str:
    """Of all modules that a search runs through."""
    folders = (Path(__file__).parent, Path(incrt.arm.__path__[0]), Path(incrt.config.__path__[0]))
    return "".join(path.read_text() for folder in folders for path in sorted(folder.glob("*.py")))
