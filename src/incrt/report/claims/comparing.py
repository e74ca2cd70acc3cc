"""The rules for what is said of pairs of samples, and their verdicts in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from incrt.report.claims.rules import Claim, Judgement, Verdict, all_of, no_runs
from incrt.report.selection import deltas, diverged, once
from incrt.report.statistics import LEVEL, Comparison, compare, spread_p, summarise
from incrt.report.wording import difference_text, number, p_text

MATCHING = 0.05
"""Part of the others' error by which runs that match may be worse."""
MATCHES = f"the error is at most {100 * MATCHING:g} % larger"

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Pair:
    """Runs that are said to do better than others, or no differently."""

    label: str
    runs: pl.DataFrame
    others: pl.DataFrame
    ratio: float = 1.0
    """RMSE of the runs over that of the others, as the paper has it."""

    @property
    def error(self) -> float:
        """The others' mean, in per cent of the baseline's."""
        return 100 + (summarise(deltas(self.others)).mean or 0.0)

    @property
    def lead(self) -> int:
        """Positive if a larger part of the first runs diverged, negative if of the others."""
        return diverged(self.runs) * len(self.others) - diverged(self.others) * len(self.runs)

    def unflattered(self, judgement: Judgement) -> Judgement:
        """What is left of runs that diverged must not be taken for all of them, on either side."""
        is_flattered = (judgement == "holds" and self.lead > 0) or (judgement == "does not hold" and self.lead < 0)
        return "cannot tell" if is_flattered else judgement


@dataclass(frozen=True)
class Judged:
    """What came of one of several comparisons."""

    pair: Pair
    comparison: Comparison
    judgement: Judgement
    size: float
    """Of the difference that the paper has, or of the margin."""


