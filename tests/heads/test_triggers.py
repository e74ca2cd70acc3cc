"""Triggers: the paper's schedule, its limits under arbitrary signals, its words, its file."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checked import decide
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import HeadsConfig, RunConfig
from incrt.heads.check import HeadsState, first_heads, is_due
from incrt.heads.triggers import Decision, PaperTrigger, make_trigger

Signals = Callable[[HeadsState], tuple[float, Sequence[float]]]


def even(state: HeadsState) -> list[float]:
    return [on / state.k for on in state.mask]


def drive(
    config: HeadsConfig, mask: Sequence[bool], steps: int, signals: Signals
) -> list[tuple[int, Decision, HeadsState]]:
    """All checks up to ``steps``: step, decision, state after it."""
    state, checks = first_heads(config, mask), []
    for step in range(1, steps + 1):
        if is_due(config, step):
            decision, state = decide(config, state, step, *signals(state))
            checks.append((step, decision, state))
    return checks


def events(checks: list[tuple[int, Decision, HeadsState]], action: str) -> list[int]:
    return [step for step, decision, _ in checks if decision.action == action]


def always_high(state: HeadsState) -> tuple[float, Sequence[float]]:
    return 46.0, even(state)


def one_of(k_max: int) -> list[bool]:
    return [True] + [False] * (k_max - 1)


def test_defaults_grow_when_the_paper_does() -> None:
    checks = drive(HeadsConfig(), one_of(8), 50_000, always_high)
    assert events(checks, "grow") == [1500, 4500, 7500, 10500, 13500, 16500, 19500]
    assert events(checks, "prune") == []
    assert [decision.head for _, decision, _ in checks if decision.action == "grow"] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("grace", "k_max", "last"), [(1000, 8, 13500), (5000, 8, 37500), (2000, 16, 43500)])
def test_the_last_growth_is_where_the_schedule_ends(grace: int, k_max: int, last: int) -> None:
    checks = drive(HeadsConfig(grace=grace), one_of(k_max), 50_000, always_high)
    assert events(checks, "grow")[-1] == last
    assert checks[-1][2].k == k_max


def test_reasons_in_words() -> None:
    words = {step: decision.reason for step, decision, _ in drive(HeadsConfig(), one_of(3), 9500, always_high)}
    assert words[500] == "rank 46 > 1.1·1, confirmation 1 of 3"
    assert words[1500] == "rank 46 > 1.1·1, confirmation 3 of 3"
    assert words[2000] == "cooldown: 500 of 2000"
    assert words[4000] == "rank 46 > 1.1·2, confirmation 2 of 3"
    assert words[9500] == "rank 46 > 1.1·3, but all 3 heads are active"


def test_a_low_rank_asks_for_nothing_and_starts_the_count_anew() -> None:
    ranks = iter([46, 46, 1, 46, 46, 46])
    checks = drive(HeadsConfig(), one_of(8), 3000, lambda state: (next(ranks), even(state)))
    assert events(checks, "grow") == [3000]
    assert checks[2][1].reason == "rank 1 <= 1.1·1"
    assert [state.state["grow_count"] for _, _, state in checks] == [1, 2, 0, 1, 2, 0]


def test_growth_needs_more_than_the_threshold() -> None:
    """K (1 + eps) itself is not enough: 11 is not above 10·1.1."""
    config = HeadsConfig(delta_grow=1)
    state = first_heads(config, [True] * 10 + [False])
    assert decide(config, state, 500, 11.0, even(state))[0].action == "noop"
    assert decide(config, state, 500, 12.0, even(state))[0].action == "grow"


def weak_head(share: float) -> Signals:
    """Head 1 has this share, the other active heads the rest."""

    def signals(state: HeadsState) -> tuple[float, Sequence[float]]:
        others = (1 - share) / (state.k - 1)
        return 1.0, [share if i == 1 else others * on for i, on in enumerate(state.mask)]

    return signals


def test_a_weak_head_is_pruned_after_three_checks() -> None:
    checks = drive(HeadsConfig(), [True] * 4, 1500, weak_head(5e-4))
    assert events(checks, "prune") == [1500]
    assert checks[0][1].reason == "rank 1 <= 1.1·4; share 0.0005 of head 1 < 0.001, confirmation 1 of 3"
    assert checks[-1][1] == Decision("prune", "share 0.0005 of head 1 < 0.001 for 3 checks", 1)
    assert checks[-1][2].mask == (True, False, True, True)
    assert checks[-1][2].state["prune_counts"] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("share", "rule", "pruned"),
    [
        (0.0011, "absolute", False),
        (0.0009, "absolute", True),
        (0.0009, "relative", False),
        (0.0002, "relative", True),
    ],
)
def test_the_share_rules_differ_by_the_uniform_share(share: float, rule: str, pruned: bool) -> None:
    checks = drive(HeadsConfig(share=rule), [True] * 4, 1500, weak_head(share))
    assert (events(checks, "prune") == [1500]) == pruned


def test_the_relative_rule_says_what_the_share_is_held_against() -> None:
    checks = drive(HeadsConfig(share="relative", eps_prune=0.5), [True] * 4, 1500, weak_head(0.1))
    assert checks[-1][1].reason == "share 0.1 of head 1 < 0.5/4 for 3 checks"


def test_the_weakest_of_several_goes_first_and_the_strongest_never() -> None:
    config = HeadsConfig(eps_prune=0.9, delta_prune=1, grace=500)
    strength = [0.3, 0.1, 0.2, 0.4]

    def signals(state: HeadsState) -> tuple[float, Sequence[float]]:
        active = [share * on for share, on in zip(strength, state.mask, strict=True)]
        return 1.0, [share / sum(active) for share in active]

    checks = drive(config, [True] * 4, 5000, signals)
    assert [decision.head for _, decision, _ in checks if decision.action == "prune"] == [1, 2, 0]
    assert checks[-1][2].mask == (False, False, False, True)


def test_what_is_measured_of_an_inactive_head_does_not_matter() -> None:
    config = HeadsConfig(delta_prune=1, eps_prune=0.3)
    state = first_heads(config, [True, False, True])
    for stray in (float("nan"), 5.0, -1.0):
        decision, _ = decide(config, state, 500, 1.0, [0.8, stray, 0.2])
        assert (decision.action, decision.head) == ("prune", 2)


def test_a_share_at_the_threshold_is_not_weak() -> None:
    config = HeadsConfig(delta_prune=1, eps_prune=0.25)
    state = first_heads(config, [True, True])
    assert decide(config, state, 500, 1.0, [0.75, 0.25])[0].action == "noop"
    assert decide(config, state, 500, 1.0, [0.76, 0.24])[0].action == "prune"


def test_growth_goes_before_pruning_and_only_one_happens() -> None:
    config = HeadsConfig(delta_grow=1, delta_prune=1)
    state = first_heads(config, [True, True, False])
    decision, after = decide(config, state, 500, 46.0, [1.0, 0.0, 0.0])
    assert (decision.action, decision.head) == ("grow", 2)
    assert after.mask == (True, True, True)
    assert after.state["prune_counts"] == [0, 1, 0]  # counted, and neither acted upon nor reset


def counted(mask: tuple[bool, ...], **counts: Any) -> HeadsState:
    """The record of a run whose trigger has counted so far."""
    zeros: dict[str, Any] = {"last_event": None, "grow_count": 0, "prune_counts": [0] * len(mask)}
    return HeadsState(mask, state={**zeros, **counts})


def test_a_check_inside_the_cooldown_neither_measures_nor_counts() -> None:
    config = HeadsConfig()
    state = counted((True, True, False), last_event=1500, prune_counts=[0, 2, 0])
    decision, after = decide(config, state, 3000, None, None)
    assert decision == Decision("noop", "cooldown: 1500 of 2000")
    assert after == dataclasses.replace(state, last_check=3000)
    assert not PaperTrigger(config).measures(3499, state.state)
    assert PaperTrigger(config).measures(3500, state.state)


signals = st.lists(
    st.tuples(
        st.floats(0, 600, allow_nan=False),
        st.lists(st.just(0.0) | st.floats(1e-9, 1), min_size=6, max_size=6),
    ),
    min_size=30,
    max_size=30,
)
configs = st.builds(
    HeadsConfig,
    k_min=st.integers(1, 3),
    eps_grow=st.sampled_from([0.0, 0.1, 2.0]),
    eps_prune=st.sampled_from([1e-3, 0.2, 1.0]),
    delta_grow=st.integers(1, 3),
    delta_prune=st.integers(1, 3),
    grace=st.sampled_from([500, 700, 2000]),
    check_every=st.sampled_from([100, 500]),
    share=st.sampled_from(["absolute", "relative"]),
)


def normalised(strength: list[float], state: HeadsState) -> list[float]:
    total = sum(x for x, on in zip(strength, state.mask, strict=True) if on)
    return [x * on / total if total else on / state.k for x, on in zip(strength, state.mask, strict=True)]


@given(config=configs, given_signals=signals, start=st.integers(3, 6))
def test_under_arbitrary_signals_the_limits_hold(
    config: HeadsConfig, given_signals: list[tuple[float, list[float]]], start: int
) -> None:
    state = first_heads(config, [i < start for i in range(6)])
    weak_for = [0] * 6  # counted here on its own
    asked, last_event = 0, None
    for n, (rank, strength) in enumerate(given_signals, start=1):
        step = n * config.check_every
        shares = normalised(strength, state)
        before = state
        decision, state = decide(config, before, step, rank, shares)
        assert HeadsState.from_json(json.loads(json.dumps(state.to_json()))) == state
        assert config.k_min <= state.k <= 6
        assert PaperTrigger(config).can_act(step, before.mask, before.state) or decision.action == "noop"
        changed = [i for i in range(6) if state.mask[i] != before.mask[i]]
        assert changed == ([] if decision.action == "noop" else [decision.head])
        if last_event is not None and step - last_event < config.grace:
            assert decision.action == "noop"
            assert state == dataclasses.replace(before, last_check=step)
            continue
        asked = asked + 1 if rank > before.k * (1 + config.eps_grow) and before.k < 6 else 0
        limit = config.eps_prune / (before.k if config.share == "relative" else 1)
        strongest = max((i for i in range(6) if before.mask[i]), key=lambda i: shares[i])
        for i in range(6):
            weak = before.mask[i] and i != strongest and shares[i] < limit and before.k > config.k_min
            weak_for[i] = weak_for[i] + 1 if weak else 0
        confirmed = [i for i in range(6) if weak_for[i] >= config.delta_prune]
        expected = "grow" if asked >= config.delta_grow else "prune" if confirmed else "noop"
        assert decision.action == expected
        if expected == "grow":
            assert decision.head == before.mask.index(False)
            asked = 0
        if expected == "prune":
            assert decision.head in confirmed
            assert shares[decision.head] == min(shares[i] for i in confirmed)
            weak_for[decision.head] = 0
        if expected != "noop":
            last_event = step
        assert state.state == {"grow_count": asked, "last_event": last_event, "prune_counts": weak_for}


@given(given_signals=signals, cut=st.integers(0, 29))
def test_a_state_written_and_read_back_goes_on_alike(given_signals: list[tuple[float, list[float]]], cut: int) -> None:
    config = HeadsConfig(eps_prune=0.1, delta_prune=2, grace=500)
    first = first_heads(config, [True] * 3 + [False] * 3)

    def run(interrupted: bool) -> list[Decision]:
        state, decisions = first, []
        for n, (rank, strength) in enumerate(given_signals, start=1):
            if interrupted and n == cut:
                state = HeadsState.from_json(json.loads(json.dumps(state.to_json())))
            decision, state = decide(config, state, 500 * n, rank, normalised(strength, state))
            decisions.append(decision)
        return decisions

    assert run(interrupted=True) == run(interrupted=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": []}, "mask must hold"),
        ({"mask": [0, 1]}, "mask must hold"),
        ({"mask": "ab"}, "mask must hold"),
        ({"mask": [False, False]}, "one True at least"),
        ({"last_check": None}, "last_check must be"),
        ({"last_check": -3}, "last_check must be"),
        ({"last_check": "1500"}, "last_check must be"),
        ({"more": 1}, "has the fields"),
    ],
)
def test_a_damaged_record_is_refused_by_field(changes: dict[str, Any], message: str) -> None:
    good = first_heads(HeadsConfig(), [True, False]).to_json()
    with pytest.raises(ValueError, match=message):
        HeadsState.from_json({**good, **changes})
    with pytest.raises(ValueError, match="has the fields"):
        HeadsState.from_json([])


@pytest.mark.parametrize(
    ("rank", "shares", "message"),
    [
        (float("nan"), [0.5, 0.5], "rank must be a number >= 0 and <= 1e\\+09, got nan"),
        (float("inf"), [0.5, 0.5], "rank must be a number >= 0"),
        ("3", [0.5, 0.5], "rank must be a number, got '3'"),
        (3.0, [0.5], "shares must have 2 entries"),
        (3.0, [0.5, float("nan")], "share of head 1 must be a number >= 0"),
        (3.0, [1.5, -0.5], "share of head 1 must be a number >= 0"),
        (3.0, [3.2, 0.7], "shares of active heads must sum to 1"),
    ],
)
def test_signals_that_cannot_be_decided_upon_are_refused(
    rank: float | None, shares: list[float] | None, message: str
) -> None:
    config = HeadsConfig()
    with pytest.raises(ValueError, match=message):
        decide(config, first_heads(config, [True, True]), 500, rank, shares)


def test_steps_that_do_not_go_on_and_masks_that_are_none_are_refused() -> None:
    config = HeadsConfig(k_min=2)
    with pytest.raises(ValueError, match="k_init >= k_min"):
        first_heads(config, [True, False])
    with pytest.raises(ValueError, match="mask must hold"):
        first_heads(config, "abc")  # type: ignore[arg-type]
    _, state = decide(config, first_heads(config, [True, True]), 500, 3.0, [0.5, 0.5])
    with pytest.raises(ValueError, match="after the latest check at 500, got 500"):
        decide(config, state, 500, 3.0, [0.5, 0.5])
    with pytest.raises(ValueError, match="step must be a number, got '1000'"):
        decide(config, state, "1000", 3.0, [0.5, 0.5])  # type: ignore[arg-type]


def test_numpy_steps_and_signals_do_not_spoil_the_file() -> None:
    config, shares = HeadsConfig(delta_grow=1), np.array([1, 0], np.float32)
    state = first_heads(config, [True, False])
    decision, state = decide(config, state, np.int64(500), np.float64(46), shares)  # type: ignore[arg-type]
    assert decision.action == "grow"
    assert HeadsState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_an_event_is_possible_only_at_the_last_confirmation() -> None:
    def can_act(config: HeadsConfig, mask: tuple[bool, ...], **counts: Any) -> bool:
        return PaperTrigger(config).can_act(500, mask, counted(mask, **counts).state if counts else None)

    config = HeadsConfig()
    assert not can_act(config, (True, False), grow_count=1)
    assert can_act(config, (True, False), grow_count=2)
    assert not can_act(config, (True, False), grow_count=2, last_event=100)  # in the cooldown
    assert not can_act(config, (True, True), grow_count=2)  # nothing left to grow
    assert can_act(config, (True, True), prune_counts=[0, 2])
    assert not can_act(HeadsConfig(k_min=2), (True, True), prune_counts=[0, 2])
    assert can_act(HeadsConfig(delta_prune=1), (True, True))


def test_thresholds_of_the_rule() -> None:
    assert PaperTrigger(HeadsConfig()).share_threshold(4) == 1e-3
    assert PaperTrigger(HeadsConfig(share="relative", eps_prune=0.5)).share_threshold(4) == 0.125
    assert PaperTrigger(HeadsConfig()).asks_for_growth(2, 1)
    assert not PaperTrigger(HeadsConfig(eps_grow=1.0)).asks_for_growth(2, 1)


def test_checks_come_at_the_cadence_and_not_at_zero() -> None:
    config = HeadsConfig()
    assert list(itertools.compress(range(1501), (is_due(config, t) for t in range(1501)))) == [500, 1000, 1500]


# --- triggers by name, by reference and as objects -----------------------------------------------------------------


class Never:
    """A trigger of the user's own."""

    def __init__(self, words: str = "never") -> None:
        self.words = words

    def decide(self, signals: Any, state: Any) -> tuple[Decision, Any]:
        return Decision("noop", self.words), state


