"""Claims and verdicts, and the rules for what is said of every run, and of a rate."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from incrt.report import paper
from incrt.report.selection import COMPARISON, Runs
from incrt.report.statistics import LEVEL, Rate, fisher_p, rate
from incrt.report.wording import rate_text

Judgement = Literal["holds", "does not hold", "cannot tell"]

_SIZEABLE = 0.05
"""A rate above this is one."""


@dataclass(frozen=True)
class Claim:
    """What the paper says."""

    name: str
    sentence: str
    where: str
    paper: str
    """Its number."""


@dataclass(frozen=True)
class Verdict:
    """What our runs say to a claim."""

    claim: Claim
    n: int
    """Runs, or events, that it rests on."""
    ours: str
    """Our number, with its interval."""
    judgement: Judgement
    why: str
    is_open: bool = False
    """Whether no run here speaks to it."""


def all_of(judgements: Iterable[Judgement]) -> Judgement:
    """One that does not hold refutes all; one that cannot be told leaves the whole open."""
    found = set(judgements)
    if "does not hold" in found:
        return "does not hold"
    return "holds" if found == {"holds"} else "cannot tell"


def said_of_every(
    claim: Claim,
    runs: Runs,
    found: pl.DataFrame,
    exception: pl.Expr,
    ours: str,
    holds: str,
    *more: str,
    silent: int = 0,
) -> Verdict:
    """The verdict on something said of every run of the comparison, and of ``more`` studies.

    ``ours`` may name {rate}, {held} and {n}; ``holds`` says why if there is no exception; of ``silent`` runs the
    version that trained them kept nothing.
    """
    if not len(found):
        return no_runs(claim, "main", silent)
    exceptions, n = found.filter(exception), len(found)
    held = n - len(exceptions)
    ours = ours.format(rate=rate_text(rate(held, n)), held=held, n=n)
    if len(exceptions):
        return Verdict(claim, n, ours, "does not hold", f"Exceptions: {_named(exceptions)}.")
    enough = min(len(found.filter(tau_z=tau_z)) for tau_z in paper.REGIMES) >= paper.SEEDS_A_REGIME
    given_up = runs.given_up(*COMPARISON, *more)
    few = "" if enough else f" But a regime of the paper's has fewer than {paper.SEEDS_A_REGIME} runs."
    lost = f" But {given_up} more could not be trained, evaluated or read." if given_up else ""
    return Verdict(claim, n, ours, "holds" if enough and not given_up else "cannot tell", f"{holds}{few}{lost}")


def proved(claim: Claim, n: int, exceptions: pl.DataFrame, ours: str, holds: str) -> Verdict:
    """The verdict on what is proved, and so can only be contradicted: it holds as soon as it was seen once."""
    if len(exceptions):
        return Verdict(claim, n, ours, "does not hold", f"Exceptions: {_named(exceptions)}.")
    return Verdict(claim, n, ours, "holds", holds)


def no_runs(claim: Claim, study: str, silent: int = 0) -> Verdict:
    """The verdict where there is nothing to judge by; ``silent`` runs are there, from before this was kept of a run."""
    why = f"There are no such runs; incrt study run {study} trains them."
    if silent:
        again = f"incrt study run {study} --out DIR, a new folder, trains them again"
        why = f"Of the {silent} runs that are there this was not kept; {again}."
    return Verdict(claim, 0, "no runs", "cannot tell", why, is_open=True)


def _named(rows: pl.DataFrame) -> str:
    """The first few runs by name, and how many more there are."""
    names = rows.head(3).select("variant", "tau_z", "seed").iter_rows()
    first = ", ".join(f"{variant} τ_z {tau_z:g} seed {seed}" for variant, tau_z, seed in names)
    return first if len(rows) <= 3 else f"{first} and {len(rows) - 3} more"


def sizeable(found: Rate, printed: Rate) -> Judgement:
    """Of a rate that is said to be the paper's."""
    if found.low is None or found.value is None or printed.value is None:
        return "cannot tell"
    if found.value < printed.value and fisher_p(found, printed) < 1 - LEVEL:
        return "does not hold"
    return "holds" if found.low > _SIZEABLE else "cannot tell"
