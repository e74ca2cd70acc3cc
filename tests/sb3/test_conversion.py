"""A policy of the engine as a model of Stable-Baselines3 and back: the same actions, the same figures."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sb3_contrib import TQC
from sb3_models import make_env, make_model
from small_runs import ENCODER, RUN, SAC, TASK
from stable_baselines3 import PPO, TD3, sac
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecNormalize
from tasks import preset_task

import incrt
from incrt.arm.gym import StribeckEnv
from incrt.cli import main
from incrt.engine import policy
from incrt.engine.checkpoint import newest_learner
from incrt.engine.networks import q_values
from incrt.engine.update import Algorithm
from incrt.heads.encoders import make_encoder
from incrt.runs import find_runs
from incrt.sb3 import RuntimeHeads, load_policy, policy_kwargs, save_policy

contexts = np.random.default_rng(0).standard_normal((32, TASK.window, TASK.observation_dim), np.float32)
FIELDS: dict[str, Any] = {"window": 5, "horizon": 40, "eval_payloads": (0.5,), "eval_rollouts": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the engine that grew heads."""
    folder = tmp_path_factory.mktemp("engine") / "seed-0"
    incrt.train([incrt.make_job(folder, RUN.replace(seed=0))])
    return folder


def sb3_model(algorithm: Any = sac.SAC, **others: Any) -> Any:
    """A model on the same task."""
    kwargs = policy_kwargs(k_max=3, d_k=4, net_arch=[8, 8])
    settings = {"policy_kwargs": kwargs, "seed": 7, "device": "cpu", **others}
    if algorithm is not PPO:
        settings |= {"learning_starts": 10, "batch_size": 16, "buffer_size": 100}
    model = algorithm("MlpPolicy", StribeckEnv(**FIELDS), **settings)
    model.set_logger(Logger(None, []))
    return model


def predicted(model: Any) -> Any:
    return model.predict(contexts, deterministic=True)[0]


# --- from the engine -----------------------------------------------------------------------------------------------


def test_a_policy_of_the_engine_acts_the_same_in_stable_baselines3(run: Path) -> None:
    model: Any = load_policy(run, device="cpu")
    learned = incrt.load_policy(run / "policy.safetensors")
    assert model.actor.features_extractor.mask.tolist() == np.asarray(learned.mask).tolist()
    assert model.actor.features_extractor.k == 3
    np.testing.assert_allclose(predicted(model), learned.predict(jnp.asarray(contexts)), atol=1e-6)


def test_its_critics_and_temperature_come_along(run: Path) -> None:
    model = load_policy(run, device="cpu")
    encoder = incrt.load_policy(run / "policy.safetensors").encoder
    learner = newest_learner(run / "checkpoint", Algorithm(encoder, SAC, TASK.action_dim))
    assert learner is not None
    actions = np.random.default_rng(1).uniform(-1, 1, (32, TASK.action_dim)).astype(np.float32)
    for ours, theirs in ((learner.learned.critic, model.critic), (learner.learned.target, model.critic_target)):
        features = encoder.features(ours.encoder, learner.learned.mask, jnp.asarray(contexts))
        expected = q_values(ours, features, jnp.asarray(actions))
        with torch.no_grad():
            found = torch.cat(theirs(torch.tensor(contexts), torch.tensor(actions)), dim=1).T
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert model.log_ent_coef is not None
    assert float(model.log_ent_coef.detach()) == pytest.approx(float(learner.log_alpha))
    assert not np.allclose(learner.learned.critic.values[0].w, learner.learned.target.values[0].w)


def test_it_can_be_trained_further(run: Path, tmp_path: Path) -> None:
    model: Any = load_policy(run, device="cpu")
    model.set_logger(Logger(None, []))
    before = predicted(model)
    model.learn(40, callback=RuntimeHeads(check_every=20, grace=20, events=tmp_path / "events.jsonl"))
    assert np.abs(predicted(model) - before).max() > 1e-4
    assert [each.k for each in model.runtime_heads.checks] == [3, 3]


def test_without_its_checkpoint_the_policy_is_the_same(run: Path, tmp_path: Path) -> None:
    for name in ("policy.safetensors", "config.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    with pytest.warns(UserWarning, match="there is no checkpoint: the critic begins anew"):
        model: Any = load_policy(tmp_path / "policy.safetensors", device="cpu")
    np.testing.assert_array_equal(predicted(model), predicted(load_policy(run, device="cpu")))
    assert model.critic.features_extractor.mask.tolist() == [True, True, True]


def test_a_damaged_checkpoint_is_named(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (newest,) = (tmp_path / "run" / "checkpoint").glob(f"{SAC.steps:09d}.safetensors")
    newest.write_bytes(newest.read_bytes()[:100])
    with pytest.raises(ValueError, match=rf"{newest.name} cannot be read"):
        load_policy(tmp_path / "run", device="cpu")


def test_what_is_no_run_with_heads_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"policy.safetensors holds no policy"):
        load_policy(tmp_path)
    about = json.loads((run / "config.json").read_text())
    (tmp_path / "policy.safetensors").write_bytes((run / "policy.safetensors").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({name: about[name] for name in about if name != "task"}))
    with pytest.raises(ValueError, match="holds no run of the task; pass env="):
        load_policy(tmp_path)
    with pytest.warns(UserWarning, match="there is no checkpoint"):
        load_policy(tmp_path, env=StribeckEnv(**FIELDS), device="cpu")
    with pytest.raises(
        ValueError, match=r"shape \(5, 11\) and acts in \(6,\); the environment has \(6, 11\) and \(6,\)"
    ):
        load_policy(tmp_path, env=StribeckEnv(**{**FIELDS, "window": 6}))
    own = {**about, "task": {**about["task"], "robot": {"class": "mine.Arm", "numbers": "0"}}}
    (tmp_path / "config.json").write_text(json.dumps(own))
    with pytest.raises(ValueError, match=r"its robot is an object of the user's own \(mine.Arm\), which no file holds"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**about, "algorithm": "SB3 TD3"}))
    with pytest.raises(ValueError, match="was trained by SB3 TD3; load the model that was saved there"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(about))
    learned = incrt.load_policy(run / "policy.safetensors")
    encoder = make_encoder(ENCODER.replace(encoder="gru"), TASK.window, TASK.observation_dim)
    actor = learned.actor._replace(encoder=encoder.init(jax.random.key(0)))
    policy.save(tmp_path / "policy.safetensors", policy.LearnedPolicy(encoder, actor, encoder.first_mask))
    with pytest.raises(ValueError, match=r"the encoder of .* must be one of runtime, static; got 'gru'"):
        load_policy(tmp_path)


