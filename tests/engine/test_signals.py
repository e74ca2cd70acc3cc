"""What triggers can ask about the heads: each signal as its definition has it, computed once more in double precision.

The blocks come from the paper's equations word for word, slopes from automatic differentiation of those, everything
else from NumPy. Batch and targets are the run's own.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from jax import Array
from literal import literal, literal_head
from small_runs import ENCODER, HEADS, SAC

from incrt.engine import Population
from incrt.engine import replay as memory
from incrt.engine.batch import Stack
from incrt.engine.layouts import Rows
from incrt.engine.losses import soft_target
from incrt.engine.progress import Run, first_progress
from incrt.engine.replay import Batch
from incrt.engine.signals import measure_signals
from incrt.engine.step import RunState
from incrt.heads.attention import Attention, Heads, soft_init
from incrt.tasks.recall import recall_task

CHANNELS, WINDOW, K_MAX, D_K, SIZE = 2, 4, 3, 4, 32
D_MODEL = K_MAX * D_K
ACTIVE = (0, 2)
MASK = np.isin(np.arange(K_MAX), ACTIVE)
NAMES = ("expansion", "gradients", "importance", "potential", "removal_jumps", "residual", "spread", "worth")
KEY = jax.random.key(5)
RIDGE, DAMPING = 1e-3, 1e-3
Floats = npt.NDArray[np.float64]


def recall_run(seed: int, **changes: Any) -> Run:
    task, params = recall_task(CHANNELS, WINDOW, horizon=30)
    sac = SAC.replace(steps=120, learning_rate=3e-3)
    fields = {"encoder": ENCODER.replace(k_init=K_MAX), "heads": HEADS, "sac": sac, **changes}
    return Run(seed, task, params, WINDOW, **fields)


@cache
def trained() -> RunState:
    """A run that has learned a little, without one of its heads."""
    (saved,) = [each for news in Population([recall_run(3)], "cpu").train() for _, each in news.saved]
    learner = saved.state.learner
    state: RunState = jax.device_put(saved.state)
    return state._replace(learner=jax.device_put(learner)._replace(learned=_without_head_one(learner.learned)))


def _without_head_one(learned: Any) -> Any:
    return jax.device_put(learned._replace(mask=MASK))


@cache
def found() -> dict[str, Floats]:
    program = recall_run(3).program()
    measured = jax.jit(partial(measure_signals, program, NAMES, SIZE))(trained(), KEY)
    return {name: np.asarray(value, np.float64) for name, value in measured.items()}


class Drawn(NamedTuple):
    """What a check draws: the batch, its targets, contexts of another batch, and the key of a silent head."""

    batch: Batch
    target: Any
    others: Any
    probe_key: Array


@cache
def drawn() -> Drawn:
    state, algorithm = trained(), recall_run(3).program().algorithm
    learned = state.learner.learned
    batch_key, noise_key, probe_key = jax.random.split(KEY, 3)
    both = memory.sample(state.replay, memory.random_bits(batch_key, 2 * SIZE), WINDOW, CHANNELS)
    batch = jax.tree.map(lambda leaf: leaf[::2], both)
    noise, alpha = jax.random.normal(noise_key, (SIZE, CHANNELS)), jnp.exp(state.learner.log_alpha)
    rows = Rows(algorithm.encoder)
    target = soft_target(learned.actor, learned.target, rows, learned.mask, batch, noise, alpha, algorithm.sac.gamma)
    return Drawn(batch, target, both.context[1::2], probe_key)


def double(tree: Any) -> Any:
    """The same numbers as arrays of NumPy in double precision."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


# --- the networks, literally -----------------------------------------------------------------------------------------


def layers(each: Any, x: Any, xp: Any = np) -> Any:
    for layer in each[:-1]:
        x = xp.maximum(x @ layer.w + layer.b, 0)
    return x @ each[-1].w + each[-1].b


