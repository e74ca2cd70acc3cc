"""What the paper claims of Delta% and of success."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.claims.comparing import all_better, all_match, least_spread
from incrt.report.claims.verdicts import MATCHING, Claim, Pair, Verdict, all_of, no_runs, sizeable, universal
from incrt.report.selection import COMPARISON, RUNTIME, Runs, deltas
from incrt.report.statistics import rate
from incrt.report.wording import number, rate_text

_TABLE_1 = "section 7.2, Table 1"


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


def match_static(runs: Runs) -> list[Verdict]:
    """In all regimes, each number of heads: the paper's criterion for success."""
    return [_matching(runs, name) for name in runs.statics() or [paper.STATIC]]


def _matching(runs: Runs, name: str) -> Verdict:
    claim = Claim(
        f"matches {name}",
        f"Heads that grow match or exceed a fixed number of them ({name}) in every regime: "
        f"their error is at most {MATCHING:.0%} larger.".replace("%", " %"),
        "section 3, (P2), and section 7, question 1",
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
        _TABLE_1,
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


def static_fails(runs: Runs) -> Verdict:
    """Whatever the number: the paper names its own in one regime only."""
    printed = paper.CELLS["static", "static", 5.0]
    claim = Claim(
        "static fails",
        "A fixed number of heads fails on a sizeable part of the seeds at τ_z = 5 s.",
        _TABLE_1,
        f"{printed.failures}/{printed.n}",
    )
    cells = {name: runs.compared(name, 5.0) for name in runs.statics()}
    found = [each for cell in cells.values() for each in cell]
    if not found:
        return no_runs(claim, "static")
    failed = {name: rate(sum(not each.success for each in cell), len(cell)) for name, cell in cells.items() if cell}
    judged = {name: sizeable(own, rate(printed.failures or 0, printed.n), len(failed)) for name, own in failed.items()}
    judgement = all_of(judged.values())
    those = ", ".join(name for name, each in judged.items() if each == judgement)
    why = {
        "holds": "The lower end of each interval is above 5 %, and no rate clearly below the paper's.",
        "does not hold": f"The rate is below the paper's, and Fisher's exact test tells them apart: {those}.",
        "cannot tell": f"The interval reaches down to 5 %, and the rate is not clearly below the paper's: {those}.",
    }[judgement]
    ours = ", ".join(f"{name}: {rate_text(own)}" for name, own in failed.items())
    return Verdict(claim, len(found), ours, judgement, why)


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
