"""What the paper claims of Delta% and of success."""

from collections.abc import Sequence

import polars as pl

from incrt.report import paper
from incrt.report.claims.comparing import MATCHES, Pair, all_better, all_match
from incrt.report.claims.rules import Claim, Verdict, no_runs, said_of_every, sizeable
from incrt.report.selection import RUNTIME, SOUND, Runs, deltas
from incrt.report.statistics import rate
from incrt.report.wording import number, rate_text

_TABLE_1 = "section 7.2, Table 1"


def verdicts(runs: Runs) -> list[Verdict]:
    """Growing against fixed heads: in each regime the paper's number of them, and in all regimes each number."""
    names = runs.statics() or [paper.STATIC]
    return [
        *_said_of_grown(runs),
        *(_better_than(runs, names[0], (tau_z,)) for tau_z in paper.REGIMES),
        *(_better_than(runs, name, paper.REGIMES) for name in names),
        *(_match(runs, name) for name in names),
        *(_fails(runs, name) for name in names),
    ]


def other_heads(name: str, where: str) -> str:
    """Where the paper says something of a number of heads, which it need not have tried."""
    return where if name == paper.STATIC else f"{where}, of another number of heads"


def _said_of_grown(runs: Runs) -> list[Verdict]:
    found = runs.grown()
    worst = f", the worst run at {number(max(sound))} %" if (sound := deltas(found)) else ""
    printed = f"30/30, the worst run at {number(paper.WORST)} %"
    success = "Every run with heads that grow succeeds (RMSE below 0.10 rad), in all three regimes."
    baseline = "Every run with heads that grow does better than the computed-torque baseline."
    fails, worse, why = ~pl.col("success"), ~SOUND | (pl.col("delta_pct") >= 0), "Every run does."
    return [
        said_of_every(Claim("success", success, _TABLE_1, printed), runs, found, fails, f"{{rate}}{worst}", why),
        said_of_every(Claim("baseline", baseline, "section 7.2", printed), runs, found, worse, "{rate}", why),
    ]


def _better_than(runs: Runs, name: str, regimes: Sequence[float]) -> Verdict:
    where = "in every regime" if len(regimes) > 1 else f"at τ_z = {regimes[0]:g} s"
    claim = Claim(
        f"better than {name} {where}",
        f"Heads that grow do better than a fixed number of them ({name}) {where}.",
        other_heads(name, _TABLE_1),
        ", ".join(f"{number(paper.DIFFERENCES[tau_z], 1)}" for tau_z in regimes) + " points",
    )
    return all_better(claim, [_pair(runs, name, tau_z) for tau_z in regimes], "static")


def _match(runs: Runs, name: str) -> Verdict:
    claim = Claim(
        f"matches {name}",
        f"Heads that grow match or exceed a fixed number of them ({name}) in every regime: {MATCHES}.",
        other_heads(name, "section 3, (P2), and section 7, question 1"),
        "better in every regime",
    )
    return all_match(claim, [_pair(runs, name, tau_z) for tau_z in paper.REGIMES], "static")


def _pair(runs: Runs, name: str, tau_z: float) -> Pair:
    grown, fixed = paper.CELLS["main", RUNTIME, tau_z].mean, paper.CELLS["static", "static", tau_z].mean
    label, ratio = f"τ_z = {tau_z:g}", paper.ratio(grown, fixed)
    return Pair(label, runs.compared(RUNTIME, tau_z), runs.compared(name, tau_z), ratio)


def _fails(runs: Runs, name: str) -> Verdict:
    printed = paper.CELLS["static", "static", 5.0]
    claim = Claim(
        f"{name} fails",
        f"A fixed number of heads ({name}) fails on a sizeable part of the seeds at τ_z = 5 s.",
        other_heads(name, _TABLE_1),
        f"{printed.failures}/{printed.n}",
    )
    found = runs.compared(name, 5.0)
    if not len(found):
        return no_runs(claim, "static")
    failed = rate(len(found.filter(~pl.col("success"))), len(found))
    judgement = sizeable(failed, rate(printed.failures or 0, printed.n))
    why = {
        "holds": "The lower end of the interval is above 5 %, and the rate not clearly below the paper's.",
        "does not hold": "The rate is below the paper's, and Fisher's exact test tells them apart.",
        "cannot tell": "The interval reaches down to 5 %, and the rate is not clearly below the paper's.",
    }[judgement]
    return Verdict(claim, len(found), rate_text(failed) or "", judgement, why)
