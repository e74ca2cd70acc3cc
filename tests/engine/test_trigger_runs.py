"""Runs of the engine under each trigger that comes with it, evaluations on the way, and checks side by side."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from compilations import compilations
from small_runs import ENCODER, HEADS, SAC, small_run

from incrt.config import TRIGGERS, RunConfig
from incrt.engine import Job, Population, train
from incrt.engine import batch as engine_batch
from incrt.engine.batch import Stack
from incrt.engine.policy import policy_of
from incrt.engine.progress import Metrics, Run, first_progress
from incrt.engine.rollout import deterministic_returns
from incrt.engine.step import RunState
from incrt.heads.certificates import PruneCertificate
from incrt.heads.triggers import Decision, Signals, make_trigger, wanted_signals
from incrt.tasks.recall import recall_task

TASK = recall_task(2, 4, horizon=30)
QUICK = HEADS.replace(delta_grow=1, delta_prune=1)
SHOWN = ("residual", "spread", "worth", "removal_jumps", "importance", "gradients", "potential", "expansion")


def recall_run(seed: int = 3, steps: int = 140, **changes: Any) -> Run:
    fields = {"encoder": ENCODER, "heads": QUICK, "sac": SAC.replace(steps=steps), **changes}
    return Run(seed, *TASK, 4, **fields)


def assert_same(a: Any, b: Any) -> None:
    for (path, x), (_, y) in zip(*map(jax.tree.leaves_with_path, (a, b)), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))


# --- each trigger ----------------------------------------------------------------------------------------------------

# Thresholds at which this little training brings events of both kinds.
HEADS_OF = {
    "paper": {},
    "clock": {},
    "potential": {},
    "expansion": {},
    "importance": {},
    "earned": {"enough": 0.0, "worth": 10.0, "max_jump": 10.0},
}


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_every_trigger_is_tried_here() -> None:
    assert set(HEADS_OF) == set(TRIGGERS)


@pytest.mark.parametrize("name", HEADS_OF)
def test_a_run_trains_and_goes_on_from_a_checkpoint_to_the_bit(name: str, tmp_path: Path) -> None:
    heads, two = QUICK.replace(trigger=name, **HEADS_OF[name]), ENCODER.replace(k_init=2)
    for folder, lengths in (("whole", (300,)), ("parts", (60, 140, 300))):
        for steps in lengths:
            (progress,) = train([Job(recall_run(steps=steps, heads=heads, encoder=two), tmp_path / folder, {})], "cpu")
            assert progress.finished
            assert progress.failure is None
    whole, parts = ((tmp_path / folder / "events.jsonl").read_bytes() for folder in ("whole", "parts"))
    assert whole == parts
    policies = [(tmp_path / folder / "policy.safetensors").read_bytes() for folder in ("whole", "parts")]
    assert policies[0] == policies[1]
    lines = events_of(tmp_path / "whole")
    assert [line["step"] for line in lines] == list(range(20, 301, 20))
    wanted = wanted_signals(make_trigger(heads))
    measured = [line for line in lines if line["shares"] is not None]
    assert (name == "clock") == (measured == [])
    for line in measured:
        assert {signal for signal in SHOWN if signal in line} == set(wanted) - {"rank", "shares"}
        assert (line["rank"] is None) == ("rank" not in wanted)
        assert all(len(line[signal]) == 3 for signal in wanted if isinstance(line.get(signal), list))
    events = [line for line in lines if line["action"] != "noop"]
    assert events
    assert all(line["holds"] for line in events)
    if name == "earned":
        assert {line["action"] for line in events} == {"grow", "prune"}
        for line in events:
            assert ("promised" in line) == (line["action"] == "prune")


class Prunes:
    """Prunes at every check the critic's first and the actor's last active head, as long as two are left."""

    signals = ("rank", "shares")

    def __init__(self, max_jump: float = 100.0) -> None:
        self.max_jump = max_jump

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        active = [i for i, on in enumerate(signals.mask) if on]
        if len(active) == 1:
            return Decision("noop", "one is left"), state
        return Decision("prune", "one more", active[0], active[-1]), (state or 0) + 1


ALL = ENCODER.replace(k_init=3)


def test_a_prune_does_what_was_promised_and_the_run_goes_on_training() -> None:
    run = recall_run(encoder=ALL, heads=HEADS.replace(trigger=Prunes()))
    population = Population([run], "cpu")
    reports = [report for news in population.train() for report in news.reports]
    found = population.progress[0].certificates
    assert [(each.step, each.head) for each in found] == [(20, 0), (40, 1)]
    for each in found:
        assert isinstance(each, PruneCertificate)
        assert each.limit == 100.0
        assert each.promised is not None
        assert each.promised > 1e-3
        assert each.jump == pytest.approx(each.promised, rel=1e-3)
    assert reports[-1].metrics.critic_loss is not None
    assert population.progress[0].heads == 1


def test_a_prune_that_would_move_the_policy_too_far_leaves_the_run_as_it_was() -> None:
    """To the bit the run that has no triggers that act."""
    found = []
    for trigger in (Prunes(max_jump=1e-6), "clock"):
        heads = HEADS.replace(trigger=trigger, grace=10_000)
        population = Population([recall_run(steps=60, encoder=ALL, heads=heads)], "cpu")
        news = list(population.train())
        found.append([saved.state for each in news for _, saved in each.saved][-1])
        assert population.progress[0].certificates == []
        if trigger != "clock":
            checks = [report.check for each in news for report in each.reports if report.check is not None]
            assert len(checks) == 3
            assert all(check.decision.reason.startswith("no prune of head 0, the policy would") for check in checks)
            state = population.progress[0].heads_state
            assert state is not None
            assert state.state is None
    assert_same(*found)


# --- evaluations -----------------------------------------------------------------------------------------------------


@cache
def evaluated(evaluations: int, encoder: str = "runtime") -> tuple[RunState, list[Metrics]]:
    heads = HEADS.replace(trigger="clock")
    sac = SAC.replace(steps=70, evaluations=evaluations)
    run = recall_run(encoder=ENCODER.replace(encoder=encoder), heads=heads, sac=sac)
    news = list(Population([run], "cpu").train())
    ((state,),) = [[saved.state for _, saved in each.saved] for each in news if each.saved]
    return state, [report.metrics for each in news for report in each.reports]


def test_evaluations_stand_in_the_metrics_and_change_no_bit_of_the_training() -> None:
    (with_any, metrics), (without, plain) = evaluated(3), evaluated(0)
    assert_same(with_any, without)
    assert [each.evaluation is None for each in plain] == [True] * 4
    assert [each.step for each in metrics if each.evaluation is not None] == [20, 40, 60]
    for each, other in zip(metrics, plain, strict=True):
        assert each._replace(evaluation=None, steps_per_s=0) == other._replace(steps_per_s=0)


def test_an_evaluation_is_about_what_the_deterministic_policy_reaches() -> None:
    """Of an episode of thirty steps, on other episodes."""
    run = recall_run(sac=SAC.replace(steps=60, evaluations=64), heads=HEADS.replace(trigger="clock"))
    news = list(Population([run], "cpu").train())
    (saved,) = [saved for each in news for _, saved in each.saved]
    evaluation = [report.metrics.evaluation for each in news for report in each.reports][-1]
    returns = deterministic_returns(run, policy_of(run, saved.state), 256, jax.random.key(0))
    assert evaluation == pytest.approx(float(np.mean(returns)), rel=0.1)


@pytest.mark.parametrize("encoder", ["static", "none", "gru"])
def test_runs_whose_heads_do_not_change_are_evaluated_too(encoder: str) -> None:
    metrics = evaluated(2, encoder)[1]
    found = [each.evaluation for each in metrics]
    assert [value is None for value in found] == [False, False, False, True]
    assert all(value is not None and value < 0 for value in found[:3])


def test_metrics_have_an_evaluation_only_where_one_was_asked_for(tmp_path: Path) -> None:
    for evaluations in (0, 2):
        sac = SAC.replace(steps=40, evaluations=evaluations)
        train([Job(recall_run(sac=sac), tmp_path / str(evaluations), {})], "cpu")
        lines = [json.loads(line) for line in (tmp_path / str(evaluations) / "metrics.jsonl").read_text().splitlines()]
        assert ["evaluation" in line for line in lines] == [evaluations > 0] * 2


# --- programs --------------------------------------------------------------------------------------------------------


def test_static_and_runtime_encoders_share_a_program_whatever_they_begin_with() -> None:
    shapes = [("runtime", None), ("runtime", 2), ("static", None), ("static", 1)]
    runs = [small_run(i, encoder=ENCODER.replace(encoder=kind, k_init=k)) for i, (kind, k) in enumerate(shapes)]
    assert len({run.program() for run in runs}) == 1
    assert [run.own_encoder().first_mask.tolist() for run in runs] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
        [True, False, False],
    ]
    other = small_run(0, encoder=ENCODER.replace(k_max=2))
    assert other.program() != runs[0].program()


def test_nothing_is_compiled_for_a_static_run_after_one_whose_heads_come_and_go() -> None:
    made = []
    for kind in ("runtime", "static"):
        encoder = ENCODER.replace(encoder=kind, k_init=1, d_k=3)  # of a width that no other test has
        run = recall_run(sac=SAC.replace(steps=20), heads=HEADS.replace(trigger="clock"), encoder=encoder)
        with compilations() as found:
            list(Population([run], "cpu").train())
        made.append({name for name, _ in found})
    assert {"jit(_start)", "jit(train_stacks)"} <= made[0]
    assert made[1] == set()


@pytest.mark.parametrize("action", ["look", "weigh", "act"])
def test_programs_of_checks_call_no_library_that_waits_for_threads(action: str) -> None:
    """LAPACK in XLA's CPU programs: two that run at once on two cores waited for each other for ever."""
    run = recall_run(encoder=ALL, heads=QUICK.replace(trigger="earned"))
    stack = Stack([0], [first_progress(run)], None)
    shaped = stack._shaping._replace(signals=tuple(sorted(SHOWN)))  # noqa: SLF001
    codes = np.zeros(1, np.int32), np.zeros((1, 2), np.int32)
    program, states = (stack.program, shaped, 1), stack.states
    lowered = {
        "look": lambda: engine_batch._look.lower(*program, stack.params, states),  # noqa: SLF001
        "weigh": lambda: engine_batch._measure_removal.lower(*program, states, *codes),  # noqa: SLF001
        "act": lambda: engine_batch._act.lower(*program, states, *codes),  # noqa: SLF001
    }[action]()
    assert "lapack" not in lowered.as_text().lower()


