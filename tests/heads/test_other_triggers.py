"""Rules from elsewhere: by the clock, by gradients, by importance."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import TRIGGERS, HeadsConfig
from incrt.heads.triggers import (
    Clock,
    Decision,
    ExpansionTrigger,
    ImportanceTrigger,
    PotentialTrigger,
    Signals,
    Trigger,
    make_trigger,
    wanted_signals,
)

CONFIG = HeadsConfig(check_every=500, grace=1000, delta_grow=2, delta_prune=3)
TWO_OF_THREE, ALL_THREE = (True, True, False), (True, True, True)


def driven(
    trigger: Trigger, shown: Sequence[dict[str, Any]], mask: tuple[bool, ...] = TWO_OF_THREE
) -> list[tuple[int, Decision, Any]]:
    """Checks with these signals, while nothing that is decided happens; the state as JSON gives it back."""
    state, found = None, []
    for n, more in enumerate(shown, start=1):
        decision, after = trigger.decide(Signals(500 * n, sum(mask), mask, None, None, **more), state)
        state = json.loads(json.dumps(after, allow_nan=False))
        found.append((500 * n, decision, state))
    return found


def events(checks: Sequence[tuple[int, Decision, Any]], action: str) -> list[int]:
    return [step for step, decision, _ in checks if decision.action == action]


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("clock", Clock, ()),
        ("potential", PotentialTrigger, ("potential", "gradients")),
        ("expansion", ExpansionTrigger, ("expansion", "gradients")),
        ("importance", ImportanceTrigger, ("importance",)),
    ],
)
def test_triggers_are_known_by_name_and_say_what_they_want(
    name: str, kind: type[Trigger], wanted: tuple[str, ...]
) -> None:
    assert name in TRIGGERS
    trigger = make_trigger(HeadsConfig(trigger=name, grace=700))
    assert trigger == kind(HeadsConfig(trigger=name, grace=700))  # type: ignore[call-arg]
    assert wanted_signals(trigger) == wanted


def test_whoever_does_not_say_what_it_wants_is_shown_rank_and_shares() -> None:
    assert wanted_signals(make_trigger(HeadsConfig())) == ("rank", "shares")


# --- by the clock ----------------------------------------------------------------------------------------------------


def test_the_clock_grows_every_grace_steps_until_all_are_active() -> None:
    trigger, mask, state, grown = Clock(CONFIG), [True, False, False, False], None, []
    for step in range(500, 10_001, 500):
        assert not trigger.measures(step, state)
        may = trigger.can_act(step, mask, state)
        decision, state = trigger.decide(Signals(step, sum(mask), tuple(mask), None, None), state)
        state = json.loads(json.dumps(state))
        assert may == (decision.action == "grow")
        if decision.action == "grow":
            mask[mask.index(False)] = True
            grown.append(step)
    assert grown == [1000, 2000, 3000]


def test_the_clock_says_what_it_waits_for() -> None:
    words = [decision.reason for _, decision, _ in driven(Clock(CONFIG), [{}, {}, {}])]
    assert words == ["500 of 1000 steps", "1000 steps have passed", "500 of 1000 steps"]
    ((_, decision, state),) = driven(Clock(CONFIG), [{}], ALL_THREE)
    assert (decision, state) == (Decision("noop", "all 3 heads are active"), 0)


# --- by gradients ----------------------------------------------------------------------------------------------------

EVEN = (1.0, 1.0, 0.0)
GRADIENTS = [(PotentialTrigger, "potential", 0.02), (ExpansionTrigger, "expansion", 0.05)]


@pytest.mark.parametrize(("kind", "name", "least"), GRADIENTS)
def test_a_silent_head_must_promise_enough_at_some_checks_in_a_row(kind: Any, name: str, least: float) -> None:
    more = [{name: value * least, "gradients": EVEN} for value in (2, 2, 1, 2, 2, 2, 2, 2)]
    checks = driven(kind(CONFIG), more)
    # Until 1000 the cooldown runs, in which nothing is counted; at 1500 as much as asks for none interrupts.
    assert events(checks, "grow") == [2500, 4000]
    assert checks[0][1].reason == "cooldown: 500 of 1000"
    assert checks[4][1].reason.endswith(
        f"{name if name == 'potential' else 'expansion score'} {2 * least:.3g}, {least:g} asks for a head"
    )
    assert checks[1][2]["grow"] == 1
    assert checks[2][2]["grow"] == 0


@pytest.mark.parametrize(("kind", "name", "least"), GRADIENTS)
def test_no_head_is_asked_for_where_all_are_active(kind: Any, name: str, least: float) -> None:
    checks = driven(kind(CONFIG), [{name: 9 * least, "gradients": (1.0, 1.0, 1.0)}] * 8, ALL_THREE)
    assert {decision.action for _, decision, _ in checks} == {"noop"}
    assert checks[-1][2]["grow"] == 0


@pytest.mark.parametrize(("kind", "name"), [(PotentialTrigger, "potential"), (ExpansionTrigger, "expansion")])
def test_a_dormant_head_is_pruned_after_some_checks_in_a_row(kind: Any, name: str) -> None:
    dormant, awake = (1.9, 0.049, 1.1), (1.9, 0.05, 1.1)
    more = [{name: 0.0, "gradients": each} for each in [dormant] * 3 + [awake] + [dormant] * 3]
    checks = driven(kind(CONFIG), more, ALL_THREE)
    assert events(checks, "prune") == [3500]
    assert [state["prune"] for _, _, state in checks[1:6]] == [[0, n, 0] for n in (1, 2, 0, 1, 2)]
    decision, state = checks[-1][1:]
    assert (decision.head, decision.actor_head) == (1, None)
    assert decision.reason == "head 1 has 0.049 < 0.05"
    assert state == {"last_event": 3500, "grow": 0, "prune": [0, 0, 0]}


def test_of_two_dormant_heads_the_smaller_goes_and_the_other_stays_counted() -> None:
    more = [{"potential": 0.0, "gradients": (2.9, 0.04, 0.03)}] * 4
    checks = driven(PotentialTrigger(CONFIG), more, ALL_THREE)
    assert (checks[-1][1].action, checks[-1][1].head) == ("prune", 2)
    assert checks[-1][2]["prune"] == [0, 3, 0]


def test_growth_goes_before_pruning() -> None:
    config = CONFIG.replace(delta_grow=1, delta_prune=1)
    checks = driven(PotentialTrigger(config), [{"potential": 0.5, "gradients": (2.0, 0.0, 0.0)}] * 2)
    assert checks[-1][1].action == "grow"


def test_an_inactive_head_is_not_dormant_and_k_min_are_kept() -> None:
    more = [{"potential": 0.0, "gradients": EVEN}] * 9
    assert events(driven(PotentialTrigger(CONFIG), more), "prune") == []
    dormant = [{"potential": 0.0, "gradients": (2.0, 0.0, 0.0)}] * 9
    assert events(driven(PotentialTrigger(CONFIG), dormant), "prune") != []
    assert events(driven(PotentialTrigger(CONFIG.replace(k_min=2)), dormant), "prune") == []


# --- by importance ---------------------------------------------------------------------------------------------------


def test_importance_grows_by_the_clock() -> None:
    checks = driven(ImportanceTrigger(CONFIG), [{"importance": (0.5, 0.5, 0.0)}] * 8)
    assert events(checks, "grow") == [1500, 3000]
    assert checks[2][1].reason == "the cooldown is over"


def test_a_head_of_little_importance_is_pruned() -> None:
    """Below a tenth of the uniform share, which of three heads is a thirtieth."""
    for share, expected in ((0.9 / 30, [2000]), (1.1 / 30, [])):
        more = [{"importance": (0.9 - share, share, 0.1)}] * 4
        assert events(driven(ImportanceTrigger(CONFIG), more, ALL_THREE), "prune") == expected


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "missing"),
    [
        (PotentialTrigger(CONFIG), {"gradients": EVEN}),
        (PotentialTrigger(CONFIG), {"potential": 0.0}),
        (ExpansionTrigger(CONFIG), {"gradients": EVEN}),
        (ImportanceTrigger(CONFIG), {}),
    ],
)
def test_what_was_not_measured_is_not_decided_upon(trigger: Trigger, missing: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="signals must be measured"):
        driven(trigger, [missing] * 2)


shown = st.lists(
    st.fixed_dictionaries(
        {
            "potential": st.floats(0, 1),
            "expansion": st.floats(0, 1),
            "gradients": st.tuples(*[st.floats(0, 0.2)] * 4),
            "importance": st.tuples(*[st.floats(0, 0.1)] * 4),
        }
    ),
    min_size=20,
    max_size=20,
)


@pytest.mark.parametrize("name", ["clock", "potential", "expansion", "importance"])
@given(given_signals=shown, k_min=st.integers(1, 2))
def test_under_arbitrary_signals_the_limits_hold(name: str, given_signals: list[dict[str, Any]], k_min: int) -> None:
    trigger = make_trigger(CONFIG.replace(trigger=name, k_min=k_min, delta_grow=1, delta_prune=1))
    mask, state, last = [True, True, False, False], None, 0
    for n, more in enumerate(given_signals, start=1):
        step = 500 * n
        decision, after = trigger.decide(Signals(step, sum(mask), tuple(mask), None, None, **more), state)
        again, _ = trigger.decide(Signals(step, sum(mask), tuple(mask), None, None, **more), state)
        assert again == decision
        state = json.loads(json.dumps(after, allow_nan=False))
        if decision.action == "noop":
            continue
        assert step - last >= CONFIG.grace
        last = step
        head = mask.index(False) if decision.head is None else decision.head
        assert mask[head] == (decision.action == "prune")
        mask[head] = not mask[head]
        assert k_min <= sum(mask) <= 4
