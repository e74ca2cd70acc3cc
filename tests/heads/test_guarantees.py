"""Where K(t) comes to rest: Proposition 3, its proof's lemma, and where the paper's claims do not hold."""

import dataclasses
import itertools
import json
import math
from typing import Any

import pytest
from checked import decide
from hypothesis import assume, given
from hypothesis import strategies as st

from incrt.config import HeadsConfig
from incrt.heads.certificates import Certificate, GrowCertificate, PruneCertificate
from incrt.heads.check import first_heads
from incrt.heads.guarantees import (
    allowed_part,
    conclude,
    convergence_steps,
    equidistribution,
    growth_limit,
    steady_state_interval,
)
from incrt.heads.triggers import Decision, EarnedTrigger, PaperTrigger, Signals

PAPERS = PaperTrigger(HeadsConfig())


def run(
    config: HeadsConfig, rank: float, k_init: int, k_max: int, steps: int, before: tuple[int, float] = (0, 0.0)
) -> list[tuple[int, int]]:
    """Checks with a rank that rests and heads of equal output: (step, K after it).

    Up to step ``before[0]`` the rank is ``before[1]``.
    """
    state, counts = first_heads(config, [i < k_init for i in range(k_max)]), []
    for step in range(config.check_every, steps + 1, config.check_every):
        now = before[1] if step <= before[0] else rank
        _, state = decide(config, state, step, now, [on / state.k for on in state.mask])
        counts.append((step, state.k))
    return counts


@given(
    rank=st.integers(1, 60),
    k_max=st.integers(1, 16),
    eps_grow=st.sampled_from([0.0, 0.1, 0.5]),
    delta=st.integers(1, 4),
    checks_in_grace=st.integers(1, 5),
    k_init=st.integers(1, 16),
)
def test_from_below_k_ends_inside_the_interval_or_at_the_nearer_end_in_time(
    rank: int, k_max: int, eps_grow: float, delta: int, checks_in_grace: int, k_init: int
) -> None:
    config = HeadsConfig(eps_grow=eps_grow, delta_grow=delta, delta_prune=delta, grace=500 * checks_in_grace)
    low, high = allowed_part(steady_state_interval(config, rank), config.k_min, k_max)
    assume(k_init <= low)
    counts = run(config, rank, k_init, k_max, 16 * 4 * 5 * 500)
    k_star = counts[-1][1]
    assert low <= k_star <= high
    assert k_star == low  # growth stops as soon as it may
    in_time = convergence_steps(config, k_init, k_star)
    assert all(k == k_star for step, k in counts if step >= in_time)


def test_the_papers_numbers_for_its_own_parameters() -> None:
    config = HeadsConfig()
    assert convergence_steps(config, 1, 8) == 42_000
    assert convergence_steps(HeadsConfig(delta_grow=1, delta_prune=4), 8, 1) == 4 * 7 * 2000
    assert next(step for step, k in run(config, 46, 1, 8, 50_000) if k == 8) == 19_500


@pytest.mark.parametrize(
    ("rank", "interval"), [(1, (1, 1)), (2, (2, 2)), (11, (10, 11)), (22, (20, 22)), (33, (30, 33)), (46, (42, 46))]
)
def test_the_interval_of_proposition_3(rank: int, interval: tuple[int, int]) -> None:
    assert steady_state_interval(HeadsConfig(), rank) == interval
    assert interval == (math.ceil(round(rank / 1.1, 9)), math.floor(rank * 1.001))


def test_its_ends_are_where_the_triggers_rest() -> None:
    config = HeadsConfig()
    for rank in range(1, 700):
        low, high = steady_state_interval(config, rank)
        assert not PaperTrigger(config).asks_for_growth(rank, low)
        assert PaperTrigger(config).asks_for_growth(rank, low - 1)
        assert high <= rank * 1.001 < high + 1


