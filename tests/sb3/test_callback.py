"""The check as a callback: when it looks, what it writes, what it remembers and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from gymnasium import spaces
from sb3_models import (
    WINDOW,
    Noise,
    assert_same,
    grower,
    make_env,
    make_model,
    parameters,
)
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from incrt.config import HeadsConfig
from incrt.env import ContextWindow
from incrt.heads.triggers import Decision, Signals
from incrt.sb3 import RuntimeHeads, load, policy_kwargs, save

# --- cadence, logs, other set-ups ----------------------------------------------------------------------------------


def test_checks_and_events_are_logged(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.set_logger(configure(str(tmp_path / "log"), ["json"]))
    model.learn(100, callback=grower(tmp_path), log_interval=1)
    model.logger.close()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(10, 101, 10))
    assert [line["k"] for line in lines] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert [line["action"] for line in lines if line["action"] != "noop"] == ["grow", "grow"]
    assert all((line["jump"], line["holds"]) == (0, True) for line in lines if line["action"] == "grow")
    assert lines[3]["reason"].startswith("cooldown")
    logged = [json.loads(line) for line in (tmp_path / "log" / "progress.json").read_text().splitlines()]
    assert (logged[0]["heads/k"], logged[-1]["heads/k"]) == (1, 3)
    events = [line for line in logged if "heads/grow" in line]
    assert {line["heads/grow"] for line in events} == {1, 2}
    for name in ("rank", "share_0", "jump", "bound", "holds"):
        assert all(f"heads/{name}" in line for line in events)


def test_tensorboard_has_every_check_at_its_step(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.set_logger(configure(str(tmp_path), ["tensorboard"]))
    model.learn(50, callback=grower(tmp_path), log_interval=1)
    model.logger.close()
    board = EventAccumulator(str(tmp_path)).Reload()
    shown = {name: {each.step: each.value for each in board.Scalars(name)} for name in board.Tags()["scalars"]}
    checks = model.runtime_heads.checks
    assert shown["heads/k"] == {check.step: check.k for check in checks}
    assert shown["heads/rank"] == {check.step: check.rank for check in checks if check.rank is not None}
    assert shown["heads/share_0"].keys() == shown["heads/rank"].keys()
    assert list(shown["heads/share_1"]) == [50]  # head 1 was grown at 30, and a cooldown followed
    assert shown["heads/grow"] == {30: 1}


def test_events_go_where_the_logger_writes_unless_said_otherwise(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.set_logger(configure(str(tmp_path), []))
    model.learn(20, callback=RuntimeHeads(check_every=10, grace=10))
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(("name", "events"), [("SAC", [30, 72]), ("PPO", [81])])
def test_steps_of_several_environments_all_count(name: str, events: list[int], tmp_path: Path) -> None:
    model = make_model(name, make_env(3))
    model.learn(96, callback=grower(tmp_path))
    assert [check.step for check in model.runtime_heads.checks] == [12, 21, 30, 42, 51, 60, 72, 81, 90]
    assert [each.step for each in model.runtime_heads.certificates] == events
    assert len(model.runtime_heads.recent) == 40


def test_a_check_waits_for_something_to_be_learned(tmp_path: Path) -> None:
    """A head that was never trained is silent, and would be pruned for it."""
    model = make_model("PPO", make_env(5))  # rollouts of 40 steps
    model.learn(120, callback=grower(tmp_path, delta_grow=1, delta_prune=1))
    waits = [check.reason for check in (each.decision for each in model.runtime_heads.checks)]
    measured = [check.step for check in model.runtime_heads.checks if check.rank is not None]
    assert measured == [50, 90]  # once a rollout, after it was learned from
    assert waits.count("nothing was learned since the latest check that asked") == 10
    assert [check.decision.action for check in model.runtime_heads.checks if check.rank is not None] == ["grow", "grow"]


@pytest.mark.parametrize("name", ["SAC", "PPO"])
def test_shares_are_measured_on_what_the_policy_sees(name: str, tmp_path: Path) -> None:
    env = VecNormalize(make_env(2))
    model, callback = make_model(name, env), grower(tmp_path)
    model.learn(64, callback=callback)
    assert model.runtime_heads.heads_state.k == 2
    env.obs_rms.mean[:] = 1e6  # type: ignore[attr-defined]  # what is not normalised would now lie far from it
    drawn = callback._draw_contexts()  # noqa: SLF001
    assert bool((drawn.abs() >= 9).all()) == (name == "SAC")  # replay holds raw observations, which are cut at 10


def test_choices_instead_of_numbers(tmp_path: Path) -> None:
    model = make_model("PPO", make_env(action_space=spaces.Discrete(3)))
    model.learn(80, callback=grower(tmp_path))
    assert [each.jump for each in model.runtime_heads.certificates] == [0, 0]


def test_state_dependent_exploration(tmp_path: Path) -> None:
    kwargs = policy_kwargs(k_max=2, d_k=4, net_arch=[8])
    model = SAC("MlpPolicy", make_env(), policy_kwargs=kwargs, use_sde=True, learning_starts=5, buffer_size=99)
    model.learn(40, callback=grower(tmp_path))
    assert [each.holds for each in model.runtime_heads.certificates] == [True]  # type: ignore[attr-defined]


def test_a_callback_that_changes_no_head_changes_nothing(tmp_path: Path) -> None:
    for name in ("SAC", "PPO"):
        with_it = make_model(name, k_max=1)
        with_it.learn(48, callback=grower(tmp_path / name))
        without = make_model(name, k_max=1)  # which seeds everything anew
        without.learn(48)
        assert with_it.runtime_heads.checks
        assert_same(parameters(with_it), parameters(without))


def test_learning_again_goes_on_with_the_same_heads(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(25, callback=grower(tmp_path))
    model.learn(25, callback=grower(tmp_path))  # starts counting its steps anew
    model.learn(50, callback=grower(tmp_path), reset_num_timesteps=False)
    assert model.num_timesteps == 75
    assert model.runtime_heads.step == 100
    lines = [json.loads(line)["step"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert lines == list(range(10, 101, 10))
    assert [each.step for each in model.runtime_heads.certificates] == [30, 70]


def test_settings_are_remembered_unless_others_are_chosen(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(20, callback=grower(tmp_path))
    for callback, every in ((RuntimeHeads(events=tmp_path / "events.jsonl"), 10), (grower(tmp_path, check_every=5), 5)):
        model.learn(20, callback=callback, reset_num_timesteps=False)
        assert (callback.config.check_every, model.runtime_heads.config.check_every) == (every, every)


def test_events_are_printed_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_model("SAC").learn(30, callback=grower(tmp_path, verbose=1))
    told, event = capsys.readouterr().out.splitlines()
    assert told == f"checks and events go to {tmp_path / 'events.jsonl'}"
    assert event.startswith("step 30: grow head 1, rank ")
    assert event.endswith("; jump 0, K = 2")


def test_what_one_model_remembers_is_not_carried_to_the_next(tmp_path: Path) -> None:
    known, callback = make_model("SAC"), RuntimeHeads(events=tmp_path / "events.jsonl")
    known.learn(10, callback=grower(tmp_path))
    known.learn(10, callback=callback)
    assert callback.config.check_every == 10
    fresh = make_model("SAC")
    fresh.set_logger(Logger(str(tmp_path), []))
    callback._events = None  # noqa: SLF001
    fresh.learn(10, callback=callback)
    assert fresh.runtime_heads.config == HeadsConfig()


def test_trainings_that_have_not_learned_yet_are_told_apart(tmp_path: Path) -> None:
    models = [make_model("PPO", make_env(5)) for _ in range(2)]
    for steps in (20, 40):
        for model in models:
            model.set_logger(Logger(str(tmp_path), []))
            model.learn(steps, callback=RuntimeHeads(check_every=10, grace=10), reset_num_timesteps=False)
    for model, name in zip(models, ("events.jsonl", "events-2.jsonl"), strict=True):
        assert (tmp_path / name).read_text() == model.runtime_heads.lines()
    assert not (tmp_path / "events-undone.jsonl").exists()


def test_one_callback_serves_several_models(tmp_path: Path) -> None:
    callback = RuntimeHeads(check_every=10, grace=10)
    models = [make_model("SAC", seed=seed) for seed in (0, 1)]
    for model in models:
        model.set_logger(Logger(str(tmp_path), []))
        model.learn(30, callback=callback)
    assert [model.runtime_heads.step for model in models] == [30, 30]
    for model, name in zip(models, ("events.jsonl", "events-2.jsonl"), strict=True):
        assert (tmp_path / name).read_text() == model.runtime_heads.lines()


def test_figures_of_earlier_events_are_logged_after_a_pause(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(31, callback=grower(tmp_path))
    model.learn(1, callback=grower(tmp_path), reset_num_timesteps=False)
    logged = model.logger.name_to_value
    assert [logged[f"heads/{name}"] for name in ("k", "grow", "holds", "jump")] == [2, 1, 1, 0]
    assert logged["heads/rank"] > 2


def test_events_of_undone_steps_are_put_aside(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(30, callback=grower(tmp_path))
    model.save(tmp_path / "model")
    early = (tmp_path / "events.jsonl").read_text()
    model.learn(20, callback=grower(tmp_path), reset_num_timesteps=False)
    late = (tmp_path / "events.jsonl").read_text()
    older = SAC.load(tmp_path / "model", env=make_env())
    older.set_logger(Logger(None, []))
    older.learn(1, callback=grower(tmp_path), reset_num_timesteps=False)
    assert (tmp_path / "events.jsonl").read_text() == early
    assert early + (tmp_path / "events-undone.jsonl").read_text() == late


# --- a trigger of the user's own -----------------------------------------------------------------------------------


class InTurn:
    """Grows and prunes in turn, whatever it is shown, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Signals] = []

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        self.shown.append(signals)
        turn = 0 if state is None else state["turn"]
        decision = Decision("grow", f"turn {turn}") if turn % 2 == 0 else Decision("prune", f"turn {turn}", 0)
        return (decision if signals.k in {1, 2} and turn < 3 else Decision("noop", "done")), {"turn": turn + 1}


