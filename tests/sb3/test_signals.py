"""What triggers are shown in Stable-Baselines3 is what the engine shows them, and measuring it disturbs nothing."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sb3_models import (
    OBSERVED,
    WINDOW,
    as_actor,
    as_critic,
    assert_same,
    grower,
    make_env,
    make_model,
    on_device,
    own,
    parameters,
)
from stable_baselines3.common.vec_env import VecNormalize

from incrt.config import EncoderConfig
from incrt.engine import signals as of_the_engine
from incrt.engine.layouts import Rows
from incrt.engine.losses import soft_target
from incrt.engine.replay import Batch as EngineBatch
from incrt.heads.attention import Heads, outputs_without_each, soft_init
from incrt.heads.encoders import make_encoder
from incrt.heads.triggers import Decision, Signals
from incrt.heads.triggers.base import OTHER_SIGNALS
from incrt.sb3 import signals
from incrt.sb3.networks import Networks
from incrt.sb3.signals import Batch, own_draws, own_target

rng = np.random.default_rng(0)
BATCH = 32
contexts, others, following = rng.standard_normal((3, BATCH, WINDOW, OBSERVED)).astype(np.float32)
actions = rng.uniform(-1, 1, (BATCH, 2)).astype(np.float32)
target = rng.standard_normal(BATCH).astype(np.float32)


@pytest.fixture(scope="module", params=[True, False], ids=["normalised", "plain"])
def model(request: pytest.FixtureRequest) -> Any:
    """With three heads of four, which have learned something."""
    found = make_model("SAC", k_max=4, k_init=3, layer_norm=request.param)
    return found.learn(60)


@pytest.fixture
def precise(model: Any) -> Iterator[Any]:
    """The policy in double precision, in which the fits of both agree to many digits."""
    with jax.enable_x64(True):
        yield copy.deepcopy(model.policy).double()


def ours() -> tuple[torch.Tensor, Batch]:
    return torch.tensor(others).double(), Batch(*(torch.tensor(each).double() for each in (contexts, actions, target)))


def theirs() -> EngineBatch:
    zeros, wide = np.zeros(BATCH), (contexts.astype(float), actions.astype(float))
    return EngineBatch(*on_device((*wide, zeros, following.astype(float), zeros > 0)))


def assert_close(found: Any, expected: Any) -> None:
    for mine, other in zip(found, expected, strict=True):
        assert mine.dtype == torch.float64
        np.testing.assert_allclose(own(mine), other, rtol=1e-6, atol=1e-9)


def test_what_makes_up_for_a_head_is_what_does_so_in_the_engine(precise: Any) -> None:
    for network, encoder in (
        (precise.actor, as_actor(precise.actor).encoder),
        (precise.critic, as_critic(precise.critic).encoder),
    ):
        extractor = network.features_extractor
        expected = outputs_without_each(encoder.body, jnp.asarray(own(extractor.mask)), jnp.asarray(others, float))
        assert_close([extractor.outputs_without_each(torch.tensor(others).double())], [expected])


def test_the_signals_are_those_of_the_engine(precise: Any) -> None:
    networks, (fitted_on, batch) = Networks(precise), ours()
    actor, critic = as_actor(precise.actor), as_critic(precise.critic)
    mask, wanted, apart = jnp.asarray(networks.mask), jnp.asarray(target, float), jnp.asarray(others, float)
    jumps = of_the_engine.removal_jumps(actor, mask, apart, theirs().context)
    assert_close([signals.removal_jumps(networks, fitted_on, batch.contexts)], [jumps])
    assert_close(signals.worth(networks, fitted_on, batch), of_the_engine.worth(critic, mask, apart, theirs(), wanted))
    assert_close(
        signals.gradient_importance(networks, batch), of_the_engine.gradient_importance(critic, mask, theirs(), wanted)
    )
    key = jax.random.key(3)
    fresh = Heads(*(torch.tensor(np.asarray(w)) for w in soft_init(key[None], 16, 4)))
    assert_close(signals.probe(networks, batch, fresh), of_the_engine.probe(critic, mask, theirs(), wanted, key))


def test_the_target_of_sac_is_that_of_the_engine(model: Any) -> None:
    generator, rewards = np.random.default_rng(5), rng.standard_normal((BATCH, 1)).astype(np.float32)
    dones = (np.arange(BATCH) % 3 == 0).astype(np.float32)[:, None]
    samples = model.replay_buffer.sample(BATCH)._replace(
        next_observations=torch.tensor(following), rewards=torch.tensor(rewards), dones=torch.tensor(dones)
    )
    with own_draws(generator, model.device):
        found = own_target(model, samples)
    with own_draws(np.random.default_rng(5), model.device):
        noise = torch.normal(torch.zeros(BATCH, 2), torch.ones(BATCH, 2))
    config = EncoderConfig(k_max=4, d_k=4, layer_norm=model.actor.features_extractor.scale is not None)
    layout = Rows(make_encoder(config, WINDOW, OBSERVED))
    batch = EngineBatch(*on_device((contexts, actions, rewards[:, 0], following, dones[:, 0] > 0)))
    networks = as_actor(model.actor), as_critic(model.critic_target)
    mask, alpha = jnp.asarray(own(model.actor.features_extractor.mask)), float(model.log_ent_coef.detach().exp())
    expected = soft_target(*networks, layout, mask, batch, jnp.asarray(own(noise)), jnp.asarray(alpha), model.gamma)
    np.testing.assert_allclose(own(found), expected, rtol=1e-4, atol=1e-4)


class Caught(Exception):  # noqa: N818  # nothing went wrong
    """What an algorithm was about to learn."""


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG", "TQC"])
def test_the_target_is_what_the_algorithm_itself_learns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(name).learn(40)
    samples = model.replay_buffer.sample(16)._replace(dones=torch.tensor(np.eye(16, dtype=np.float32)[:, 3:4]))
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *_, **__: samples)
    torch.manual_seed(1)
    if name in {"SAC", "TQC"}:
        model.actor.action_log_prob(samples.observations)  # which the algorithm draws first
    found = own_target(model, samples)

    def catch(_: Any, target: torch.Tensor, **__: Any) -> None:
        raise Caught(target.reshape(16, -1).mean(dim=1))

    monkeypatch.setattr("torch.nn.functional.mse_loss", catch)
    monkeypatch.setattr("sb3_contrib.tqc.tqc.quantile_huber_loss", catch)
    torch.manual_seed(1)
    with pytest.raises(Caught) as caught:
        model.train(1, 16)
    torch.testing.assert_close(found, caught.value.args[0])


class Curious:
    """Wants to know everything and does nothing."""

    signals = ("rank", "shares", *OTHER_SIGNALS)

    def __init__(self) -> None:
        self.shown: list[Signals] = []

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        self.shown.append(signals)
        return Decision("noop", "only asking"), None


@pytest.mark.parametrize("name", ["SAC", "TD3", "TQC", "SAC-shared"])
def test_measuring_everything_disturbs_nothing(name: str, tmp_path: Path) -> None:
    asked, trigger = make_model(name, k_init=2), Curious()
    asked.learn(48, callback=grower(tmp_path, trigger=trigger))
    without = make_model(name, k_init=2)
    without.learn(48)
    assert_same(parameters(asked), parameters(without))
    assert len(trigger.shown) == 4
    for shown in trigger.shown:
        found = shown.others()
        assert found.keys() == set(OTHER_SIGNALS)
        assert all(np.all(np.isfinite(value)) for value in found.values())
        assert found["residual"] > 0 < found["spread"]
        assert sum(found["importance"]) == pytest.approx(1, rel=1e-4)
        assert sum(found["gradients"]) == pytest.approx(2, rel=1e-4)
        for each in ("worth", "removal_jumps", "importance", "gradients"):
            assert found[each][2] == pytest.approx(0, abs=1e-6)  # it is inactive
        assert 0 < found["potential"] <= 1
        assert found["expansion"] > 0


def test_a_trigger_is_shown_the_mean_reward_since_the_last_check(tmp_path: Path) -> None:
    model, trigger = make_model("SAC", make_env(2)), Curious()
    model.learn(40, callback=grower(tmp_path, trigger=trigger))
    rewards = model.replay_buffer.rewards[:20].reshape(4, -1)
    assert [shown.reward for shown in trigger.shown] == pytest.approx(rewards.mean(axis=1), rel=1e-5)


def test_signals_are_of_what_the_critic_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env, shown = VecNormalize(make_env(2)), []

    def spy(model: Any, samples: Any) -> torch.Tensor:
        shown.append(samples)
        return own_target(model, samples)

    monkeypatch.setattr(signals, "own_target", spy)
    model = make_model("SAC", env)
    model.learn(40, callback=grower(tmp_path, trigger=Curious()))
    replay = model.replay_buffer
    observations = np.asarray(env.normalize_obs(replay.observations[:19])).reshape(-1, WINDOW * OBSERVED)
    rewards = env.normalize_reward(replay.rewards[:19]).reshape(-1)
    for observation, reward in zip(own(shown[-1].observations), own(shown[-1].rewards)[:, 0], strict=True):
        (row,) = np.flatnonzero((observations == observation.ravel()).all(axis=1))
        assert reward == pytest.approx(rewards[row], rel=1e-6)


def test_returns_over_several_steps_have_discounts_of_their_own() -> None:
    model = make_model("SAC").learn(10)
    samples = model.replay_buffer.sample(8)._replace(rewards=torch.zeros(8, 1))
    targets = []
    for discounts in (None, torch.full((8, 1), 0.5)):
        with own_draws(np.random.default_rng(0), model.device):
            targets.append(own_target(model, samples._replace(discounts=discounts)))
    torch.testing.assert_close(targets[0] * 0.5, targets[1] * model.gamma)
