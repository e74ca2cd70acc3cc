"""Many runs together: company makes no difference, a failure stays alone, events are certified."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import ENCODER, HEADS, SAC, small_run

from incrt.engine.batch import Stack
from incrt.engine.device_loop import Group, block_of
from incrt.engine.population import News, Population, arrange, find_device
from incrt.engine.progress import Checkpoint, Failure, Report, Run, first_progress
from incrt.engine.step import RunState
from incrt.heads.certificates import GrowCertificate, PruneCertificate
from incrt.heads.check import first_heads
from incrt.heads.triggers import PaperTrigger

CPU = find_device("cpu")


def trained(runs: Sequence[Run]) -> tuple[Population, dict[int, Checkpoint], list[News]]:
    """The runs at their end."""
    population = Population(runs, "cpu")
    news = list(population.train(save_every=1000))
    assert not list(population.train())  # nothing is left to do
    return population, {i: saved for each in news for i, saved in each.saved}, news


@cache
def alone(seed: int) -> RunState:
    return trained([small_run(seed)])[1][0].state


def batch(runs: Sequence[Run], *, lags: bool = False) -> Group:
    """Runs as a GPU trains them: stacked by window, all stacks in one program."""
    progress = [first_progress(run) for run in runs]
    windows = sorted({run.window for run in runs})
    stacks = [[i for i, run in enumerate(runs) if run.window == window] for window in windows]
    return Group([Stack(each, [progress[i] for i in each], None) for each in stacks], CPU, lags=lags)


def advanced(group: Group) -> list[Report]:
    """All reports up to the end."""
    reports = []
    while not group.finished:
        reports += group.advance()
    return reports


COMPANY = [42, *range(7)]


def company(poison: Callable[[RunState], RunState] | None = None) -> dict[int, RunState]:
    """Eight runs in one stack at their end; the last may be poisoned at step 60."""
    group = batch([small_run(seed, sac=SAC.replace(steps=220)) for seed in COMPANY])
    for _ in range(3):
        group.advance()
    if poison is not None:
        (stack,) = group.stacks
        broken = poison(stack.states)
        stack.states = jax.tree.map(lambda whole, bad: whole.at[7].set(bad[7]), stack.states, broken)
    advanced(group)
    return group.states()


healthy_company = cache(company)


def assert_same(a: Any, b: Any) -> None:
    for (path, x), (_, y) in zip(*map(jax.tree.leaves_with_path, (a, b)), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))


def test_a_run_is_the_same_to_the_bit_alone_and_in_company() -> None:
    _, saved, _ = trained([small_run(seed) for seed in (7, 42, 8)])
    assert_same(saved[1].state, alone(42))
    assert_same(saved[2].state, alone(8))


@pytest.mark.slow
def test_in_a_batch_of_eight_a_run_draws_as_alone_and_learns_the_same() -> None:
    together = healthy_company()[0]
    _, saved, _ = trained([small_run(42, sac=SAC.replace(steps=220))])
    single = saved[0].state
    # Draws are functions of key and step (test_sac_run.py); episodes and heads show that all were used alike.
    for name in ("key", "step"):
        assert_same(getattr(together, name), getattr(single, name))
    assert_same(together.replay.ages, single.replay.ages)
    assert_same(together.learner.learned.mask, single.learner.learned.mask)
    # 210 updates; Adam makes a step of 3e-4 of what is rounding where a gradient is zero.
    for x, y in zip(*(jax.tree.leaves(state.learner.learned.actor) for state in (together, single)), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-3)


# Runs that ask for heads at different steps, two of each window.
SETTINGS = [
    (5, HEADS),
    (5, HEADS.replace(delta_grow=2)),
    (9, HEADS.replace(grace=60)),
    (9, HEADS.replace(delta_grow=1)),
]
MIXED = [small_run(seed, window=window, heads=heads) for seed, (window, heads) in enumerate(SETTINGS)]


def told(reports: Sequence[Report]) -> list[tuple[Any, ...]]:
    """What was reported, but for the speed, by run and step."""
    found = [(each.number, each.metrics._replace(steps_per_s=0), each.check) for each in reports]
    return sorted(found, key=lambda each: (each[0], each[1].step))


@pytest.mark.slow
def test_stacks_of_different_windows_and_rules_advance_in_one_program() -> None:
    """Beside a GPU checks that cannot be events are looked at one stretch later, which makes no difference."""
    at_once, later = batch(MIXED), batch(MIXED, lags=True)
    reports = told(advanced(at_once))
    assert told(advanced(later)) == reports
    assert_same(later.states(), at_once.states())
    assert [at_once.states()[i].context.shape[0] for i in range(4)] == [5, 5, 9, 9]
    events: dict[int, list[int]] = {i: [] for i in range(4)}
    for i, _, check in reports:
        events[i] += [] if check.certificate is None else [check.step]
    assert events == {0: [60, 140], 1: [40, 100], 2: [60], 3: [20, 60]}
    _, _, news = trained([MIXED[0]])
    by_itself = told([report for each in news for report in each.reports])
    beside = [each for each in reports if each[0] == 0]
    for (_, metrics, check), (_, metrics_alone, check_alone) in zip(beside, by_itself, strict=True):
        for name in ("step", "decision", "k", "rank"):
            assert getattr(check, name) == getattr(check_alone, name)
        if check.shares is not None:
            np.testing.assert_allclose(check.shares, check_alone.shares, atol=1e-2)
        if check.certificate is not None:
            assert check.certificate.energy_after == pytest.approx(check_alone.certificate.energy_after, rel=1e-3)
        assert metrics.reward == pytest.approx(metrics_alone.reward, rel=1e-2)


def test_seeds_and_regimes_make_different_runs() -> None:
    run = small_run(42)
    other = small_run(42, params=run.params._replace(payload_std=jnp.asarray(0.2)))
    _, saved, _ = trained([other])
    assert not np.array_equal(saved[0].state.replay.frames, alone(42).replay.frames)
    assert not np.array_equal(alone(43).replay.frames, alone(42).replay.frames)


# --- faults ----------------------------------------------------------------------------------------------------


def poisoned(run: Run) -> Run:
    """The same run with a plant whose friction is not a number."""
    plant = run.params.plant
    return small_run(
        run.seed, window=run.window, params=run.params._replace(plant=plant._replace(dt=plant.dt * jnp.nan))
    )


def test_a_poisoned_run_fails_alone() -> None:
    healthy = [small_run(seed) for seed in range(8)]
    found = trained([*healthy[:7], poisoned(healthy[7])])
    for i in range(7):
        assert_same(found[1][i].state, alone(i))
    failure = found[0].progress[7].failure
    assert failure is not None
    assert (failure.step, failure.cause) == (0, "the environment's observation or reward is not finite")
    assert [each.failure for each in found[0].progress[:7]] == [None] * 7


def poisoned_environment(states: RunState) -> RunState:
    broken = jax.tree.map(
        lambda leaf: leaf * jnp.nan if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, states.environment
    )
    return states._replace(environment=broken)


def poisoned_critic(states: RunState) -> RunState:
    learned = states.learner.learned
    critic = jax.tree.map(lambda leaf: leaf * jnp.nan, learned.critic)
    return states._replace(learner=states.learner._replace(learned=learned._replace(critic=critic)))


@pytest.mark.parametrize(("poison", "cause"), [(poisoned_environment, 1), (poisoned_critic, 2)])
def test_a_run_that_is_poisoned_while_it_learns_fails_alone_in_its_batch(
    poison: Callable[[RunState], RunState], cause: int
) -> None:
    found = company(poison)
    for i in range(7):
        assert_same(found[i], healthy_company()[i])
    assert (int(found[7].cause), int(found[7].step)) == (cause, 60)


def test_a_run_that_fails_late_keeps_its_last_finite_parameters() -> None:
    """NaN in the critic at step 60: the run stops there and the actor stays as it was."""
    population = Population([small_run(42)], "cpu")
    group = population.groups[0]
    stack = group.stacks[0]
    for _ in range(3):
        group.advance()
    learned = stack.states.learner.learned
    values = tuple(layer._replace(b=layer.b * jnp.nan) for layer in learned.critic.values)
    critic = learned.critic._replace(values=values)
    broken = stack.states.learner._replace(learned=learned._replace(critic=critic))
    stack.states = stack.states._replace(learner=broken)
    actor = jax.device_get(learned.actor)
    reports = group.advance()
    failure = population.progress[0].failure
    assert failure is not None
    assert (failure.step, failure.cause) == (60, "the critic's loss is not finite")
    assert group.finished
    assert_same(group.states()[0].learner.learned.actor, jax.tree.map(lambda x: x[0], actor))
    assert reports[0].metrics.step == 60
    assert reports[0].metrics.reward is None  # no step of this stretch counts
    assert reports[0].check is None


def test_an_actor_that_is_not_finite_is_named_and_its_check_is_none() -> None:
    group = Population([small_run(42)], "cpu").groups[0]
    group.advance()
    stack = group.stacks[0]
    seen = jax.device_get(stack.look())
    assert stack.check(40, seen._replace(shares=seen.shares * np.nan)) == {}
    assert stack.members[0].failure is None
    learned = stack.states.learner.learned
    broken = learned._replace(actor=jax.tree.map(lambda x: x * jnp.nan, learned.actor))
    stack.states = stack.states._replace(learner=stack.states.learner._replace(learned=broken))
    group.advance()
    assert stack.members[0].failure == Failure(20, "the actor's action is not finite")
    replay = group.states()[0].replay
    assert np.all(np.isfinite(replay.frames[: replay.size]))


# --- checks ----------------------------------------------------------------------------------------------------


def test_heads_grow_on_schedule_and_every_growth_is_continuous() -> None:
    population, saved, news = trained([small_run(42)])
    checks = [report.check for each in news for report in each.reports]
    events = [check for check in checks if check is not None and check.certificate is not None]
    assert [check.step for check in checks if check is not None] == list(range(20, 141, 20))
    assert [(check.step, check.k) for check in events] == [(60, 2), (140, 3)]
    for check in events:
        assert isinstance(check.certificate, GrowCertificate)
        assert set(check.certificate.jumps) == {"encoder", "policy", "critic", "target"}
        assert check.certificate.holds
        assert check.certificate.energy_after > check.certificate.energy_before
    assert population.progress[0].certificates == [check.certificate for check in events]
    assert list(saved[0].state.learner.learned.mask) == [True, True, True]
    assert [report.metrics.step for each in news for report in each.reports] == [*range(20, 141, 20)]
    cooling = [check for check in checks if check is not None and check.rank is None]
    assert [check.step for check in cooling] == [80]


def test_a_weak_head_is_pruned_and_certified() -> None:
    """All heads active, one of them silenced by hand."""
    run = small_run(
        42,
        encoder=ENCODER.replace(k_init=3),
        heads=HEADS.replace(share="relative", eps_prune=0.5, eps_grow=100.0, delta_prune=1),
    )
    group = Population([run], "cpu").groups[0]
    stack = group.stacks[0]
    learned = stack.states.learner.learned
    body = learned.actor.encoder.body
    quiet = body._replace(heads=body.heads._replace(w_o=body.heads.w_o.at[:, 1].multiply(1e-3)))
    actor = learned.actor._replace(encoder=learned.actor.encoder._replace(body=quiet))
    stack.states = stack.states._replace(learner=stack.states.learner._replace(learned=learned._replace(actor=actor)))
    check = stack.check(20, stack.look())[0]
    assert (check.decision.action, check.decision.head, check.k) == ("prune", 1, 2)
    assert isinstance(check.certificate, PruneCertificate)
    assert check.certificate.holds
    assert 0 < check.certificate.jump < 0.1
    assert list(stack.states.learner.learned.mask[0]) == [True, False, True]


@pytest.mark.parametrize("optimiser", ["carry", "rebuild"])
def test_an_event_does_with_the_optimisers_what_was_asked_for(optimiser: str) -> None:
    run = small_run(42, heads=HEADS.replace(optimiser=optimiser), sac=SAC.replace(steps=60))
    population, saved, _ = trained([run])
    assert [each.step for each in population.progress[0].certificates] == [60]
    learned = saved[0].state.learner.learned
    updates = 60 - SAC.learning_starts if optimiser == "carry" else 0
    assert [int(each.steps) for each in (learned.actor_adam, learned.critic_adam)] == [updates] * 2


def test_an_encoder_without_heads_has_no_checks() -> None:
    run = small_run(42, encoder=ENCODER.replace(encoder="none"), sac=SAC.replace(steps=40))
    population, _, news = trained([run])
    assert [report.check for each in news for report in each.reports] == [None, None]
    assert population.progress[0].heads_state is None
    assert population.progress[0].heads == 0
    assert first_progress(small_run(42, encoder=ENCODER.replace(encoder="static"))).heads == 3


def test_the_host_lags_behind_only_where_no_event_can_come_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    group = batch([small_run(42)], lags=True)
    seen = []
    while not group.finished:
        seen.append([report.metrics.step for report in group.advance()])
    assert seen == [[], [20], [40, 60], [], [80], [100], [120, 140]]  # heads grow at 60 and 140
    assert_same(group.states()[0], alone(42))
    monkeypatch.setattr(PaperTrigger, "can_act", lambda *_: False)
    refused = batch([small_run(42)], lags=True)
    advanced(refused)
    words = "step 60: trigger PaperTrigger: decide returned grow; accepted is noop where can_act has said False"
    assert str(refused.members[0].refused) == words


def test_runs_that_can_train_together_are_found() -> None:
    runs = [
        small_run(0),
        small_run(1, window=9),
        small_run(2, params=small_run(2).params._replace(payload_std=0.2)),
        small_run(3, heads=HEADS.replace(grace=60)),
        small_run(4, heads=HEADS.replace(optimiser="rebuild")),
        small_run(5, heads=HEADS.replace(tokens=31)),
        small_run(6, heads=HEADS.replace(share_batch=17)),
        small_run(7, heads=HEADS.replace(check_every=40)),
        small_run(8, sac=SAC.replace(steps=60)),
        small_run(9),
        small_run(10),
        small_run(11),
    ]
    progress = [first_progress(run) for run in runs]
    progress[9].step = 20
    progress[10].step = SAC.steps
    one_by_one = [[[i]] for i in range(12) if i != 10]
    assert arrange(progress, set(), together=False) == one_by_one
    assert arrange(progress, {11}, together=True) == [[[0, 2, 3], [1], [4], [5], [6], [11]], [[7]], [[8]], [[9]]]


def test_stop_ends_the_training_and_gives_every_run_to_be_saved() -> None:
    population = Population([small_run(seed) for seed in range(3)], "cpu")
    asked: list[bool] = []
    saved: list[tuple[int, Checkpoint]] = []
    for news in population.train(save_every=1000, stop=lambda: bool(asked)):
        asked.append(True)
        saved += news.saved
    assert sorted(i for i, _ in saved) == [0, 1, 2]  # each once
    assert all(each.step < SAC.steps for each in population.progress)
    for i, each in saved:
        assert each.state.step == each.progress.step == population.progress[i].step


@pytest.mark.parametrize(
    ("save_every", "steps"), [(20, [*range(20, 141, 20)]), (30, [40, 80, 120, 140]), (1000, [140])]
)
def test_runs_are_saved_at_the_first_check_that_is_due(save_every: int, steps: list[int]) -> None:
    news = list(Population([small_run(42)], "cpu").train(save_every))
    assert [saved.progress.step for each in news for _, saved in each.saved] == steps


def test_bad_populations_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        Population([], "cpu")
    with pytest.raises(ValueError, match="device must be one of auto, cpu, gpu"):
        Population([small_run(42)], "tpu")
    with pytest.raises(ValueError, match="there is no gpu here"):
        Population([small_run(42)], "gpu")
    with pytest.raises(ValueError, match="k_min"):
        Population([small_run(42, heads=HEADS.replace(k_min=2))], "cpu")
    with pytest.raises(ValueError, match="seed must be a whole number"):
        small_run(-1)


def test_a_buffer_too_small_for_window_or_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="buffer must be at least 35"):
        small_run(42, sac=SAC.replace(buffer=34))
    static = ENCODER.replace(encoder="static")
    assert small_run(42, encoder=static, sac=SAC.replace(buffer=7)).sac.buffer == 7
    with pytest.raises(ValueError, match="buffer must be at least 7"):
        small_run(42, encoder=static, sac=SAC.replace(buffer=6))


def test_a_run_begins_with_the_heads_of_its_encoder() -> None:
    assert first_progress(small_run(42)).heads_state == first_heads(HEADS, [True, False, False])


@given(steps=st.integers(1, 20_000))
def test_numbers_are_drawn_for_blocks_that_make_up_a_stretch_and_are_no_single_steps(steps: int) -> None:
    block = block_of(steps)
    assert steps % block == 0
    assert block > 1 or steps == 1


@pytest.mark.parametrize(("steps", "block"), [(500, 50), (128, 64), (67, 67), (499, 499), (502, 251), (30, 30), (1, 1)])
def test_blocks_are_about_as_long_as_is_fast(steps: int, block: int) -> None:
    assert block_of(steps) == block


def test_a_run_is_the_same_to_the_bit_however_its_stretches_divide() -> None:
    """Numbers for 67 steps are drawn at once, as for 83; for 150 they are drawn in two blocks."""
    heads = HEADS.replace(check_every=150, grace=150)
    whole, begun = (small_run(3, heads=heads, sac=SAC.replace(steps=steps)) for steps in (150, 67))
    at_once, half = (trained([run])[1][0] for run in (whole, begun))
    half.progress.run = whole
    ((_, in_two),) = [saved for news in Population([whole], "cpu", {0: half}).train() for saved in news.saved]
    for one, other in zip(jax.tree.leaves(at_once.state), jax.tree.leaves(in_two.state), strict=True):
        np.testing.assert_array_equal(one, other)