def test_a_trigger_of_ones_own_decides_and_its_reasons_are_written(tmp_path: Path) -> None:
    env = DummyVecEnv([lambda: Monitor(ContextWindow(Noise(), WINDOW))])
    model, trigger = make_model("SAC", env), InTurn()
    model.learn(40, callback=grower(tmp_path, trigger=trigger))
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(line["action"], line["reason"], line["k"]) for line in lines] == [
        ("grow", "turn 0", 2),
        ("prune", "turn 1", 1),
        ("grow", "turn 2", 2),
        ("noop", "done", 2),
    ]
    assert all(line["holds"] for line in lines[:3])
    assert [lines[1][name] for name in ("threshold", "premise_holds")] == [None, None]
    assert [shown.returns is None for shown in trigger.shown] == [True, False, False, False]  # episodes have 13 steps
    assert trigger.shown[1].returns == pytest.approx(env.envs[0].get_episode_rewards()[0], rel=1e-5)  # type: ignore[attr-defined]
    assert {"critic_loss", "actor_loss", "ent_coef"} <= set(trigger.shown[1].losses)


def test_a_training_with_a_trigger_of_ones_own_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole = make_model("SAC")
    whole.learn(40, callback=grower(tmp_path / "whole", trigger=InTurn()))
    parts = make_model("SAC")
    parts.learn(20, callback=grower(tmp_path / "parts", trigger=InTurn()))
    save(parts, tmp_path / "saved")
    parts = load(tmp_path / "saved")
    parts.set_logger(Logger(None, []))
    parts.learn(20, callback=RuntimeHeads(events=tmp_path / "parts" / "events.jsonl"), reset_num_timesteps=False)
    assert [check.to_json() for check in parts.runtime_heads.checks] == [
        check.to_json() for check in whole.runtime_heads.checks
    ]
    assert parts.runtime_heads.heads_state == whole.runtime_heads.heads_state


