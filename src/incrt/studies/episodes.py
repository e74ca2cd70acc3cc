"""One episode a payload of a trained policy, kept for the report's figures."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy
from jax import Array

from incrt.arm.task import Params, Task, make_task
from incrt.controllers.evaluation import Rollout, evaluation_draws, remembered_rollout
from incrt.engine import policy
from incrt.engine.policy import LearnedPolicy
from incrt.heads.attention import Attention, attention_weights
from incrt.runs import TrainedRun
from incrt.storage.atomic import write_whole
from incrt.storage.records import Episodes

_EVERY = 2
"""One control step in so many is kept."""
_MOMENTS = 25
"""How often in an episode the attention is looked at."""


def record_episodes(path: Path, run: TrainedRun, recorded: Rollout) -> None:
    """Write the first rollout of each payload, and the attention in the middle one."""
    config = run.config.task
    first: Rollout = jax.tree.map(lambda x: np.asarray(x)[:: config.eval_rollouts, ::_EVERY], recorded)
    learned = policy.load(run.folder / "policy.safetensors")
    middle = len(config.eval_payloads) // 2 * config.eval_rollouts
    keys, payloads = evaluation_draws(config)
    task, params = make_task(config)
    contexts = _contexts(task, params, learned, keys[middle], payloads[middle])
    moments = np.unique(np.linspace(0, config.horizon - 1, _MOMENTS).astype(int))
    tensors = {
        "payloads": np.asarray(config.eval_payloads),
        "time": first.time[0],
        "q": first.q,
        "q_d": first.q_d,
        "torque": first.torque,
        "k_d": first.gains.k_d,
        "lam": first.gains.lam,
        "eta": np.reshape(first.gains.eta, (*first.q.shape[:2], -1)),
        "attention": _attention(learned, contexts[moments]),
        "attention_time": np.asarray(recorded.time)[middle, moments],
    }
    kept = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}
    write_whole(path, safetensors.numpy.save(kept))


def load_episodes(path: Path) -> Episodes:
    """What :func:`record_episodes` wrote; anything else is refused."""
    try:
        tensors = safetensors.numpy.load_file(path)
        return Episodes(**{name: tensor.astype(np.float64) for name, tensor in tensors.items()})
    except (OSError, TypeError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path} holds no episodes: {error}") from None


@partial(jax.jit, static_argnums=0)
def _contexts(task: Task, params: Params, learned: LearnedPolicy, key: Array, payload: Array) -> Any:
    """What the policy saw at each step of an episode."""
    return remembered_rollout(task, params, learned, key, payload)[1]


def _attention(learned: LearnedPolicy, contexts: Array) -> Any:
    """Of the active heads: (moments, heads, W)."""
    body = learned.actor.encoder.body
    if not isinstance(body, Attention):
        return np.zeros((len(contexts), 0, contexts.shape[1]))
    return np.asarray(attention_weights(body, learned.mask, jnp.asarray(contexts)))[:, np.asarray(learned.mask)]
