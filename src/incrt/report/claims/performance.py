"""What the paper claims of Delta% and of success."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.claims.verdicts import (
    Claim,
    Judged,
    Pair,
    Verdict,
    all_of,
    better,
    less_spread,
    no_influence,
    no_runs,
    sizeable,
    universal,
)
from incrt.report.outcomes import Outcome
from incrt.report.selection import COMPARISON, RUNTIME, Runs, deltas, distinct, diverged
from incrt.report.statistics import rate, spread_p, summarise
from incrt.report.wording import difference_text, number, p_text, rate_text

_TABLE_1 = "section 7.2, Table 1"
_CAPS = ("K_max 2", "K_max 4", "K_max 8", "K_max 16")
_COOLDOWNS = ("grace 2000", "grace 1000", "grace 5000")
"""The one that the paper finds best comes first."""


def all_succeed(runs: Runs) -> Verdict:
    """Of the main runs; one that diverged has not succeeded."""
    claim = Claim(
        "success",
        "Every run with heads that grow succeeds (RMSE below 0.10 rad), in all three regimes.",
        _TABLE_1,
        f"30/30, the worst run at {number(paper.WORST)} %",
    )
    found = runs.grown()
    if not found:
        return no_runs(claim, "main")
    failures = [each for each in found if not each.success]
    ours = rate_text(rate(len(found) - len(failures), len(found))) or ""
    if sound := deltas(found):
        ours += f", the worst run at {number(max(sound))} %"
    return universal(claim, found, failures, ours, "Every run does.", runs.given_up(*COMPARISON))


def all_beat_the_baseline(runs: Runs) -> Verdict:
    """Of the main runs; one that diverged has not."""
    claim = Claim(
        "baseline",
        "Every run with heads that grow does better than the computed-torque baseline.",
        "section 7.2",
        f"30/30, the worst run at {number(paper.WORST)} %",
    )
    found = runs.grown()
    if not found:
        return no_runs(claim, "main")
    worse = [each for each in found if not each.is_sound or (each.delta_pct or 0.0) >= 0]
    ours = rate_text(rate(len(found) - len(worse), len(found))) or ""
    return universal(claim, found, worse, ours, "Every run does.", runs.given_up(*COMPARISON))


def better_than_static(runs: Runs) -> list[Verdict]:
    """In each regime against the paper's number of heads, and in all regimes against each number."""
    names = runs.statics() or [paper.STATIC]
    each_regime = [_against_static(runs, names[0], (tau_z,)) for tau_z in paper.REGIMES]
    return [*each_regime, *(_against_static(runs, name, paper.REGIMES) for name in names)]


def _against_static(runs: Runs, name: str, regimes: Sequence[float]) -> Verdict:
    where = "in every regime" if len(regimes) > 1 else f"at τ_z = {regimes[0]:g} s"
    claim = Claim(
        f"better than {name} {where}",
        f"Heads that grow do better than a fixed number of them ({name}) {where}.",
        _TABLE_1,
        ", ".join(f"{number(paper.DIFFERENCES[tau_z], 1)}" for tau_z in regimes) + " points",
    )
    pairs = [
        Pair(
            f"τ_z = {tau_z:g}",
            runs.compared(RUNTIME, tau_z),
            runs.compared(name, tau_z),
            paper.DIFFERENCES[tau_z],
        )
        for tau_z in regimes
    ]
    return _all_better(claim, pairs, "static")


def static_fails(runs: Runs) -> Verdict:
    """Of the paper's number of heads."""
    name = (runs.statics() or [paper.STATIC])[0]
    printed = paper.CELLS["static", "static", 5.0]
    claim = Claim(
        "static fails",
        f"A fixed number of heads ({name}) fails on a sizeable part of the seeds at τ_z = 5 s.",
        _TABLE_1,
        f"{printed.failures}/{printed.n}",
    )
    found = runs.compared(name, 5.0)
    if not found:
        return no_runs(claim, "static")
    failed = rate(sum(not each.success for each in found), len(found))
    judgement = sizeable(failed, (printed.failures or 0) / printed.n)
    why = {
        "holds": "The interval's lower end is above 5 %, and its upper end not below the paper's rate.",
        "does not hold": "The whole interval lies below the paper's rate.",
        "cannot tell": "The interval reaches from 5 % or less up to the paper's rate.",
    }[judgement]
    return Verdict(claim, len(found), rate_text(failed) or "", judgement, why)


