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

from incrt.attention import Heads, map_heads
from incrt.config import EncoderConfig, SacConfig
from incrt.encoders import Encoded, head_features, make_encoder
from incrt.layers import Dense
from incrt.sac.learner import Algorithm, Learner, Losses, Noise, init_learner, update
from incrt.sac.networks import Actor, Critic
from incrt.sac.replay import Batch

WINDOW, OBSERVED, ACTIONS, K_MAX, BATCH = 20, 11, 6, 8, 64
ALL = (True,) * K_MAX
SOME = (True, False, True, True, False, False, False, True)
PARITY = 1e-5
"""Differences of losses and parameters below this are none."""


@pytest.fixture
def double(float64: None) -> Iterator[None]:
    """Double precision in JAX and PyTorch for one test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


# --- the engine ---------------------------------------------------------------------------------------------------


def algorithm(layer_norm: bool) -> Algorithm:
    encoder = make_encoder(EncoderConfig(encoder="static", k_max=K_MAX, layer_norm=layer_norm), WINDOW, OBSERVED)
    return Algorithm(encoder, SacConfig(batch=BATCH), ACTIONS)


def make_learner(layer_norm: bool = True, mask: tuple[bool, ...] = ALL) -> Learner:
    """A learner as it may be in the midst of training, but for Adam, whose moments are zero."""

    @jax.jit
    def make() -> Learner:
        fresh = init_learner(algorithm(layer_norm), jax.random.key(0))
        # Biases and norms start at 0 and 1, and the target as the critic; drawn at random, a wrong use of one shows.
        leaves, structure = jax.tree.flatten(fresh.learned[1:4])
        keys = jax.random.split(jax.random.key(1), len(leaves))
        drawn = [x + 0.05 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
        actor, critic, target = jax.tree.unflatten(structure, drawn)
        learned = fresh.learned._replace(mask=jnp.array(mask), actor=actor, critic=critic, target=target)
        return fresh._replace(learned=learned, log_alpha=jnp.asarray(-0.4))

    learner: Learner = make()
    return learner


def make_batch(seed: int) -> tuple[Batch, Noise]:
    """Transitions, some of them terminal, and draws."""
    random = np.random.default_rng(seed)
    frames = random.standard_normal((BATCH, WINDOW + 1, OBSERVED), np.float32)  # what SB3 casts observations to
    batch = Batch(
        context=frames[:, :-1],
        action=random.uniform(-1, 1, (BATCH, ACTIONS)),
        reward=random.normal(-1, 1, BATCH),
        next_context=frames[:, 1:],
        terminated=random.random(BATCH) < 0.25,
    )
    noise = Noise(*random.standard_normal((2, BATCH, ACTIONS)))
    made: tuple[Batch, Noise] = jax.tree.map(lambda x: jnp.asarray(x, bool if x.dtype == bool else float), (batch, noise))
    return made


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

    learned = learner.learned
    return Networks(learned.actor, twins(learned.critic), twins(learned.target), learner.log_alpha)


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
    batch, noise = jax.tree.map(torch_of, (batch, noise))
    samples = ReplayBufferSamples(
        observations=batch.context,
        actions=batch.action,
        next_observations=batch.next_context,
        dones=batch.terminated[:, None].to(batch.reward.dtype),
        rewards=batch.reward[:, None],
    )
    draws = iter(noise)  # SB3 draws actions for the observations first, then for the next observations
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


def active_heads(mask: Any, networks: Any) -> Any:
    return map_heads(lambda heads: Heads(*(np.asarray(w)[mask] for w in heads)), np.asarray, networks)


def furthest(ours: Any, theirs: Any) -> float:
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return max(float(np.max(np.abs(np.asarray(x) - y))) for x, y in pairs)


def differences(before: Learner, after: Learner, losses: Losses, model: SAC, logged: dict[str, float]) -> Differences:
    mask = np.asarray(before.learned.mask)
    ours, theirs = of_learner(after), numpy_of(model)

    def of_loss(name: str, our: Any) -> float:
        return abs(float(our) - logged[name]) / max(1.0, abs(logged[name]))

    return Differences(
        critic_loss=of_loss("critic_loss", losses.critic_loss),
        actor_loss=of_loss("actor_loss", losses.actor_loss),
        alpha=of_loss("ent_coef", losses.alpha),
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
        assert max(found) < PARITY, (seed, found)
        learner = after


@pytest.mark.usefixtures("double")
def test_every_array_of_all_three_networks_moves() -> None:
    """Parity of what stays where it was would mean nothing."""
    learner = make_learner()
    after, _ = compiled(True)(learner, *make_batch(0))
    moves = jax.tree.map(lambda x, y: float(jnp.max(jnp.abs(x - y))), of_learner(learner), of_learner(after))
    assert min(jax.tree.leaves(moves._replace(target=()))) > 10 * PARITY
    assert min(jax.tree.leaves(moves.target)) > PARITY


@pytest.mark.usefixtures("double")
def test_inactive_heads_stay_as_they_are_in_the_engine_and_in_both_learning_networks_of_stable_baselines() -> None:
    learner = make_learner(mask=SOME)
    model = make_model(learner)
    before = active_heads(~np.array(SOME), of_learner(learner))
    for seed in range(3):
        batch, noise = make_batch(seed)
        learner, _ = compiled(True)(learner, batch, noise)
        train(model, batch, noise)
    ours, theirs = (active_heads(~np.array(SOME), each) for each in (of_learner(learner), numpy_of(model)))

    def heads(*networks: Any) -> list[Any]:
        return [network.encoder.body.heads for network in networks]

    assert furthest(heads(ours.actor, *ours.critic, *ours.target), heads(before.actor, *before.critic, *before.target)) == 0
    assert furthest(heads(theirs.actor, *theirs.critic), heads(before.actor, *before.critic)) == 0
    assert furthest(heads(*theirs.target), heads(*before.target)) > PARITY


def discount(model: SAC, batch: Batch, noise: Noise) -> tuple[Batch, Noise]:
    model.gamma = 0.98
    return batch, noise


def polyak(model: SAC, batch: Batch, noise: Noise) -> tuple[Batch, Noise]:
    model.tau = 0.01
    return batch, noise


def target_entropy(model: SAC, batch: Batch, noise: Noise) -> tuple[Batch, Noise]:
    model.target_entropy = ACTIONS + 1.0
    return batch, noise


def no_terminal_state(model: SAC, batch: Batch, noise: Noise) -> tuple[Batch, Noise]:
    return batch._replace(terminated=jnp.zeros(BATCH, bool)), noise


def draws_exchanged(model: SAC, batch: Batch, noise: Noise) -> tuple[Batch, Noise]:
    return batch, Noise(noise.later, noise.now)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (discount, {"critic_loss", "actor_loss", "critic", "target"}),
        (no_terminal_state, {"critic_loss", "actor_loss", "critic", "target"}),
        (draws_exchanged, {"critic_loss", "actor_loss", "temperature_loss", "critic", "actor", "target"}),
        (polyak, {"target"}),
        (target_entropy, {"temperature_loss", "log_alpha"}),
    ],
)
def test_a_model_with_another_rule_is_found_out(
    change: Callable[[SAC, Batch, Noise], tuple[Batch, Noise]], broken: set[str]
) -> None:
    learner, (batch, noise) = make_learner(), make_batch(0)
    model = make_model(learner)
    after, losses = compiled(True)(learner, batch, noise)
    found = differences(learner, after, losses, model, train(model, *change(model, batch, noise)))
    print(found)
    assert broken <= {name for name, value in found._asdict().items() if value > PARITY}


def test_in_single_precision_too_wherever_a_gradient_is_more_than_rounding() -> None:
    learner = make_learner()
    # Milder draws: SB3's log-density loses digits where an action is close to -1 or 1.
    actor = learner.learned.actor
    actor = actor._replace(log_std=Dense(0.3 * actor.log_std.w, actor.log_std.b - 1.5))
    learner = learner._replace(learned=learner.learned._replace(actor=actor))
    model, (batch, noise) = make_model(learner), make_batch(0)
    after, losses = compiled(True)(learner, batch, noise)
    found = differences(learner, after, losses, model, train(model, batch, noise))
    assert max(found._replace(actor=0, critic=0)) < PARITY, found

    ours, theirs = of_learner(after), numpy_of(model)
    slopes = of_learner(after._replace(learned=after.learned._replace(actor=after.learned.actor_adam.mu, critic=after.learned.critic_adam.mu)))
    judged = []
    for slope, x, y in zip(*(jax.tree.leaves((each.actor, each.critic)) for each in (slopes, ours, theirs)), strict=True):
        clear = np.abs(slope) > 1e-3 * np.max(np.abs(slope))
        np.testing.assert_allclose(np.asarray(x)[clear], y[clear], atol=PARITY)
        judged.append(np.ravel(clear))
    assert np.mean(np.concatenate(judged)) > 0.9
