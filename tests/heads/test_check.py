"""The check: whatever a trigger answers, heads stay consistent, or one sentence says what is wrong with the answer."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from checked import check_record
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import HeadsConfig
from incrt.heads.certificates import Evidence, PruneCertificate, PruneMeasures
from incrt.heads.check import Check, HeadsState, Measured, Watched, check_runs
from incrt.heads.triggers import Decision, PaperTrigger, Signals


class Answers:
    """A trigger that gives the answers that it was made with, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.seen = list(answers), list[tuple[Signals, Any]]()

    def decide(self, signals: Signals, state: Any) -> Any:
        self.seen.append((signals, state))
        return self.answers.pop(0)


def even(mask: Sequence[bool]) -> list[float]:
    return [on / sum(mask) for on in mask]


# --- what always holds -----------------------------------------------------------------------------------------------

states = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
answers = st.tuples(st.sampled_from(["noop", "grow", "prune"]), st.none() | st.integers(-1, 5), states)


@given(given_answers=st.lists(answers, max_size=20), start=st.integers(1, 4))
def test_under_arbitrary_answers_heads_stay_consistent(given_answers: list[Any], start: int) -> None:
    controller = HeadsState(tuple(i < start for i in range(4)))
    for n, (action, head, state) in enumerate(given_answers, start=1):
        trigger = Answers((Decision(action, "so", head), state))
        before = controller
        fit = {"noop": {head}, "grow": {i for i in range(4) if not before.mask[i]}, "prune": set[int]()}
        if before.k > 1:
            fit["prune"] = {i for i in range(4) if before.mask[i]}
        if head not in fit[action] and not (action == "grow" and head is None and not all(before.mask)):
            with pytest.raises(ValueError, match=r"^trigger Answers: decide returned Decision\("):
                check_record(trigger, before, 10 * n, 2.0, even(before.mask))
            continue
        check, controller = check_record(trigger, before, 10 * n, 2.0, even(before.mask))
        assert 1 <= controller.k <= 4
        assert check.k == controller.k == before.k + {"noop": 0, "grow": 1, "prune": -1}[action]
        changed = [i for i in range(4) if controller.mask[i] != before.mask[i]]
        assert changed == ([] if action == "noop" else [check.decision.head])
        assert controller.last_check == check.step == 10 * n
        assert controller.state == state
        assert HeadsState.from_json(json.loads(json.dumps(controller.to_json()))) == controller
        json.dumps(check.to_json(), allow_nan=False)


def test_a_trigger_is_shown_the_run_and_its_own_state_as_json_has_it() -> None:
    trigger = Answers((Decision("grow", "first"), {"tuple": (1, 2)}), (Decision("noop", "then", 1), None))
    signals = {"losses": {"critic_loss": 0.5}, "returns": -3.0}
    controller = HeadsState((True, False))
    for step in (10, 20):
        run = Watched(trigger, controller, **signals)  # type: ignore[arg-type]
        found = check_runs(step, {7: run}, lambda _: {7: Measured(2, [1.0, math.nan])}, grow_all)  # an inactive head's
        check, controller = found[7]
        if step == 10:
            assert (check.decision, check.mask) == (Decision("grow", "first", 1), (True, True))
            controller = HeadsState((True, False), 10, controller.state)
    first, second = trigger.seen
    assert first == (Signals(10, 1, (True, False), 2.0, (1.0, 0.0), {"critic_loss": 0.5}, -3.0), None)
    assert second[1] == {"tuple": [1, 2]}
    assert check.decision == Decision("noop", "then")  # nothing happens to a head


def grow_all(events: Mapping[int, Decision]) -> dict[int, Evidence]:
    still = {"policy": np.zeros(1)}
    return {i: Evidence(still, still, np.zeros(2)) for i in events}


