"""The paper's claims, one by one, and what our runs of one preset say to them. The rules are those of ``verdicts``.

Runs that were to be shorter than the paper's say nothing to what it observed, only to what it proved.
"""

from dataclasses import replace

from incrt.report import head_claims, performance_claims
from incrt.report.outcomes import Material
from incrt.report.selection import distinct, is_full, of_preset
from incrt.report.verdicts import Verdict


def judge(material: Material, preset: str) -> list[Verdict]:
    """A verdict on every claim."""
    everything = of_preset(material, preset)
    runs = replace(everything, outcomes=tuple(filter(is_full, everything.outcomes)))
    of_any_length = distinct(everything.outcomes)
    return [
        performance_claims.all_succeed(runs),
        *performance_claims.better_than_static(runs),
        performance_claims.static_fails(runs),
        head_claims.saturates(runs),
        head_claims.never_prunes(runs),
        performance_claims.smallest_cap(runs),
        performance_claims.best_cooldown(runs),
        head_claims.growth_is_continuous(of_any_length),
        head_claims.prunes_within_bound(of_any_length),
        head_claims.rests_in_interval(runs),
        performance_claims.smallest_spread(runs),
        performance_claims.no_sensitivity(runs),
    ]
