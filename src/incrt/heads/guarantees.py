"""The paper's guarantees on whole runs: where K(t) comes to rest, and how far all events together moved the policy."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrt.config import HeadsConfig
from incrt.config.rules import NON_NEGATIVE
from incrt.heads.certificates import Certificate, PruneCertificate
from incrt.heads.triggers import EarnedTrigger, PaperTrigger, Trigger
from incrt.storage.json import finite


def steady_state_interval(config: HeadsConfig, rank: float, beta: float = 1.0) -> tuple[int, int]:
    """Where K rests if the rank stays: eq. (28), the upper end widened by beta - 1 as the paper's last remark has it.

    The lower end is the least K that does not ask for growth. A rank that is no integer may leave no integer between
    the ends; K then rests at the lower one.
    """
    rule, low = PaperTrigger(config), max(math.ceil(rank / (1 + config.eps_grow)) - 1, 0)
    while rule.asks_for_growth(rank, low):
        low += 1
    return low, max(low, math.floor(rank * (1 + config.eps_prune) + beta - 1))


def allowed_part(interval: tuple[int, int], k_min: int, k_max: int) -> tuple[int, int]:
    """The part of the interval inside {k_min ... k_max}; where there is none, the nearer end of the range."""
    low, high = interval
    if low > k_max:
        return k_max, k_max
    if high < k_min:
        return k_min, k_min
    return max(low, k_min), min(high, k_max)


def convergence_steps(config: HeadsConfig, k_init: int, k_star: int) -> int:
    """The appendix's bound on the steps until K rests, counted from when the rank rests."""
    return max(config.delta_grow, config.delta_prune) * abs(k_init - k_star) * config.grace


def equidistribution(shares: Sequence[float], mask: Sequence[bool]) -> float:
    """beta of eq. (31): the largest share of an active head over the smallest."""
    if len(shares) != len(mask):
        raise ValueError(f"shares must have {len(mask)} entries, one a head; got {len(shares)}")
    active = [NON_NEGATIVE("shares", share) for share, on in zip(shares, mask, strict=True) if on]
    if not active:
        raise ValueError("mask must have an active head")
    return max(active) / min(active) if min(active) > 0 else math.inf


@dataclass(frozen=True)
class Conclusion:
    """What a finished run says about Proposition 3 and the corollary.

    Both speak of the paper's rule; Proposition 3' and its corollary of trigger ``earned`` (docs/paper.md). What is not
    promised under the trigger of the run is None, and so are the verdicts on it.
    """

    k: int
    rank_low: float | None
    rank_high: float | None
    """Range of the rank over the last quarter of the measured checks; None where another trigger measured none."""
    beta: float
    interval: tuple[int, int] | None
    """Eq. (28) for those ranks, with beta = 1."""
    interval_beta: tuple[int, int] | None
    """The same, widened by beta - 1; up to K_max at least where a head puts out nothing and beta is infinite."""
    expected: tuple[int, int] | None
    """``interval`` within K_min ... K_max, or the nearer end of that range."""
    last_event: int
    """Step of the last event, 0 if there was none."""
    time_limit: int | None
    """The appendix's bound on that step, for a rank that rests from the start."""
    grows: int
    prunes: int
    cumulative_jump: float
    cumulative_bound: float | None
    """L eps K_max sigma_max N_p, eq. (25); of trigger earned max_jump N_p."""
    prune_limit: int | None
    """K_max - K_min + N_g; of trigger earned K_init - K_min + N_g."""
    certificates_held: int
    growth_limit: int | None = None
    """Of trigger earned: K_max - K_init, and the growths for which doubling waits leave time."""

    @property
    def rank_settled(self) -> bool | None:
        """The hypothesis of Proposition 3, eq. (27), as far as a finite run can show it."""
        return None if self.rank_low is None else self.rank_low == self.rank_high

    @property
    def inside(self) -> bool | None:
        """Whether K ended where the proposition says."""
        return None if self.expected is None else self.expected[0] <= self.k <= self.expected[1]

    @property
    def in_time(self) -> bool | None:
        """Whether K rested as early as the appendix says."""
        return None if self.time_limit is None else self.last_event <= self.time_limit

    @property
    def cumulative_holds(self) -> bool | None:
        """Whether all jumps together keep to the corollary's bound."""
        if self.cumulative_bound is None or self.prune_limit is None:
            return None
        return self.cumulative_jump <= self.cumulative_bound and self.prunes <= self.prune_limit

    @property
    def growth_holds(self) -> bool | None:
        """Whether there were no more growths than that."""
        return None if self.growth_limit is None else self.grows <= self.growth_limit

    @property
    def all_hold(self) -> bool:
        """Whether every event's certificate held."""
        return self.certificates_held == self.grows + self.prunes

    def to_json(self) -> dict[str, Any]:
        """The conclusion as JSON can hold it, verdicts included; null stands for a number that is not finite."""
        verdicts = ("rank_settled", "inside", "in_time", "cumulative_holds", "growth_holds", "all_hold")
        return dict(finite({**dataclasses.asdict(self), **{name: getattr(self, name) for name in verdicts}}))


