"""One update of the engine against one of Stable-Baselines3's own SAC: same weights, same batch, same noise.

Adam's first step is the sign of the gradient: where a gradient is nothing but rounding, the parameter may go a whole
learning rate either way, in either program. So both compute in double precision, in which every parameter can be held
against its peer; a last test says what that leaves of single precision.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from torch import nn

from incrt.config import EncoderConfig, SacConfig
from incrt.engine.layouts import Noise
from incrt.engine.networks import Actor, Critic
from incrt.engine.replay import Batch
from incrt.engine.update import Algorithm, Learner, Losses, init_learner, update
from incrt.heads.attention import Heads, map_heads
from incrt.heads.encoders import Encoded, head_features, make_encoder
from incrt.heads.layers import Dense, Norm

WINDOW, OBSERVED, ACTIONS, K_MAX, BATCH = 20, 11, 6, 8, 64
ALL = (True,) * K_MAX
SOME = (True, False, True, True, False, False, False, True)
SINGLE, DOUBLE = 1e-5, 1e-7
"""Differences of losses and parameters below these are none, in single and in double precision."""


@pytest.fixture
def double() -> Iterator[None]:
    """Double precision in JAX and PyTorch for one test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(before)


# --- the engine ---------------------------------------------------------------------------------------------------


def algorithm(layer_norm: bool) -> Algorithm:
    encoder = make_encoder(EncoderConfig(encoder="static", k_max=K_MAX, layer_norm=layer_norm), WINDOW, OBSERVED)
    return Algorithm(encoder, SacConfig(batch=BATCH), ACTIONS)


def drawn(seed: int, tree: Any) -> Any:
    """Random parameters. Fresh ones have biases of 0 and norms of 1 and 0, with which a wrong use of one would pass."""
    random = np.random.default_rng(seed)

    def array(shape: tuple[int, ...]) -> Any:
        deviation = np.sqrt(2 / sum(shape[-2:])) if len(shape) > 1 else 0.1
        return jnp.asarray(random.normal(0, deviation, shape), float)

    def one(node: Any) -> Any:
        return (
            Norm(1 + array(node.scale.shape), array(node.shift.shape)) if isinstance(node, Norm) else array(node.shape)
        )

    return jax.tree.map(one, tree, is_leaf=lambda node: isinstance(node, Norm))


def make_learner(layer_norm: bool = True, mask: tuple[bool, ...] = ALL) -> Learner:
    """A learner as it may be in the midst of training, the target unlike the critic, but for Adam's moments of zero."""
    shapes = jax.eval_shape(partial(init_learner, algorithm(layer_norm)), jax.random.key(0))
    zeros: Learner = jax.tree.map(lambda x: jnp.asarray(np.zeros(x.shape, x.dtype)), shapes)
    learned = zeros.learned._replace(
        mask=jnp.array(mask),
        actor=drawn(1, shapes.learned.actor),
        critic=drawn(2, shapes.learned.critic),
        target=drawn(3, shapes.learned.target),
    )
    return zeros._replace(learned=learned, log_alpha=jnp.asarray(-0.4))


def make_batch(seed: int) -> tuple[Batch, Noise]:
    """Transitions, some of them terminal, and draws."""
    random = np.random.default_rng(seed)
    frames = random.standard_normal((BATCH, WINDOW + 1, OBSERVED), np.float32)  # what SB3 casts observations to
    batch = Batch(
        context=jnp.asarray(frames[:, :-1], float),
        action=jnp.asarray(random.uniform(-1, 1, (BATCH, ACTIONS)), float),
        reward=jnp.asarray(random.normal(-1, 1, BATCH), float),
        next_context=jnp.asarray(frames[:, 1:], float),
        terminated=jnp.asarray(random.random(BATCH) < 0.25),
    )
    now, later = random.standard_normal((2, BATCH, ACTIONS))
    return batch, Noise(jnp.asarray(now, float), jnp.asarray(later, float))