def test_a_state_that_is_changed_in_place_is_a_copy() -> None:
    class Spoiler:
        def decide(self, signals: Signals, state: Any) -> Any:
            state.append(1)
            raise RuntimeError("half way")

    controller = HeadsState((True, False), state=[0])
    with pytest.raises(ValueError, match="trigger Spoiler: decide raised RuntimeError: half way"):
        check_record(Spoiler(), controller, 10, 2.0, [1.0, 0.0])
    assert controller.state == [0]


# --- many runs -------------------------------------------------------------------------------------------------------


class Sometimes(Answers):
    """Wants no signals."""

    def measures(self, step: int, state: Any) -> bool:
        return False


def test_only_what_is_wanted_is_measured_and_all_events_happen_at_once() -> None:
    triggers = {
        2: Answers((Decision("grow", "a"), None)),
        5: Sometimes((Decision("noop", "b"), None)),
        6: Sometimes((Decision("prune", "c", 0), None)),
    }
    wanted: list[Sequence[int]] = []
    happened: list[Mapping[int, Decision]] = []

    def measure(runs: Sequence[int]) -> dict[int, Measured]:
        wanted.append(runs)
        return {i: Measured(3.0, [0.5, 0.5, 0.0]) for i in runs}

    def act(events: Mapping[int, Decision]) -> dict[int, Evidence]:
        happened.append(events)
        removal = PruneMeasures(2, 0, 0.5, 0.6, np.array([3.0, 1.0, 0.0]), 1.0, 1.0)
        return {**grow_all({2: events[2]}), 6: Evidence({}, {}, (2.0, 1.0), removal)}

    runs = {i: Watched(trigger, HeadsState((True, True, False))) for i, trigger in triggers.items()}
    found = check_runs(10, runs, measure, act)
    assert wanted == [[2]]
    assert [dict(each) for each in happened] == [{2: Decision("grow", "a", 2), 6: Decision("prune", "c", 0)}]
    assert {i: check.mask for i, (check, _) in found.items()} == {
        2: (True, True, True),
        5: (True, True, False),
        6: (False, True, False),
    }
    assert (found[5][0].rank, found[5][0].shares, triggers[5].seen[0][0].rank) == (None, None, None)
    certificate = found[6][0].certificate
    assert isinstance(certificate, PruneCertificate)
    assert (certificate.threshold, certificate.share, certificate.bound, certificate.holds) == (None, 0.75, 3.0, True)


def test_nothing_happens_where_one_answer_of_many_is_nonsense() -> None:
    runs = {i: Watched(Answers(answer), HeadsState((True, False))) for i, answer in enumerate([GROW, None])}
    acted: list[Any] = []
    with pytest.raises(ValueError, match="trigger Answers: decide returned None"):
        check_runs(10, runs, lambda all_of: dict.fromkeys(all_of, Measured(1.0, [1.0, 0.0])), acted.append)  # type: ignore[arg-type]
    assert acted == []
    assert runs[0].heads_state == HeadsState((True, False))


# --- nonsense --------------------------------------------------------------------------------------------------------

GROW = (Decision("grow", "more"), None)
ONE, ALL = (True, False, False), (True, True, True)