def all_better(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do better than the others."""
    judged = [_judged(pair, len(pairs), _is_better, pair.error * (pair.ratio - 1)) for pair in pairs]
    smaller = [
        each.pair.label
        for each in judged
        if each.judgement == "holds" and each.comparison.low is not None and each.comparison.low > each.size
    ]
    size = f" By less than the paper has: {', '.join(smaller)}." if smaller else ""
    holds = "Every interval lies wholly below zero." if len(pairs) > 1 else "The whole interval lies below zero."
    found = _of_all(claim, judged, study, holds, "Not better, or not by half of what the paper has")
    return replace(found, why=f"{found.why}{size}")


def all_match(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do as well as the others, or better."""
    judged = [_judged(pair, len(pairs), _matches, MATCHING * pair.error) for pair in pairs]
    holds, fails = "No interval reaches beyond the margin.", "Worse, and clearly beyond the margin"
    return _of_all(claim, judged, study, holds, fails, margin=True)


def no_influence(pairs: Sequence[Pair]) -> list[Judged]:
    """Of each pair, whether the runs do the same."""
    stds = [summarise(deltas(pair.others)).std or 0.0 for pair in pairs]
    judged = [_judged(pair, len(pairs), _is_the_same, std) for pair, std in zip(pairs, stds, strict=True)]
    return [replace(each, judgement="cannot tell") if each.pair.lead else each for each in judged]


def least_spread(claim: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs that all pairs begin with have the smaller spread in each."""
    own = pairs[0].runs
    if not len(own) or not any(len(pair.others) for pair in pairs):
        return no_runs(claim, study)
    texts = [(pair, p_text(spread_p(deltas(own), deltas(pair.others))) or "unknown") for pair in pairs]
    against = ", ".join(f"{_std_text(pair.others)} ({pair.label}, p = {p})" for pair, p in texts)
    judgement = all_of(_spreads_less(pair, len(pairs)) for pair in pairs)
    why = {
        "holds": "It is smaller than each other one, with p < 0.05 (Brown-Forsythe).",
        "does not hold": f"It is larger than another one, with p < {0.05 / len(pairs):.2g} (Brown-Forsythe).",
        "cannot tell": f"{undecided(pairs, 'Brown-Forsythe does not tell all of them apart')}.",
    }[judgement]
    ours = f"std {_std_text(own)} against {against}{left_out(pairs)}"
    return Verdict(claim, count(pairs), ours, judgement, why)


def undecided(pairs: Sequence[Pair], why: str = "The interval decides neither way") -> str:
    """Why some comparisons cannot be told."""
    return f"{why}, or more runs diverged on one side" if diverged(_all(pairs)) else why


def labels(judged: Sequence[Judged], judgement: str) -> str:
    """Of those that were judged so."""
    return ", ".join(each.pair.label for each in judged if each.judgement == judgement)


def count(pairs: Sequence[Pair]) -> int:
    """How many runs' metrics stand behind the comparisons."""
    return len(deltas(_all(pairs)))


def left_out(pairs: Sequence[Pair]) -> str:
    """How many have no part in the comparisons, if any."""
    lost = diverged(_all(pairs))
    return f" (diverged and left out: {lost})" if lost else ""


def _all(pairs: Sequence[Pair]) -> pl.DataFrame:
    return once(pl.concat(rows for pair in pairs for rows in (pair.runs, pair.others)))


def _std_text(rows: pl.DataFrame) -> str:
    return number(summarise(deltas(rows)).std) or "unknown"


def _of_all(
    claim: Claim, judged: Sequence[Judged], study: str, holds: str, fails: str, *, margin: bool = False
) -> Verdict:
    """The verdict on all comparisons together; ``holds`` and ``fails`` say why, the latter before those that fail."""
    pairs = [each.pair for each in judged]
    if not any(len(pair.runs) and len(pair.others) for pair in pairs):
        return no_runs(claim, study)
    judgement = all_of(each.judgement for each in judged)
    why = {
        "holds": holds,
        "does not hold": f"{fails}: {labels(judged, judgement)}.",
        "cannot tell": f"{undecided(pairs)}: {labels(judged, judgement)}.",
    }[judgement]
    ours = "; ".join(f"{each.pair.label}: {_points(each, margin=margin)}" for each in judged)
    return Verdict(claim, count(pairs), f"{ours}{left_out(pairs)}", judgement, why)


def _points(judged: Judged, *, margin: bool) -> str:
    text = difference_text(judged.comparison)
    if text is None:
        return "no figures"
    return f"{text} points" + (f", margin {number(judged.size)}" if margin else "")


def _judged(pair: Pair, tries: int, rule: Callable[[Ends, Ends, float], Judgement], size: float) -> Judged:
    one, other = deltas(pair.runs), deltas(pair.others)
    usual, wide = compare(one, other), compare(one, other, 1 - (1 - LEVEL) / tries)
    judgement: Judgement = "cannot tell"
    if usual.low is not None and usual.high is not None and wide.low is not None and wide.high is not None:
        judgement = pair.unflattered(rule((usual.low, usual.high), (wide.low, wide.high), size))
    return Judged(pair, usual, judgement, size)


def _is_better(usual: Ends, wide: Ends, expected: float) -> Judgement:
    if usual[1] < 0:
        return "holds"
    is_above, excludes_half = wide[0] > 0, wide[1] >= 0 and wide[0] > expected / 2
    return "does not hold" if is_above or excludes_half else "cannot tell"


def _matches(usual: Ends, wide: Ends, margin: float) -> Judgement:
    if usual[1] <= margin:
        return "holds"
    return "does not hold" if wide[0] > margin else "cannot tell"


def _is_the_same(usual: Ends, wide: Ends, margin: float) -> Judgement:
    if max(map(abs, usual)) <= margin:
        return "holds"
    excludes_zero, beyond = wide[0] > 0 or wide[1] < 0, abs(sum(usual)) / 2 > margin
    return "does not hold" if excludes_zero and beyond else "cannot tell"


def _spreads_less(pair: Pair, tries: int) -> Judgement:
    """Whether the first runs have the smaller spread, as one of several."""
    one, other = deltas(pair.runs), deltas(pair.others)
    p, own_std, other_std = spread_p(one, other), summarise(one).std, summarise(other).std
    if p is None or own_std is None or other_std is None:
        return "cannot tell"
    if own_std < other_std and p < 1 - LEVEL:
        return pair.unflattered("holds")
    is_larger = own_std > other_std and p < (1 - LEVEL) / tries
    return pair.unflattered("does not hold" if is_larger else "cannot tell")