def smallest_cap(runs: Runs) -> Verdict:
    """Against each larger one."""
    return _best_of(
        runs,
        "k_max",
        _CAPS,
        "The smallest head-count cap, K_max = 2, is the best one (τ_z = 2 s).",
        "section 7.3, Table 2",
    )


def best_cooldown(runs: Runs) -> Verdict:
    """Against the shorter and the longer one."""
    return _best_of(
        runs,
        "grace",
        _COOLDOWNS,
        "The cooldown of 2000 steps is the best one: shorter and longer ones do worse (τ_z = 2 s).",
        "section 7.4, Table 3",
    )


def smallest_cap_spreads_least(runs: Runs) -> Verdict:
    """Against each larger one."""
    return _spreads_least(
        runs, "k_max", _CAPS, "The spread over the seeds is smallest at K_max = 2 (τ_z = 2 s).", "section 7.3, Table 2"
    )


def every_cap_beats_static(runs: Runs) -> Verdict:
    """Each cap against the paper's number of heads."""
    fixed = paper.CELLS["static", "static", paper.SWEPT_AT].mean
    printed = {name: paper.CELLS["k_max", name, paper.SWEPT_AT].mean - fixed for name in _CAPS}
    claim = Claim(
        "caps against static",
        f"With every cap, heads that grow do better than a fixed number of them ({paper.STATIC}, τ_z = 2 s).",
        "section 7.3, Table 2",
        ", ".join(f"{number(each, 1)} ({name})" for name, each in printed.items()) + " points",
    )
    others = runs.compared(paper.STATIC, paper.SWEPT_AT)
    pairs = [Pair(name, runs.cell("k_max", name, paper.SWEPT_AT), others, printed[name]) for name in _CAPS]
    return _all_better(claim, pairs, "k_max" if others else "static")


def best_cooldown_spreads_least(runs: Runs) -> Verdict:
    """Against the shorter and the longer one."""
    return _spreads_least(
        runs,
        "grace",
        _COOLDOWNS,
        "The spread over the seeds is larger with a shorter and with a longer cooldown than with 2000 steps.",
        "section 7.4, Table 3",
    )


