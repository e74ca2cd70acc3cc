"""Earned growth: when it grows and prunes by its signals, and that K comes to what a made-up task needs."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import HeadsConfig
from incrt.heads.certificates import Evidence, PruneMeasures
from incrt.heads.check import Check, HeadsState, Measured, Watched, check_run, first_heads
from incrt.heads.triggers import Decision, EarnedTrigger, Signals, make_trigger, wanted_signals

CONFIG = HeadsConfig(trigger="earned", check_every=500, grace=2000)
TRIGGER = EarnedTrigger(CONFIG)
NEEDED, FREE = 1.0, 0.0


def signals(step: int, mask: Sequence[bool], left: float, **changes: Any) -> Signals:
    """What a critic shows that leaves this fraction of a variance of one."""
    zeros = (0.0,) * len(mask)
    fields = {"residual": left, "spread": 1.0, "worth": zeros, "removal_jumps": zeros, **changes}
    return Signals(step, sum(mask), tuple(mask), None, None, **fields)


def driven(
    lefts: Sequence[float], mask: Sequence[bool], trigger: EarnedTrigger = TRIGGER, state: Any = None, **changes: Any
) -> list[tuple[int, Decision, Any]]:
    """The checks at which so much was left, while nothing that is decided happens; state as JSON gives it back."""
    found = []
    for n, left in enumerate(lefts, start=1):
        decision, after = trigger.decide(signals(500 * n, mask, left, **changes), state)
        state = json.loads(json.dumps(after, allow_nan=False))
        found.append((500 * n, decision, state))
    return found


def actions(checks: Sequence[tuple[int, Decision, Any]]) -> list[str]:
    return [decision.action for _, decision, _ in checks]


TWO_OF_THREE, ALL_THREE = (True, True, False), (True, True, True)


def test_it_is_named_and_says_what_it_wants() -> None:
    assert make_trigger(CONFIG) == TRIGGER
    assert wanted_signals(TRIGGER) == ("residual", "spread", "worth", "removal_jumps")
    assert EarnedTrigger(CONFIG.replace(max_jump=0.2)).max_jump == 0.2


@pytest.mark.parametrize("missing", ["residual", "spread", "worth", "removal_jumps"])
def test_without_a_signal_it_refuses_to_decide(missing: str) -> None:
    with pytest.raises(ValueError, match="residual, spread, worth, removal_jumps must be measured"):
        TRIGGER.decide(signals(500, TWO_OF_THREE, 0.5, **{missing: None}), None)


def test_it_grows_where_much_is_left_that_does_not_fall() -> None:
    checks = driven([0.5] * 6, TWO_OF_THREE)
    assert actions(checks) == ["noop"] * 5 + ["grow"]
    assert checks[4][1].reason == "0.500 left now; check 5 of 6 since the start or the latest growth"
    assert checks[5][1] == Decision("grow", "0.500 left > 0.02")
    assert checks[5][2] == {"spread": 1.0, "left": [], "last_event": 3000, "has_pruned": False, "regrown": 0}


def test_what_still_falls_is_left_to_fall() -> None:
    """Three checks that leave less than nine tenths of what the three before them left."""
    checks = driven([0.5, 0.5, 0.5, 0.44, 0.44, 0.44], TWO_OF_THREE)
    assert checks[-1][1] == Decision("noop", "0.440 left > 0.02, but it falls, from 0.500")
    assert actions(driven([0.5, 0.5, 0.5, 0.46, 0.46, 0.46], TWO_OF_THREE))[-1] == "grow"
    assert actions(driven([0.5, 0.5, 0.5, 0.9, 0.9, 0.9], TWO_OF_THREE))[-1] == "grow"


def test_what_is_left_is_held_against_the_largest_variance_so_far() -> None:
    state = driven([0.3], TWO_OF_THREE, spread=2.0)[-1][2]
    assert (state["spread"], state["left"]) == (2.0, [0.15])
    decision, after = TRIGGER.decide(signals(1000, TWO_OF_THREE, 0.3, spread=0.5), state)
    assert (after["spread"], after["left"]) == (2.0, (0.15, 0.15))
    assert decision.action == "noop"


def test_where_nothing_varies_nothing_is_left_to_explain() -> None:
    checks = driven([0.3] * 6, TWO_OF_THREE, spread=0.0)
    assert actions(checks) == ["noop"] * 5 + ["prune"]
    assert checks[-1][2]["left"] == [0.0] * 6


def test_as_much_as_is_enough_asks_for_no_head() -> None:
    assert "grow" not in actions(driven([CONFIG.enough] * 9, TWO_OF_THREE, worth=(NEEDED, NEEDED, FREE)))
    generous = EarnedTrigger(CONFIG.replace(enough=0.6))
    assert "grow" not in actions(driven([0.5] * 9, TWO_OF_THREE, generous, worth=(NEEDED, NEEDED, FREE)))


def test_a_growth_waits_for_the_cooldown_since_the_latest_event() -> None:
    slow = EarnedTrigger(CONFIG.replace(grace=5000))
    checks = driven([0.5] * 10, TWO_OF_THREE, slow)
    assert [step for step, decision, _ in checks if decision.action == "grow"] == [5000]
    assert checks[8][1].reason == "0.500 left > 0.02; cooldown: 4500 of 5000"


# --- pruning ---------------------------------------------------------------------------------------------------------

FREE_HEADS: dict[str, Any] = {"worth": (0.5, 0.002, 0.004), "removal_jumps": (0.01, 0.3, 0.02)}
"""The critic can do without head 1, the actor without head 0."""


def test_each_network_loses_the_head_that_it_needs_least() -> None:
    checks = driven([0.01] * 6, ALL_THREE, **FREE_HEADS)
    assert actions(checks) == ["noop"] * 5 + ["prune"]
    words = "0.010 left <= 0.02; without head 1 0.0020 more, without head 0 of the actor a jump of 0.0100"
    assert checks[-1][1] == Decision("prune", words, head=1, actor_head=0)
    assert checks[-1][2]["has_pruned"]
    assert checks[-1][2]["last_event"] == 3000


def test_inactive_heads_cannot_go() -> None:
    worth, jumps = (0.0, 0.002, 0.001), (0.0, 0.01, 0.02)
    decision = driven([0.01] * 6, (False, True, True), worth=worth, removal_jumps=jumps)[-1][1]
    assert (decision.action, decision.head, decision.actor_head) == ("prune", 2, 1)


@pytest.mark.parametrize(
    "needed", [{"worth": (0.5, 0.0051, 0.6)}, {"removal_jumps": (0.051, 0.3, 0.06)}], ids=["critic", "actor"]
)
def test_no_head_goes_that_one_of_the_networks_needs(needed: dict[str, Any]) -> None:
    checks = driven([0.01] * 9, ALL_THREE, **{**FREE_HEADS, **needed})
    assert set(actions(checks)) == {"noop"}
    assert not checks[-1][2]["has_pruned"]


def test_worth_is_held_against_the_variance_too() -> None:
    enough: dict[str, Any] = {"worth": (0.04, 0.04, 0.04), "removal_jumps": (0.0, 0.0, 0.0)}
    assert actions(driven([0.01] * 6, ALL_THREE, spread=10.0, **enough))[-1] == "prune"
    assert actions(driven([0.01] * 6, ALL_THREE, spread=1.0, **enough))[-1] == "noop"


def test_the_thresholds_are_those_of_the_configuration() -> None:
    strict = EarnedTrigger(CONFIG.replace(worth=0.001))
    assert actions(driven([0.01] * 6, ALL_THREE, strict, **FREE_HEADS))[-1] == "noop"
    calm = EarnedTrigger(CONFIG.replace(max_jump=0.005))
    assert actions(driven([0.01] * 6, ALL_THREE, calm, **FREE_HEADS))[-1] == "noop"


def test_no_fewer_than_k_min_are_left() -> None:
    held = EarnedTrigger(CONFIG.replace(k_min=3))
    checks = driven([0.01] * 6, ALL_THREE, held, **FREE_HEADS)
    assert checks[-1][1] == Decision("noop", "0.010 left <= 0.02; K_min = 3")


def test_at_k_max_heads_that_are_not_needed_go_though_much_is_left() -> None:
    assert actions(driven([0.5] * 6, ALL_THREE, **FREE_HEADS))[-1] == "prune"
    assert actions(driven([0.5] * 3 + [0.4] * 3, ALL_THREE, **FREE_HEADS))[-1] == "noop"  # it falls


def test_two_prunes_are_two_checks_apart() -> None:
    checks = driven([0.01] * 10, ALL_THREE, **FREE_HEADS)
    assert [step for step, decision, _ in checks if decision.action == "prune"] == [3000, 4000, 5000]
    assert checks[6][1].reason == "0.010 left <= 0.02; rest: 500 of 1000"


def test_after_a_prune_each_growth_waits_twice_as_long_as_the_one_before() -> None:
    state: Any = {"spread": 1.0, "left": [0.5] * 6, "last_event": 0, "has_pruned": True, "regrown": 0}
    waits: list[int] = []
    step = 0
    while len(waits) < 4:
        step += 500
        decision, state = TRIGGER.decide(signals(step, TWO_OF_THREE, 0.5), state)
        if decision.action == "grow":
            waits.append(step - sum(waits))
    assert waits == [2000, 4000, 8000, 16000]
    unpruned: Any = {"spread": 1.0, "left": [0.5] * 6, "last_event": 0, "has_pruned": False, "regrown": 0}
    grown = []
    for n in range(1, 60):
        decision, unpruned = TRIGGER.decide(signals(500 * n, TWO_OF_THREE, 0.5), unpruned)
        grown += [500 * n] if decision.action == "grow" else []
    assert set(np.diff(grown)) == {3000}  # six checks, for the cooldown is shorter


@given(lefts=st.lists(st.floats(0, 2), min_size=8, max_size=25), cut=st.integers(1, 24))
def test_a_state_from_a_file_goes_on_alike(lefts: list[float], cut: int) -> None:
    def run(*, interrupted: bool) -> list[Decision]:
        state, found = None, []
        for n, left in enumerate(lefts, start=1):
            if interrupted and n == cut:
                state = json.loads(json.dumps(state))
            decision, state = TRIGGER.decide(signals(500 * n, TWO_OF_THREE, left), state)
            found.append(decision)
        return found

    assert run(interrupted=True) == run(interrupted=False)


# --- Proposition 3' --------------------------------------------------------------------------------------------------


class MadeUp:
    """A task that needs K* heads: with fewer much is left, with more some are worth nothing, now these and now those.

    Actor and critic each have their own order of heads. Everything that is measured is up to three hundredths off.
    """

    def __init__(self, config: HeadsConfig, k_init: int, k_max: int, needs: int, seed: int) -> None:
        self.trigger, self.needs, self.random = EarnedTrigger(config), needs, np.random.default_rng(seed)
        self.state = first_heads(config, [i < k_init for i in range(k_max)])
        self.step, self.checks = 0, list[Check]()

    @property
    def k(self) -> int:
        return self.state.k

    def _about(self, value: float) -> float:
        return float(value * self.random.uniform(0.97, 1.03))

    def _heads(self, needed: float) -> list[float]:
        """One number a head, none for as many of the active ones as there are too many."""
        active = [i for i, on in enumerate(self.state.mask) if on]
        surplus = set(self.random.permutation(active)[: max(self.k - self.needs, 0)])
        # Where there are too many each can go as long as the others stay.
        return [0.0 if i in surplus else self._about(needed) for i in range(len(self.state.mask))]

    def _measure(self) -> Measured:
        left = 0.3 * (self.needs - self.k) if self.k < self.needs else 0.004
        more = {
            "residual": self._about(left * 5.0),
            "spread": 5.0,
            "worth": [5.0 * each for each in self._heads(0.2)],
            "removal_jumps": self._heads(0.4),
        }
        return Measured(None, [on / self.k for on in self.state.mask], more)

    def _weigh(self, decision: Decision) -> PruneMeasures:
        return PruneMeasures(self.k, decision.actor_head, 0.0, 0.0, np.ones(len(self.state.mask)), 1.0, 1.0)

    @staticmethod
    def _act(_: Decision) -> Evidence:
        still = {"policy": np.zeros((1, 1))}
        return Evidence(still, still, np.zeros(2))

    def check(self) -> Check:
        self.step += self.trigger.config.check_every
        found, self.state = check_run(
            self.step, Watched(self.trigger, self.state), self._measure, self._weigh, self._act
        )
        self.state = HeadsState.from_json(json.loads(json.dumps(self.state.to_json())))
        self.checks.append(found)
        return found


sizes = st.integers(1, 8).flatmap(lambda k_max: st.tuples(st.just(k_max), st.integers(1, k_max), st.integers(1, k_max)))


@given(numbers=sizes, grace=st.sampled_from([500, 2000, 7000]), seed=st.integers(0, 1000))
def test_from_any_start_k_comes_to_what_is_needed_and_stays(
    numbers: tuple[int, int, int], grace: int, seed: int
) -> None:
    k_max, k_init, needs = numbers
    task = MadeUp(CONFIG.replace(grace=grace), k_init, k_max, needs, seed)
    wait = max(grace // 500, 6)  # checks that a growth takes
    within = 6 + (wait + 1) * max(needs - k_init, 0) + 2 * max(k_init - needs, 0)
    for _ in range(within):
        task.check()
    assert task.k == needs
    for _ in range(100):
        assert task.check().decision.action == "noop"
    assert task.k == needs
    events = [check.decision.action for check in task.checks if check.decision.action != "noop"]
    assert events == (["grow"] * (needs - k_init) or ["prune"] * (k_init - needs))


@given(
    needs=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 80)), min_size=2, max_size=8), seed=st.integers(0, 1000)
)
def test_however_the_task_changes_growths_after_a_prune_wait_ever_longer(
    needs: list[tuple[int, int]], seed: int
) -> None:
    task = MadeUp(CONFIG, 3, 6, 3, seed)
    for task.needs, checks in needs:
        for _ in range(checks):
            task.check()
    events = [(check.step, check.decision.action) for check in task.checks if check.decision.action != "noop"]
    pruned, regrown = False, 0
    for n, (step, action) in enumerate(events):
        before = events[n - 1][0] if n else 0
        if action == "grow":
            assert step - before >= CONFIG.grace * 2**regrown
            regrown += pruned
        else:
            pruned = True
            assert step - before >= 1000
    assert all(1 <= check.k <= 6 for check in task.checks)


def test_where_more_is_needed_than_there_is_room_for_k_stays_at_k_max() -> None:
    task = MadeUp(CONFIG, 1, 3, 5, 0)
    for _ in range(100):
        task.check()
    assert task.k == 3
    assert [check.step for check in task.checks if check.decision.action == "grow"] == [3000, 6000]


def test_k_min_holds_though_fewer_are_needed() -> None:
    task = MadeUp(CONFIG.replace(k_min=2), 4, 4, 1, 0)
    for _ in range(100):
        task.check()
    assert task.k == 2
