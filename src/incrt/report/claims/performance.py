"""What the paper claims of Delta% and of success."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.claims.comparing import all_better, all_match, least_spread
from incrt.report.claims.verdicts import MATCHES, Claim, Pair, Verdict, no_runs, sizeable, universal
from incrt.report.selection import COMPARISON, RUNTIME, Runs, deltas
from incrt.report.statistics import rate
from incrt.report.wording import number, rate_text

_TABLE_1 = "section 7.2, Table 1"


def _numbers(runs: Runs) -> list[str]:
    """The variants with a fixed number of heads that growing is held against; the paper's own if there are none."""
    return runs.statics() or [paper.STATIC]


def _place(name: str, where: str) -> str:
    """Where the paper says something of a number of heads, which it need not have tried."""
    return where if name == paper.STATIC else f"{where}, of another number of heads"


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
    names = _numbers(runs)
    each_regime = [_against_static(runs, names[0], (tau_z,)) for tau_z in paper.REGIMES]
    return [*each_regime, *(_against_static(runs, name, paper.REGIMES) for name in names)]


def match_static(runs: Runs) -> list[Verdict]:
    """In all regimes, each number of heads: the paper's criterion for success."""
    return [_matching(runs, name) for name in _numbers(runs)]


def _matching(runs: Runs, name: str) -> Verdict:
    claim = Claim(
        f"matches {name}",
        f"Heads that grow match or exceed a fixed number of them ({name}) in every regime: {MATCHES}.",
        _place(name, "section 3, (P2), and section 7, question 1"),
        "better in every regime",
    )
    pairs = [
        Pair(f"τ_z = {tau_z:g}", runs.compared(RUNTIME, tau_z), runs.compared(name, tau_z)) for tau_z in paper.REGIMES
    ]
    return all_match(claim, pairs, "static")


def _against_static(runs: Runs, name: str, regimes: Sequence[float]) -> Verdict:
    where = "in every regime" if len(regimes) > 1 else f"at τ_z = {regimes[0]:g} s"
    claim = Claim(
        f"better than {name} {where}",
        f"Heads that grow do better than a fixed number of them ({name}) {where}.",
        _place(name, _TABLE_1),
        ", ".join(f"{number(paper.DIFFERENCES[tau_z], 1)}" for tau_z in regimes) + " points",
    )
    pairs = [
        Pair(
            f"τ_z = {tau_z:g}",
            runs.compared(RUNTIME, tau_z),
            runs.compared(name, tau_z),
            paper.ratio(paper.CELLS["main", RUNTIME, tau_z].mean, paper.CELLS["static", "static", tau_z].mean),
        )
        for tau_z in regimes
    ]
    return all_better(claim, pairs, "static")


def static_fails(runs: Runs) -> list[Verdict]:
    """Each number of heads: the paper names its own in one regime only."""
    return [_fails(runs, name) for name in _numbers(runs)]


def _fails(runs: Runs, name: str) -> Verdict:
    printed = paper.CELLS["static", "static", 5.0]
    claim = Claim(
        f"{name} fails",
        f"A fixed number of heads ({name}) fails on a sizeable part of the seeds at τ_z = 5 s.",
        _place(name, _TABLE_1),
        f"{printed.failures}/{printed.n}",
    )
    found = runs.compared(name, 5.0)
    if not found:
        return no_runs(claim, "static")
    failed = rate(sum(not each.success for each in found), len(found))
    judgement = sizeable(failed, rate(printed.failures or 0, printed.n))
    why = {
        "holds": "The lower end of the interval is above 5 %, and the rate not clearly below the paper's.",
        "does not hold": "The rate is below the paper's, and Fisher's exact test tells them apart.",
        "cannot tell": "The interval reaches down to 5 %, and the rate is not clearly below the paper's.",
    }[judgement]
    return Verdict(claim, len(found), rate_text(failed) or "", judgement, why)


def smallest_spread(runs: Runs) -> Verdict:
    """Against each other regime."""
    low, high = map(number, paper.RANGE_AT_5)
    at_1, at_2, at_5 = (number(paper.CELLS["main", "runtime", tau_z].std) for tau_z in paper.REGIMES)
    claim = Claim(
        "spread",
        "The spread over the seeds is smallest at τ_z = 5 s.",
        "section 7.2",
        f"std {at_5} (runs from {low} to {high} %) against {at_1} at τ_z = 1 and {at_2} at τ_z = 2",
    )
    own = runs.compared(RUNTIME, 5.0)
    pairs = [Pair(f"τ_z = {tau_z:g}", own, runs.compared(RUNTIME, tau_z)) for tau_z in (1.0, 2.0)]
    return least_spread(claim, pairs, "main")


def less_spread_than_static(runs: Runs) -> list[Verdict]:
    """At the longest memory, against each number of heads."""
    return [_spreads_less(runs, name) for name in _numbers(runs)]


def _spreads_less(runs: Runs, name: str) -> Verdict:
    claim = Claim(
        f"spread against {name}",
        f"At τ_z = 5 s the spread over the seeds is smaller with heads that grow than with a fixed number ({name}).",
        _place(name, "section 7.2, consistency across regimes"),
        f"std {number(paper.CELLS['main', RUNTIME, 5.0].std)} against one that it does not print",
    )
    return least_spread(claim, [Pair(name, runs.compared(RUNTIME, 5.0), runs.compared(name, 5.0))], "static")