@cache
def compiled(layer_norm: bool) -> Callable[[Learner, Batch, Noise], tuple[Learner, Losses]]:
    return jax.jit(partial(update, algorithm(layer_norm), distance=None, go=jnp.asarray(True)))


# --- Stable-Baselines3 --------------------------------------------------------------------------------------------


class Spaces(gym.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]):
    """Nothing but spaces; no step is ever taken."""

    observation_space = spaces.Box(-np.inf, np.inf, (WINDOW, OBSERVED), np.float32)
    action_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)


class HeadsExtractor(BaseFeaturesExtractor):
    """The heads encoder on PyTorch's parameters, which are as many and as large as those of ``like``."""

    def __init__(self, observation_space: spaces.Box, like: Encoded, mask: tuple[bool, ...]) -> None:
        super().__init__(observation_space, like.body.embed.shape[-1])
        leaves, self._structure = jax.tree.flatten(like)
        self._leaves = nn.ParameterList(torch.zeros(leaf.shape) for leaf in leaves)
        self._mask = torch.tensor(mask)

    @property
    def params(self) -> Encoded:
        encoded: Encoded = jax.tree.unflatten(self._structure, list(self._leaves))
        return encoded

    def forward(self, context: torch.Tensor) -> torch.Tensor:
        context = context.to(torch.get_default_dtype())
        features: torch.Tensor = head_features(self.params, self._mask, context, xp=torch)
        return features


class Networks(NamedTuple):
    """What an update moves, in one form for both sides."""

    actor: Actor
    critic: tuple[Critic, ...]
    """Each of the two Q networks, with the encoder that both share."""
    target: tuple[Critic, ...]
    log_alpha: Any


def of_learner(learner: Learner) -> Networks:
    def twins(critic: Critic) -> tuple[Critic, ...]:
        return tuple(Critic(critic.encoder, jax.tree.map(lambda x, i=i: x[i], critic.values)) for i in (0, 1))

    _, actor, critic, target, _, _ = jax.tree.map(np.asarray, learner.learned)
    return Networks(actor, twins(critic), twins(target), np.asarray(learner.log_alpha))


def of_model(model: SAC) -> Networks:
    """The model's own tensors: to write into them is to change the model."""

    def dense(layer: Any) -> Dense:
        return Dense(layer.weight.T, layer.bias)

    def layers(stack: Any) -> tuple[Dense, ...]:
        return tuple(dense(layer) for layer in stack if isinstance(layer, nn.Linear))

    def twins(critic: Any) -> tuple[Critic, ...]:
        return tuple(Critic(critic.features_extractor.params, layers(stack)) for stack in critic.q_networks)

    actor: Any = model.actor
    assert model.log_ent_coef is not None
    return Networks(
        Actor(actor.features_extractor.params, layers(actor.latent_pi), dense(actor.mu), dense(actor.log_std)),
        twins(model.critic),
        twins(model.critic_target),
        model.log_ent_coef[0],
    )


def torch_of(x: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(x))


def make_model(learner: Learner) -> SAC:
    """Stock SAC with the learner's weights."""
    learned = learner.learned
    model = SAC(
        "MlpPolicy",
        Spaces(),
        learning_rate=3e-4,
        gamma=0.99,
        tau=0.005,
        ent_coef="auto",
        buffer_size=1,
        device="cpu",
        policy_kwargs={
            "net_arch": [64, 64],
            "activation_fn": nn.ReLU,
            "share_features_extractor": False,
            "features_extractor_class": HeadsExtractor,
            "features_extractor_kwargs": {"like": learned.actor.encoder, "mask": tuple(learned.mask.tolist())},
        },
    )
    model.set_logger(Logger(None, []))
    with torch.no_grad():
        jax.tree.map(lambda theirs, ours: theirs.copy_(torch_of(ours)), of_model(model), of_learner(learner))
    return model


