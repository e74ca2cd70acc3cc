"""SAC as it is timed: stock, with the engine's settings, and one update a step."""

from typing import Any

import pytest
import torch
from stable_baselines3 import SAC

from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.sb3 import timing
from incrt.sb3.literal import LiteralAttention
from incrt.sb3.timing import RANDOM_STEPS, WARM_UP, TimedSac

TASK, ENCODER = TaskConfig(window=4), EncoderConfig(k_max=2, d_k=2)
SAC_CONFIG = SacConfig(batch=4, buffer=200, hidden=(8,))
LITERAL: dict[str, Any] = {
    "features_extractor_class": LiteralAttention,
    "features_extractor_kwargs": {"encoder": ENCODER},
}


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for one another cost as if they worked."""
    monkeypatch.setattr(timing, "usable_cores", lambda: 1)


def test_the_model_is_stock_and_has_the_engines_settings() -> None:
    sac = SacConfig(batch=32, buffer=1000, learning_rate=1e-3, gamma=0.9, tau=0.1, hidden=(16, 8), target_entropy=-2)
    config = TaskConfig(window=7, tau_z=1.0)
    model = TimedSac(config, sac, LITERAL).model
    assert type(model) is SAC
    assert model.env is not None
    assert model.env.get_attr("config") == [config]
    assert (model.batch_size, model.buffer_size, model.gamma, model.tau) == (32, 1000, 0.9, 0.1)
    assert (model.lr_schedule(1), model.target_entropy, model.gradient_steps) == (1e-3, -2.0, 1)
    assert model.policy.net_arch == [16, 8]
    for network in (model.actor, model.critic, model.critic_target):
        extractor = network.features_extractor
        assert isinstance(extractor, LiteralAttention)
        assert (len(extractor.heads), extractor.features_dim) == (2, 4)


def test_each_step_is_one_of_the_environment_and_one_update() -> None:
    timed = TimedSac(TASK, SAC_CONFIG, LITERAL)
    begun = timed.model._n_updates  # noqa: SLF001
    assert (timed.model.num_timesteps, begun) == (RANDOM_STEPS + WARM_UP, WARM_UP)
    for steps in (7, 3):
        timed.train(steps)
    assert timed.model.num_timesteps == RANDOM_STEPS + WARM_UP + 10
    assert timed.model._n_updates - begun == 10  # noqa: SLF001


def test_it_takes_as_many_threads_as_it_is_fastest_with(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    learn = SAC.learn

    def spied(model: SAC, *args: Any, **options: Any) -> SAC:
        used.append(torch.get_num_threads())
        return learn(model, *args, **options)

    monkeypatch.setattr(SAC, "learn", spied)
    monkeypatch.setattr(timing, "usable_cores", lambda: 2)
    monkeypatch.setattr(TimedSac, "_trial", lambda _, threads: {1: 2.0, 2: 1.0}[threads])
    before = torch.get_num_threads()
    timed = TimedSac(TASK, SAC_CONFIG, LITERAL)
    timed.train(1)
    timed.train(1, threads=2)
    assert used[1:] == [1, 2]
    assert torch.get_num_threads() == before


def test_steps_are_counted_in_whole_numbers() -> None:
    with pytest.raises(ValueError, match="steps must be a whole number >= 1"):
        TimedSac(TASK, SAC_CONFIG, LITERAL).train(0)