def test_a_trigger_is_named_referred_to_or_held(tmp_path: Path) -> None:
    assert make_trigger(HeadsConfig(grace=700)) == PaperTrigger(HeadsConfig(grace=700))
    held = Never()
    assert make_trigger(HeadsConfig(trigger=held)) is held
    with pytest.raises(ValueError, match=r"trigger must be one of .*paper, .*Never"):  # a class is no trigger yet
        HeadsConfig(trigger=Never)
    (tmp_path / "mine.py").write_text("class Mine:\n    def decide(self, signals, state):\n        return None\n")
    found = make_trigger(HeadsConfig(trigger=f"{tmp_path / 'mine.py'}:Mine"))
    assert type(found).__name__ == "Mine"
    assert RunConfig().replace(heads={"trigger": held}).heads.trigger is held


def test_triggers_of_other_settings_are_told_apart() -> None:
    first, same, other = (HeadsConfig(trigger=Never(words)) for words in ("a", "a", "b"))
    assert first == same != other
    assert first.to_json()["trigger"]["class"].endswith("Never")


def test_what_is_no_trigger_is_refused(tmp_path: Path) -> None:
    for wrong, message in ((3, "int has no decide"), ("other", "got 'other'"), (dict, "dict is a class")):
        with pytest.raises(ValueError, match=f"trigger must be one of .*paper, .*{message}"):
            HeadsConfig(trigger=wrong)
    (tmp_path / "mine.py").touch()
    with pytest.raises(ValueError, match="has no Missing"):
        make_trigger(HeadsConfig(trigger=f"{tmp_path / 'mine.py'}:Missing"))
