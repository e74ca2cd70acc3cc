"""Claims and verdicts, and the rules for what is said of every run, and of a rate."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

import polars as pl

from incrt.report import paper
from incrt.report.selection import COMPARISON, Runs, total
from incrt.report.statistics import LEVEL, Rate, fisher_p, rate
from incrt.report.wording import rate_text

Judgement = Literal["holds", "does not hold", "cannot tell"]

_CLAIMS = tomllib.loads((files("incrt.report.claims") / "claims.toml").read_text(encoding="utf-8"))
_SIZEABLE = 0.05
"""A rate above this is one."""


@dataclass(frozen=True)
class Claim:
    """What the paper says."""

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


def claim(name: str, **about: object) -> Claim:
    """A claim of claims.toml, and what this one of its kind is about."""
    words = {part: text.format(**about) for part, text in _CLAIMS[name].items()}
    if about.get("heads", paper.STATIC) != paper.STATIC:  # the paper need not have tried as many
        words["where"] += ", of another number of heads"
    return Claim(**words)


def all_of(judgements: Iterable[Judgement]) -> Judgement:
    """One that does not hold refutes all; one that cannot be told leaves the whole open."""
    found = set(judgements)
    if "does not hold" in found:
        return "does not hold"
    return "holds" if found == {"holds"} else "cannot tell"


def no_runs(said: Claim, study: str, silent: int = 0) -> Verdict:
    """The verdict where there is nothing to judge by; ``silent`` runs are there, from before this was kept of a run."""
    why = f"There are no such runs; incrt study run {study} trains them."
    if silent:
        again = f"incrt study run {study} --out DIR, a new folder, trains them again"
        why = f"Of the {silent} runs that are there this was not kept; {again}."
    return Verdict(said, 0, "no runs", "cannot tell", why, is_open=True)


def proved(
    said: Claim, found: pl.DataFrame, exception: pl.Expr, ours: str, holds: str, *, events: str = "", silent: int = 0
) -> Verdict:
    """The verdict on what is proved, and so can only be contradicted: it holds as soon as it was seen once.

    ``ours`` may name {rate}, {held} and {n} of the runs; ``holds`` says why if there is no exception. It rests on the
    runs, or on the ``events`` that this column counts; of ``silent`` runs the version that trained them kept nothing.
    """
    if not len(found):
        return no_runs(said, "main", silent)
    exceptions, n = found.filter(exception), len(found)
    held, rests_on = n - len(exceptions), total(found, events) if events else n
    ours = ours.format(rate=rate_text(rate(held, n)), held=held, n=n)
    if held < n:
        return Verdict(said, rests_on, ours, "does not hold", f"Exceptions: {_named(exceptions)}.")
    return Verdict(said, rests_on, ours, "holds", holds)


def said_of_every(
    said: Claim, found: pl.DataFrame, exception: pl.Expr, ours: str, holds: str, runs: Runs, *more: str, silent: int = 0
) -> Verdict:
    """The verdict on what is said of every run of the comparison, and of ``more`` studies: as many as the paper's."""
    verdict = proved(said, found, exception, ours, holds, silent=silent)
    if verdict.judgement != "holds":
        return verdict
    fewest = min(len(found.filter(tau_z=tau_z)) for tau_z in paper.REGIMES)
    given_up, none = runs.given_up(*COMPARISON, *more), [name for name in more if not len(runs.of(name))]
    buts = {
        f"a regime of the paper's has fewer than {paper.SEEDS_A_REGIME} runs": fewest < paper.SEEDS_A_REGIME,
        f"{given_up} more could not be trained, evaluated or read": given_up > 0,
    }
    if not none and not any(buts.values()):
        return verdict
    why = f"{holds.removesuffix('.')}, but there are none of study {' and '.join(none)}." if none else holds
    why += "".join(f" But {words}." for words, is_so in buts.items() if is_so)
    return replace(verdict, judgement="cannot tell", why=why)


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
