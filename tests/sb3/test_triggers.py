"""Every trigger in Stable-Baselines3, prunes for which the other heads make up, and what is refused."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_path
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sb3_contrib import CrossQ, RecurrentPPO
from sb3_models import (
    OBSERVED,
    WINDOW,
    as_learned,
    assert_same,
    grower,
    make_env,
    make_model,
    optimisers,
    own,
    parameters,
)
from stable_baselines3.common.logger import Logger

from incrt.config import TRIGGERS
from incrt.heads import growth
from incrt.heads.triggers import Decision, Signals, make_trigger, wanted_signals
from incrt.sb3 import load, policy_kwargs, save
from incrt.sb3.networks import Networks

rng = np.random.default_rng(0)
contexts, others = rng.standard_normal((2, 64, WINDOW, OBSERVED)).astype(np.float32)
EAGER: dict[str, Any] = {"enough": 1e9, "worth": 1e9, "max_jump": 1e9, "trigger": "earned"}
"""Settings with which the trigger earned prunes as soon as it may."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- training with each ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SAC", "TD3", "TQC"])
@pytest.mark.parametrize("trigger", list(TRIGGERS))
def test_every_trigger_trains_and_goes_on_where_it_was_saved(name: str, trigger: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"trigger": trigger, "enough": 0.0, "delta_grow": 1, "delta_prune": 1}
    straight = make_model(name, k_init=2)
    straight.learn(80, callback=grower(tmp_path / "straight", **settings))
    straight.learn(30, callback=grower(tmp_path / "straight", **settings), reset_num_timesteps=False)

    model = make_model(name, k_init=2)
    model.learn(80, callback=grower(tmp_path, **settings))
    save(model, tmp_path / "saved")
    np.random.rand()  # noqa: NPY002
    found = load(tmp_path / "saved")
    found.set_logger(Logger(None, []))
    found.learn(30, callback=grower(tmp_path, **settings), reset_num_timesteps=False)
    assert_same(parameters(found), parameters(straight))

    wanted = set(wanted_signals(make_trigger(found.runtime_heads.config)))
    lines = lines_of(tmp_path / "events.jsonl")
    assert [line["step"] for line in lines] == list(range(10, 111, 10))
    measured = [line for line in lines if line["shares"] is not None]
    assert (len(measured) == 0) == (trigger == "clock")
    assert all(line.keys() >= wanted for line in measured)
    assert all((line["rank"] is not None) == ("rank" in wanted) for line in measured)
    events = [line for line in lines if line["action"] != "noop"]
    assert events
    for line in events:
        assert line["holds"]
        if line["action"] == "prune":
            assert line["jump"] == pytest.approx(line["promised"], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG", "TQC"])
def test_earned_prunes_what_the_others_make_up_for(name: str, tmp_path: Path) -> None:
    model = make_model(name, k_init=3)
    model.learn(120, callback=grower(tmp_path, **EAGER))
    prunes = [line for line in lines_of(tmp_path / "events.jsonl") if line["action"] == "prune"]
    assert [(line["step"], line["k"]) for line in prunes] == [(60, 2), (80, 1)]
    for line in prunes:
        assert line["promised"] > 0
        assert line["jump"] == pytest.approx(line["promised"], rel=1e-3)
        assert line["bound"] == line["limit"] == 1e9
        assert line["energy_before"] != line["energy_after"]
    for network in model.policy.modules():
        if hasattr(network, "mask"):
            assert network.mask.tolist() == model.actor.features_extractor.mask.tolist()


def test_a_prune_that_would_move_the_policy_too_far_is_left_out(tmp_path: Path) -> None:
    """The trigger sees a jump on a batch of its own; the certificate decides."""

    class Bold:
        max_jump = 1e-9

        def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
            return Decision("prune", "I dare", 0, 1), "not kept"

    without = parameters(make_model("SAC", k_init=2).learn(10))
    model = make_model("SAC", k_init=2)
    model.learn(10, callback=grower(tmp_path, trigger=Bold()))
    (check,) = model.runtime_heads.checks
    assert check.decision.reason.startswith("no prune of head 0, the policy would move by ")
    assert (check.k, check.certificate, model.runtime_heads.heads_state.state) == (2, None, None)
    assert_same(parameters(model), without)


# --- prunes with compensation ----------------------------------------------------------------------------------------


@pytest.fixture(params=["carry", "rebuild"])
def rule(request: pytest.FixtureRequest) -> Iterator[str]:
    """In double precision, in which the fits of both sides agree to many digits."""
    with jax.enable_x64(True):
        yield request.param


@pytest.mark.parametrize(("head", "actor_head"), [(2, 0), (1, 1)])
def test_a_prune_does_to_networks_and_optimisers_what_it_does_in_the_engine(
    head: int, actor_head: int, rule: str
) -> None:
    model = make_model("SAC", k_max=4, k_init=3).learn(40)
    model.policy.double()
    for each in (model.actor, model.critic):
        for state in each.optimizer.state.values():
            state.update({name: value.double() for name, value in state.items() if name != "step"})
    before = as_learned(model)
    expected = growth.prune_and_compensate(before, actor_head, head, rule, jnp.asarray(others, float))
    Networks(model.policy).prune_and_compensate(head, actor_head, rule, torch.tensor(others).double())
    found = as_learned(model)
    for (path, mine), theirs in zip(jax.tree.leaves_with_path(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-12, err_msg=jax.tree_util.keystr(path))
    if rule == "carry" and head != actor_head:  # the actor's other head took its optimiser's state along
        moments = before.actor_adam.mu.encoder.body.heads.w_q
        assert np.any(np.asarray(moments[head]))
        np.testing.assert_array_equal(found.actor_adam.mu.encoder.body.heads.w_q[actor_head], moments[head])


@pytest.mark.parametrize("name", ["SAC", "TD3", "TQC", "PPO-separate"])
def test_a_prune_changes_the_policy_by_what_was_promised(name: str) -> None:
    model = make_model(name, k_max=4, k_init=3).learn(40)
    networks = Networks(model.policy)
    batch, fitted_on = torch.tensor(contexts), torch.tensor(others)
    promised, plain = (networks.measure_prune(0, batch, fit) for fit in (fitted_on, None))
    before = networks.outputs(batch)
    networks.prune_and_compensate(2, 0, "carry", fitted_on)
    after = networks.outputs(batch)
    jumps = np.linalg.norm(after["policy"] - before["policy"], axis=-1)
    assert float(promised.jump) == pytest.approx(float(jumps.mean()), rel=1e-3)
    assert float(promised.worst_jump) == pytest.approx(float(jumps.max()), rel=1e-3)
    assert 0 < float(promised.jump) < float(plain.jump)
    assert networks.mask == (True, True, False, False)
    for extractor in (each for each in model.policy.modules() if hasattr(each, "w_o")):
        assert not any(own(extractor.w_o[2]).ravel())
        assert [w.requires_grad for w in extractor.w_q] == [True, True, False, False]


def test_the_actors_target_follows_with_the_actors_own_head() -> None:
    model = make_model("TD3", k_max=4, k_init=3).learn(40)
    before = copy.deepcopy(model.policy)
    Networks(model.policy).prune_and_compensate(2, 0, "carry", torch.tensor(others))
    for name in ("actor", "actor_target"):
        old, new = (getattr(policy, name).features_extractor for policy in (before, model.policy))
        assert torch.equal(new.w_q[0], old.w_q[2])
        assert torch.equal(new.w_q[2], old.w_q[0])
    for name in ("critic", "critic_target"):
        old, new = (getattr(policy, name).features_extractor for policy in (before, model.policy))
        assert all(torch.equal(a, b) for a, b in zip(new.w_q, old.w_q, strict=True))


def test_heads_that_are_shared_make_up_for_one_of_theirs() -> None:
    model = make_model("TD3-shared", k_init=3).learn(40)
    networks, batch = Networks(model.policy), torch.tensor(contexts)
    promised = networks.measure_prune(1, batch, torch.tensor(others))
    before = networks.outputs(batch)["policy"]
    networks.prune_and_compensate(1, 1, "carry", torch.tensor(others))
    jump = np.linalg.norm(networks.outputs(batch)["policy"] - before, axis=-1).mean()
    assert float(promised.jump) == pytest.approx(float(jump), rel=1e-3)
    with pytest.raises(ValueError, match=r"actor and critic share their heads.*actor_head must be 0, got 2"):
        networks.prune_and_compensate(0, 2, "carry", torch.tensor(others))


def test_what_is_exchanged_must_be_active() -> None:
    extractor = make_model("SAC", k_init=2).actor.features_extractor
    before = extractor(torch.tensor(contexts))
    extractor.exchange(0, 1)
    torch.testing.assert_close(extractor(torch.tensor(contexts)), before)
    with pytest.raises(ValueError, match="heads 0 and 2 must both be active"):
        extractor.exchange(0, 2)


@pytest.mark.parametrize("rule", ["carry", "rebuild"])
def test_training_goes_on_after_a_prune(rule: str, tmp_path: Path) -> None:
    model = make_model("SAC", k_init=3)
    model.learn(70, callback=grower(tmp_path, **EAGER, optimiser=rule, k_min=2))
    (certificate,) = model.runtime_heads.certificates
    extractor, state = model.actor.features_extractor, optimisers(model)["actor"].state
    steps = {int(state[w]["step"]) for head in range(3) if head != certificate.head for w in extractor.head(head)}
    assert steps == {65 if rule == "carry" else 11}
    assert all(w not in state for w in extractor.head(certificate.head))


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["PPO", "PPO-separate", "A2C"])
@pytest.mark.parametrize("trigger", ["earned", "potential", "expansion", "importance"])
def test_without_replay_only_some_triggers_work(name: str, trigger: str, tmp_path: Path) -> None:
    algorithm = name.removesuffix("-separate")
    match = rf"asks for .*, which need replay and a critic of actions; {algorithm} has neither: choose trigger paper or"
    with pytest.raises(ValueError, match=match):
        make_model(name).learn(8, callback=grower(tmp_path, trigger=trigger))
    assert not (tmp_path / "events.jsonl").exists()


def test_the_clock_works_without_replay(tmp_path: Path) -> None:
    model = make_model("PPO")
    model.learn(64, callback=grower(tmp_path, trigger="clock"))
    assert [each.step for each in model.runtime_heads.certificates] == [20, 40]


def test_earned_needs_heads_of_the_actors_own(tmp_path: Path) -> None:
    for name in ("SAC-shared", "TD3-shared"):
        with pytest.raises(ValueError, match="here they share theirs; leave share_features_extractor at False"):
            make_model(name).learn(8, callback=grower(tmp_path, trigger="earned"))
        make_model(name).learn(20, callback=grower(tmp_path / name, trigger="importance"))


def test_a_signal_that_there_is_not_is_named(tmp_path: Path) -> None:
    class Wishful:
        signals = ("rank", "luck")

        def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
            return Decision("noop", ""), None

    with pytest.raises(ValueError, match=r"trigger Wishful: signals must be among rank, shares, residual, .*luck"):
        make_model("SAC").learn(8, callback=grower(tmp_path, trigger=Wishful()))


def test_a_model_that_was_loaded_without_its_replay_waits_for_some(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(18, callback=grower(tmp_path, trigger="earned"))
    model.save(tmp_path / "model")
    found = type(model).load(tmp_path / "model", env=make_env())
    found.set_logger(Logger(None, []))
    found.learn(10, callback=grower(tmp_path, trigger="earned", check_every=1), reset_num_timesteps=False)
    reasons = [check.decision.reason for check in found.runtime_heads.checks]
    assert reasons[1] == "replay is empty"
    assert "left now; check 2 of 6" in reasons[2]


def test_policies_in_which_heads_make_no_sense_are_refused(tmp_path: Path) -> None:
    kwargs = policy_kwargs(k_max=2, d_k=4)
    recurrent = RecurrentPPO("MlpLstmPolicy", make_env(), n_steps=8, batch_size=8, policy_kwargs=kwargs)
    with pytest.raises(ValueError, match=r"remembers by an LSTM.*train PPO on incrt.env.ContextWindow\(env, window=8"):
        recurrent.learn(8, callback=grower(tmp_path))
    cross = CrossQ("MlpPolicy", make_env(), policy_kwargs=kwargs, buffer_size=10)
    with pytest.raises(ValueError, match="policies of SAC, TD3, DDPG, TQC, PPO and A2C, got CrossQPolicy"):
        cross.learn(8, callback=grower(tmp_path))


def test_the_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path))
    example = by_path.load("examples/sb3_earned.py")
    monkeypatch.setattr(example, "EPISODES", 1)
    train = example.train
    monkeypatch.setattr(example, "train", lambda seed, steps: train(seed, steps, check_every=20, grace=20, **EAGER))
    example.main(seed=0, steps=250)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert re.match(r"step  220: prune K = 3, promised a jump of (\S+), it was \1; ", first)
    assert last.startswith("seed 0: mean return -")
