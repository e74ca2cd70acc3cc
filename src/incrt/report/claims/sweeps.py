"""What the paper claims of its two sweeps, the cap and the cooldown."""

from collections.abc import Sequence

import polars as pl

from incrt.report import paper
from incrt.report.claims.comparing import MATCHES, Pair, all_better, all_match, least_spread
from incrt.report.claims.rules import Claim, Verdict
from incrt.report.selection import Runs
from incrt.report.wording import number

_CAPS = ("K_max 2", "K_max 4", "K_max 8", "K_max 16")
_COOLDOWNS = ("grace 2000", "grace 1000", "grace 5000")
"""The one that the paper finds best comes first."""
_TABLE_2, _TABLE_3 = "section 7.3, Table 2", "section 7.4, Table 3"


def verdicts(runs: Runs) -> list[Verdict]:
    """At the paper's regime for sweeps; what it finds best against each other one."""
    best = "The smallest head-count cap, K_max = 2, is the best one (τ_z = 2 s)."
    narrow = "The spread over the seeds is smallest at K_max = 2 (τ_z = 2 s)."
    cooldown = "The cooldown of 2000 steps is the best one: shorter and longer ones do worse (τ_z = 2 s)."
    wide = "The spread over the seeds is larger with a shorter and with a longer cooldown than with 2000 steps."
    return [
        _best_of(runs, "k_max", _CAPS, best, _TABLE_2),
        _smallest_cap_suffices(runs),
        _spreads_least(runs, "k_max", _CAPS, narrow, _TABLE_2),
        _every_cap_beats_static(runs),
        _best_of(runs, "grace", _COOLDOWNS, cooldown, _TABLE_3),
        _spreads_least(runs, "grace", _COOLDOWNS, wide, _TABLE_3),
    ]


def _best_of(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    means = {name: paper.CELLS[study, name, paper.SWEPT_AT].mean for name in variants}
    best, *others = variants
    printed = f"{number(means[best])} % against " + ", ".join(f"{number(means[name])} ({name})" for name in others)
    claim = Claim(f"best of {study}", sentence, where, f"{printed}; the intervals overlap")
    pairs = [
        Pair(f"against {name}", _at(runs, study, best), _at(runs, study, name), paper.ratio(means[best], means[name]))
        for name in others
    ]
    return all_better(claim, pairs, study)


def _spreads_least(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    stds = {name: number(paper.CELLS[study, name, paper.SWEPT_AT].std) for name in variants}
    best, *others = variants
    printed = f"std {stds[best]} against " + ", ".join(f"{stds[name]} ({name})" for name in others)
    pairs = [Pair(name, _at(runs, study, best), _at(runs, study, name)) for name in others]
    return least_spread(Claim(f"spread of {study}", sentence, where, printed), pairs, study)


def _smallest_cap_suffices(runs: Runs) -> Verdict:
    """What the paper says that its overlapping intervals do tell."""
    claim = Claim(
        "smallest cap suffices",
        f"Room for more than two heads does not help (τ_z = 2 s): with K_max = 2 {MATCHES}.",
        "sections 7.2 and 7.3",
        "better than with every larger cap, in the mean",
    )
    best, *others = _CAPS
    pairs = [Pair(f"against {name}", _at(runs, "k_max", best), _at(runs, "k_max", name)) for name in others]
    return all_match(claim, pairs, "k_max")


def _every_cap_beats_static(runs: Runs) -> Verdict:
    fixed = paper.CELLS["static", "static", paper.SWEPT_AT].mean
    means = {name: paper.CELLS["k_max", name, paper.SWEPT_AT].mean for name in _CAPS}
    claim = Claim(
        "caps against static",
        f"With every cap, heads that grow do better than a fixed number of them ({paper.STATIC}, τ_z = 2 s).",
        _TABLE_2,
        ", ".join(f"{number(mean - fixed, 1)} ({name})" for name, mean in means.items()) + " points",
    )
    others = runs.compared(paper.STATIC, paper.SWEPT_AT)
    pairs = [Pair(name, _at(runs, "k_max", name), others, paper.ratio(means[name], fixed)) for name in _CAPS]
    return all_better(claim, pairs, "k_max" if len(others) else "static")


def _at(runs: Runs, study: str, variant: str) -> pl.DataFrame:
    return runs.everywhere(study, variant, paper.SWEPT_AT)