def train(model: SAC, batch: Batch, noise: Noise) -> dict[str, float]:
    """One gradient step of the model on this batch with these draws; what it logged."""
    samples = ReplayBufferSamples(
        observations=torch_of(batch.context),
        actions=torch_of(batch.action),
        next_observations=torch_of(batch.next_context),
        dones=torch_of(batch.terminated.astype(float))[:, None],
        rewards=torch_of(batch.reward)[:, None],
    )
    draws = map(torch_of, noise)  # SB3 draws actions for the observations first, then for the next observations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.replay_buffer, "sample", lambda *_, **__: samples)
        patch.setattr("torch.distributions.normal._standard_normal", lambda *_, **__: next(draws))
        model.train(gradient_steps=1, batch_size=BATCH)
    assert next(draws, None) is None
    return {name.removeprefix("train/"): float(value) for name, value in model.logger.name_to_value.items()}


# --- both ---------------------------------------------------------------------------------------------------------


class Differences(NamedTuple):
    """The largest of each part; those of losses are relative where a loss exceeds one."""

    critic_loss: float
    actor_loss: float
    alpha: float
    temperature_loss: float
    actor: float
    critic: float
    target: float
    log_alpha: float


def numpy_of(model: SAC) -> Networks:
    found: Networks = jax.tree.map(lambda x: x.detach().numpy().copy(), of_model(model))
    return found


def active_heads(mask: npt.NDArray[np.bool], networks: Any) -> Any:
    return map_heads(lambda heads: Heads(*(w[mask] for w in heads)), lambda rest: rest, networks)


def furthest(ours: Any, theirs: Any) -> float:
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return float(np.max([np.max(np.abs(x - y)) for x, y in pairs]))  # NaN stays NaN


def differences(before: Learner, after: Learner, losses: Losses, model: SAC, logged: dict[str, float]) -> Differences:
    mask = np.asarray(before.learned.mask)
    ours, theirs = of_learner(after), numpy_of(model)

    def of_loss(name: str, our: Any) -> float:
        return abs(float(our) - logged[name]) / max(1.0, abs(logged[name]))

    return Differences(
        critic_loss=of_loss("critic_loss", losses.critic_loss),
        actor_loss=of_loss("actor_loss", losses.actor_loss),
        alpha=of_loss("ent_coef", losses.temperature),
        temperature_loss=of_loss("ent_coef_loss", before.log_alpha * (losses.entropy + ACTIONS)),
        actor=furthest(ours.actor, theirs.actor),
        critic=furthest(ours.critic, theirs.critic),
        # SB3 knows nothing of inactive heads: its Polyak average moves the target's towards the critic's, while the
        # engine holds them. Neither has a part in any output.
        target=furthest(active_heads(mask, ours.target), active_heads(mask, theirs.target)),
        log_alpha=furthest(ours.log_alpha, theirs.log_alpha),
    )


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("mask", [ALL, SOME], ids=["all heads", "some heads"])
@pytest.mark.parametrize("layer_norm", [True, False], ids=["normalised", "plain"])
def test_losses_and_parameters_are_those_of_stable_baselines_after_each_of_five_updates(
    layer_norm: bool, mask: tuple[bool, ...]
) -> None:
    learner = make_learner(layer_norm, mask)
    model = make_model(learner)
    for seed in range(5):
        batch, noise = make_batch(seed)
        assert 0 < int(batch.terminated.sum()) < BATCH
        after, losses = compiled(layer_norm)(learner, batch, noise)
        found = differences(learner, after, losses, model, train(model, batch, noise))
        assert all(each < DOUBLE for each in found), (seed, found)
        learner = after


@pytest.mark.usefixtures("double")
def test_every_array_of_all_three_networks_moves() -> None:
    """Parity of what stays where it was would mean nothing."""
    learner = make_learner()
    after, _ = compiled(True)(learner, *make_batch(0))
    moves = jax.tree.map(lambda x, y: np.max(np.abs(x - y)), of_learner(learner), of_learner(after))
    assert all(each > SINGLE for each in jax.tree.leaves(moves))


