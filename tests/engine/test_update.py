"""One update of Soft Actor-Critic: what it may change, the penalty's multiplier, and the equations in NumPy.

Whole updates are held against Stable-Baselines3's in test_sac_parity.py.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
import torch
from jax import Array
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from incrt.config import EncoderConfig, SacConfig
from incrt.engine.layouts import Noise, Rows
from incrt.engine.losses import actor_loss, critic_loss, soft_target, temperature_loss
from incrt.engine.networks import Actor, Critic, mean_action, sample_action
from incrt.engine.replay import Batch
from incrt.engine.update import Algorithm, Learner, Losses, init_learner, update
from incrt.heads.encoders import Encoded, make_encoder
from incrt.heads.layers import Dense

Numbers = npt.NDArray[np.float64]

WINDOW, OBSERVED, ACTIONS, BATCH = 3, 2, 2, 16
MASK = np.array([True, False, True, False])
ALGORITHM = Algorithm(
    make_encoder(EncoderConfig(k_max=len(MASK), d_k=2), WINDOW, OBSERVED),
    SacConfig(batch=BATCH, hidden=(8,), tau=0.25, gamma=0.9, penalty_rate=0.1, penalty_limit=0.2),
    ACTIONS,
)


def drawn(seed: int, tree: Any) -> Any:
    """Random parameters, since fresh ones have zeros in many places."""
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.5, x.shape), jnp.float32), tree)


def make_batch(seed: int) -> tuple[Batch, Noise]:
    random = np.random.default_rng(seed)
    frames = jnp.asarray(random.normal(size=(BATCH, WINDOW + 1, OBSERVED)), jnp.float32)
    batch = Batch(
        context=frames[:, :-1],
        action=jnp.asarray(random.uniform(-1, 1, (BATCH, ACTIONS)), jnp.float32),
        reward=jnp.asarray(random.normal(-1, 1, BATCH), jnp.float32),
        next_context=frames[:, 1:],
        terminated=jnp.asarray(random.random(BATCH) < 0.3),
    )
    return batch, Noise(*jnp.asarray(random.normal(size=(2, BATCH, ACTIONS)), jnp.float32))


BATCH_1, NOISE_1 = make_batch(1)


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # compiles in half the time
def step(learner: Learner, batch: Batch, noise: Noise, scale: float, go: bool) -> Any:
    """An update in which an action is the further from the admissible ones the larger its first entry is."""
    return update(ALGORITHM, learner, batch, noise, lambda _, a: scale * (a[:, 0] + 1), jnp.asarray(go))


def updated(learner: Learner, seed: int = 1, scale: float = 1.0) -> tuple[Learner, Losses]:
    after, losses = step(learner, *make_batch(seed), scale, True)
    return after, losses


def zeros_like_a_learner(algorithm: Algorithm) -> Learner:
    """Parameters of the right shapes; a tenth of the time that fresh ones take."""
    shapes = jax.eval_shape(partial(init_learner, algorithm), jax.random.key(0))
    zeros: Learner = jax.tree.map(lambda x: jnp.asarray(np.zeros(x.shape, x.dtype)), shapes)
    return zeros


@pytest.fixture(scope="module")
def learner() -> Learner:
    """In the midst of training: two heads of four, a target unlike the critic, moments."""
    start = zeros_like_a_learner(ALGORITHM)
    learned = start.learned._replace(
        mask=jnp.asarray(MASK),
        actor=drawn(1, start.learned.actor),
        critic=drawn(2, start.learned.critic),
        target=drawn(3, start.learned.target),
    )
    start = start._replace(learned=learned, log_alpha=jnp.float32(-0.4), multiplier=jnp.float32(0.5))
    for seed in (10, 11):
        start, _ = updated(start, seed)
    return start


def same(one: Any, other: Any) -> bool:
    """Equal to the bit."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


# --- what changes and what does not ------------------------------------------------------------------------------


def test_an_update_moves_everything_but_the_mask(learner: Learner) -> None:
    after, _ = updated(learner)
    for name in ("actor", "critic", "target", "actor_adam", "critic_adam"):
        assert not same(getattr(learner.learned, name), getattr(after.learned, name)), name
    for name in ("log_alpha", "log_alpha_adam", "multiplier"):
        assert not same(getattr(learner, name), getattr(after, name)), name
    assert same(learner.learned.mask, after.learned.mask)


