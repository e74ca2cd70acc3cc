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
from incrt.heads.check import Check, HeadsState, Measured, Watched, check_run, check_runs
from incrt.heads.triggers import Decision, PaperTrigger, Signals, make_trigger


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
        found = check_runs(step, {7: run}, lambda _: {7: Measured(2, [1.0, math.nan])}, weigh_none, act_all)
        check, controller = found[7]
        if step == 10:
            assert (check.decision, check.mask) == (Decision("grow", "first", 1), (True, True))
            controller = HeadsState((True, False), 10, controller.state)
    first, second = trigger.seen
    assert first == (Signals(10, 1, (True, False), 2.0, (1.0, 0.0), {"critic_loss": 0.5}, -3.0), None)
    assert second[1] == {"tuple": [1, 2]}
    assert check.decision == Decision("noop", "then")  # nothing happens to a head


def weigh_none(prunes: Mapping[int, Decision]) -> dict[int, PruneMeasures]:
    raise AssertionError(f"nothing is pruned here: {prunes}")


def act_all(events: Mapping[int, Decision]) -> dict[int, Evidence]:
    still = {"policy": np.zeros((1, 1))}
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
    weighed, happened = list[Mapping[int, Decision]](), list[Mapping[int, Decision]]()

    def measure(runs: Sequence[int]) -> dict[int, Measured]:
        wanted.append(runs)
        return {i: Measured(3.0, [0.5, 0.5, 0.0]) for i in runs}

    def weigh(prunes: Mapping[int, Decision]) -> dict[int, PruneMeasures]:
        weighed.append(prunes)
        return {6: PruneMeasures(2, 0, 0.5, 0.6, np.array([3.0, 1.0, 0.0]), 1.0, 1.0)}

    def act(events: Mapping[int, Decision]) -> dict[int, Evidence]:
        happened.append(events)
        moved = Evidence({"policy": np.zeros((2, 2))}, {"policy": np.array([[0.3, 0.4], [0.0, 0.0]])}, (2.0, 1.0))
        return {**act_all({2: events[2]}), 6: moved}

    runs = {i: Watched(trigger, HeadsState((True, True, False))) for i, trigger in triggers.items()}
    found = check_runs(10, runs, measure, weigh, act)
    assert wanted == [[2]]
    assert weighed == [{6: Decision("prune", "c", 0)}]
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
    assert (certificate.promised, certificate.jump) == (0.5, 0.25)  # the mean of 0.5 and 0
    assert (certificate.energy_before, certificate.energy_after) == (2.0, 1.0)


def test_nothing_happens_where_one_answer_of_many_is_nonsense() -> None:
    runs = {i: Watched(Answers(answer), HeadsState((True, False))) for i, answer in enumerate([GROW, None])}
    acted: list[Any] = []
    with pytest.raises(ValueError, match="trigger Answers: decide returned None"):
        check_runs(
            10,
            runs,
            lambda all_of: dict.fromkeys(all_of, Measured(1.0, [1.0, 0.0])),
            weigh_none,
            acted.append,  # type: ignore[arg-type]
        )
    assert acted == []
    assert runs[0].heads_state == HeadsState((True, False))


# --- prunes whose certificate would not hold --------------------------------------------------------------------------


class Modest(Answers):
    """Allows the policy to move by a quarter, and asks for what is left to explain."""

    max_jump = 0.25
    signals = ("residual", "worth")


def weighing(jump: float, **changes: Any) -> PruneMeasures:
    measures = PruneMeasures(2, 0, jump, 2 * jump, np.array([1.0, 1.0, 0.0]), 1.0, 1.0)
    return measures._replace(**changes)


def moving(jump: float) -> Evidence:
    return Evidence({"policy": np.zeros((1, 2))}, {"policy": np.array([[0.0, jump]])}, (2.0, 1.0))


PRUNE = (Decision("prune", "can go", 1, 0), {"pruned": 1})
AGAIN = (Decision("noop", "nothing else"), {"pruned": 0, "counts": 3})
"""What a trigger answers that is asked once more."""
TWO = HeadsState((True, True, False), state={"pruned": 0})