def test_another_trigger_begins_with_a_state_of_its_own(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(30, callback=grower(tmp_path))
    model.learn(10, callback=grower(tmp_path, trigger=InTurn()), reset_num_timesteps=False)
    assert [check.decision.reason for check in model.runtime_heads.checks][-1] == "turn 0"
    assert model.runtime_heads.heads_state.state == {"turn": 1}


# --- what is refused -----------------------------------------------------------------------------------------------


def test_a_policy_without_heads_is_refused(tmp_path: Path) -> None:
    model = SAC("MlpPolicy", make_env(), buffer_size=10)
    with pytest.raises(ValueError, match=r"extractor is FlattenExtractor, which has no heads; pass policy_kwargs="):
        model.learn(1, callback=grower(tmp_path))
    discrete = ContextWindow(Noise(spaces.Discrete(2)), WINDOW)
    other = DQN("MlpPolicy", discrete, policy_kwargs=policy_kwargs(k_max=2), buffer_size=10)
    with pytest.raises(ValueError, match="policies of SAC, TD3, DDPG, TQC, PPO and A2C, got DQNPolicy"):
        other.learn(1, callback=grower(tmp_path))


def test_wrong_settings_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="grace must be at least check_every = 500, got 100"):
        RuntimeHeads(grace=100)
    with pytest.raises(ValueError, match=r"unknown field cooldown; accepted: .*grace"):
        RuntimeHeads(cooldown=3)
    model = make_model("SAC")
    for _ in range(2):
        with pytest.raises(ValueError, match="1 heads are active, but k_min = 2"):
            model.learn(1, callback=grower(tmp_path, k_min=2))
        model.learn(1, callback=grower(tmp_path))


