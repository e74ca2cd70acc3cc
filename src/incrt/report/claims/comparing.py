"""Verdicts on several comparisons, in words."""

from collections.abc import Sequence
from dataclasses import replace

from incrt.report.claims.verdicts import Claim, Judged, Pair, Verdict, all_of, better, less_spread, matching, no_runs
from incrt.report.outcomes import Outcome
from incrt.report.selection import deltas, distinct, diverged
from incrt.report.statistics import spread_p, summarise
from incrt.report.wording import difference_text, number, p_text


def all_better(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do better than the others."""
    judged = better(pairs)
    smaller = [
        pair.label
        for pair, each in zip(pairs, judged, strict=True)
        if each.judgement == "holds" and each.comparison.low is not None and each.comparison.low > pair.expected
    ]
    size = f" By less than the paper has: {', '.join(smaller)}." if smaller else ""
    holds = "Every interval lies wholly below zero." if len(pairs) > 1 else "The whole interval lies below zero."
    found = _of_all(claim, pairs, judged, study, holds, "Not better, or not by half of what the paper has")
    return replace(found, why=f"{found.why}{size}")


def all_match(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do as well as the others, or better."""
    holds, fails = "No interval reaches beyond the margin.", "Worse, and clearly beyond the margin"
    return _of_all(claim, pairs, matching(pairs), study, holds, fails)


def _of_all(
    claim: Claim, pairs: Sequence[Pair], judged: Sequence[Judged], study: str, holds: str, fails: str
) -> Verdict:
    """The verdict on all comparisons together; ``holds`` and ``fails`` say why, the latter before those that fail."""
    if not any(pair.runs and pair.others for pair in pairs):
        return no_runs(claim, study)
    judgement = all_of(each.judgement for each in judged)
    why = {
        "holds": holds,
        "does not hold": f"{fails}: {labels(judged, judgement)}.",
        "cannot tell": f"{undecided(pairs)}: {labels(judged, judgement)}.",
    }[judgement]
    ours = "; ".join(f"{each.label}: {_points(each)}" for each in judged)
    return Verdict(claim, count(pairs), f"{ours}{left_out(pairs)}", judgement, why)


def least_spread(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
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
        "cannot tell": f"{undecided(pairs, 'Brown-Forsythe does not tell all of them apart')}.",
    }[judgement]
    return Verdict(claim, count(pairs), f"{ours}{left_out(pairs)}", judgement, why)


def undecided(pairs: Sequence[Pair], why: str = "The interval decides neither way") -> str:
    """Why some comparisons cannot be told."""
    return f"{why}, or more runs diverged on one side" if diverged(_all(pairs)) else why


def labels(judged: Sequence[Judged], judgement: str) -> str:
    """Of those that were judged so."""
    return ", ".join(each.label for each in judged if each.judgement == judgement)


def count(pairs: Sequence[Pair]) -> int:
    """How many runs' figures stand behind the comparisons."""
    return len(deltas(_all(pairs)))


def left_out(pairs: Sequence[Pair]) -> str:
    """How many have no part in the comparisons, if any."""
    lost = diverged(_all(pairs))
    return f" (diverged and left out: {lost})" if lost else ""


def _points(judged: Judged) -> str:
    text = difference_text(judged.comparison)
    if text is None:
        return "no figures"
    return f"{text} points" + ("" if judged.margin is None else f", margin {number(judged.margin)}")


def _all(pairs: Sequence[Pair]) -> list[Outcome]:
    return distinct(each for pair in pairs for each in (*pair.runs, *pair.others))


def _std_text(outcomes: Sequence[Outcome]) -> str:
    return number(summarise(deltas(outcomes)).std) or "unknown"