@pytest.mark.parametrize("promised", [0.2501, math.nan, math.inf])
def test_a_prune_whose_certificate_would_not_hold_does_not_happen(promised: float) -> None:
    acted: list[Any] = []
    trigger = Modest(PRUNE, AGAIN)
    found, after = check_run(
        10,
        Watched(trigger, TWO),
        lambda: Measured(None, [0.5, 0.5, 0.0], {"residual": 0.5, "worth": [0.1, 0.2, 0.0]}),
        lambda _: weighing(promised),
        acted.append,  # type: ignore[arg-type]
    )
    assert acted == []
    assert found.decision.action == "noop"
    words = f"no prune of head 1, the policy would move by {promised:.3g}, more than 0.25: can go"
    assert found.decision.reason == words
    assert found.certificate is None
    assert [signals.may_prune for signals, _ in trigger.seen] == [True, False]  # it is asked once more
    assert after == HeadsState((True, True, False), 10, {"pruned": 0, "counts": 3})
    line = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (line["action"], line["k"], line["residual"], line["worth"]) == ("noop", 2, 0.5, [0.1, 0.2, 0.0])
    assert "promised" not in line


def test_a_trigger_that_insists_on_a_prune_is_left_as_it_was() -> None:
    measured = Measured(None, [0.5, 0.5, 0.0], {"residual": 0.5, "worth": [0.1, 0.2, 0.0]})
    found, after = check_run(
        10, Watched(Modest(PRUNE, PRUNE), TWO), lambda: measured, lambda _: weighing(1.0), lambda _: moving(0.0)
    )
    assert found.decision.action == "noop"
    assert after == HeadsState((True, True, False), 10, {"pruned": 0})


@pytest.mark.parametrize("name", ["earned", "paper", "importance"])
def test_growth_goes_on_where_every_prune_is_refused(name: str) -> None:
    """A rule that starts its counts anew at each refusal would never grow again."""
    config = HeadsConfig(trigger=name, check_every=500, grace=500, k_min=1)
    state, grown_at = HeadsState((True, True, False, False)), []
    for step in range(500, 20_001, 500):
        # First little is left and a head is useless, then much is left.
        left = 0.01 if step < 6000 else 0.5
        more = {"residual": left, "spread": 1.0, "worth": [0.0] * 4, "removal_jumps": [0.0] * 4}
        more["importance"] = [0.0, 1.0, 0.0, 0.0]
        rank = 1.0 if step < 6000 else 9.0
        found, state = check_run(
            step,
            Watched(make_trigger(config), state),
            lambda rank=rank, more=more: Measured(rank, [1e-9, 1 - 1e-9, 0.0, 0.0], more),  # type: ignore[misc]
            lambda _: weighing(math.nan, norms=np.ones(4)),
            lambda _: Evidence({"policy": np.zeros(1)}, {"policy": np.zeros(1)}, np.zeros(2)),
        )
        assert found.decision.action != "prune"
        if found.decision.action == "grow":
            grown_at.append(step)
            break
    assert grown_at


def weigh_one(decision: Decision) -> PruneMeasures:
    return weigh_none({0: decision})[0]


def act_one(decision: Decision) -> Evidence:
    return act_all({0: decision})[0]


@pytest.mark.parametrize("name", ["residual", "worth"])
def test_a_signal_that_is_not_finite_is_refused_by_name(name: str) -> None:
    more: dict[str, Any] = {"residual": 0.5, "worth": [0.1, 0.2, math.nan]}  # of an inactive head it does not matter
    check_run(10, Watched(Modest(GROW), TWO), lambda: Measured(None, [0.5, 0.5, 0.0], more), weigh_one, act_one)
    more[name] = math.nan if name == "residual" else [math.nan, 0.2, 0.0]
    with pytest.raises(ValueError, match=f"{name}( of head 0)? must be a number"):
        check_run(10, Watched(Modest(GROW), TWO), lambda: Measured(None, [0.5, 0.5, 0.0], more), weigh_one, act_one)


def test_a_prune_that_may_happen_has_what_was_promised_and_what_came_in_its_line() -> None:
    measured = Measured(None, [0.5, 0.5, 0.0], {"residual": 0.5, "worth": [0.1, 0.2, 0.0], "spread": 3.0})
    found, after = check_run(
        10, Watched(Modest(PRUNE), TWO), lambda: measured, lambda _: weighing(0.25), lambda _: moving(0.125)
    )
    assert after == HeadsState((True, False, False), 10, {"pruned": 1})
    line = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert line == {
        "step": 10,
        "action": "prune",
        "reason": "can go",
        "k": 1,
        "rank": None,
        "shares": [0.5, 0.5, 0.0],
        "residual": 0.5,  # and not the spread, which it did not want
        "worth": [0.1, 0.2, 0.0],
        "head": 1,
        "jump": 0.125,
        "worst_jump": 0.5,
        "share": 0.5,
        "threshold": None,
        "total": 2.0,
        "largest_norm": 1.0,
        "lipschitz_upper": 1.0,
        "lipschitz_local": 1.0,
        "energy_before": 2.0,
        "energy_after": 1.0,
        "promised": 0.25,
        "limit": 0.25,
        "bound": 0.25,
        "premise_holds": None,
        "actor_head": 0,
        "holds": True,
        "bound_local": 1.0,
        "holds_local": True,
        "holds_everywhere": False,
    }


