"""Columns against rows: the layout that trains heads fast on a CPU computes what the plain one does."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from incrt.config import EncoderConfig, SacConfig
from incrt.engine import replay as memory
from incrt.engine.columns import Columns, layout_for
from incrt.engine.layouts import Layout, Noise, Rows
from incrt.engine.replay import Batch, Replay, random_bits
from incrt.engine.update import Algorithm, Learner, Losses, init_learner, update
from incrt.heads.attention import hold_inactive
from incrt.heads.encoders import HeadsEncoder, make_encoder

WINDOW, OBSERVED, ACTIONS, BATCH, K_MAX = 6, 5, 3, 32, 4
UPDATES = 100


@pytest.fixture
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class Shape(NamedTuple):
    """What a network may be made of."""

    layer_norm: bool = True
    hidden: tuple[int, ...] = (16, 12)
    mask: tuple[bool, ...] = (True, False, True, False)
    slots: int = 2
    penalty: bool = True


SHAPES = {
    "half of the heads": Shape(),
    "all heads, no norm": Shape(layer_norm=False, mask=(True,) * 4, slots=4),
    "one head of two slots": Shape(mask=(False, False, False, True)),
    "one hidden layer": Shape(hidden=(8,), slots=4),
    "no hidden layer, no penalty": Shape(hidden=(), penalty=False),
}


def encoder_of(shape: Shape) -> HeadsEncoder:
    config = EncoderConfig(encoder="runtime", k_max=K_MAX, d_k=4, layer_norm=shape.layer_norm)
    encoder = make_encoder(config, WINDOW, OBSERVED)
    assert isinstance(encoder, HeadsEncoder)
    return encoder


@cache
def algorithm_of(shape: Shape) -> Algorithm:
    sac = SacConfig(batch=BATCH, hidden=shape.hidden, learning_rate=1e-3, penalty=shape.penalty)
    return Algorithm(encoder_of(shape), sac, ACTIONS)


def make_learner(shape: Shape) -> Learner:
    """Random parameters and moments, since a fresh learner's are zero in many places; idle heads have no moments."""
    random = np.random.default_rng(7)
    fresh = init_learner(algorithm_of(shape), jax.random.key(0))

    def drawn(tree: Any, scale: float) -> Any:
        return jax.tree.map(lambda x: jnp.asarray(scale * random.normal(size=x.shape)), tree)

    def adam(state: Any, network: Any) -> Any:
        moments = drawn(network, 0.01), jax.tree.map(jnp.square, drawn(network, 0.1))
        mu, nu = (hold_inactive(jnp.array(shape.mask), jax.tree.map(jnp.zeros_like, each), each) for each in moments)
        head_steps = jnp.arange(3, 3 + K_MAX, dtype=state.head_steps.dtype)
        return state._replace(steps=state.steps + 40, head_steps=head_steps, mu=mu, nu=nu)

    learned = fresh.learned
    networks = {name: drawn(getattr(learned, name), 0.4) for name in ("actor", "critic", "target")}
    learned = learned._replace(
        mask=jnp.array(shape.mask),
        **networks,
        actor_adam=adam(learned.actor_adam, networks["actor"]),
        critic_adam=adam(learned.critic_adam, networks["critic"]),
    )
    return fresh._replace(learned=learned, log_alpha=jnp.asarray(-0.4), multiplier=jnp.asarray(0.5))


def make_replay(steps: int) -> Replay:
    """Episodes of eleven steps, some ended for good."""
    random = np.random.default_rng(3)
    replay = memory.begin(memory.empty(200, OBSERVED, ACTIONS), jnp.asarray(random.normal(size=OBSERVED)))
    add = jax.jit(memory.add)
    for i in range(steps):
        observation, first = (jnp.asarray(each) for each in random.normal(size=(2, OBSERVED)))
        done, terminated = jnp.asarray(i % 11 == 10), jnp.asarray(i % 22 == 10)
        action, reward = memory.quantised(jnp.asarray(random.uniform(-1, 1, ACTIONS))), jnp.asarray(random.normal())
        replay = add(replay, action, reward, terminated, done, observation, first, jnp.asarray(True))
    return replay


def away(observation: Array, action: Array) -> Array:
    return jnp.sum(jnp.maximum(jnp.abs(action) - 0.3, 0)) + 0.1 * jnp.abs(observation[0])


def trained(shape: Shape, layout: Layout, learner: Learner, replay: Replay) -> tuple[Learner, Losses]:
    """So many updates, each on transitions of its own, in this layout."""
    algorithm = algorithm_of(shape)
    distance = jax.vmap(away, in_axes=layout.sample_axis) if shape.penalty else None

    def one(packed: Learner, key: Array) -> tuple[Learner, Losses]:
        batch = layout.sample(replay, random_bits(key, BATCH), ACTIONS, jnp.asarray(True))
        noise = layout.noise(jax.random.fold_in(key, 1), BATCH, ACTIONS)
        return update(algorithm, packed, batch, noise, distance, jnp.asarray(True), layout)

    @jax.jit
    def stretch(learner: Learner) -> tuple[Learner, Losses]:
        packed, losses = jax.lax.scan(one, layout.pack(learner), jax.random.split(jax.random.key(5), UPDATES))
        return layout.unpack(packed, learner), losses

    after, losses = stretch(learner)
    return after, losses


def furthest(one: Any, other: Any) -> float:
    """The largest difference, beside the size of what differs."""
    x, y = (np.concatenate([np.ravel(leaf).astype(float) for leaf in jax.tree.leaves(tree)]) for tree in (one, other))
    return float(np.max(np.abs(x - y) / (1 + np.abs(y))))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", SHAPES)