def test_the_events_of_another_training_are_kept(tmp_path: Path) -> None:
    make_model("SAC").learn(20, callback=grower(tmp_path))
    before = (tmp_path / "events.jsonl").read_text()
    with pytest.raises(ValueError, match=r"events.jsonl holds the events of another training; choose another file"):
        make_model("SAC", seed=1).learn(20, callback=grower(tmp_path))
    other = make_model("SAC", seed=1)
    other.learn(20, callback=grower(tmp_path / "other"))
    with pytest.raises(ValueError, match="holds the events of another training"):
        other.learn(20, callback=grower(tmp_path))
    assert (tmp_path / "events.jsonl").read_text() == before


def test_a_memory_of_other_heads_is_refused(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(30, callback=grower(tmp_path))
    model.set_parameters(make_model("SAC").get_parameters())
    with pytest.raises(ValueError, match=r"they are of different trainings; del model.runtime_heads forgets it"):
        model.learn(30, callback=grower(tmp_path))
    del model.runtime_heads
    model.learn(30, callback=grower(tmp_path / "anew"))


def test_networks_that_differ_in_their_heads_are_refused(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.critic_target.features_extractor.mask[2] = True
    with pytest.raises(ValueError, match="actor, critic and targets must have the same heads active, got"):
        model.learn(30, callback=grower(tmp_path))


def test_other_misuse_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="holds the events of another training; choose another file"):
        make_model("SAC").learn(1, callback=RuntimeHeads(events=tmp_path / "notes"))
    with pytest.raises(ValueError, match="is a folder; choose another file"):
        make_model("SAC").learn(1, callback=RuntimeHeads(events=tmp_path))
    with pytest.raises(ValueError, match="two RuntimeHeads train one model; leave one of them out"):
        make_model("SAC").learn(5, callback=[grower(tmp_path), grower(tmp_path)])


def test_a_policy_shows_its_heads() -> None:
    assert "K = 2 of 3 heads" in repr(make_model("SAC", k_init=2).policy)
