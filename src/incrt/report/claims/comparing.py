"""The rules for what is said of pairs of samples, and their verdicts in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from incrt.report.claims.rules import Claim, Judgement, Verdict, all_of, no_runs
from incrt.report.selection import deltas, diverged, once
from incrt.report.statistics import LEVEL, Comparison, compare, spread_p, summarise
from incrt.report.wording import difference_text, number, p_text

_MATCHING = 0.05
"""Part of the others' error by which runs that match may be worse; claims.toml says it in words."""

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
class _Judged:
    """What came of one of several comparisons."""

    pair: Pair
    comparison: Comparison
    judgement: Judgement
    size: float
    """Of the difference that the paper has, or of the margin."""


def all_better(said: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do better than the others."""
    judged = [_judged(pair, len(pairs), _is_better, pair.error * (pair.ratio - 1)) for pair in pairs]
    smaller = [
        each.pair.label
        for each in judged
        if each.judgement == "holds" and each.comparison.low is not None and each.comparison.low > each.size
    ]
    ours = "; ".join(f"{each.pair.label}: {_points(each)}" for each in judged)
    holds = "Every interval lies wholly below zero" if len(pairs) > 1 else "The whole interval lies below zero"
    found = _verdict(said, judged, pairs, study, ours, holds, "Not better, or not by half of what the paper has")
    return replace(found, why=f"{found.why} By less than the paper has: {', '.join(smaller)}.") if smaller else found


def all_match(said: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do as well as the others, or better."""
    judged = [_judged(pair, len(pairs), _matches, _MATCHING * pair.error) for pair in pairs]
    ours = "; ".join(f"{each.pair.label}: {_points(each, margin=True)}" for each in judged)
    holds, fails = "No interval reaches beyond the margin", "Worse, and clearly beyond the margin"
    return _verdict(said, judged, pairs, study, ours, holds, fails)


def no_influence(said: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs of each pair do the same; pairs without figures leave it open."""
    known = [pair for pair in pairs if deltas(pair.runs) and deltas(pair.others)]
    if not known:
        return no_runs(said, study)
    stds = [summarise(deltas(pair.others)).std or 0.0 for pair in known]
    judged = [_judged(pair, len(known), _is_the_same, std) for pair, std in zip(known, stds, strict=True)]
    judged = [replace(each, judgement="cannot tell") if each.pair.lead else each for each in judged]
    silent = [pair for pair in pairs if pair not in known]
    within, largest = _labels(judged, "holds"), max(judged, key=lambda each: abs(each.comparison.difference or 0.0))
    ours = (
        f"{len(within)} of {len(judged)} within the margin"
        + (f", {len(silent)} without figures" if silent else "")
        + f"; the largest difference: {largest.pair.label}, {_points(largest)}"
    )
    holds, fails = "Every interval lies within the margin", "Beyond the margin, and not by chance"
    found = _verdict(said, judged, pairs, study, ours, holds, fails)
    if not silent or found.judgement == "does not hold":
        return found
    lost = [pair.label for pair in silent if len(pair.runs) and len(pair.others)]
    reasons = {"No run has figures": lost, "Not run": [pair.label for pair in silent if pair.label not in lost]}
    why = [found.why] if found.judgement == "cannot tell" else []
    why += [f"{reason}: {', '.join(names)}." for reason, names in reasons.items() if names]
    return replace(found, judgement="cannot tell", why=" ".join(why))


def least_spread(said: Claim, pairs: Sequence[Pair], study: str) -> Verdict:
    """Whether the runs that all pairs begin with have the smaller spread in each."""
    own = pairs[0].runs
    if not len(own) or not any(len(pair.others) for pair in pairs):
        return no_runs(said, study)
    texts = [(pair, p_text(spread_p(deltas(own), deltas(pair.others))) or "unknown") for pair in pairs]
    against = ", ".join(f"{_std_text(pair.others)} ({pair.label}, p = {p})" for pair, p in texts)
    judgement = all_of(_spreads_less(pair, len(pairs)) for pair in pairs)
    why = {
        "holds": "It is smaller than each other one, with p < 0.05 (Brown-Forsythe).",
        "does not hold": f"It is larger than another one, with p < {0.05 / len(pairs):.2g} (Brown-Forsythe).",
        "cannot tell": f"{_undecided(pairs, 'Brown-Forsythe does not tell all of them apart')}.",
    }[judgement]
    ours = f"std {_std_text(own)} against {against}{_left_out(pairs)}"
    return Verdict(said, len(deltas(_all(pairs))), ours, judgement, why)


def _verdict(
    said: Claim, judged: Sequence[_Judged], pairs: Sequence[Pair], study: str, ours: str, holds: str, fails: str
) -> Verdict:
    """The verdict on all comparisons together; ``holds`` and ``fails`` say why, the latter before those that fail."""
    if not any(len(pair.runs) and len(pair.others) for pair in pairs):
        return no_runs(said, study)
    judgement = all_of(each.judgement for each in judged)
    names = ", ".join(_labels(judged, judgement))
    why = {
        "holds": f"{holds}.",
        "does not hold": f"{fails}: {names}.",
        "cannot tell": f"{_undecided([each.pair for each in judged])}: {names}.",
    }[judgement]
    return Verdict(said, len(deltas(_all(pairs))), f"{ours}{_left_out(pairs)}", judgement, why)


def _undecided(pairs: Sequence[Pair], why: str = "The interval decides neither way") -> str:
    return f"{why}, or more runs diverged on one side" if diverged(_all(pairs)) else why


def _labels(judged: Sequence[_Judged], judgement: str) -> list[str]:
    return [each.pair.label for each in judged if each.judgement == judgement]


def _left_out(pairs: Sequence[Pair]) -> str:
    """How many have no part in the comparisons, if any."""
    lost = diverged(_all(pairs))
    return f" (diverged and left out: {lost})" if lost else ""


def _all(pairs: Sequence[Pair]) -> pl.DataFrame:
    return once(pl.concat(rows for pair in pairs for rows in (pair.runs, pair.others)))


def _std_text(rows: pl.DataFrame) -> str:
    return number(summarise(deltas(rows)).std) or "unknown"


def _points(judged: _Judged, *, margin: bool = False) -> str:
    if (text := difference_text(judged.comparison)) is None:
        return "no figures"
    return f"{text} points" + (f", margin {number(judged.size)}" if margin else "")


def _judged(pair: Pair, tries: int, rule: Callable[[Ends, Ends, float], Judgement], size: float) -> _Judged:
    one, other = deltas(pair.runs), deltas(pair.others)
    usual, wide = compare(one, other), compare(one, other, 1 - (1 - LEVEL) / tries)
    judgement: Judgement = "cannot tell"
    if usual.low is not None and usual.high is not None and wide.low is not None and wide.high is not None:
        judgement = pair.unflattered(rule((usual.low, usual.high), (wide.low, wide.high), size))
    return _Judged(pair, usual, judgement, size)


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
