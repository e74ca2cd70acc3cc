"""The rules by which a claim is judged. Delta% counts down: the lower, the better.

Said of every run or event
    One exception refutes it. Without one it holds if each of the paper's regimes has at least as many runs as the paper
    had and none was given up; what is proved, and so can only be contradicted, holds as soon as it was seen once.
Better than
    It holds if the whole 95 % Welch interval of the difference lies below zero, whatever its size; what is said of it
    names the paper's size where the interval excludes that. It does not hold if the interval lies above zero, or if it
    contains zero and excludes half of what the paper reports. Otherwise the runs cannot tell. What the paper reports is
    taken as the ratio of the two errors: where all errors are small, so is the difference that the same ratio makes.
Match or exceed
    The margin is 5 % of the others' mean error. It holds if the whole 95 % Welch interval is below the margin, and does
    not hold if it is wholly beyond.
A rate
    It does not hold if the rate is below the paper's and Fisher's exact test of the two counts says p < 0.05; else it
    holds if the lower end of the Wilson interval is above 5 %.
No influence
    The margin is the standard deviation over the seeds of what is compared with. It holds if the 95 % interval of the
    difference lies within the margin; it does not hold if the interval excludes zero and the difference is beyond it.
Smaller spread
    It holds if the standard deviation is the smaller one and Brown-Forsythe's test says p < 0.05; it does not hold if
    it is the larger one with such a p.
Where runs diverged
    They are in no mean and no spread. Of a side that lost the larger part of its runs nothing good is believed, of one
    that lost the smaller part nothing bad, and where both lost unequal parts not that they do the same.
Of several differences or spreads
    All must hold, which needs no correction; one that does not hold refutes the whole. So that chance does not refute
    where many are tried, refuting asks for 1 - 0.05/m in place of 95 %, and p < 0.05/m, with m tries.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from incrt.report import paper
from incrt.report.outcomes import Outcome
from incrt.report.selection import deltas, diverged
from incrt.report.statistics import LEVEL, Comparison, Rate, compare, fisher_p, spread_p, summarise

Judgement = Literal["holds", "does not hold", "cannot tell"]
Ends = tuple[float, float]

SIZEABLE = 0.05
"""A rate above this is one."""
MATCHING = 0.05
"""Part of the others' error by which runs that match may be worse."""
MATCHES = f"the error is at most {100 * MATCHING:g} % larger"


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
    is_open: bool = False
    """Whether no run here speaks to it."""


@dataclass(frozen=True)
class Pair:
    """Runs that are said to do better than others, or no differently."""

    label: str
    runs: Sequence[Outcome]
    others: Sequence[Outcome]
    ratio: float = 1.0
    """RMSE of the runs over that of the others, as the paper has it."""

    @property
    def expected(self) -> float:
        """The difference in points that the paper's ratio would make here."""
        return (100 + (summarise(deltas(self.others)).mean or 0.0)) * (self.ratio - 1)


@dataclass(frozen=True)
class Judged:
    """What came of one of several comparisons."""

    label: str
    comparison: Comparison
    judgement: Judgement
    margin: float | None = None
    """Up to which a difference is none, where there is one."""


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


def universal(
    claim: Claim, found: Sequence[Outcome], exceptions: Sequence[Outcome], ours: str, holds: str, given_up: int = 0
) -> Verdict:
    """The verdict on something said of every run; ``holds`` says why if there is no exception."""
    enough = as_many_as_the_paper(found)
    judgement = without_exception(len(exceptions), enough=enough and not given_up)
    few = f" But a regime of the paper's has fewer than {paper.SEEDS_A_REGIME} runs." if not enough else ""
    lost = f" But {given_up} more could not be trained, evaluated or read." if given_up else ""
    why = f"Exceptions: {named(exceptions)}." if exceptions else f"{holds}{few}{lost}"
    return Verdict(claim, len(found), ours, judgement, why)


