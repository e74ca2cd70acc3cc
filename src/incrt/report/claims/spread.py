"""What the paper claims of the spread over the seeds, and of settings that matter less than the seeds do."""

from incrt.report import paper
from incrt.report.claims.comparing import Pair, count, labels, least_spread, left_out, no_influence, undecided
from incrt.report.claims.performance import other_heads
from incrt.report.claims.rules import Claim, Verdict, all_of, no_runs
from incrt.report.selection import RUNTIME, Runs, deltas
from incrt.report.wording import difference_text, number


def verdicts(runs: Runs) -> list[Verdict]:
    """At the longest memory against the other regimes and against each fixed number of heads; then other settings."""
    names = runs.statics() or [paper.STATIC]
    return [_smallest(runs), *(_less_than_static(runs, name) for name in names), _no_sensitivity(runs)]


def _smallest(runs: Runs) -> Verdict:
    low, high = map(number, paper.RANGE_AT_5)
    at_1, at_2, at_5 = (number(paper.CELLS["main", RUNTIME, tau_z].std) for tau_z in paper.REGIMES)
    claim = Claim(
        "spread",
        "The spread over the seeds is smallest at τ_z = 5 s.",
        "section 7.2",
        f"std {at_5} (runs from {low} to {high} %) against {at_1} at τ_z = 1 and {at_2} at τ_z = 2",
    )
    own = runs.compared(RUNTIME, 5.0)
    pairs = [Pair(f"τ_z = {tau_z:g}", own, runs.compared(RUNTIME, tau_z)) for tau_z in (1.0, 2.0)]
    return least_spread(claim, pairs, "main")


def _less_than_static(runs: Runs, name: str) -> Verdict:
    claim = Claim(
        f"spread against {name}",
        f"At τ_z = 5 s the spread over the seeds is smaller with heads that grow than with a fixed number ({name}).",
        other_heads(name, "section 7.2, consistency across regimes"),
        f"std {number(paper.CELLS['main', RUNTIME, 5.0].std)} against one that it does not print",
    )
    return least_spread(claim, [Pair(name, runs.compared(RUNTIME, 5.0), runs.compared(name, 5.0))], "static")


def _no_sensitivity(runs: Runs) -> Verdict:
    """Every variant of study sensitivity against all seeds that there are of the one it is compared with."""
    claim = Claim(
        "other settings",
        "The controller's other settings have no influence: less than the seeds have (their standard deviation).",
        "section 7.4",
        "a preliminary null-sensitivity analysis, without figures",
    )
    study = runs.study("sensitivity")
    pairs = [
        Pair(name, runs.everywhere(study.name, name, tau_z), runs.everywhere(study.name, other, tau_z))
        for tau_z in runs.regimes("sensitivity")
        for name, other in (study.compare.items() if study else ())
        if study
    ]
    known = [pair for pair in pairs if deltas(pair.runs) and deltas(pair.others)]
    if not known:
        return no_runs(claim, "sensitivity")
    silent = [pair for pair in pairs if pair not in known]
    lost = [pair for pair in silent if len(pair.runs) and len(pair.others)]
    judged = no_influence(known)
    judgement = all_of(["cannot tell" if silent else "holds", *(each.judgement for each in judged)])
    largest = max(judged, key=lambda each: abs(each.comparison.difference or 0.0))
    difference = f"{largest.pair.label}, {difference_text(largest.comparison)} points"
    ours = (
        f"{sum(each.judgement == 'holds' for each in judged)} of {len(judged)} within the margin"
        + (f", {len(silent)} without figures" if silent else "")
        + f"; the largest difference: {difference}{left_out(pairs)}"
    )
    reasons = {
        undecided(known): labels(judged, "cannot tell"),
        "No run has figures": ", ".join(pair.label for pair in lost),
        "Not run": ", ".join(pair.label for pair in silent if pair not in lost),
    }
    why = {
        "holds": "Every interval lies within the margin.",
        "does not hold": f"Beyond the margin, and not by chance: {labels(judged, judgement)}.",
        "cannot tell": " ".join(f"{reason}: {names}." for reason, names in reasons.items() if names),
    }[judgement]
    return Verdict(claim, count(pairs), ours, judgement, why)