def test_a_jump_that_is_larger_than_was_promised_is_told() -> None:
    measured = Measured(None, [0.5, 0.5, 0.0], {"residual": 0.5, "worth": [0.1, 0.2, 0.0]})
    found, _ = check_run(
        10, Watched(Modest(PRUNE), TWO), lambda: measured, lambda _: weighing(0.2), lambda _: moving(0.5)
    )
    assert isinstance(found.certificate, PruneCertificate)
    assert (found.certificate.promised, found.certificate.jump, found.certificate.holds) == (0.2, 0.5, False)


def test_the_papers_rule_does_not_prune_what_would_move_the_policy_beyond_its_bound() -> None:
    """Its bound is L eps S: with L = 1, eps = 0.1 and S = 2 it is 0.2."""
    config = HeadsConfig(delta_prune=1, eps_prune=0.1, eps_grow=9.0)
    for jump, expected in ((0.19, "prune"), (0.21, "noop")):
        found, after = check_run(
            500,
            Watched(PaperTrigger(config), HeadsState((True, True, False))),
            lambda: Measured(2.0, [0.95, 0.05, 0.0]),
            lambda _: weighing(jump),  # noqa: B023  # called at once
            lambda _: moving(jump),  # noqa: B023
        )
        assert found.decision.action == expected
        # Where it does not happen the rule goes on counting.
        assert after.state["prune_counts"] == [0, 0 if expected == "prune" else 1, 0]


def test_a_growth_and_the_prunes_of_other_runs_go_on_where_one_is_refused() -> None:
    runs = {
        1: Watched(Modest((Decision("grow", "more"), "grown")), TWO),
        2: Watched(Modest(PRUNE, AGAIN), TWO),
        3: Watched(Modest(PRUNE), TWO),
    }
    happened: list[Mapping[int, Decision]] = []

    def act(events: Mapping[int, Decision]) -> dict[int, Evidence]:
        happened.append(events)
        return {i: act_all({i: each})[i] if each.action == "grow" else moving(0.1) for i, each in events.items()}

    found = check_runs(
        10,
        runs,
        lambda wanted: dict.fromkeys(wanted, Measured(None, [0.5, 0.5, 0.0])),
        lambda prunes: {i: weighing(0.1 if i == 3 else 0.9) for i in prunes},
        act,
    )
    assert [sorted(each) for each in happened] == [[1, 3]]
    assert {i: (check.decision.action, check.k) for i, (check, _) in found.items()} == {
        1: ("grow", 3),
        2: ("noop", 2),
        3: ("prune", 1),
    }
    assert {i: state.state for i, (_, state) in found.items()} == {1: "grown", 2: AGAIN[1], 3: {"pruned": 1}}


def test_nothing_is_done_where_every_prune_is_refused() -> None:
    def act(events: Mapping[int, Decision]) -> dict[int, Evidence]:
        raise AssertionError(f"nothing is to be done: {events}")

    found = check_runs(
        10,
        {0: Watched(Modest(PRUNE, AGAIN), TWO)},
        lambda wanted: dict.fromkeys(wanted, Measured(None, [0.5, 0.5, 0.0])),
        lambda _: {0: weighing(1.0)},
        act,
    )
    assert found[0][0].decision.action == "noop"


def test_an_actor_head_must_be_active_and_goes_with_prunes_alone() -> None:
    for actor_head in (2, 3, -1):
        with pytest.raises(ValueError, match=r"accepted is an actor_head among \[0, 1\]"):
            check_record(Answers((Decision("prune", "x", 1, actor_head), None)), TWO, 10, 2.0, even(TWO.mask))
    for action in ("grow", "noop"):
        answer = Decision(action, "x", 2, 0)
        check, _ = check_record(Answers((answer, None)), TWO, 10, 2.0, even(TWO.mask))
        assert check.decision.actor_head is None or action == "noop"


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