def test_beta_widens_the_upper_end_and_a_broken_rank_leaves_one_value() -> None:
    config = HeadsConfig()
    assert steady_state_interval(config, 11, beta=3.0) == (10, 13)
    assert steady_state_interval(HeadsConfig(eps_prune=0.5), 11) == (10, 16)
    assert steady_state_interval(config, 2.5) == (3, 3)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [((42, 46), (8, 8)), ((1, 1), (2, 2)), ((3, 5), (3, 5)), ((1, 5), (2, 5)), ((6, 9), (6, 8))],
)
def test_outside_the_range_the_nearer_end_is_expected(interval: tuple[int, int], expected: tuple[int, int]) -> None:
    assert allowed_part(interval, 2, 8) == expected


# --- what does not hold ------------------------------------------------------------------------------------------


def test_the_balance_lemma_fails_equal_heads_are_never_pruned() -> None:
    """Lemma "balance": with beta = 1, prune fires if and only if K > rank (1 + eps_prune).

    Sixteen heads of equal output (beta = 1) and a rank of 2: the lemma prunes down to 2. But each share is 1/16, which
    is no less than 0.001; the trigger would need K > 1/eps_prune = 1000 heads. So K rests at 16, outside the interval
    of Proposition 3, whose proof rests on the lemma.
    """
    config = HeadsConfig()
    counts = run(config, 2, 16, 16, 100_000)
    assert 2 * (1 + config.eps_prune) < 16
    assert {k for _, k in counts} == {16}
    assert allowed_part(steady_state_interval(config, 2), 1, 16) == (2, 2)
    assert run(config, 2, 1001, 1001, 2000)[-1][1] == 1000  # with a thousand and one heads it does fire


def test_proposition_3_fails_after_a_rank_that_was_high_early() -> None:
    """Exploration has a high rank, a trained policy a low one: K follows it up and, heads being equal, not down."""
    counts = run(HeadsConfig(), 3, 1, 8, 50_000, before=(20_000, 46.0))
    assert counts[-1][1] == 8
    assert allowed_part(steady_state_interval(HeadsConfig(), 3), 1, 8) == (3, 3)


@pytest.mark.parametrize(
    ("rise", "grace", "prunes"),
    [(3000, 2000, 0), *((rise, 2000, 5) for rise in (3500, 4000, 4500, 5000)), (5000, 4000, 0)],
)
def test_proposition_3_fails_where_a_new_head_takes_longer_than_cooldown_and_confirmations(
    rise: int, grace: int, prunes: int
) -> None:
    """A rank that rests above the cap, and heads that are silent for ``rise`` steps and equal from then on.

    Appendix A, step 3, has K stay at the cap. But the newest head is pruned there before it speaks, the rank asks for
    it again, and so on: 7 and 8 in turn. Below the cap the next growth comes first, which gives a head until 5000. A
    longer cooldown ends it.
    """
    config = HeadsConfig(grace=grace)
    state, counts, born = first_heads(config, [True] + [False] * 7), [], [-rise] + [0] * 7
    for step in range(500, 50_001, 500):
        outputs = [float(on and step - since >= rise) for on, since in zip(state.mask, born, strict=True)]
        decision, state = decide(config, state, step, 64.0, [output / sum(outputs) for output in outputs])
        if decision.action == "grow":
            born[decision.head or 0] = step
        counts.append((step, state.k))
    full = next(step for step, k in counts if k == 8)
    assert full == 1500 + 6 * (grace + 1000)
    fell = [step for (_, before), (step, k) in itertools.pairwise(counts) if k < before]
    assert fell == [22_500 + 6000 * i for i in range(prunes)]
    assert {k for step, k in counts if step >= full} == ({7, 8} if prunes else {8})


