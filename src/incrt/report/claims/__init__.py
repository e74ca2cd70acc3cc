"""The paper's claims, one by one, and what our runs of one preset say to them. The rules are those of ``verdicts``."""

from incrt.report.claims import heads, performance, sweeps
from incrt.report.claims.verdicts import Verdict
from incrt.report.outcomes import Material
from incrt.report.selection import distinct, of_preset


def judge(material: Material, preset: str) -> list[Verdict]:
    """A verdict on every claim."""
    runs = of_preset(material, preset)
    every_run = distinct(runs.outcomes)
    return [
        performance.all_succeed(runs),
        performance.all_beat_the_baseline(runs),
        *performance.better_than_static(runs),
        *performance.match_static(runs),
        *performance.static_fails(runs),
        heads.saturates(runs),
        heads.same_schedule(runs),
        heads.never_prunes(runs),
        sweeps.smallest_cap(runs),
        sweeps.smallest_cap_suffices(runs),
        sweeps.smallest_cap_spreads_least(runs),
        sweeps.every_cap_beats_static(runs),
        sweeps.best_cooldown(runs),
        sweeps.best_cooldown_spreads_least(runs),
        heads.growth_is_continuous(every_run),
        heads.prunes_within_bound(every_run),
        heads.jumps_keep_together(every_run),
        heads.heads_are_alike(runs),
        heads.rank_settles(runs),
        heads.rests_in_interval(runs),
        performance.smallest_spread(runs),
        *performance.less_spread_than_static(runs),
        sweeps.no_sensitivity(runs),
    ]