def test_where_it_is_told_not_to_it_changes_nothing(learner: Learner) -> None:
    after, _ = step(learner, BATCH_1, NOISE_1, 1.0, False)
    assert same(after, learner)


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1e30])
def test_a_critic_loss_that_is_not_finite_changes_nothing(learner: Learner, reward: float) -> None:
    batch = BATCH_1._replace(reward=BATCH_1.reward.at[3].set(reward))
    after, losses = step(learner, batch, NOISE_1, 1.0, True)
    assert not math.isfinite(losses.critic_loss)
    assert same(after, learner)


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_an_actor_loss_that_is_not_finite_leaves_all_but_the_critic(learner: Learner, scale: float) -> None:
    after, losses = updated(learner, scale=scale)
    sound, _ = updated(learner)
    assert math.isfinite(losses.critic_loss)
    assert not math.isfinite(losses.actor_loss)
    assert same(after.learned.critic, sound.learned.critic)
    assert same(after.learned.critic_adam, sound.learned.critic_adam)
    learned = after.learned._replace(critic=learner.learned.critic, critic_adam=learner.learned.critic_adam)
    assert same(after._replace(learned=learned), learner)


def test_inactive_heads_stay_as_they_are_in_all_three_networks(learner: Learner) -> None:
    after = learner
    for seed in range(6):
        after, _ = updated(after, seed)
    for name in ("actor", "critic", "target"):
        before, now = (getattr(each.learned, name).encoder.body.heads for each in (learner, after))
        for old, new in zip(before, now, strict=True):
            assert same(old[~MASK], new[~MASK]), name
            assert (np.abs(old[MASK] - new[MASK]) > 0).all(axis=(1, 2)).all(), name
    critic, target = learner.learned.critic, learner.learned.target
    assert not same(critic.encoder.body.heads, target.encoder.body.heads)