def no_runs(claim: Claim, study: str, silent: int = 0) -> Verdict:
    """The verdict where there is nothing to judge by; ``silent`` runs are there, from before this was kept of a run."""
    trains = f"incrt study run {study}"
    if silent:
        again = f"{trains} --out DIR, a new folder, trains them again"
        why = f"Of the {silent} runs that are there this was not kept; {again}."
    else:
        why = f"There are no such runs; {trains} trains them."
    return Verdict(claim, 0, "no runs", "cannot tell", why, is_open=True)


def named(outcomes: Sequence[Outcome]) -> str:
    """The first few runs by name, and how many more there are."""
    first = ", ".join(f"{each.variant} τ_z {each.tau_z:g} seed {each.seed}" for each in outcomes[:3])
    return first if len(outcomes) <= 3 else f"{first} and {len(outcomes) - 3} more"


def sizeable(rate: Rate, printed: Rate) -> Judgement:
    """Of a rate that is said to be the paper's."""
    if rate.low is None or rate.value is None or printed.value is None:
        return "cannot tell"
    if rate.value < printed.value and fisher_p(rate, printed) < 1 - LEVEL:
        return "does not hold"
    return "holds" if rate.low > SIZEABLE else "cannot tell"


def better(pairs: Sequence[Pair]) -> list[Judged]:
    """Of each pair, whether the first runs do better."""
    return [_judged(pair, len(pairs), partial(_is_better, expected=pair.expected)) for pair in pairs]


def matching(pairs: Sequence[Pair]) -> list[Judged]:
    """Of each pair, whether the first runs do as well or better."""
    found = []
    for pair in pairs:
        margin = MATCHING * (100 + (summarise(deltas(pair.others)).mean or 0.0))
        found.append(replace(_judged(pair, len(pairs), partial(_matches, margin=margin)), margin=margin))
    return found


def no_influence(pairs: Sequence[Pair]) -> list[Judged]:
    """Of each pair, whether the runs do the same."""
    found = []
    for pair in pairs:
        margin = summarise(deltas(pair.others)).std or 0.0
        judged = _judged(pair, len(pairs), partial(_is_the_same, margin=margin))
        found.append(replace(judged, judgement="cannot tell") if _loses_more(pair) or _loses_less(pair) else judged)
    return found


def less_spread(pair: Pair, tries: int) -> Judgement:
    """Whether the first runs have the smaller spread, as one of several."""
    one, other = deltas(pair.runs), deltas(pair.others)
    p, own_std, other_std = spread_p(one, other), summarise(one).std, summarise(other).std
    if p is None or own_std is None or other_std is None:
        return "cannot tell"
    if own_std < other_std and p < 1 - LEVEL:
        return _of_all(pair, "holds")
    return _of_all(pair, "does not hold" if own_std > other_std and p < (1 - LEVEL) / tries else "cannot tell")


def _judged(pair: Pair, tries: int, rule: Callable[[Ends, Ends], Judgement]) -> Judged:
    one, other = deltas(pair.runs), deltas(pair.others)
    usual, wide = compare(one, other), compare(one, other, 1 - (1 - LEVEL) / tries)
    if usual.low is None or usual.high is None or wide.low is None or wide.high is None:
        return Judged(pair.label, usual, "cannot tell")
    return Judged(pair.label, usual, _of_all(pair, rule((usual.low, usual.high), (wide.low, wide.high))))


def _of_all(pair: Pair, judgement: Judgement) -> Judgement:
    """What is left of runs that diverged must not be taken for all of them, on either side."""
    is_flattered = (judgement == "holds" and _loses_more(pair)) or (judgement == "does not hold" and _loses_less(pair))
    return "cannot tell" if is_flattered else judgement


def _loses_more(pair: Pair) -> bool:
    """Whether a larger part of the first runs diverged."""
    return diverged(pair.runs) * len(pair.others) > diverged(pair.others) * len(pair.runs)


def _loses_less(pair: Pair) -> bool:
    return diverged(pair.runs) * len(pair.others) < diverged(pair.others) * len(pair.runs)


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
