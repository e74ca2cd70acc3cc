"""What a check of the heads costs beside the training between two checks.

Run with ``python benchmarks/bench_checks.py``. For 30 runs it times one rank of the latest 1000 contexts, one set of
shares, and the updates of the 500 steps between two checks. Updates are the engine's, without plant and replay, so
training takes longer and the part that a check takes of it is smaller. The rank is taken on the host, in NumPy.

"waited for" is the part of a check that training waits for. On a GPU, "beside" is how much
longer the updates take when the host takes the ranks at the same time, which is enough where no event is possible
(``incrt.heads.triggers.PaperTrigger.can_act``). The last line counts the checks of a run at which one is.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

import incrt
from incrt.engine.layouts import Noise
from incrt.engine.replay import Batch
from incrt.engine.update import Algorithm, Learner, init_learner, update
from incrt.heads.attention import head_norms, shares
from incrt.heads.context import first_context, next_context
from incrt.heads.encoders import Encoder, make_encoder
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import PaperTrigger, Signals

RUNS, BATCH, ACTIONS = 30, 256, 6
HEADS = incrt.HeadsConfig()


def explore(config: incrt.TaskConfig, key: Array) -> Array:
    """The contexts of 1000 steps of random gains, as the start of a training sees them: (N, W, d_c)."""
    task, params = incrt.make_task(config)
    reset_key, steps_key = jax.random.split(key)
    observation, state = task.reset_env(reset_key, params)
    context = first_context(observation, window=config.window)

    def step(carry: Any, key: Array) -> tuple[Any, Array]:
        state, context = carry
        action_key, step_key = jax.random.split(key)
        action = jax.random.uniform(action_key, (config.action_dim,), minval=-1, maxval=1)
        observation, state, *_ = task.step_env(step_key, state, action, params)
        context = next_context(context, observation)
        first, begun = task.reset_env(step_key, params)
        is_over = task.is_truncated(state, params)
        after = jax.tree.map(
            partial(jnp.where, is_over), (begun, first_context(first, window=config.window)), (state, context)
        )
        return after, after[1]

    return jax.lax.scan(step, (state, context), jax.random.split(steps_key, HEADS.tokens))[1]


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of a few times, the first call not counted."""
    jax.block_until_ready(work())
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        taken.append(time.perf_counter() - begin)
    return min(taken)


def make_training(encoder: Encoder, contexts: Array, *, on_gpu: bool) -> tuple[Callable[[], Any], float]:
    """Updates to be timed, and how often they happen between two checks.

    On a GPU they are all of them, of all runs at once; on a CPU ten of one run, since runs come one after the other.
    """
    updates, runs = 10, 1
    if on_gpu:
        updates, runs = HEADS.check_every, RUNS
    algorithm = Algorithm(encoder, incrt.SacConfig(), ACTIONS)

    def one(learner: Learner, pair: Array) -> Learner:
        still = jnp.zeros((BATCH, ACTIONS))
        batch = Batch(pair[0], still, jnp.ones(BATCH), pair[1], jnp.zeros(BATCH, bool))
        return update(algorithm, learner, batch, Noise(still, still), None, jnp.ones((), bool))[0]

    @jax.jit
    def stretch(learners: Learner, pairs: Array) -> Learner:
        step = jax.vmap(one) if on_gpu else one
        return jax.lax.scan(lambda state, _: (step(state, pairs), None), learners, length=updates)[0]

    pairs = jnp.stack([contexts[:runs, :BATCH], contexts[:runs, 1 : BATCH + 1]], axis=1)
    learners = jax.vmap(partial(init_learner, algorithm))(jax.random.split(jax.random.key(0), runs))
    if not on_gpu:
        learners, pairs = jax.tree.map(lambda x: x[0], (learners, pairs))
    return lambda: stretch(learners, pairs), HEADS.check_every / updates * RUNS / runs


def ranks_on_host(tokens: npt.NDArray[np.float32]) -> list[float]:
    """One rank of every run, in NumPy."""
    return [effective_rank(run, HEADS.alpha) for run in tokens]


def svd(tokens: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The singular values as the definition has them."""
    return np.linalg.svd(tokens - tokens.mean(0), compute_uv=False)


def train_and_rank(train: Callable[[], Any], tokens: npt.NDArray[np.float32]) -> Any:
    """Updates on the device, ranks on the host, at the same time."""
    trained = train()
    ranks_on_host(tokens)
    return trained


def share_seconds(encoder: Encoder, contexts: Array) -> float:
    """One set of shares of every run."""
    mask = jnp.ones(encoder.config.k_max, bool)
    params = jax.vmap(encoder.init)(jax.random.split(jax.random.key(0), RUNS)).body

    @jax.jit
    @jax.vmap
    def measure(params: Any, contexts: Array) -> Array:
        return jnp.asarray(shares(head_norms(params, mask, contexts), mask))

    return seconds(lambda: measure(params, contexts[:, : HEADS.share_batch]))


def waits() -> tuple[int, int]:
    """How many checks of a run can be an event, if the rank stays high; and how many there are."""
    trigger, mask, state, checks, waited = PaperTrigger(HEADS), [True] + [False] * 7, None, 0, 0
    for step in range(HEADS.check_every, 50_001, HEADS.check_every):
        checks += 1
        waited += trigger.can_act(step, mask, state)
        shown = Signals(step, sum(mask), tuple(mask), 100.0, tuple(on / sum(mask) for on in mask))
        decision, state = trigger.decide(shown, state)
        if decision.head is not None:
            mask[decision.head] = decision.action == "grow"
    return waited, checks


def main() -> None:
    """Print one line for each window."""
    on_gpu = jax.default_backend() != "cpu"
    print(f"{RUNS} runs, {HEADS.tokens} contexts, on {jax.devices()[0].device_kind}")
    print("   W  training [s]  rank [ms]  shares  waited for  beside  ranks found")
    for window in (20, 50):
        config = incrt.preset(task={"tau_z": 2.0, "window": window}).task
        contexts = jax.jit(jax.vmap(partial(explore, config)))(jax.random.split(jax.random.key(0), RUNS))
        encoder = make_encoder(incrt.EncoderConfig(), window, config.observation_dim)
        train, times = make_training(encoder, contexts, on_gpu=on_gpu)
        training = seconds(train) * times
        tokens = contexts.reshape(RUNS, HEADS.tokens, -1)
        held = np.asarray(tokens)
        found = ranks_on_host(held)
        on_host = seconds(partial(ranks_on_host, held))
        shared = share_seconds(encoder, contexts)
        waited = (on_host + shared) / training
        beside = "-"
        if on_gpu:  # the updates run on while the host is busy
            both = seconds(partial(train_and_rank, train, held))
            beside = f"{(both + shared) / training - 1:.2%}"
        print(
            f"{window:4d} {training:13.2f} {1e3 * on_host:10.1f} {1e3 * shared:7.1f} "
            f"{waited:11.2%} {beside:>7s}  {min(found):.0f} to {max(found):.0f}"
        )
    by_gram, by_svd = (seconds(partial(form, held[0].astype(float))) for form in (effective_rank, svd))
    print(f"one rank at W = {window}: {1e3 * by_gram:.1f} ms, its SVD alone {1e3 * by_svd:.1f} ms")
    print("checks that can be an event, growing from 1 head to 8: {} of {}".format(*waits()))


if __name__ == "__main__":
    main()