def normed(norm: Any, x: Any, xp: Any = np) -> Any:
    variance = xp.var(x, axis=-1, keepdims=True)
    return norm.scale * (x - xp.mean(x, axis=-1, keepdims=True)) / xp.sqrt(variance + 1e-5) + norm.shift


def values_of(critic: Any, block: Any, action: Any, xp: Any = np) -> Any:
    """Both values, (2, B)."""
    seen = xp.concatenate([normed(critic.encoder.norm, block, xp), action], axis=-1)
    twins = [jax.tree.map(lambda leaf, i=i: leaf[i], critic.values) for i in range(2)]
    return xp.stack([layers(each, seen, xp)[..., 0] for each in twins])


def policy_of(actor: Any, block: Floats) -> Floats:
    found: Floats = np.tanh(layers((*actor.hidden, actor.mean), normed(actor.encoder.norm, block)))
    return found


def reads(body: Attention, seen: Any) -> Floats:
    """What each head reads at the last step, (K_max, B, d_k)."""
    plain = body._replace(heads=body.heads._replace(w_o=np.tile(np.eye(D_K), (K_MAX, 1, 1))))
    embedded = seen @ body.embed + body.position
    return np.stack([np.asarray(literal_head(plain, i, embedded)[:, -1]) for i in range(K_MAX)])


def blocks_without_each(body: Attention, fitted_on: Any, seen: Any) -> list[Floats]:
    """The block's output without each active head, of which the others make up for what they can, by least squares."""
    fit, now = reads(body, fitted_on), reads(body, seen)
    size = np.mean(fit[list(ACTIVE)] ** 2)
    found = []
    for head in range(K_MAX):
        others = [i for i in ACTIVE if i != head]
        block = seen[:, -1] @ body.embed + body.position[-1] + sum(now[i] @ body.heads.w_o[i] for i in others)
        if head in ACTIVE:
            known, new = (np.concatenate([each[i] for i in others], axis=-1) for each in (fit, now))
            rows = np.concatenate([known / np.sqrt(SIZE), np.sqrt(RIDGE * size) * np.eye(known.shape[1])])
            wanted = np.concatenate([fit[head] / np.sqrt(SIZE), np.zeros((known.shape[1], D_K))])
            block = block + new @ np.linalg.lstsq(rows, wanted, rcond=None)[0] @ body.heads.w_o[head]
        found.append(block)
    return found


@pytest.fixture(autouse=True)
def defined_in_double_precision() -> Iterator[None]:
    """What is held against the definitions is computed before, as a run computes it."""
    found(), drawn()
    with jax.enable_x64(True):
        yield


class Case(NamedTuple):
    """Networks and batch in double precision."""

    actor: Any
    critic: Any
    batch: Any
    target: Floats
    others: Floats


@cache
def case() -> Case:
    learned = trained().learner.learned
    return Case(*double((learned.actor, learned.critic, drawn().batch, drawn().target, drawn().others)))


def block_of(body: Attention, seen: Any) -> Any:
    return literal(body, jnp.asarray(MASK), seen)


def loss_at(block: Any) -> Any:
    """The critic's loss as a mean over the batch, of both values together."""
    critic, batch = case().critic, case().batch
    return 0.5 * jnp.sum(jnp.mean((values_of(critic, block, batch.action, jnp) - case().target) ** 2, axis=-1))


def slopes() -> Floats:
    """Of each sample the slope of its own loss at the block."""
    block = block_of(case().critic.encoder.body, case().batch.context)
    return np.asarray(SIZE * jax.grad(loss_at)(block))


# --- signals ---------------------------------------------------------------------------------------------------------


def test_the_state_is_one_from_which_something_can_be_told() -> None:
    assert set(found()) == set(NAMES)
    assert all(np.all(np.isfinite(each)) for each in found().values())
    assert all(np.all(found()[name][list(ACTIVE)] > 0) for name in ("gradients", "importance", "removal_jumps"))