def _spreads_least(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    """The first variant against the others, at the paper's regime for sweeps."""
    own, *others = [runs.cell(study, name, paper.SWEPT_AT) for name in variants]
    stds = [number(paper.CELLS[study, name, paper.SWEPT_AT].std) for name in variants]
    figures = ", ".join(f"{std} ({name})" for name, std in zip(variants[1:], stds[1:], strict=True))
    claim = Claim(f"spread of {study}", sentence, where, f"std {stds[0]} against {figures}")
    pairs = [Pair(name, own, found) for name, found in zip(variants[1:], others, strict=True)]
    return _least_spread(claim, pairs, study)


def _best_of(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    """The first variant against the others, at the paper's regime for sweeps."""
    own, *beside = [runs.cell(study, name, paper.SWEPT_AT) for name in variants]
    mean, *others = [paper.CELLS[study, name, paper.SWEPT_AT].mean for name in variants]
    figures = ", ".join(f"{number(other)} ({name})" for name, other in zip(variants[1:], others, strict=True))
    claim = Claim(f"best of {study}", sentence, where, f"{number(mean)} % against {figures}; the intervals overlap")
    pairs = [
        Pair(f"against {name}", own, found, mean - other)
        for name, found, other in zip(variants[1:], beside, others, strict=True)
    ]
    return _all_better(claim, pairs, study)


def smallest_spread(runs: Runs) -> Verdict:
    """Against each other regime."""
    low, high = map(number, paper.RANGE_AT_5)
    at_1, at_2, at_5 = (number(paper.CELLS["main", "runtime", tau_z].std) for tau_z in paper.REGIMES)
    claim = Claim(
        "spread",
        "The spread over the seeds is smallest at τ_z = 5 s.",
        "section 7.2, Figure 4",
        f"std {at_5} (runs from {low} to {high} %) against {at_1} at τ_z = 1 and {at_2} at τ_z = 2",
    )
    own = runs.compared(RUNTIME, 5.0)
    pairs = [Pair(f"τ_z = {tau_z:g}", own, runs.compared(RUNTIME, tau_z)) for tau_z in (1.0, 2.0)]
    return _least_spread(claim, pairs, "main")


def _least_spread(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs that all pairs begin with have the smaller spread in each."""
    own = pairs[0].runs
    if not own or not any(pair.others for pair in pairs):
        return no_runs(claim, study)
    figures = [(pair, p_text(spread_p(deltas(own), deltas(pair.others))) or "unknown") for pair in pairs]
    ours = f"std {_std_text(own)} against " + ", ".join(
        f"{_std_text(pair.others)} ({pair.label}, p = {p})" for pair, p in figures
    )
    judgement = all_of(less_spread(pair, len(pairs)) for pair in pairs)
    why = {
        "holds": "It is smaller than each other one, with p < 0.05 (Brown-Forsythe).",
        "does not hold": f"It is larger than another one, with p < {0.05 / len(pairs):.2g} (Brown-Forsythe).",
        "cannot tell": "Brown-Forsythe's test does not tell all of them apart, or more runs diverged on one side.",
    }[judgement]
    return Verdict(claim, _count(pairs), f"{ours}{_left_out(pairs)}", judgement, why)


def no_sensitivity(runs: Runs) -> Verdict:
    """Every variant of study sensitivity against the one it is compared with."""
    claim = Claim(
        "other settings",
        "The controller's other settings have no influence: less than the seeds have (their standard deviation).",
        "section 7.4",
        "a preliminary null-sensitivity analysis, without figures",
    )
    study = runs.study("sensitivity")
    if study is None:
        return no_runs(claim, "sensitivity")
    pairs = [
        Pair(name, runs.cell(study.name, name, tau_z), runs.cell(study.name, other, tau_z))
        for tau_z in runs.regimes(study.name)
        for name, other in study.compare.items()
    ]
    judged = no_influence(pairs)
    if not any(each.comparison.difference is not None for each in judged):
        return no_runs(claim, "sensitivity")
    largest = max(judged, key=lambda each: abs(each.comparison.difference or 0.0))
    judgement = all_of(each.judgement for each in judged)
    ours = (
        f"{sum(each.judgement == 'holds' for each in judged)} of {len(judged)} within the margin; the largest "
        f"difference: {largest.label}, {difference_text(largest.comparison)} points{_left_out(pairs)}"
    )
    why = {
        "holds": "Every interval lies within the margin.",
        "does not hold": f"Beyond the margin, and not by chance: {_labels(judged, judgement)}.",
        "cannot tell": f"There are no runs, or too few to say so: {_labels(judged, judgement)}.",
    }[judgement]
    return Verdict(claim, _count(pairs), ours, judgement, why)


def _all_better(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    if not any(pair.runs and pair.others for pair in pairs):
        return no_runs(claim, study)
    judged = better(pairs)
    judgement = all_of(each.judgement for each in judged)
    figures = [(each.label, difference_text(each.comparison)) for each in judged]
    ours = "; ".join(f"{label}: {f'{text} points' if text else 'no figures'}" for label, text in figures)
    ours += _left_out(pairs)
    why = {
        "holds": "Every interval lies wholly below zero." if len(pairs) > 1 else "The whole interval lies below zero.",
        "does not hold": f"Not better, or not by half of what the paper has: {_labels(judged, judgement)}.",
        "cannot tell": f"Too few runs to tell, or more diverged on one side: {_labels(judged, judgement)}.",
    }[judgement]
    smaller = [
        pair.label
        for pair, each in zip(pairs, judged, strict=True)
        if each.judgement == "holds" and each.comparison.low is not None and each.comparison.low > pair.printed
    ]
    size = f" By less than the paper has: {', '.join(smaller)}." if smaller else ""
    return Verdict(claim, _count(pairs), ours, judgement, f"{why}{size}")


def _labels(judged: Sequence[Judged], judgement: str) -> str:
    return ", ".join(each.label for each in judged if each.judgement == judgement)


def _count(pairs: Sequence[Pair]) -> int:
    """How many runs' figures stand behind the comparisons."""
    return len(deltas(_all(pairs)))


def _left_out(pairs: Sequence[Pair]) -> str:
    count = diverged(_all(pairs))
    return f" (diverged and left out: {count})" if count else ""


def _all(pairs: Sequence[Pair]) -> list[Outcome]:
    return distinct(each for pair in pairs for each in (*pair.runs, *pair.others))


def _std_text(outcomes: Sequence[Outcome]) -> str:
    return number(summarise(deltas(outcomes)).std) or "unknown"
