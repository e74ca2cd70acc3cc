"""The paper's claims, one by one, and what our runs of one preset say to them. The rules are those of ``verdicts``.

Runs that were to be shorter than the paper's say nothing to what it observed, only to what it proved.
"""

from dataclasses import replace

from incrt.report.claims import heads, performance
from incrt.report.claims.verdicts import Verdict
from incrt.report.outcomes import Material
from incrt.report.selection import distinct, is_full, of_preset


def judge(material: Material, preset: str) -> list[Verdict]:
    """A verdict on every claim."""
    everything = of_preset(material, preset)
    runs = replace(everything, outcomes=tuple(filter(is_full, everything.outcomes)))
    of_any_length = distinct(everything.outcomes)
    return [
        performance.all_succeed(runs),
        *performance.better_than_static(runs),
        performance.static_fails(runs),
        heads.saturates(runs),
        heads.never_prunes(runs),
        performance.smallest_cap(runs),
        performance.best_cooldown(runs),
        heads.growth_is_continuous(of_any_length),
        heads.prunes_within_bound(of_any_length),
        heads.rests_in_interval(runs),
        performance.smallest_spread(runs),
        performance.no_sensitivity(runs),
    ]