def test_residual_and_spread_are_error_and_variance_of_what_is_to_be_explained() -> None:
    critic, batch, target = case().critic, case().batch, case().target
    values = values_of(critic, np.asarray(block_of(critic.encoder.body, batch.context)), batch.action)
    assert found()["residual"] == pytest.approx(np.mean((values.mean(axis=0) - target) ** 2), rel=1e-4)
    assert found()["spread"] == pytest.approx(np.var(target), rel=1e-4)


def test_worth_is_what_the_residual_grows_by_without_a_head() -> None:
    critic, batch, target = case().critic, case().batch, case().target
    whole = float(found()["residual"])
    blocks = blocks_without_each(critic.encoder.body, case().others, batch.context)
    left = [np.mean((values_of(critic, block, batch.action).mean(axis=0) - target) ** 2) for block in blocks]
    np.testing.assert_allclose(found()["worth"], np.array(left) - whole, atol=2e-3 * whole)
    assert found()["worth"][1] == pytest.approx(0, abs=1e-6 * whole)  # of the inactive head
    assert np.max(np.abs(found()["worth"][list(ACTIVE)])) > 0.02 * whole  # far above what is let pass here


def test_removal_jumps_are_what_the_policy_changes_by_without_a_head() -> None:
    actor, seen = case().actor, case().batch.context
    whole = policy_of(actor, np.asarray(block_of(actor.encoder.body, seen)))
    blocks = blocks_without_each(actor.encoder.body, case().others, seen)
    jumps = [np.mean(np.linalg.norm(policy_of(actor, block) - whole, axis=-1)) for block in blocks]
    np.testing.assert_allclose(found()["removal_jumps"], jumps, rtol=5e-3, atol=1e-6)


def test_importance_is_the_share_of_contribution_times_slope() -> None:
    body, seen = case().critic.encoder.body, case().batch.context
    embedded = seen @ body.embed + body.position
    each = [np.asarray(literal_head(body, i, embedded)[:, -1]) * MASK[i] for i in range(K_MAX)]
    sizes = np.array([np.mean(np.abs(np.sum(own * slopes(), axis=-1))) for own in each])
    np.testing.assert_allclose(found()["importance"], sizes / sizes.sum(), rtol=1e-3)
    assert found()["importance"].sum() == pytest.approx(1)


def test_gradients_are_the_mean_sizes_of_each_heads_gradient_beside_the_mean_of_active_heads() -> None:
    body, seen = case().critic.encoder.body, case().batch.context
    gradient = jax.grad(lambda heads: loss_at(block_of(body._replace(heads=heads), seen)))(body.heads)
    sizes = np.array([np.mean([np.mean(np.abs(w[i])) for w in gradient]) for i in range(K_MAX)])
    np.testing.assert_allclose(found()["gradients"], sizes / sizes[list(ACTIVE)].mean(), rtol=1e-3)
    assert found()["gradients"][1] == 0


def silent_head(w_v: Any) -> tuple[Any, Heads]:
    """The loss as a function of the output matrix of one more head, and that head with zeros in it."""
    body, seen = case().critic.encoder.body, case().batch.context
    with jax.enable_x64(False):
        fresh = soft_init(drawn().probe_key[None], D_MODEL, D_K)
    fresh = double(fresh)
    alone = fresh._replace(w_v=fresh.w_v if w_v is None else w_v, w_o=None)
    embedded, before = seen @ body.embed + body.position, block_of(body, seen)

    def loss(w_o: Any) -> Any:
        added = literal_head(body._replace(heads=alone._replace(w_o=w_o[None])), 0, embedded)[:, -1]
        return loss_at(before + added)

    return loss, alone