def test_the_balance_lemma_fails_the_other_way_too() -> None:
    """Prune fires though K is far below rank (1 + eps_prune) + beta - 1: one faint head among four is enough.

    The rank is K, so that the grow trigger rests as the proof wants it.
    """
    config = HeadsConfig()
    state, rank = first_heads(config, [True] * 4 + [False] * 4), 4.0
    weights = [0.4, 0.0005, 0.3, 0.2995, 0, 0, 0, 0]
    beta = equidistribution(weights, state.mask)
    assert state.k < rank * (1 + config.eps_prune) + beta - 1
    for step in (500, 1000, 1500):
        decision, state = decide(config, state, step, rank, weights)
    assert decision.action == "prune"


def test_the_relative_rule_does_not_rescue_the_lemma_with_equal_heads() -> None:
    """No rule on shares can see the rank: equal heads have the uniform share, whatever their number."""
    config = HeadsConfig(share="relative", eps_prune=0.5)
    assert {k for _, k in run(config, 2, 16, 16, 100_000)} == {16}


def test_the_interval_may_hold_several_integers() -> None:
    """The proof takes "the unique integer" of the interval; for a rank of 22 there are three, and K rests at each."""
    config = HeadsConfig()
    for k_init in (20, 21, 22):
        assert {k for _, k in run(config, 22, k_init, 30, 50_000)} == {k_init}


def test_the_convergence_time_fails_where_the_cooldown_is_no_multiple_of_the_cadence() -> None:
    """An event must wait for a check: with a cooldown of 700 and checks at 500 events are 1000 apart, not 700."""
    config = HeadsConfig(grace=700, delta_grow=1, delta_prune=1)
    reached = next(step for step, k in run(config, 46, 1, 8, 50_000) if k == 8)
    assert reached == 6500 > convergence_steps(config, 1, 8) == 4900


# --- a whole run -------------------------------------------------------------------------------------------------


def grown(step: int, jump: float = 0.0) -> GrowCertificate:
    return GrowCertificate(step, 1, {"policy": jump}, 1.0, 2.0)


def cut(step: int, jump: float) -> PruneCertificate:
    return PruneCertificate(step, 1, jump, jump, 5e-4, 1e-3, 4.0, 2.0, 10.0, 5.0, 2.0, 1.0)


def test_a_run_that_grew_to_its_cap() -> None:
    certificates: list[Certificate] = [grown(1500 + 3000 * i) for i in range(7)]
    found = conclude(PAPERS, [True] * 8, [20, 40, *[46] * 40], [0.125] * 8, certificates)
    assert found.rank_settled
    assert (found.interval, found.expected, found.k, found.inside) == ((42, 46), (8, 8), 8, True)
    assert (found.beta, found.grows, found.prunes) == (1.0, 7, 0)
    assert (found.last_event, found.time_limit, found.in_time) == (19_500, 42_000, True)
    assert (found.cumulative_jump, found.cumulative_bound, found.cumulative_holds) == (0.0, 0.0, True)
    assert found.all_hold


def test_jumps_add_up_and_are_held_against_the_corollary() -> None:
    certificates: list[Certificate] = [cut(1500, 0.01), cut(4500, 0.02)]
    found = conclude(
        PaperTrigger(HeadsConfig()), [True, True, False, False], [2.0] * 20, [0.75, 0.25, 0, 0], certificates
    )
    assert found.cumulative_jump == pytest.approx(0.03)
    assert found.cumulative_bound == pytest.approx(10.0 * 1e-3 * 4 * 2.0 * 2)
    assert found.cumulative_holds
    assert found.beta == 3.0
    assert (found.interval, found.interval_beta, found.inside) == ((2, 2), (2, 4), True)
    worse = conclude(PAPERS, [True] * 2 + [False] * 2, [2.0], [0.75, 0.25, 0, 0], [cut(1, 0.2)])
    assert not worse.cumulative_holds
    assert not worse.all_hold
    grew = conclude(PAPERS, [True] * 2, [2.0], [0.5, 0.5], [grown(1, 1e-3)])
    assert not grew.cumulative_holds
    assert not grew.all_hold