def test_the_target_goes_its_part_of_the_way_to_the_new_critic(learner: Learner) -> None:
    after, _ = updated(learner)
    old, new, critic = learner.learned.target, after.learned.target, after.learned.critic
    expected = jax.tree.map(lambda t, c: 0.75 * np.asarray(t, float) + 0.25 * np.asarray(c, float), old, critic)
    held = expected.encoder.body.heads
    for matrix, before in zip(held, old.encoder.body.heads, strict=True):
        matrix[~MASK] = before[~MASK]
    for x, y in zip(jax.tree.leaves(new), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


# --- penalty ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "rises"), [(1.0, True), (1e-3, False)])
def test_the_multiplier_follows_the_distance_beyond_its_limit(learner: Learner, scale: float, rises: bool) -> None:
    after, losses = updated(learner, scale=scale)
    assert (float(losses.distance) > ALGORITHM.sac.penalty_limit) == rises
    assert (after.multiplier > learner.multiplier) == rises
    assert float(losses.multiplier) == float(learner.multiplier)
    expected = float(learner.multiplier) + 0.1 * (float(losses.distance) - 0.2)
    assert float(after.multiplier) == pytest.approx(expected, rel=1e-6)


def test_the_multiplier_is_never_below_zero(learner: Learner) -> None:
    after = learner._replace(multiplier=jnp.float32(0.03))
    found = []
    for _ in range(4):
        after, _ = step(after, BATCH_1, NOISE_1, 0.0, True)
        found.append(float(after.multiplier))
    assert found == pytest.approx([0.01, 0, 0, 0])
    assert min(found) == 0


@jax.jit
def first_action(learner: Learner) -> Array:
    """Mean of the entry that the distance grows with."""
    encoder, learned = ALGORITHM.encoder, learner.learned
    features = encoder.features(learned.actor.encoder, learned.mask, BATCH_1.context)
    return mean_action(learned.actor, features)[:, 0].mean()


def test_the_penalty_pushes_the_actor_towards_admissible_actions(learner: Learner) -> None:
    def after(multiplier: float) -> Learner:
        found = learner
        for _ in range(40):
            found = found._replace(multiplier=jnp.float32(multiplier))
            found, _ = step(found, BATCH_1, NOISE_1, 1.0, True)
        return found

    without, weak, strong = (float(first_action(after(multiplier))) for multiplier in (0.0, 1.0, 100.0))
    assert strong < weak < without
    assert strong < first_action(learner)


# --- temperature --------------------------------------------------------------------------------------------------


def test_the_entropy_to_hold_is_minus_the_number_of_actions_unless_it_is_given() -> None:
    assert ALGORITHM.target_entropy == -2
    assert Algorithm(ALGORITHM.encoder, SacConfig(target_entropy=0.5), 6).target_entropy == 0.5
    assert Algorithm(ALGORITHM.encoder, SacConfig(target_entropy=0), 6).target_entropy == 0


def test_the_temperature_rises_while_the_entropy_is_below_its_target_and_falls_above() -> None:
    slope = jax.jit(jax.grad(temperature_loss), static_argnums=2)
    for log_alpha in (-3.0, 0.0, 2.0):
        assert float(slope(log_alpha, 7.0, -2.0)) == pytest.approx(-5)  # entropy -7
        assert float(slope(log_alpha, 1.0, -2.0)) == pytest.approx(1)  # entropy -1
    assert float(temperature_loss(jnp.asarray(-0.5), jnp.asarray(3.0), -2.0)) == pytest.approx(0.5)


@pytest.mark.parametrize(("spread", "sign"), [(-4.0, 1), (0.0, -1)])
def test_an_actor_of_little_entropy_makes_an_update_raise_the_temperature(
    learner: Learner, spread: float, sign: int
) -> None:
    actor = learner.learned.actor
    mean, log_std = (jax.tree.map(jnp.zeros_like, layer) for layer in (actor.mean, actor.log_std))
    actor = actor._replace(mean=mean, log_std=log_std._replace(b=log_std.b + spread))
    moments = jax.tree.map(jnp.zeros_like, learner.log_alpha_adam)
    start = learner._replace(learned=learner.learned._replace(actor=actor), log_alpha_adam=moments)
    after, losses = updated(start)
    assert (losses.entropy < -2) == (sign > 0)
    assert float(losses.temperature) == pytest.approx(math.exp(start.log_alpha), rel=1e-6)
    # Adam's first step is the learning rate itself.
    assert float(after.log_alpha - start.log_alpha) == pytest.approx(sign * 3e-4, rel=1e-3)


# --- densities ----------------------------------------------------------------------------------------------------


def gaussian(actions: int) -> Actor:
    """An actor whose features are its means and then the logarithms of its deviations."""
    nothing, one = np.zeros((actions, actions), np.float32), np.eye(actions, dtype=np.float32)
    bias = np.zeros(actions, np.float32)
    return Actor(
        encoder=Encoded(None, None),
        hidden=(),
        mean=Dense(np.concatenate([one, nothing]), bias),
        log_std=Dense(np.concatenate([nothing, one]), bias),
    )


density = jax.jit(sample_action)
density_slope = jax.jit(jax.grad(lambda *x: jnp.sum(sample_action(*x)[1]), argnums=1))


def literal_density(mean: Any, log_std: Any, noise: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's density of squashed normal draws, less what Stable-Baselines3's 1e-6 makes of it."""
    normal = Normal(mean, log_std.exp())
    squashed: Any = TransformedDistribution(normal, [TanhTransform(cache_size=1)])
    unsquashed = mean + log_std.exp() * noise
    transform = squashed.transforms[0]
    action = transform(unsquashed)
    slope = transform.log_abs_det_jacobian(unsquashed, action).exp()
    return action, (squashed.log_prob(action) + torch.log(slope / (slope + 1e-6))).sum(-1)


@pytest.mark.parametrize("furthest", [1.0, 4.0, 8.0, 12.0])
def test_densities_and_their_slopes_are_those_of_pytorch_also_where_actions_saturate(furthest: float) -> None:
    random = np.random.default_rng(0)
    noise = random.normal(size=(200, 3)).astype(np.float32)
    log_std = random.uniform(-5, 1, (200, 3)).astype(np.float32)
    unsquashed = random.uniform(-furthest, furthest, (200, 3))
    unsquashed[0] = (furthest, -furthest, 0)
    mean = (unsquashed - np.exp(log_std) * noise).astype(np.float32)
    features = np.concatenate([mean, log_std], axis=-1)

    inputs = torch.tensor(features, dtype=torch.float64, requires_grad=True)
    action, expected = literal_density(inputs[:, :3], inputs[:, 3:], torch.tensor(noise, dtype=torch.float64))
    slope = torch.autograd.grad(expected.sum(), inputs)[0]

    found, log_prob = density(gaussian(3), features, noise)
    np.testing.assert_allclose(found, action.detach(), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(log_prob, expected.detach(), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(density_slope(gaussian(3), features, noise), slope, rtol=1e-4, atol=1e-4)


def test_deviations_are_cut_off_and_the_mean_is_squashed() -> None:
    features = jnp.array([[0.5, -30.0], [0.5, 30.0], [-20.0, 1.0]])
    noise = np.ones((3, 1), np.float32)
    action, _ = density(gaussian(1), features, noise)
    expected = np.tanh([0.5 + math.exp(-20), 0.5 + math.exp(2), -20 + math.e])
    np.testing.assert_allclose(action[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(mean_action(gaussian(1), features)[:, 0], np.tanh([0.5, 0.5, -20]), rtol=1e-6)


# --- losses, written out ------------------------------------------------------------------------------------------

PLAIN = make_encoder(EncoderConfig(encoder="none", k_max=1, d_k=4, layer_norm=False), WINDOW, OBSERVED)
"""Features are an affine function of the last observation, which leaves little to write out."""
NO_MASK = PLAIN.first_mask
ALPHA, MULTIPLIER, GAMMA = 0.3, 1.7, 0.9


@pytest.fixture(scope="module")
def networks() -> tuple[Actor, Critic]:
    learned = zeros_like_a_learner(Algorithm(PLAIN, SacConfig(hidden=(5, 3)), ACTIONS)).learned
    return drawn(4, learned.actor), drawn(5, learned.critic)


def double(x: Any) -> Numbers:
    return np.asarray(x, np.float64)


def affine(layer: Dense, x: Numbers) -> Numbers:
    return x @ double(layer.w) + double(layer.b)


def literal_actor(actor: Actor, contexts: Array, noise: Array) -> tuple[Numbers, Numbers]:
    x = affine(actor.encoder.body, double(contexts)[:, -1])
    for layer in actor.hidden:
        x = np.maximum(affine(layer, x), 0)
    mean, log_std = affine(actor.mean, x), np.clip(affine(actor.log_std, x), -20, 2)
    action = np.tanh(mean + np.exp(log_std) * double(noise))
    normal = -0.5 * double(noise) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return action, np.sum(normal - np.log(1 - action**2 + 1e-6), axis=-1)


def literal_values(critic: Critic, contexts: Array, action: Numbers) -> Numbers:
    features = affine(critic.encoder.body, double(contexts)[:, -1])
    found = []
    for stack in (0, 1):
        x = np.concatenate([features, action], axis=-1)
        for i, layer in enumerate(critic.values):
            x = affine(Dense(layer.w[stack], layer.b[stack]), x)
            x = x if i == len(critic.values) - 1 else np.maximum(x, 0)
        found.append(x[:, 0])
    return np.stack(found)


def test_the_target_of_the_critic_is_the_literal_one(networks: tuple[Actor, Critic]) -> None:
    actor, critic = networks
    found = jax.jit(partial(soft_target, layout=Rows(PLAIN), gamma=GAMMA))(
        actor, critic, mask=NO_MASK, batch=BATCH_1, noise=NOISE_1.later, alpha=ALPHA
    )
    action, log_prob = literal_actor(actor, BATCH_1.next_context, NOISE_1.later)
    values = literal_values(critic, BATCH_1.next_context, action)
    assert 0 < np.argmin(values, axis=0).sum() < BATCH
    goes_on = 1 - double(BATCH_1.terminated)
    assert 0 < goes_on.sum() < BATCH
    expected = double(BATCH_1.reward) + GAMMA * goes_on * (values.min(axis=0) - ALPHA * log_prob)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_value_after_a_terminal_state_counts_for_nothing_even_if_it_is_not_finite(
    networks: tuple[Actor, Critic],
) -> None:
    actor, critic = networks
    contexts = jnp.where(BATCH_1.terminated[:, None, None], jnp.nan, BATCH_1.next_context)
    found = jax.jit(partial(soft_target, layout=Rows(PLAIN), gamma=GAMMA))(
        actor, critic, mask=NO_MASK, batch=BATCH_1._replace(next_context=contexts), noise=NOISE_1.later, alpha=ALPHA
    )
    np.testing.assert_array_equal(found[BATCH_1.terminated], BATCH_1.reward[BATCH_1.terminated])
    assert np.isfinite(found).all()


def test_the_loss_of_the_critic_is_the_literal_one(networks: tuple[Actor, Critic]) -> None:
    _, critic = networks
    target = jnp.linspace(-3, 2, BATCH)
    loss, mean = jax.jit(partial(critic_loss, layout=Rows(PLAIN)))(critic, mask=NO_MASK, batch=BATCH_1, target=target)
    values = literal_values(critic, BATCH_1.context, double(BATCH_1.action))
    first, second = np.mean((values - double(target)) ** 2, axis=-1)
    assert float(loss) == pytest.approx(0.5 * (first + second), rel=1e-5)
    assert float(mean) == pytest.approx(values.mean(), rel=1e-5)


def away(observation: Any, action: Any) -> Any:
    """A distance that needs both."""
    return (observation[:, 0] - action[:, 1]) ** 2


def test_the_loss_of_the_actor_is_the_literal_one(networks: tuple[Actor, Critic]) -> None:
    actor, critic = networks
    action, log_prob = literal_actor(actor, BATCH_1.context, NOISE_1.now)
    value = literal_values(critic, BATCH_1.context, action).min(axis=0)
    plain = np.mean(ALPHA * log_prob - value)
    far = np.mean(away(double(BATCH_1.context)[:, -1], action))
    for distance, wanted, distant in ((None, plain, 0.0), (away, plain + MULTIPLIER * far, far)):
        loss, info = jax.jit(partial(actor_loss, layout=Rows(PLAIN), distance=distance))(
            actor, critic, mask=NO_MASK, batch=BATCH_1, noise=NOISE_1.now, alpha=ALPHA, multiplier=MULTIPLIER
        )
        assert float(loss) == pytest.approx(wanted, rel=1e-5)
        assert float(info.log_prob) == pytest.approx(log_prob.mean(), rel=1e-5)
        assert float(info.distance) == pytest.approx(distant, rel=1e-5)
