"""The peers: that their networks are what the table says, and that a step of each is one update."""

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import jax
import pytest
from torch import nn

from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.peers.table import PEERS, Setting
from incrt.sb3 import timing
from incrt.sb3.extractor import VarHeadExtractor
from incrt.sb3.literal import LiteralAttention
from incrt.sb3.timing import TimedSac

SETTING = Setting(
    TaskConfig(window=4), EncoderConfig(k_max=2, d_k=4), SacConfig(batch=8, buffer=500, hidden=(16, 8), gamma=0.9)
)
OBSERVED, ACTIONS = SETTING.task.observation_dim, SETTING.task.action_dim
BY_NAME = {peer.name: peer for peer in PEERS}
needs_sbx = pytest.mark.skipif(find_spec("sbx") is None, reason="needs the extra bench")
needs_memorax = pytest.mark.skipif(
    find_spec("memorax") is None or find_spec("flashbax") is None, reason="needs the extra bench and memorax"
)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread; and what the libraries of peers warn of at import is not ours."""
    monkeypatch.setattr(timing, "usable_cores", lambda: 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def begun(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The model of a peer that is trained with SAC of Stable-Baselines3 or sbx."""
    made: list[TimedSac] = []
    train = TimedSac.train

    def spied(timed: TimedSac, steps: int, threads: int | None = None) -> None:
        made.append(timed)
        train(timed, steps, threads)

    monkeypatch.setattr(TimedSac, "train", spied)
    training = BY_NAME[name].begin(SETTING)
    training.train(training.stride)
    return made[-1].model


@pytest.mark.parametrize("name", ["sb3-literal", "sb3-heads", "sb3-flat", pytest.param("sbx-flat", marks=needs_sbx)])
def test_a_step_is_one_of_the_environment_and_one_update(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = begun(name, monkeypatch)
    taken = timing.RANDOM_STEPS + timing.WARM_UP + 10
    assert (model.num_timesteps, model._n_updates) == (taken, taken - timing.RANDOM_STEPS)  # noqa: SLF001
    assert (model.batch_size, model.buffer_size, model.gamma, model.tau) == (8, 500, 0.9, SETTING.sac.tau)


@pytest.mark.parametrize(("name", "kind"), [("sb3-literal", LiteralAttention), ("sb3-heads", VarHeadExtractor)])
def test_all_heads_of_both_attentions_are_active(name: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    model = begun(name, monkeypatch)
    for network in (model.actor, model.critic, model.critic_target):
        extractor: Any = network.features_extractor
        assert (extractor.k if kind is VarHeadExtractor else len(extractor.heads)) == 2
        assert type(extractor) is kind


def test_the_flat_window_of_stable_baselines3_has_the_engines_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = begun("sb3-flat", monkeypatch)
    flat = 4 * OBSERVED
    layers = [each for each in model.critic.qf0 if isinstance(each, nn.Linear)]
    assert [each.in_features for each in layers] == [flat + ACTIONS, 16, 8]
    assert [each.in_features for each in model.actor.latent_pi if isinstance(each, nn.Linear)] == [flat, 16]


@needs_sbx
def test_the_flat_window_of_sbx_has_the_engines_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = begun("sbx-flat", monkeypatch)
    assert type(model).__module__.startswith("sbx.")
    flat = 4 * OBSERVED

    def shapes(params: Any) -> list[tuple[int, ...]]:
        return sorted(leaf.shape for leaf in jax.tree.leaves(params) if leaf.ndim > 1)

    assert shapes(model.policy.actor_state.params) == sorted([(flat, 16), (16, 8), (8, ACTIONS), (8, ACTIONS)])
    twin = [leaf.shape for leaf in jax.tree.leaves(model.policy.qf_state.params) if leaf.ndim > 2]
    assert sorted(twin) == sorted([(2, flat + ACTIONS, 16), (2, 16, 8), (2, 8, 1)])


@needs_memorax
def test_memorax_takes_a_step_and_an_update_each_and_its_losses_are_finite() -> None:
    from incrt.peers.memorax import make_memorax

    algorithm = make_memorax(*SETTING, sequences=2)
    key, state = algorithm.warmup(*algorithm.init(jax.random.key(0)), 20)
    _, after, transitions = algorithm.train(key, state, 5)
    assert int(after.step) - int(state.step) == 5
    assert int(after.critic_optimizer_state[0].count) == 5
    assert int(after.actor_optimizer_state[0].count) == 5
    assert int(after.alpha_optimizer_state[0].count) == 5
    assert after.timestep.obs.shape == (1, OBSERVED)
    losses = [transitions.info[name] for name in ("critic_loss", "actor_loss", "alpha_loss")]
    assert bool(jax.numpy.isfinite(jax.numpy.stack(losses)).all())


@needs_memorax
@pytest.mark.parametrize(("name", "sequences"), [("memorax", 8), ("memorax-few", 2)])
def test_memorax_has_a_batch_of_sequences_or_of_losses(
    name: str, sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from incrt.peers import memorax

    asked = []
    monkeypatch.setattr(memorax, "begin", lambda *args: asked.append(args))
    BY_NAME[name].begin(SETTING)
    assert asked == [(*SETTING, sequences)]


def test_every_peer_says_what_it_does_otherwise_and_what_brings_it() -> None:
    assert len(BY_NAME) == len(PEERS)
    for peer in PEERS:
        assert peer.work
        assert "pip install" in peer.comes_with