def test_the_corollarys_constants_are_the_largest_of_all_events() -> None:
    small = cut(1500, 0.01)
    large = dataclasses.replace(cut(4500, 0.02), lipschitz_upper=20.0, threshold=2e-3, largest_norm=3.0)
    for order in ([small, large], [large, small]):
        found = conclude(PAPERS, [True, True, False, False], [2.0] * 20, [0.5, 0.5, 0, 0], order)
        assert found.cumulative_bound == pytest.approx(20.0 * 2e-3 * 4 * 3.0 * 2)
        lost = [dataclasses.replace(order[0], lipschitz_upper=math.nan), order[1]]
        assert not conclude(PAPERS, [True] * 4, [2.0], [0.25] * 4, lost).cumulative_holds


def test_the_limit_on_prunes_counts_growths_and_the_least_heads() -> None:
    certificates: list[Certificate] = [grown(500), grown(1000), cut(1500, 0.0)]
    found = conclude(PaperTrigger(HeadsConfig(k_min=2)), [True] * 4, [2.0], [0.25] * 4, certificates)
    assert (found.prune_limit, found.prunes, found.grows) == (4, 1, 2)
    assert (found.last_event, found.time_limit) == (1500, 3 * 1 * 2000)  # from three heads to four
    late = conclude(PAPERS, [True] * 2, [2.0], [0.5] * 2, [grown(6001)])
    assert (late.time_limit, late.in_time) == (6000, False)


def test_a_conclusion_is_valid_json_with_its_verdicts() -> None:
    found = conclude(PAPERS, [True, True], [2.0], [1.0, 0.0], [])
    written = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert written["beta"] is None
    for verdict in ("inside", "rank_settled", "in_time", "cumulative_holds", "all_hold"):
        assert written[verdict] is True
    assert written["interval"] == [2, 2]


def test_three_ranks_at_least_say_whether_it_settled() -> None:
    assert not conclude(PAPERS, [True], [1.0, 2.0, 2.0], [1.0], []).rank_settled
    assert conclude(PAPERS, [True], [1.0, 2.0, 2.0, 2.0], [1.0], []).rank_settled


def test_a_rank_that_moves_is_not_settled_and_widens_the_interval() -> None:
    found = conclude(PAPERS, [True] * 8, [*[46] * 10, 3, 4, 9], [0.125] * 8, [])
    assert not found.rank_settled
    assert (found.rank_low, found.rank_high) == (3, 9)
    assert found.interval == (3, 9)
    assert found.inside


def test_more_prunes_than_heads_can_account_for_are_reported() -> None:
    certificates: list[Certificate] = [dataclasses.replace(cut(i, 0.0), head=i) for i in range(4)]
    assert not conclude(
        PaperTrigger(HeadsConfig()), [True, False, False], [1.0], [1, 0, 0], certificates
    ).cumulative_holds


def test_a_silent_head_makes_beta_infinite() -> None:
    found = conclude(PAPERS, [True, True], [2.0], [1.0, 0.0], [])
    assert math.isinf(found.beta)
    assert (found.interval, found.interval_beta) == ((2, 2), (2, 2))
    wide = conclude(PAPERS, [True, True, False], [1.0], [1.0, 0.0, 0.0], [])
    assert (wide.interval, wide.interval_beta) == ((1, 1), (1, 3))


