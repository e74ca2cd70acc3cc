"""What the paper proves of the policy's jumps and of K at rest, and what it assumes for that."""

import polars as pl

from incrt.report import paper
from incrt.report.claims.rules import Claim, Verdict, no_runs, proved, universal
from incrt.report.selection import Runs, largest, once, total
from incrt.report.wording import number


def verdicts(runs: Runs) -> list[Verdict]:
    """What is proved is said of all runs, the rest of those of the comparison whose heads grow."""
    every_run, grown = once(runs.rows), runs.grown()
    return [
        _growth_is_continuous(every_run),
        _prunes_within_bound(every_run),
        _jumps_keep_together(every_run),
        _heads_are_alike(runs, grown),
        _rank_settles(runs, grown),
        _rests_in_interval(runs, grown),
    ]


def _growth_is_continuous(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "growth",
        "The policy does not change at a growth, to the last bit.",
        "section 5.3, proposition on growth and the remark below it",
        "largest jump 0",
    )
    jump = pl.col("largest_grow_jump")
    found = runs.filter(pl.col("grows") > 0, jump.is_not_null())
    if not len(found):
        return no_runs(claim, "main")
    ours = f"largest jump {largest(found, 'largest_grow_jump'):.3g}"
    return proved(claim, total(found, "grows"), found.filter(jump != 0), ours, "No growth moves the policy.")


def _prunes_within_bound(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "prune bound",
        "The policy's jump at a prune, in the mean over a batch, stays within its bound.",
        "section 5.3, theorem on policy continuity",
        "proved; no prune was seen",
    )
    jump = pl.col("largest_prune_jump")
    found = runs.filter(pl.col("prunes") > 0, jump.is_not_null())
    if not len(found):
        why = "No head was pruned; incrt study run sensitivity has a variant that prunes more easily."
        return Verdict(claim, 0, "no prunes", "cannot tell", why, is_open=True)
    ours = f"largest jump {largest(found, 'largest_prune_jump'):.3g} of its bound"
    if (worst := largest(found, "worst_prune_jump")) is not None:
        ours += f", of a single context {worst:.3g} of it"
    beyond = found.filter(~(jump <= 1))
    return proved(claim, total(found, "prunes"), beyond, ours, "Every jump stays within its bound.")


def _jumps_keep_together(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "all jumps",
        "The jumps of all events of a run together stay within their bound.",
        "section 5.3, corollary on no regression, (b)",
        "proved",
    )
    holds = pl.col("cumulative_holds")
    found = runs.filter(holds.is_not_null(), pl.col("grows") + pl.col("prunes") > 0)
    if not len(found):
        return no_runs(claim, "main", len(runs.filter(pl.col("grows") > 0)))
    beyond = found.filter(~holds)
    ours = f"{len(found) - len(beyond)}/{len(found)} runs; prunes in them: {total(found, 'prunes')}"
    return proved(claim, len(found), beyond, ours, "In every run they do.")


def _heads_are_alike(runs: Runs, grown: pl.DataFrame) -> Verdict:
    """What the lemma on the balance of rank and head count assumes."""
    least, most = paper.BETA
    claim = Claim(
        "equidistribution",
        f"At the end the outputs of a run's heads are within a factor of {most} of each other.",
        "appendix A, remark on equidistribution",
        f"β between {least} and {most}, approximately",
    )
    found = grown.filter(pl.col("beta").is_not_null())
    apart = found.filter(pl.col("beta") > most)
    low, high = (number(end, 1) for end in found.select(pl.min("beta"), high=pl.max("beta")).row(0))
    ours = f"{len(found) - len(apart)}/{len(found)}; β from {low} to {high}"
    return universal(claim, runs, found, apart, ours, "In every run they are.", silent=len(grown))


def _rank_settles(runs: Runs, grown: pl.DataFrame) -> Verdict:
    claim = Claim(
        "rank rests",
        "The effective rank comes to rest in every run, as Proposition 3 assumes: at last it is one and the same.",
        "section 5.3, remark on the scope of Proposition 3",
        "observed to stabilise within 20000 steps, in every run",
    )
    found = grown.filter(pl.col("rank_settled").is_not_null())
    moving = found.filter(~pl.col("rank_settled"))
    ours = f"{len(found) - len(moving)}/{len(found)} runs with one and the same rank at the last quarter of the checks"
    return universal(claim, runs, found, moving, ours, "Every run's does.", silent=len(grown))


def _rests_in_interval(runs: Runs, grown: pl.DataFrame) -> Verdict:
    claim = Claim(
        "steady state",
        "If the rank rests, K ends in its steady-state interval, or at the end of the allowed range that is nearer.",
        "section 5.3, Proposition 3",
        "every run, at K_max",
    )
    found = grown.filter(pl.col("inside").is_not_null())
    rested = found.filter(pl.col("rank_settled"))
    ours = (
        f"the rank rested in {len(rested)} of {len(found)} runs; "
        f"K in the interval of its last ranks in {total(found, 'inside')}"
    )
    if len(found) and not len(rested):
        return Verdict(claim, 0, ours, "cannot tell", "The rank came to rest in no run, which the claim asks for.")
    outside = rested.filter(~pl.col("inside"))
    return universal(claim, runs, rested, outside, ours, "Every run whose rank rested does.")