@pytest.mark.parametrize(
    ("mask", "answer", "message"),
    [
        (ONE, None, "None; accepted is a pair of a Decision and a state"),
        (ONE, Decision("noop", "x"), "accepted is a pair of a Decision and a state"),
        (ONE, ("grow", None), "accepted is a pair of a Decision and a state"),
        (ONE, (*GROW, 3), "accepted is a pair of a Decision and a state"),
        (ONE, (Decision("split", "x"), None), "an action among noop, grow, prune and a reason"),  # type: ignore[arg-type]
        (ONE, (Decision("grow", 3), None), "an action among noop, grow, prune and a reason"),  # type: ignore[arg-type]
        (ALL, GROW, "accepted is grow while one of the 3 heads is inactive"),
        (ONE, (Decision("prune", "x", 0), None), "accepted is prune while two are active"),
        (
            ALL,
            (Decision("prune", "x"), None),
            r"head must be a number, got None\); accepted is a head among \[0, 1, 2\]",
        ),
        (
            (True, True, False),
            (Decision("prune", "x", 2), None),
            r"already inactive\); accepted is a head among \[0, 1\]",
        ),
        (ONE, (Decision("grow", "x", 0), None), r"already active\); accepted is a head among \[1, 2\]"),
        (
            ONE,
            (Decision("grow", "x", 3), None),
            r"head must be from 0 to 2, got 3\); accepted is a head among \[1, 2\]",
        ),
        (ONE, (Decision("grow", "x", -1), None), "head must be a whole number >= 0"),
        (ONE, (Decision("noop", "x"), {1, 2}), "accepted is a state that JSON can hold"),
        (ONE, (Decision("noop", "x"), math.nan), "accepted is a state that JSON can hold, without NaN and infinity"),
    ],
)
def test_nonsense_is_refused_by_the_triggers_name(mask: tuple[bool, ...], answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^trigger Answers: decide returned .*{message}"):
        check_record(Answers(answer), HeadsState(mask), 10, 2.0, even(mask))


def test_errors_of_the_triggers_own_are_said_with_its_name() -> None:
    class Broken(Answers):
        def can_act(self, step: int, mask: Sequence[bool], state: Any) -> bool:
            return bool(state["missing"])

    with pytest.raises(ValueError, match="trigger Broken: can_act raised TypeError: 'NoneType'"):
        check_record(Broken(GROW), HeadsState(ONE), 10, 2.0, even(ONE))
    with pytest.raises(ValueError, match="trigger Answers: decide raised IndexError: pop from empty list"):
        check_record(Answers(), HeadsState(ONE), 10, 2.0, even(ONE))


def test_an_event_that_a_trigger_had_ruled_out_is_refused() -> None:
    class Rash(Answers):
        def can_act(self, step: int, mask: Sequence[bool], state: Any) -> bool:
            return False

    with pytest.raises(ValueError, match="Rash: decide returned grow; accepted is noop where can_act has said False"):
        check_record(Rash(GROW), HeadsState(ONE), 10, 2.0, even(ONE))


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_figures_name_active_heads_and_mark_events() -> None:
    controller = HeadsState((True, False, True))
    trigger = Answers((Decision("grow", "x"), None), (Decision("prune", "x", 0), None))
    check, controller = check_record(trigger, controller, 10, 4.0, [0.75, 0.0, 0.25])
    assert check.figures() == {
        "heads/k": 3,
        "heads/rank": 4.0,
        "heads/share_0": 0.75,
        "heads/share_2": 0.25,
        "heads/grow": 1,
        "heads/jump": 0.0,
        "heads/bound": 0.0,
        "heads/holds": 1.0,
    }
    check, _ = check_record(trigger, controller, 20, 4.0, [0.5, 0.25, 0.25])
    assert check.figures().items() >= {"heads/k": 2, "heads/share_0": 0.5, "heads/prune": 0}.items()
    assert Check(30, Decision("noop", "cooldown"), None, None, (True, False)).figures() == {"heads/k": 1}


def test_the_line_of_a_check_has_its_fields_in_their_order() -> None:
    check, _ = check_record(PaperTrigger(HeadsConfig(delta_grow=1)), HeadsState((True, False)), 500, 4, [1.0, 0.0])
    assert json.dumps(check.to_json()) == (
        '{"step": 500, "action": "grow", "reason": "rank 4 > 1.1\\u00b71, confirmation 1 of 1", "k": 2, "rank": 4.0, '
        '"shares": [1.0, 0.0], "head": 1, "jumps": {"policy": 0.0}, "energy_before": 0.0, "energy_after": 0.0, '
        '"jump": 0.0, "bound": 0.0, "holds": true}'
    )