@pytest.mark.parametrize(
    ("mask", "ranks", "shares", "message"),
    [
        ([True], [], [1.0], "ended before its first check"),
        ([True, True], [2.0], [1.0], "shares must have 2 entries"),
        ([True, True], [2.0], [1.0, math.nan], "shares must be a number >= 0"),
        ([False], [2.0], [1.0], "mask must have an active head"),
        ([True], [math.nan, 2.0, 2.0, 2.0], [1.0], "ranks must be a number >= 0"),
    ],
)
def test_what_cannot_be_summed_up_is_refused(
    mask: list[bool], ranks: list[float], shares: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        conclude(PAPERS, mask, ranks, shares, [])


class Clock:
    """A trigger that is not the paper's."""

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        return Decision("noop", "never"), state


def test_under_another_trigger_counts_and_certificates_stay_and_what_the_paper_promises_is_left_out() -> None:
    cut_strong = dataclasses.replace(cut(1500, 0.01), threshold=None, share=0.4)
    found = conclude(Clock(), [True, True, False], [2.0] * 4, [0.75, 0.25, 0.0], [grown(500), cut_strong])
    assert (found.k, found.grows, found.prunes, found.certificates_held, found.last_event) == (2, 1, 1, 2, 1500)
    assert (found.beta, found.rank_low, found.rank_settled, found.all_hold) == (3.0, 2.0, True, True)
    papers = conclude(PAPERS, [True, True, False], [2.0] * 4, [0.75, 0.25, 0.0], [grown(500)])
    assert found.to_json().keys() == papers.to_json().keys()
    assert {name for name, value in found.to_json().items() if value is None} == {
        *("interval", "interval_beta", "expected", "time_limit", "cumulative_bound", "prune_limit"),
        *("inside", "in_time", "cumulative_holds", "growth_limit", "growth_holds"),
    }
    assert cut_strong.premise_holds is None
    assert cut_strong.bound == pytest.approx(10.0 * 0.4 * 4.0)  # L times what the head put out


def test_another_trigger_may_never_measure() -> None:
    found = conclude(Clock(), [True], [], [1.0], [])
    assert (found.rank_low, found.rank_high, found.rank_settled) == (None, None, None)


@given(
    lefts=st.lists(st.sampled_from([0.0, 0.5, 0.5, 0.5, 0.9]), min_size=20, max_size=400),
    k_init=st.integers(1, 6),
    k_max=st.integers(6, 8),
)
def test_whatever_the_critic_says_earned_growth_keeps_to_its_limits(
    lefts: list[float], k_init: int, k_max: int
) -> None:
    config = HeadsConfig(trigger="earned", check_every=500, grace=500)
    trigger, state, mask = EarnedTrigger(config), None, [i < k_init for i in range(k_max)]
    certificates: list[Certificate] = []
    for n, left in enumerate(lefts, start=1):
        free = (0.0,) * k_max
        shown = Signals(
            500 * n, sum(mask), tuple(mask), None, None, residual=left, spread=1.0, worth=free, removal_jumps=free
        )
        decision, state = trigger.decide(shown, state)
        if decision.action == "grow":
            mask[mask.index(False)] = True
            certificates.append(grown(500 * n))
        elif decision.action == "prune" and decision.head is not None:
            mask[decision.head] = False
            certificates.append(dataclasses.replace(cut(500 * n, 0.04), limit=config.max_jump))
    found = conclude(trigger, mask, [], [on / sum(mask) for on in mask], certificates)
    assert found.growth_holds
    assert found.cumulative_holds
    assert found.all_hold
    assert found.growth_limit is not None
    assert growth_limit(config, k_init, k_max, 0) <= found.growth_limit


def test_the_limit_of_growths_is_reached() -> None:
    """Waits of one, two, four cooldowns: three growths after the first prune within seven cooldowns."""
    config = HeadsConfig(grace=1000, check_every=500)
    assert [growth_limit(config, 1, 4, step) for step in (0, 999, 1000, 2999, 3000, 7000)] == [3, 3, 4, 4, 5, 6]


def test_a_run_of_earned_growth_with_too_many_growths_is_told() -> None:
    trigger = EarnedTrigger(HeadsConfig(trigger="earned", grace=1000))
    many = [grown(500 + i) for i in range(6)]
    found = conclude(trigger, [True] * 7, [], [1 / 7] * 7, many)
    assert found.growth_limit == 6
    assert found.growth_holds
    beyond = conclude(
        trigger,
        [True] * 7,
        [],
        [1 / 7] * 7,
        [*many, *(dataclasses.replace(cut(600 + i, 0.01), limit=0.05) for i in (0, 1)), *many[:2]],
    )
    assert (beyond.growth_limit, beyond.grows, beyond.growth_holds) == (6, 8, False)
