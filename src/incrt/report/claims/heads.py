"""What the paper claims of the heads: when they grow, that none is pruned, and its guarantees."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from incrt.report import paper
from incrt.report.claims.verdicts import Claim, Verdict, named, no_runs, universal, without_exception
from incrt.report.outcomes import Outcome
from incrt.report.selection import COMPARISON, Runs, distinct
from incrt.report.wording import number


def saturates(runs: Runs) -> Verdict:
    """Of the runs that were trained to their end."""
    claim = Claim(
        "saturation",
        f"K reaches K_max, by step {paper.SATURATED_AT}, in every run.",
        "sections 7.2 and 8.1",
        f"30/30, around step 19000; by its rules at {paper.SATURATED_AT}",
    )
    found = [each for each in runs.grown() if each.failure is None]
    if not found:
        return no_runs(claim, "main")
    late = [each for each in found if each.saturated_at is None or each.saturated_at > paper.SATURATED_AT]
    latest = max((each.saturated_at for each in found if each.saturated_at is not None), default="none")
    ours = f"{len(found) - len(late)}/{len(found)} in time; the last one to reach it: step {latest}"
    return universal(claim, found, late, ours, "Every run does.", runs.given_up(*COMPARISON))


def same_schedule(runs: Runs) -> Verdict:
    """Of the runs of all regimes that were trained to their end."""
    claim = Claim(
        "schedule",
        "In every run of every regime as many heads grow, the last at the same step: the task makes no difference.",
        "section 7.2",
        f"the same in all regimes; by its rules from step {paper.GROWTHS[0]} to {paper.GROWTHS[-1]}",
    )
    found = [each for each in runs.grown() if each.failure is None]
    if not found:
        return no_runs(claim, "main")
    ends = Counter((each.grows, each.last_grow) for each in found)
    (grows, last), count = ends.most_common(1)[0]
    others = [each for each in found if (each.grows, each.last_grow) != (grows, last)]
    ours = f"{count}/{len(found)} with {grows} growths, the last at step {last}"
    return universal(claim, found, others, ours, "All end at the same step.", runs.given_up(*COMPARISON))


def never_prunes(runs: Runs) -> Verdict:
    """Of the studies that the paper has."""
    claim = Claim(
        "no prunes",
        "Pruning never fires: not in the main runs, nor with other caps and cooldowns.",
        "sections 7.2 and 8.3",
        "0 prunes",
    )
    found = distinct([*runs.grown(), *runs.of("k_max", "grace")])
    if not found:
        return no_runs(claim, "main")
    pruning = [each for each in found if each.prunes]
    ours = f"{sum(each.prunes for each in found)} prunes in {len(found)} runs"
    verdict = universal(claim, found, pruning, ours, "No run prunes.", runs.given_up(*COMPARISON, "k_max", "grace"))
    missing = [name for name in ("k_max", "grace") if not runs.of(name)]
    if verdict.judgement == "holds" and missing:
        why = f"No run prunes, but there are none of study {' and '.join(missing)}."
        return replace(verdict, judgement="cannot tell", why=why)
    return verdict


def growth_is_continuous(found: Sequence[Outcome]) -> Verdict:
    """Of all growths that were seen."""
    claim = Claim(
        "growth",
        "The policy does not change at a growth, to the last bit.",
        "section 5.3, proposition on growth and the remark below it",
        "largest jump 0",
    )
    jumps = [(each, each.largest_grow_jump) for each in found if each.grows and each.largest_grow_jump is not None]
    if not jumps:
        return no_runs(claim, "main")
    jumping = [each for each, jump in jumps if jump != 0]
    ours = f"largest jump {max(jump for _, jump in jumps):.3g}"
    return _proved(claim, sum(each.grows for each, _ in jumps), jumping, ours, "No growth moves the policy.")


def prunes_within_bound(found: Sequence[Outcome]) -> Verdict:
    """Of all prunes that were seen."""
    claim = Claim(
        "prune bound",
        "The policy's jump at a prune, in the mean over a batch, stays within its bound.",
        "section 5.3, theorem on policy continuity",
        "proved; no prune was seen",
    )
    parts = [(each, each.largest_prune_jump) for each in found if each.prunes and each.largest_prune_jump is not None]
    if not parts:
        why = "No head was pruned; incrt study run sensitivity has a variant that prunes more easily."
        return Verdict(claim, 0, "no prunes", "cannot tell", why, is_open=True)
    beyond = [each for each, part in parts if not part <= 1]
    ours = f"largest jump {max(part for _, part in parts):.3g} of its bound"
    if worst := [each.worst_prune_jump for each, _ in parts if each.worst_prune_jump is not None]:
        ours += f", of a single context {max(worst):.3g} of it"
    return _proved(claim, sum(each.prunes for each, _ in parts), beyond, ours, "Every jump stays within its bound.")


def jumps_keep_together(found: Sequence[Outcome]) -> Verdict:
    """Of all runs that were concluded."""
    claim = Claim(
        "all jumps",
        "The jumps of all events of a run together stay within their bound.",
        "section 5.3, corollary on no regression, (b)",
        "proved",
    )
    known = [each for each in found if each.cumulative_holds is not None and each.grows + each.prunes]
    if not known:
        return no_runs(claim, "main", sum(each.grows > 0 for each in found))
    beyond = [each for each in known if not each.cumulative_holds]
    ours = f"{len(known) - len(beyond)}/{len(known)} runs; prunes in them: {sum(each.prunes for each in known)}"
    return _proved(claim, len(known), beyond, ours, "In every run they do.")


def _proved(claim: Claim, n: int, exceptions: Sequence[Outcome], ours: str, holds: str) -> Verdict:
    """The verdict on what is proved, and so can only be contradicted: it holds as soon as it was seen once."""
    why = f"Exceptions: {named(exceptions)}." if exceptions else holds
    return Verdict(claim, n, ours, without_exception(len(exceptions), enough=True), why)


def heads_are_alike(runs: Runs) -> Verdict:
    """Of the main runs: what the lemma on the balance of rank and head count assumes."""
    least, most = paper.BETA
    claim = Claim(
        "equidistribution",
        f"At the end the outputs of a run's heads are within a factor of {most} of each other.",
        "appendix A, remark on equidistribution",
        f"β between {least} and {most}, approximately",
    )
    found = [(each, each.beta) for each in runs.grown() if each.beta is not None]
    if not found:
        return no_runs(claim, "main", len(runs.grown()))
    apart = [each for each, beta in found if beta > most]
    betas = [beta for _, beta in found]
    ours = f"{len(found) - len(apart)}/{len(found)}; β from {number(min(betas), 1)} to {number(max(betas), 1)}"
    runs_found = [each for each, _ in found]
    return universal(claim, runs_found, apart, ours, "In every run they are.", runs.given_up(*COMPARISON))


def rank_settles(runs: Runs) -> Verdict:
    """Of the runs whose rank was followed to the end."""
    claim = Claim(
        "rank rests",
        "The effective rank comes to rest in every run, as Proposition 3 assumes: at last it is one and the same.",
        "section 5.3, remark on the scope of Proposition 3",
        "observed to stabilise within 20000 steps, in every run",
    )
    found = [each for each in runs.grown() if each.rank_settled is not None]
    if not found:
        return no_runs(claim, "main", len(runs.grown()))
    moving = [each for each in found if not each.rank_settled]
    ours = f"{len(found) - len(moving)}/{len(found)} runs with one and the same rank at the last quarter of the checks"
    return universal(claim, found, moving, ours, "Every run's does.", runs.given_up(*COMPARISON))


def rests_in_interval(runs: Runs) -> Verdict:
    """Of the main runs."""
    claim = Claim(
        "steady state",
        "If the rank rests, K ends in its steady-state interval, or at the end of the allowed range that is nearer.",
        "section 5.3, Proposition 3",
        "every run, at K_max",
    )
    found = [each for each in runs.grown() if each.inside is not None]
    if not found:
        return no_runs(claim, "main")
    rested = [each for each in found if each.rank_settled]
    outside = [each for each in rested if not each.inside]
    ours = (
        f"the rank rested in {len(rested)} of {len(found)} runs; "
        f"K in the interval of its last ranks in {sum(bool(each.inside) for each in found)}"
    )
    if not rested:
        return Verdict(claim, 0, ours, "cannot tell", "The rank came to rest in no run, which the claim asks for.")
    return universal(claim, rested, outside, ours, "Every run whose rank rested does.", runs.given_up(*COMPARISON))
