"""What the paper claims of Delta%, of success, and of the spread over the seeds, in its three regimes."""

import polars as pl

from incrt.report import paper
from incrt.report.claims.comparing import Pair, all_better, all_match, least_spread
from incrt.report.claims.rules import Verdict, claim, no_runs, said_of_every, sizeable
from incrt.report.selection import RUNTIME, SOUND, Runs, deltas
from incrt.report.statistics import rate
from incrt.report.wording import number, rate_text


def verdicts(runs: Runs) -> list[Verdict]:
    """Growing against fixed heads: in each regime the paper's number of them, and in all regimes each number."""
    found, names = runs.grown(), runs.statics() or [paper.STATIC]
    fails, worse = ~pl.col("success"), ~SOUND | (pl.col("delta_pct") >= 0)
    worst = f", the worst run at {number(max(sound))} %" if (sound := deltas(found)) else ""
    pairs = {name: [_pair(runs, name, tau_z) for tau_z in paper.REGIMES] for name in names}
    in_regimes = [
        (claim("better-in-regime", heads=names[0], tau_z=tau_z, points=number(points, 1)), pair)
        for (tau_z, points), pair in zip(paper.DIFFERENCES.items(), pairs[names[0]], strict=True)
    ]
    return [
        said_of_every(claim("success"), found, fails, f"{{rate}}{worst}", "Every run does.", runs),
        said_of_every(claim("baseline"), found, worse, "{rate}", "Every run does.", runs),
        *(all_better(said, [pair], "static") for said, pair in in_regimes),
        *(all_better(claim("better", heads=name), pairs[name], "static") for name in names),
        *(all_match(claim("match", heads=name), pairs[name], "static") for name in names),
        *(_fails(runs, name) for name in names),
    ]


def spreads(runs: Runs) -> list[Verdict]:
    """At the longest memory against the other regimes, and against each fixed number of heads."""
    own, names = runs.compared(RUNTIME, 5.0), runs.statics() or [paper.STATIC]
    regimes = [Pair(f"τ_z = {tau_z:g}", own, runs.compared(RUNTIME, tau_z)) for tau_z in (1.0, 2.0)]
    fixed = {name: [Pair(name, own, runs.compared(name, 5.0))] for name in names}
    return [
        least_spread(claim("spread-of-regimes"), regimes, "main"),
        *(least_spread(claim("spread-of-heads", heads=name), pairs, "static") for name, pairs in fixed.items()),
    ]


def _pair(runs: Runs, name: str, tau_z: float) -> Pair:
    grown, fixed = paper.CELLS["main", RUNTIME, tau_z].mean, paper.CELLS["static", "static", tau_z].mean
    label, ratio = f"τ_z = {tau_z:g}", paper.ratio(grown, fixed)
    return Pair(label, runs.compared(RUNTIME, tau_z), runs.compared(name, tau_z), ratio)


def _fails(runs: Runs, name: str) -> Verdict:
    said, printed = claim("fails", heads=name), paper.CELLS["static", "static", 5.0]
    found = runs.compared(name, 5.0)
    if not len(found):
        return no_runs(said, "static")
    failed = rate(len(found.filter(~pl.col("success"))), len(found))
    judgement = sizeable(failed, rate(printed.failures or 0, printed.n))
    why = {
        "holds": "The lower end of the interval is above 5 %, and the rate not clearly below the paper's.",
        "does not hold": "The rate is below the paper's, and Fisher's exact test tells them apart.",
        "cannot tell": "The interval reaches down to 5 %, and the rate is not clearly below the paper's.",
    }[judgement]
    return Verdict(said, len(found), rate_text(failed) or "", judgement, why)
