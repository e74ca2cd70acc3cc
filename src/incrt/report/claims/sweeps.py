"""What the paper claims of its two sweeps, the cap and the cooldown, and of settings that hardly matter."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from incrt.report import paper
from incrt.report.claims.comparing import Pair, all_better, all_match, least_spread, no_influence
from incrt.report.claims.rules import Verdict, claim
from incrt.report.selection import Runs

_CAPS = ("K_max 2", "K_max 4", "K_max 8", "K_max 16")
_COOLDOWNS = ("grace 2000", "grace 1000", "grace 5000")
"""The one that the paper finds best comes first."""


def verdicts(runs: Runs) -> list[Verdict]:
    """At the paper's regime for sweeps; what it finds best against each other one."""
    caps, cooldowns = _best_and_other(runs, "k_max", _CAPS), _best_and_other(runs, "grace", _COOLDOWNS)
    fixed = runs.compared(paper.STATIC, paper.SWEPT_AT)
    against_fixed = [
        Pair(name, _at(runs, "k_max", name), fixed, paper.ratio(_mean("k_max", name), _mean("static", "static")))
        for name in _CAPS
    ]
    return [
        all_better(claim("best-cap"), _against(caps), "k_max"),
        all_match(claim("smallest-cap-suffices"), _against(caps), "k_max"),
        least_spread(claim("spread-of-caps"), caps, "k_max"),
        all_better(claim("caps-against-static"), against_fixed, "k_max" if len(fixed) else "static"),
        all_better(claim("best-cooldown"), _against(cooldowns), "grace"),
        least_spread(claim("spread-of-cooldowns"), cooldowns, "grace"),
    ]


def other_settings(runs: Runs) -> list[Verdict]:
    """Every variant of study sensitivity against all seeds that there are of the one it is compared with."""
    study = runs.study("sensitivity")
    pairs = [
        Pair(name, runs.everywhere("sensitivity", name, tau_z), runs.everywhere("sensitivity", other, tau_z))
        for tau_z in runs.regimes("sensitivity")
        for name, other in (study.compare.items() if study else ())
    ]
    return [no_influence(claim("other-settings"), pairs, "sensitivity")]


def _best_and_other(runs: Runs, study: str, variants: Sequence[str]) -> list[Pair]:
    best, *others = variants
    ratios = {name: paper.ratio(_mean(study, best), _mean(study, name)) for name in others}
    return [Pair(name, _at(runs, study, best), _at(runs, study, name), ratio) for name, ratio in ratios.items()]


def _against(pairs: Sequence[Pair]) -> list[Pair]:
    """The label says what the best one is compared with."""
    return [replace(pair, label=f"against {pair.label}") for pair in pairs]


def _at(runs: Runs, study: str, variant: str) -> pl.DataFrame:
    return runs.everywhere(study, variant, paper.SWEPT_AT)


def _mean(study: str, variant: str) -> float:
    """The paper's."""
    return paper.CELLS[study, variant, paper.SWEPT_AT].mean