SIDE_BY_SIDE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from test_trigger_runs import seven_prunes

with ThreadPoolExecutor(2) as pool:
    for _ in range(3):
        print(list(pool.map(seven_prunes, (1, 2))))
"""


def seven_prunes(seed: int) -> int:
    """How many heads are left after each of eight was to go, one at a time."""
    run = recall_run(seed, encoder=ENCODER.replace(k_max=8, k_init=8), heads=HEADS.replace(trigger=Prunes()))
    stack = Stack([0], [first_progress(run)], None)
    for n in range(1, 9):
        stack.check(20 * n, stack.look())
    return stack.members[0].heads


def test_two_threads_that_prune_at_once_do_not_wait_for_each_other() -> None:
    here = Path(__file__).parent
    paths = [str(here), str(here.parent / "helpers"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1, 1]"] * 3


def test_settings_that_came_later_are_written_only_where_they_are_not_the_default() -> None:
    plain = RunConfig().to_json()
    for group, changes in (("heads", {"enough": 0.1, "worth": 0.1, "max_jump": 0.1}), ("sac", {"evaluations": 2})):
        assert not set(changes) & set(plain[group])
        changed = RunConfig().replace(**{group: changes})
        written = changed.to_json()[group]
        assert {name: written[name] for name in changes} == changes
        assert changed != RunConfig()
