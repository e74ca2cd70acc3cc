"""What the paper claims of the heads: when they grow, that none is pruned, what it proves of them, and assumes."""

from dataclasses import replace

import polars as pl

from incrt.report import paper
from incrt.report.claims.rules import Claim, Verdict, no_runs, proved, said_of_every
from incrt.report.selection import Runs, largest, once, total
from incrt.report.wording import number


def schedule(runs: Runs) -> list[Verdict]:
    """Of the runs whose heads grow and that were trained to their end; of pruning, of all."""
    found = runs.grown().filter(pl.col("failure").is_null())
    latest = largest(found, "saturated_at")
    ends = found.group_by("grows", "last_grow", maintain_order=True).len().sort("len", descending=True)
    grows, last, _ = ends.row(0) if len(ends) else (0, None, 0)
    same_end = (pl.col("grows") == grows) & pl.col("last_grow").eq_missing(pl.lit(last))
    return [
        said_of_every(
            Claim(
                "saturation",
                f"K reaches K_max, by step {paper.SATURATED_AT}, in every run.",
                "sections 7.2 and 8.1",
                f"30/30, around step 19000; by its rules at {paper.SATURATED_AT}",
            ),
            runs,
            found,
            pl.col("saturated_at").is_null() | (pl.col("saturated_at") > paper.SATURATED_AT),
            f"{{held}}/{{n}} in time; the last one to reach it: step {'none' if latest is None else latest}",
            "Every run does.",
        ),
        said_of_every(
            Claim(
                "schedule",
                "In every run of every regime as many heads grow, the last at the same step: the task makes no "
                "difference.",
                "section 7.2",
                f"the same in all regimes; by its rules from step {paper.GROWTHS[0]} to {paper.GROWTHS[-1]}",
            ),
            runs,
            found,
            ~same_end,
            f"{{held}}/{{n}} with {grows} growths, the last at step {last}",
            "All end at the same step.",
        ),
        _never_prunes(runs),
    ]


def _never_prunes(runs: Runs) -> Verdict:
    swept = ("k_max", "grace")
    claim = Claim(
        "no prunes",
        "Pruning never fires: not in the main runs, nor with other caps and cooldowns.",
        "sections 7.2 and 8.3",
        "0 prunes",
    )
    found = once(pl.concat([runs.grown(), runs.of(*swept)]))
    ours = f"{total(found, 'prunes')} prunes in {{n}} runs"
    verdict = said_of_every(claim, runs, found, pl.col("prunes") > 0, ours, "No run prunes.", *swept)
    missing = [name for name in swept if not len(runs.of(name))]
    if verdict.judgement == "holds" and missing:
        why = f"No run prunes, but there are none of study {' and '.join(missing)}."
        return replace(verdict, judgement="cannot tell", why=why)
    return verdict


def guarantees(runs: Runs) -> list[Verdict]:
    """What is proved is said of all runs, what it assumes of those of the comparison whose heads grow."""
    every_run = once(runs.rows)
    return [_growth(every_run), _prunes(every_run), _all_jumps(every_run), *_assumptions(runs), _at_rest(runs)]


def _growth(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "growth",
        "The policy does not change at a growth, to the last bit.",
        "section 5.3, proposition on growth and the remark below it",
        "largest jump 0",
    )
    found = runs.filter(pl.col("grows") > 0).drop_nulls("largest_grow_jump")
    if not len(found):
        return no_runs(claim, "main")
    ours, jumping = (
        f"largest jump {largest(found, 'largest_grow_jump'):.3g}",
        found.filter(pl.col("largest_grow_jump") != 0),
    )
    return proved(claim, total(found, "grows"), jumping, ours, "No growth moves the policy.")


def _prunes(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "prune bound",
        "The policy's jump at a prune, in the mean over a batch, stays within its bound.",
        "section 5.3, theorem on policy continuity",
        "proved; no prune was seen",
    )
    found = runs.filter(pl.col("prunes") > 0).drop_nulls("largest_prune_jump")
    if not len(found):
        why = "No head was pruned; incrt study run sensitivity has a variant that prunes more easily."
        return Verdict(claim, 0, "no prunes", "cannot tell", why, is_open=True)
    ours = f"largest jump {largest(found, 'largest_prune_jump'):.3g} of its bound"
    if (worst := largest(found, "worst_prune_jump")) is not None:
        ours += f", of a single context {worst:.3g} of it"
    beyond = found.filter(~(pl.col("largest_prune_jump") <= 1))
    return proved(claim, total(found, "prunes"), beyond, ours, "Every jump stays within its bound.")


def _all_jumps(runs: pl.DataFrame) -> Verdict:
    claim = Claim(
        "all jumps",
        "The jumps of all events of a run together stay within their bound.",
        "section 5.3, corollary on no regression, (b)",
        "proved",
    )
    found = runs.filter(pl.col("grows") + pl.col("prunes") > 0).drop_nulls("cumulative_holds")
    if not len(found):
        return no_runs(claim, "main", len(runs.filter(pl.col("grows") > 0)))
    beyond = found.filter(~pl.col("cumulative_holds"))
    ours = f"{len(found) - len(beyond)}/{len(found)} runs; prunes in them: {total(found, 'prunes')}"
    return proved(claim, len(found), beyond, ours, "In every run they do.")


def _assumptions(runs: Runs) -> list[Verdict]:
    """Of the lemma on the balance of rank and head count, and of Proposition 3."""
    grown, (least, most) = runs.grown(), paper.BETA
    low, high = (number(end, 1) for end in grown.select(pl.min("beta"), high=pl.max("beta")).row(0))
    return [
        said_of_every(
            Claim(
                "equidistribution",
                f"At the end the outputs of a run's heads are within a factor of {most} of each other.",
                "appendix A, remark on equidistribution",
                f"β between {least} and {most}, approximately",
            ),
            runs,
            grown.drop_nulls("beta"),
            pl.col("beta") > most,
            f"{{held}}/{{n}}; β from {low} to {high}",
            "In every run they are.",
            silent=len(grown),
        ),
        said_of_every(
            Claim(
                "rank rests",
                "The effective rank comes to rest in every run, as Proposition 3 assumes: at last it is one and the "
                "same.",
                "section 5.3, remark on the scope of Proposition 3",
                "observed to stabilise within 20000 steps, in every run",
            ),
            runs,
            grown.drop_nulls("rank_settled"),
            ~pl.col("rank_settled"),
            "{held}/{n} runs with one and the same rank at the last quarter of the checks",
            "Every run's does.",
            silent=len(grown),
        ),
    ]


def _at_rest(runs: Runs) -> Verdict:
    claim = Claim(
        "steady state",
        "If the rank rests, K ends in its steady-state interval, or at the end of the allowed range that is nearer.",
        "section 5.3, Proposition 3",
        "every run, at K_max",
    )
    found = runs.grown().drop_nulls("inside")
    rested = found.filter(pl.col("rank_settled"))
    ours = (
        f"the rank rested in {len(rested)} of {len(found)} runs; "
        f"K in the interval of its last ranks in {total(found, 'inside')}"
    )
    if len(found) and not len(rested):
        return Verdict(claim, 0, ours, "cannot tell", "The rank came to rest in no run, which the claim asks for.")
    return said_of_every(claim, runs, rested, ~pl.col("inside"), ours, "Every run whose rank rested does.")