def test_a_hundred_updates_by_columns_are_those_by_rows(name: str) -> None:
    shape = SHAPES[name]
    learner, replay = make_learner(shape), make_replay(150)
    columns = Columns(encoder_of(shape), shape.slots)
    plain, plain_losses = trained(shape, Rows(encoder_of(shape)), learner, replay)
    fast, fast_losses = trained(shape, columns, learner, replay)
    assert furthest(plain, learner) > 1e-3
    assert furthest(fast_losses, plain_losses) < 1e-10
    mask = np.array(shape.mask)
    carried = np.argsort(~mask, kind="stable")[: shape.slots]

    def without_idle_steps(found: Learner) -> Learner:
        """Steps of heads that are left out are not counted; a head starts at zero when it comes (growth forgets)."""
        actor, critic = (
            state._replace(head_steps=state.head_steps[carried])
            for state in (found.learned.actor_adam, found.learned.critic_adam)
        )
        return found._replace(learned=found.learned._replace(actor_adam=actor, critic_adam=critic))

    assert furthest(without_idle_steps(fast), without_idle_steps(plain)) < 1e-10


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_packed_comes_back_to_the_bit(name: str) -> None:
    shape = SHAPES[name]
    layout = Columns(encoder_of(shape), shape.slots)
    learner = make_learner(shape)
    back = layout.unpack(layout.pack(learner), learner)
    pairs = zip(jax.tree.leaves(back), jax.tree.leaves(learner), strict=True)
    assert all(np.array_equal(x, y) for x, y in pairs)
    assert str(jax.tree.structure(back)) == str(jax.tree.structure(learner))


def test_heads_that_are_left_out_stay_as_they_were() -> None:
    shape = SHAPES["half of the heads"]
    learner = make_learner(shape)
    after, _ = trained(shape, Columns(encoder_of(shape), shape.slots), learner, make_replay(150))
    idle = ~np.array(shape.mask)
    for name in ("actor", "critic", "target"):
        before, now = (getattr(each.learned, name).encoder.body.heads for each in (learner, after))
        for old, new in zip(before, now, strict=True):
            np.testing.assert_array_equal(old[idle], new[idle])
            assert np.all(np.any(old[~idle] != new[~idle], axis=(1, 2)))


@pytest.mark.usefixtures("double")
def test_the_same_transitions_and_actions_are_drawn() -> None:
    shape = SHAPES["half of the heads"]
    rows, columns = Rows(encoder_of(shape)), Columns(encoder_of(shape), shape.slots)
    replay, key, learner = make_replay(150), jax.random.key(2), make_learner(shape)
    plain, fast = (each.sample(replay, random_bits(key, BATCH), ACTIONS, jnp.asarray(True)) for each in (rows, columns))
    turned = Batch(
        context=jnp.transpose(fast.context, (2, 1, 0)),
        action=fast.action.T,
        reward=fast.reward,
        next_context=jnp.transpose(fast.next_context, (2, 1, 0)),
        terminated=fast.terminated,
    )
    for x, y in zip(turned, plain, strict=True):
        np.testing.assert_array_equal(x, y)
    noise, others = (each.noise(key, BATCH, ACTIONS) for each in (rows, columns))
    for x, y in zip(noise, Noise(*(each.T for each in others)), strict=True):
        np.testing.assert_array_equal(x, y)
    normal = jnp.asarray(np.random.default_rng(1).normal(size=ACTIONS))
    acts = [
        each.act(packed.learned.actor, packed.learned.mask, plain.context[0], normal)
        for each, packed in ((rows, learner), (columns, columns.pack(learner)))
    ]
    np.testing.assert_allclose(acts[1], acts[0], rtol=1e-12)


@pytest.mark.parametrize("broken", ["actor", "critic"])
def test_what_is_not_finite_is_seen_by_columns_too(broken: str) -> None:
    shape = SHAPES["half of the heads"]
    layout, learner = Columns(encoder_of(shape), shape.slots), make_learner(shape)
    network = getattr(learner.learned, broken)
    embed = network.encoder.body.embed.at[0, 0].set(jnp.nan)
    network = network._replace(encoder=network.encoder._replace(body=network.encoder.body._replace(embed=embed)))
    packed = layout.pack(learner._replace(learned=learner.learned._replace(**{broken: network})))
    batch = layout.sample(make_replay(50), random_bits(jax.random.key(2), BATCH), ACTIONS, jnp.asarray(True))
    noise = layout.noise(jax.random.key(3), BATCH, ACTIONS)
    go = partial(update, algorithm_of(shape), layout=layout, distance=None, go=jnp.asarray(True))
    after, losses = jax.jit(go)(packed, batch, noise)
    assert not np.isfinite(losses.critic_loss)
    for x, y in zip(jax.tree.leaves(after), jax.tree.leaves(packed), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(("heads", "slots"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 6), (6, 6)], ids=str)
def test_slots_come_in_powers_of_two_up_to_the_cap(heads: int, slots: int) -> None:
    encoder = make_encoder(EncoderConfig(k_max=6), WINDOW, OBSERVED)
    layout = layout_for(encoder, heads, "cpu")
    assert isinstance(layout, Columns)
    assert layout.slots == slots
    assert hash(layout) == hash(layout_for(encoder, heads, "cpu"))


def test_a_gpu_encoders_without_heads_and_wide_observations_keep_rows() -> None:
    heads, others = make_encoder(EncoderConfig(), 4, 3), make_encoder(EncoderConfig(encoder="gru"), 4, 3)
    assert layout_for(heads, 3, "gpu") == Rows(heads)
    assert layout_for(others, 0, "cpu") == Rows(others)
    wide = make_encoder(EncoderConfig(), 4, 120)
    assert layout_for(wide, 3, "cpu") == Rows(wide)
