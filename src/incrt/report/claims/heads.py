"""What the paper claims of the heads' schedule: when they grow, and that none is pruned."""

from dataclasses import replace

import polars as pl

from incrt.report import paper
from incrt.report.claims.rules import Claim, Verdict, universal
from incrt.report.selection import Runs, largest, once, total


def verdicts(runs: Runs) -> list[Verdict]:
    """Of the runs whose heads grow; of the schedule, those that were trained to their end."""
    return [_saturates(runs), _same_schedule(runs), _never_prunes(runs)]


def _saturates(runs: Runs) -> Verdict:
    claim = Claim(
        "saturation",
        f"K reaches K_max, by step {paper.SATURATED_AT}, in every run.",
        "sections 7.2 and 8.1",
        f"30/30, around step 19000; by its rules at {paper.SATURATED_AT}",
    )
    found = runs.grown().filter(pl.col("failure").is_null())
    late = found.filter(~(pl.col("saturated_at") <= paper.SATURATED_AT).fill_null(value=False))
    latest = largest(found, "saturated_at")
    in_time, last = len(found) - len(late), "none" if latest is None else latest
    ours = f"{in_time}/{len(found)} in time; the last one to reach it: step {last}"
    return universal(claim, runs, found, late, ours, "Every run does.")


def _same_schedule(runs: Runs) -> Verdict:
    claim = Claim(
        "schedule",
        "In every run of every regime as many heads grow, the last at the same step: the task makes no difference.",
        "section 7.2",
        f"the same in all regimes; by its rules from step {paper.GROWTHS[0]} to {paper.GROWTHS[-1]}",
    )
    found = runs.grown().filter(pl.col("failure").is_null())
    ends = found.group_by("grows", "last_grow", maintain_order=True).len()
    ends = ends.sort("len", descending=True, maintain_order=True).head(1)
    others = found.join(ends, on=("grows", "last_grow"), how="anti", nulls_equal=True, maintain_order="left")
    grows, last, count = ends.row(0) if len(ends) else (0, None, 0)
    ours = f"{count}/{len(found)} with {grows} growths, the last at step {last}"
    return universal(claim, runs, found, others, ours, "All end at the same step.")


def _never_prunes(runs: Runs) -> Verdict:
    swept = ("k_max", "grace")
    claim = Claim(
        "no prunes",
        "Pruning never fires: not in the main runs, nor with other caps and cooldowns.",
        "sections 7.2 and 8.3",
        "0 prunes",
    )
    found = once(pl.concat([runs.grown(), runs.of(*swept)]))
    ours = f"{total(found, 'prunes')} prunes in {len(found)} runs"
    verdict = universal(claim, runs, found, found.filter(pl.col("prunes") > 0), ours, "No run prunes.", *swept)
    missing = [name for name in swept if not len(runs.of(name))]
    if verdict.judgement == "holds" and missing:
        why = f"No run prunes, but there are none of study {' and '.join(missing)}."
        return replace(verdict, judgement="cannot tell", why=why)
    return verdict
