"""What the paper claims of the heads: when they grow, that none is pruned, what it proves of them, and assumes."""

import polars as pl

from incrt.report import paper
from incrt.report.claims.rules import Verdict, claim, proved, said_of_every
from incrt.report.selection import Runs, largest, once, total
from incrt.report.wording import number


def schedule(runs: Runs) -> list[Verdict]:
    """Of the runs whose heads grow and that were trained to their end; of pruning, of all and of the sweeps'."""
    found = runs.grown().filter(pl.col("failure").is_null())
    late = pl.col("saturated_at").is_null() | (pl.col("saturated_at") > paper.SATURATED_AT)
    in_time = f"{{held}}/{{n}} in time; the last one to reach it: step {largest(found, 'saturated_at') or 'none'}"
    ends = found.group_by("grows", "last_grow", maintain_order=True).len().sort("len", descending=True)
    grows, last, _ = ends.row(0) if len(ends) else (0, None, 0)
    other_end = (pl.col("grows") != grows) | pl.col("last_grow").ne_missing(pl.lit(last))
    alike = f"{{held}}/{{n}} with {grows} growths, the last at step {last}"
    swept = ("k_max", "grace")
    any_end = once(pl.concat([runs.grown(), runs.of(*swept)]))
    pruned = f"{total(any_end, 'prunes')} prunes in {{n}} runs"
    return [
        said_of_every(claim("saturation"), found, late, in_time, "Every run does.", runs),
        said_of_every(claim("schedule"), found, other_end, alike, "All end at the same step.", runs),
        said_of_every(claim("no-prunes"), any_end, pl.col("prunes") > 0, pruned, "No run prunes.", runs, *swept),
    ]


def guarantees(runs: Runs) -> list[Verdict]:
    """What is proved is said of all runs, what it assumes of those of the comparison whose heads grow."""
    every_run = once(runs.rows)
    return [_growth(every_run), _prunes(every_run), _all_jumps(every_run), *_assumptions(runs), _at_rest(runs)]


def _growth(runs: pl.DataFrame) -> Verdict:
    found = runs.filter(pl.col("grows") > 0).drop_nulls("largest_grow_jump")
    ours = f"largest jump {largest(found, 'largest_grow_jump') or 0:.3g}"
    jumps = pl.col("largest_grow_jump") != 0
    return proved(claim("growth"), found, jumps, ours, "No growth moves the policy.", events="grows")


def _prunes(runs: pl.DataFrame) -> Verdict:
    found = runs.filter(pl.col("prunes") > 0).drop_nulls("largest_prune_jump")
    if not len(found):
        why = "No head was pruned; incrt study run sensitivity has a variant that prunes more easily."
        return Verdict(claim("prune-bound"), 0, "no prunes", "cannot tell", why, is_open=True)
    ours = f"largest jump {largest(found, 'largest_prune_jump'):.3g} of its bound"
    if (worst := largest(found, "worst_prune_jump")) is not None:
        ours += f", of a single context {worst:.3g} of it"
    beyond, holds = ~(pl.col("largest_prune_jump") <= 1), "Every jump stays within its bound."
    return proved(claim("prune-bound"), found, beyond, ours, holds, events="prunes")


def _all_jumps(runs: pl.DataFrame) -> Verdict:
    changed = runs.filter(pl.col("grows") + pl.col("prunes") > 0)
    found = changed.drop_nulls("cumulative_holds")
    ours = f"{{held}}/{{n}} runs; prunes in them: {total(found, 'prunes')}"
    beyond, silent = ~pl.col("cumulative_holds"), len(changed)
    return proved(claim("all-jumps"), found, beyond, ours, "In every run they do.", silent=silent)


def _assumptions(runs: Runs) -> list[Verdict]:
    """Of the lemma on the balance of rank and head count, and of Proposition 3."""
    grown = runs.grown()
    known, settled, silent = grown.drop_nulls("beta"), grown.drop_nulls("rank_settled"), len(grown)
    low, high = (number(end, 1) for end in known.select(pl.min("beta"), high=pl.max("beta")).row(0))
    apart, alike = pl.col("beta") > paper.BETA, f"{{held}}/{{n}}; β from {low} to {high}"
    moves, rests = (
        ~pl.col("rank_settled"),
        "{held}/{n} runs with one and the same rank at the last quarter of the checks",
    )
    return [
        said_of_every(claim("equidistribution"), known, apart, alike, "In every run they are.", runs, silent=silent),
        said_of_every(claim("rank-rests"), settled, moves, rests, "Every run's does.", runs, silent=silent),
    ]


def _at_rest(runs: Runs) -> Verdict:
    found = runs.grown().drop_nulls("inside")
    rested, inside = found.filter(pl.col("rank_settled")), total(found, "inside")
    ours = f"the rank rested in {len(rested)} of {len(found)} runs; K in the interval of its last ranks in {inside}"
    if len(found) and not len(rested):
        why = "The rank came to rest in no run, which the claim asks for."
        return Verdict(claim("steady-state"), 0, ours, "cannot tell", why)
    outside, holds = ~pl.col("inside"), "Every run whose rank rested does."
    return said_of_every(claim("steady-state"), rested, outside, ours, holds, runs)