@pytest.mark.usefixtures("double")
def test_inactive_heads_stay_as_they_are_in_the_engine_and_in_both_learning_networks_of_stable_baselines() -> None:
    learner = make_learner(mask=SOME)
    model = make_model(learner)
    before = of_learner(learner)
    for seed in range(3):
        batch, noise = make_batch(seed)
        learner, _ = compiled(True)(learner, batch, noise)
        train(model, batch, noise)

    def moved(*networks: tuple[Any, Any]) -> float:
        return max(
            furthest(w[~np.array(SOME)], old[~np.array(SOME)])
            for network, start in networks
            for w, old in zip(network.encoder.body.heads, start.encoder.body.heads, strict=True)
        )

    ours, theirs = of_learner(learner), numpy_of(model)
    for side in (ours, theirs):
        assert moved((side.actor, before.actor), *zip(side.critic, before.critic, strict=True)) == 0
    assert moved(*zip(ours.target, before.target, strict=True)) == 0
    assert moved(*zip(theirs.target, before.target, strict=True)) > SINGLE


def broken(model: SAC, learner: Learner, batch: Batch, noise: Noise) -> set[str]:
    """In what the model differs, as it trains on these, from a learner that trains on the first batch."""
    after, losses = compiled(True)(learner, *make_batch(0))
    found = differences(learner, after, losses, model, train(model, batch, noise))
    return {name for name, value in found._asdict().items() if value > SINGLE}


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("gamma", 0.98, {"critic_loss", "actor_loss", "critic", "actor"}),
        ("tau", 0.01, {"target"}),
        ("target_entropy", ACTIONS, {"temperature_loss", "log_alpha"}),
    ],
)
def test_a_model_with_another_setting_is_found_out(setting: str, value: float, expected: set[str]) -> None:
    learner = make_learner()
    model = make_model(learner)
    setattr(model, setting, float(value))
    assert broken(model, learner, *make_batch(0)) == expected


@pytest.mark.usefixtures("double")
def test_a_model_that_goes_on_after_terminal_states_is_found_out() -> None:
    learner, (batch, noise) = make_learner(), make_batch(0)
    batch = batch._replace(terminated=jnp.zeros(BATCH, bool))
    expected = {"critic_loss", "actor_loss", "critic", "actor"}
    assert broken(make_model(learner), learner, batch, noise) == expected


@pytest.mark.usefixtures("double")
def test_a_model_that_uses_the_draws_in_another_order_is_found_out() -> None:
    learner, (batch, noise) = make_learner(), make_batch(0)
    expected = {"critic_loss", "actor_loss", "temperature_loss", "critic", "actor"}
    assert broken(make_model(learner), learner, batch, Noise(noise.later, noise.now)) == expected


def test_parity_holds_in_single_precision_wherever_a_gradient_is_more_than_rounding() -> None:
    learner = make_learner()
    # Narrower draws: next to -1 and 1 the density of a squashed action has few digits left, on either side.
    actor = learner.learned.actor
    actor = actor._replace(log_std=Dense(0.3 * actor.log_std.w, actor.log_std.b - 1.5))
    learner = learner._replace(learned=learner.learned._replace(actor=actor))
    model, (batch, noise) = make_model(learner), make_batch(0)
    after, losses = compiled(True)(learner, batch, noise)
    found = differences(learner, after, losses, model, train(model, batch, noise))
    assert all(each < SINGLE for each in found._replace(actor=0, critic=0)), found

    learned = after.learned
    moments = after._replace(learned=learned._replace(actor=learned.actor_adam.mu, critic=learned.critic_adam.mu))
    sides = (jax.tree.leaves(side[:2]) for side in (of_learner(moments), of_learner(after), numpy_of(model)))
    clear = []
    for slope, ours, theirs in zip(*sides, strict=True):
        clear.append(np.abs(slope) > 1e-3 * np.max(np.abs(slope)))
        np.testing.assert_allclose(ours[clear[-1]], theirs[clear[-1]], rtol=0, atol=SINGLE)
    assert np.mean(np.concatenate([np.ravel(each) for each in clear])) > 0.9