def test_potential_is_the_largest_gradient_of_a_silent_head() -> None:
    """Over value matrices of norm one, relative to what it is where all samples agree, which is at most."""
    loss, alone = silent_head(np.eye(D_MODEL)[None])
    gradient = np.asarray(jax.grad(loss)(np.zeros((D_MODEL, D_MODEL))))
    body = case().critic.encoder.body._replace(heads=alone._replace(w_o=np.eye(D_MODEL)[None]))
    embedded = case().batch.context @ body.embed + body.position
    read = np.asarray(literal_head(body, 0, embedded)[:, -1])
    agreed = np.sqrt(np.mean(np.sum(read**2, axis=-1)) * np.mean(np.sum(slopes() ** 2, axis=-1)))
    assert found()["potential"] == pytest.approx(np.linalg.norm(gradient, 2) / agreed, rel=1e-3)
    assert 0 < found()["potential"] < 1
    random = np.random.default_rng(0).normal(size=(D_MODEL, D_K))
    some, _ = silent_head((random / np.linalg.norm(random))[None])
    assert np.linalg.norm(jax.grad(some)(np.zeros((D_K, D_MODEL)))) <= found()["potential"] * agreed


def test_expansion_is_half_the_natural_step_of_a_silent_head_as_a_fraction_of_the_loss() -> None:
    """g^T F^-1 g with the whole matrix F, the Kronecker product of its two factors."""
    critic, batch = case().critic, case().batch
    loss, alone = silent_head(None)
    gradient = np.asarray(jax.grad(loss)(np.zeros((D_K, D_MODEL))))
    body = critic.encoder.body._replace(heads=alone._replace(w_o=np.eye(D_K)[None]))
    read = np.asarray(literal_head(body, 0, batch.context @ body.embed + body.position)[:, -1])
    block = block_of(critic.encoder.body, batch.context)
    jacobian = np.asarray(jax.jacrev(lambda each: values_of(critic, each, batch.action, jnp).sum(axis=1))(block))

    def damped(covariance: Floats) -> Floats:
        found: Floats = covariance + DAMPING * np.mean(np.diag(covariance)) * np.eye(len(covariance))
        return found

    inside = damped(read.T @ read / SIZE)
    outside = damped(sum(each.T @ each for each in jacobian) / SIZE)
    natural = np.linalg.solve(np.kron(inside, outside), gradient.ravel())
    expected = 0.5 * gradient.ravel() @ natural / float(loss_at(block))
    assert found()["expansion"] == pytest.approx(expected, rel=2e-2)


# --- draws -----------------------------------------------------------------------------------------------------------


def test_a_signal_is_the_same_whatever_is_measured_beside_it() -> None:
    with jax.enable_x64(False):
        program = recall_run(3).program()
        for name in NAMES:
            alone = jax.jit(partial(measure_signals, program, (name,), SIZE))(trained(), KEY)
            assert list(alone) == [name]
            np.testing.assert_allclose(alone[name], found()[name], rtol=2e-3, atol=1e-5, err_msg=name)


def test_signals_depend_on_key_and_state_alone() -> None:
    with jax.enable_x64(False):
        measured = jax.jit(partial(measure_signals, recall_run(3).program(), NAMES, SIZE))
        again, other = measured(trained(), KEY), measured(trained(), jax.random.key(6))
    for name in NAMES:
        np.testing.assert_array_equal(again[name], found()[name].astype(np.float32), err_msg=name)
        assert not np.array_equal(other[name], again[name]), name


def test_a_run_is_shown_the_same_in_company() -> None:
    with jax.enable_x64(False):
        own = HEADS.replace(trigger="earned")

        def looked(*seeds: int) -> dict[int, dict[str, Any]]:
            runs = [recall_run(seed, heads=own) for seed in seeds]
            stack = Stack(range(len(seeds)), [first_progress(run) for run in runs], [saved_state()] * len(seeds))
            signals = jax.device_get(stack.look().signals)
            return {i: {name: each[i] for name, each in signals.items()} for i in range(len(seeds))}

        alone, company = looked(3)[0], looked(3, 4)
    assert set(alone) == {"residual", "spread", "worth", "removal_jumps"}
    for name, value in alone.items():
        for i in range(2):  # both stand at the same state; whose seed it was begun with is part of that
            np.testing.assert_allclose(company[i][name], value, rtol=2e-3, atol=1e-5, err_msg=name)


def saved_state() -> RunState:
    state: RunState = jax.device_get(trained())
    return state
