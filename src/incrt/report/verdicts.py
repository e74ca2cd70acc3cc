"""The rules by which a claim is judged. Delta% counts down: the lower, the better.

Said of every run or event
    One exception refutes it. Without one it holds if each of the paper's regimes has at least as many runs as the paper
    had; what is proved, and so can only be contradicted, holds as soon as it was seen once.
Better than
    It holds if the whole 95 % Welch interval of the difference lies below zero. It does not hold if the interval lies
    wholly above the paper's difference: it then is on the other side of zero, or contains zero and excludes the size
    that the paper reports. Otherwise the runs cannot tell.
A rate
    It does not hold if the Wilson interval lies below the paper's rate; else it holds if the interval's lower end is
    above 5 %.
No influence
    It holds if the 95 % interval lies within 5 points to either side of zero. It does not hold if the interval excludes
    zero and the difference is beyond 5 points.
Smaller spread
    It holds if the standard deviation is the smaller one and Brown-Forsythe's test says p < 0.05; it does not hold if
    it is the larger one with such a p.
Of several differences or spreads
    All must hold, which needs no correction; one that does not hold refutes the whole. So that chance does not refute
    where many are tried, refuting asks for 1 - 0.05/m in place of 95 %, and p < 0.05/m, with m tries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from incrt.report import paper
from incrt.report.outcomes import Outcome
from incrt.report.statistics import LEVEL, Comparison, Rate, compare, spread_p, summarise

Judgement = Literal["holds", "does not hold", "cannot tell"]

SIZEABLE = 0.05
"""A rate above this is one."""
MARGIN = 5.0
"""Differences of Delta% below this many points are no influence."""


@dataclass(frozen=True)
class Claim:
    """What the paper says."""

    name: str
    sentence: str
    where: str
    paper: str
    """Its figure."""


@dataclass(frozen=True)
class Verdict:
    """What our runs say to a claim."""

    claim: Claim
    n: int
    """Runs, or events, that it rests on."""
    ours: str
    """Our figure, with its interval."""
    judgement: Judgement
    why: str


@dataclass(frozen=True)
class Pair:
    """A sample that is said to be better than another, or no different; and the difference that the paper has."""

    label: str
    sample: Sequence[float]
    other: Sequence[float]
    printed: float = 0.0


@dataclass(frozen=True)
class Judged:
    """What came of one of several comparisons."""

    label: str
    comparison: Comparison
    judgement: Judgement


def all_of(judgements: Iterable[Judgement]) -> Judgement:
    """One that does not hold refutes all; one that cannot be told leaves the whole open."""
    found = set(judgements)
    if "does not hold" in found:
        return "does not hold"
    return "holds" if found == {"holds"} else "cannot tell"


def without_exception(exceptions: int, *, enough: bool) -> Judgement:
    """Of something said of every run."""
    if exceptions:
        return "does not hold"
    return "holds" if enough else "cannot tell"


def as_many_as_the_paper(outcomes: Sequence[Outcome]) -> bool:
    """Whether there are as many runs in each of the paper's regimes."""
    counts = [sum(each.tau_z == tau_z for each in outcomes) for tau_z in paper.REGIMES]
    return min(counts) >= paper.SEEDS_A_REGIME


def sizeable(rate: Rate, printed: float) -> Judgement:
    """Of a rate that is said to be the paper's."""
    if rate.low is None or rate.high is None:
        return "cannot tell"
    if rate.high < printed:
        return "does not hold"
    return "holds" if rate.low > SIZEABLE else "cannot tell"


def better(pairs: Sequence[Pair]) -> list[Judged]:
    """Each sample against its other."""
    return [_judged(pair, len(pairs), _is_better) for pair in pairs]


def no_influence(pairs: Sequence[Pair]) -> list[Judged]:
    """Each sample against its other."""
    return [_judged(pair, len(pairs), _is_the_same) for pair in pairs]


def _judged(pair: Pair, tries: int, rule: "Rule") -> Judged:
    usual = compare(pair.sample, pair.other)
    wide = compare(pair.sample, pair.other, 1 - (1 - LEVEL) / tries)
    return Judged(pair.label, usual, rule(usual, wide, pair.printed))