# --- to the engine -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [sac.SAC, TD3, TQC])
def test_a_model_is_evaluated_as_a_run(
    algorithm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = sb3_model(algorithm)
    callback = RuntimeHeads(check_every=20, grace=40, tokens=30, events=tmp_path / "events.jsonl")
    model.learn(140, callback=callback)
    save_policy(model, tmp_path / "run")
    (run,) = find_runs(tmp_path / "run")
    if algorithm is sac.SAC:
        monkeypatch.setattr(
            "sys.argv", ["incrt", "evaluate", str(tmp_path / "run"), "--json", "--figures", str(tmp_path)]
        )
        main()
        *_, figures = json.loads(capsys.readouterr().out)
        expected, _ = incrt.evaluate_policy(TASK, lambda seen: model.predict(seen, deterministic=True)[0])
        assert figures["rmse"] == pytest.approx(expected.rmse, rel=1e-4)
        assert (figures["controller"], figures["seed"]) == ("runtime, SB3 SAC", 7)
        assert (tmp_path / "run-heads.png").exists()
    assert (run.seed, run.config.task, run.config.encoder, run.config.heads) == (7, TASK, ENCODER, callback.config)
    sac_config = run.config.sac
    assert (sac_config.steps, sac_config.hidden, sac_config.batch, sac_config.penalty) == (140, (8, 8), 16, False)
    assert run.conclusion["heads"] == model.runtime_heads.heads_state.k
    assert run.conclusion["guarantees"]["all_hold"]
    assert run.conclusion["guarantees"]["grows"] == len(model.runtime_heads.certificates)
    assert (tmp_path / "run" / "events.jsonl").read_text() == (tmp_path / "events.jsonl").read_text()
    assert run.algorithm == f"SB3 {algorithm.__name__}"
    np.testing.assert_allclose(
        incrt.load_policy(tmp_path / "run" / "policy.safetensors").predict(jnp.asarray(contexts)),
        predicted(model),
        atol=1e-6,
    )
    if algorithm is sac.SAC:
        with pytest.warns(UserWarning, match="there is no checkpoint"):
            again = load_policy(tmp_path / "run", device="cpu")
        np.testing.assert_array_equal(predicted(again), predicted(model))


def test_a_model_without_the_callback_is_a_run_with_a_fixed_number_of_heads(tmp_path: Path) -> None:
    model = sb3_model(seed=None)
    model.learn(5)
    save_policy(model, tmp_path / "run")
    (run,) = find_runs(tmp_path / "run")
    assert (run.seed, run.config.encoder.encoder, run.config.encoder.k_init) == (None, "static", 1)
    assert run.conclusion == {"steps": 5, "heads": 1, "failure": None, "guarantees": None}


def test_what_cannot_be_a_run_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def after_one_step(model: Any) -> Any:
        return model.learn(1)

    with pytest.raises(ValueError, match="the model has not been trained"):
        save_policy(sb3_model(), folder)
    with pytest.raises(ValueError, match=r"only a policy of ReLU layers that ends in tanh.*incrt.evaluate_policy"):
        save_policy(after_one_step(sb3_model(PPO, n_steps=8, batch_size=8)), folder)
    with pytest.raises(ValueError, match="the model has no environment of the task; pass task="):
        save_policy(after_one_step(make_model("SAC")), folder)
    with pytest.raises(ValueError, match="reads what VecNormalize has normalised, a run of the engine does not"):
        save_policy(after_one_step(make_model("SAC", VecNormalize(make_env()))), folder)
    normalised = make_model("SAC", VecNormalize(make_env()))
    normalised.learn(1, callback=RuntimeHeads(events=tmp_path / "events.jsonl"))
    normalised.env = None
    with pytest.raises(ValueError, match="reads what VecNormalize has normalised"):
        save_policy(normalised, folder, task=TASK)
    trained = after_one_step(sb3_model())
    with pytest.raises(ValueError, match=r"windows of shape \(20, 11\), the model reads \(5, 11\)"):
        save_policy(trained, folder, task=preset_task())
    trained.gamma = 1.0
    with pytest.raises(ValueError, match="has a setting that the engine does not have: gamma must be"):
        save_policy(trained, folder)
    assert not folder.exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not an empty folder; choose another"):
        save_policy(trained, tmp_path)
