"""What the paper claims of its sweeps: the cap, the cooldown, and the controller's other settings."""

from collections.abc import Sequence

from incrt.report import paper
from incrt.report.claims.comparing import all_better, all_match, count, labels, least_spread, left_out, undecided
from incrt.report.claims.verdicts import MATCHES, Claim, Pair, Verdict, all_of, no_influence, no_runs
from incrt.report.selection import Runs, deltas
from incrt.report.wording import difference_text, number

_CAPS = ("K_max 2", "K_max 4", "K_max 8", "K_max 16")
_COOLDOWNS = ("grace 2000", "grace 1000", "grace 5000")
"""The one that the paper finds best comes first."""


def smallest_cap(runs: Runs) -> Verdict:
    """Against each larger one."""
    return _best_of(
        runs,
        "k_max",
        _CAPS,
        "The smallest head-count cap, K_max = 2, is the best one (τ_z = 2 s).",
        "section 7.3, Table 2",
    )


def smallest_cap_suffices(runs: Runs) -> Verdict:
    """Against each larger one: what the paper says that its overlapping intervals do tell."""
    claim = Claim(
        "smallest cap suffices",
        f"Room for more than two heads does not help (τ_z = 2 s): with K_max = 2 {MATCHES}.",
        "sections 7.2 and 7.3",
        "better than with every larger cap, in the mean",
    )
    own, *others = [runs.everywhere("k_max", name, paper.SWEPT_AT) for name in _CAPS]
    pairs = [Pair(f"against {name}", own, found) for name, found in zip(_CAPS[1:], others, strict=True)]
    return all_match(claim, pairs, "k_max")


def best_cooldown(runs: Runs) -> Verdict:
    """Against the shorter and the longer one."""
    return _best_of(
        runs,
        "grace",
        _COOLDOWNS,
        "The cooldown of 2000 steps is the best one: shorter and longer ones do worse (τ_z = 2 s).",
        "section 7.4, Table 3",
    )


def smallest_cap_spreads_least(runs: Runs) -> Verdict:
    """Against each larger one."""
    return _spreads_least(
        runs, "k_max", _CAPS, "The spread over the seeds is smallest at K_max = 2 (τ_z = 2 s).", "section 7.3, Table 2"
    )


def every_cap_beats_static(runs: Runs) -> Verdict:
    """Each cap against the paper's number of heads."""
    fixed = paper.CELLS["static", "static", paper.SWEPT_AT].mean
    printed = {name: paper.CELLS["k_max", name, paper.SWEPT_AT].mean for name in _CAPS}
    claim = Claim(
        "caps against static",
        f"With every cap, heads that grow do better than a fixed number of them ({paper.STATIC}, τ_z = 2 s).",
        "section 7.3, Table 2",
        ", ".join(f"{number(mean - fixed, 1)} ({name})" for name, mean in printed.items()) + " points",
    )
    others = runs.compared(paper.STATIC, paper.SWEPT_AT)
    pairs = [
        Pair(name, runs.everywhere("k_max", name, paper.SWEPT_AT), others, paper.ratio(printed[name], fixed))
        for name in _CAPS
    ]
    return all_better(claim, pairs, "k_max" if others else "static")


def best_cooldown_spreads_least(runs: Runs) -> Verdict:
    """Against the shorter and the longer one."""
    return _spreads_least(
        runs,
        "grace",
        _COOLDOWNS,
        "The spread over the seeds is larger with a shorter and with a longer cooldown than with 2000 steps.",
        "section 7.4, Table 3",
    )


def _spreads_least(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    """The first variant against the others, at the paper's regime for sweeps."""
    own, *others = [runs.everywhere(study, name, paper.SWEPT_AT) for name in variants]
    stds = [number(paper.CELLS[study, name, paper.SWEPT_AT].std) for name in variants]
    figures = ", ".join(f"{std} ({name})" for name, std in zip(variants[1:], stds[1:], strict=True))
    claim = Claim(f"spread of {study}", sentence, where, f"std {stds[0]} against {figures}")
    pairs = [Pair(name, own, found) for name, found in zip(variants[1:], others, strict=True)]
    return least_spread(claim, pairs, study)


def _best_of(runs: Runs, study: str, variants: Sequence[str], sentence: str, where: str) -> Verdict:
    """The first variant against the others, at the paper's regime for sweeps."""
    own, *beside = [runs.everywhere(study, name, paper.SWEPT_AT) for name in variants]
    mean, *others = [paper.CELLS[study, name, paper.SWEPT_AT].mean for name in variants]
    figures = ", ".join(f"{number(other)} ({name})" for name, other in zip(variants[1:], others, strict=True))
    claim = Claim(f"best of {study}", sentence, where, f"{number(mean)} % against {figures}; the intervals overlap")
    pairs = [
        Pair(f"against {name}", own, found, paper.ratio(mean, other))
        for name, found, other in zip(variants[1:], beside, others, strict=True)
    ]
    return all_better(claim, pairs, study)


def no_sensitivity(runs: Runs) -> Verdict:
    """Every variant of study sensitivity against all seeds that there are of the one it is compared with."""
    claim = Claim(
        "other settings",
        "The controller's other settings have no influence: less than the seeds have (their standard deviation).",
        "section 7.4",
        "a preliminary null-sensitivity analysis, without figures",
    )
    study = runs.study("sensitivity")
    if study is None:
        return no_runs(claim, "sensitivity")
    pairs = [
        Pair(name, runs.everywhere(study.name, name, tau_z), runs.everywhere(study.name, other, tau_z))
        for tau_z in runs.regimes(study.name)
        for name, other in study.compare.items()
    ]
    known, lost, missing = list[Pair](), list[str](), list[str]()
    for pair in pairs:
        if deltas(pair.runs) and deltas(pair.others):
            known.append(pair)
        else:
            (lost if pair.runs and pair.others else missing).append(pair.label)
    if not known:
        return no_runs(claim, "sensitivity")
    judged, silent = no_influence(known), len(lost) + len(missing)
    judgement = all_of(["cannot tell" if silent else "holds", *(each.judgement for each in judged)])
    largest = max(judged, key=lambda each: abs(each.comparison.difference or 0.0))
    ours = (
        f"{sum(each.judgement == 'holds' for each in judged)} of {len(judged)} within the margin"
        + (f", {silent} without figures" if silent else "")
        + f"; the largest difference: {largest.label}, {difference_text(largest.comparison)} points{left_out(pairs)}"
    )
    reasons = {
        undecided(known): labels(judged, "cannot tell"),
        "No run has figures": ", ".join(lost),
        "Not run": ", ".join(missing),
    }
    why = {
        "holds": "Every interval lies within the margin.",
        "does not hold": f"Beyond the margin, and not by chance: {labels(judged, judgement)}.",
        "cannot tell": " ".join(f"{reason}: {names}." for reason, names in reasons.items() if names),
    }[judgement]
    return Verdict(claim, count(pairs), ours, judgement, why)