def conclude(
    trigger: Trigger,
    mask: Sequence[bool],
    ranks: Sequence[float],
    shares: Sequence[float],
    certificates: Sequence[Certificate],
) -> Conclusion:
    """Sum up a run.

    :param trigger: what decided in it
    :param mask: which heads were active at the end
    :param ranks: of all checks at which the rank was measured, in order; the last quarter of them, three at least,
        decides whether it has settled
    :param shares: of the heads that were active at the end
    :param certificates: of all events
    """
    if type(trigger) is PaperTrigger and not ranks:
        raise ValueError("no rank was measured: the run ended before its first check")
    tail = [NON_NEGATIVE("ranks", rank) for rank in ranks][-max(3, len(ranks) // 4) :]
    prunes = sum(isinstance(each, PruneCertificate) for each in certificates)
    found = Conclusion(
        k=sum(mask),
        rank_low=min(tail, default=None),
        rank_high=max(tail, default=None),
        beta=equidistribution(shares, mask),
        interval=None,
        interval_beta=None,
        expected=None,
        last_event=max((each.step for each in certificates), default=0),
        time_limit=None,
        grows=len(certificates) - prunes,
        prunes=prunes,
        cumulative_jump=sum(each.jump for each in certificates),
        cumulative_bound=None,
        prune_limit=None,
        certificates_held=sum(each.holds for each in certificates),
    )
    of_earned = all(each.limit is not None for each in certificates if isinstance(each, PruneCertificate))
    if type(trigger) is EarnedTrigger and of_earned:
        return dataclasses.replace(found, **_promised_by_earned(trigger.config, found, len(mask)))
    by_another = any(isinstance(each, PruneCertificate) and each.threshold is None for each in certificates)
    if type(trigger) is not PaperTrigger or by_another:  # of other rules the paper promises nothing
        return found
    return dataclasses.replace(found, **_promised(trigger.config, found, len(mask), certificates))


def growth_limit(config: HeadsConfig, k_init: int, k_max: int, step: int) -> int:
    """The growths of trigger earned up to a step, Proposition 3': K_max - K_init before the first prune at the most.

    Of those after it the n-th waits 2^(n - 1) times the cooldown, so n of them take (2^n - 1) cooldowns.
    """
    return k_max - k_init + math.floor(math.log2(1 + step / config.grace))


def _promised_by_earned(config: HeadsConfig, found: Conclusion, k_max: int) -> dict[str, Any]:
    """What Proposition 3' says of a run, whatever its signals were."""
    k_init = found.k - found.grows + found.prunes
    return {
        "cumulative_bound": config.max_jump * found.prunes,
        "prune_limit": k_init - config.k_min + found.grows,
        "growth_limit": growth_limit(config, k_init, k_max, found.last_event),
    }


def _promised(
    config: HeadsConfig, found: Conclusion, k_max: int, certificates: Sequence[Certificate]
) -> dict[str, Any]:
    """What the paper says of a run that its own rule decided in."""
    lowest, highest = found.rank_low or 0.0, found.rank_high or 0.0
    (low, _), (_, high) = steady_state_interval(config, lowest), steady_state_interval(config, highest)
    is_open = math.isinf(found.beta)
    high_beta = max(high, k_max) if is_open else steady_state_interval(config, highest, found.beta)[1]
    prunes = [each for each in certificates if isinstance(each, PruneCertificate)]
    lipschitz, threshold, sigma_max = (
        float(np.max([getattr(each, name) for each in prunes], initial=0.0))  # NaN stays NaN
        for name in ("lipschitz_upper", "threshold", "largest_norm")
    )
    return {
        "interval": (low, high),
        "interval_beta": (low, high_beta),
        "expected": allowed_part((low, high), config.k_min, k_max),
        "time_limit": convergence_steps(config, found.k - found.grows + found.prunes, found.k),
        "cumulative_bound": lipschitz * threshold * k_max * sigma_max * found.prunes,
        "prune_limit": k_max - config.k_min + found.grows,
    }
