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
from incrt.storage.json import finite


def steady_state_interval(config: HeadsConfig, rank: float, beta: float = 1.0) -> tuple[int, int]:
    """Where K rests if the rank stays: eq. (28), the upper end widened by beta - 1 as the paper's last remark has it.

    The lower end is the least K that does not ask for growth. A rank that is no integer may leave no integer between
    the ends; K then rests at the lower one.
    """
    low = max(math.ceil(rank / (1 + config.eps_grow)) - 1, 0)
    while config.asks_for_growth(rank, low):
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
    """What a finished run says about Proposition 3 and the corollary."""

    k: int
    rank_low: float
    rank_high: float
    """Range of the rank over the last quarter of the measured checks."""
    beta: float
    interval: tuple[int, int]
    """Eq. (28) for those ranks, with beta = 1."""
    interval_beta: tuple[int, int]
    """The same, widened by beta - 1; up to K_max at least where a head puts out nothing and beta is infinite."""
    expected: tuple[int, int]
    """``interval`` within K_min ... K_max, or the nearer end of that range."""
    last_event: int
    """Step of the last event, 0 if there was none."""
    time_limit: int
    """The appendix's bound on that step, for a rank that rests from the start."""
    grows: int
    prunes: int
    cumulative_jump: float
    cumulative_bound: float
    """L eps K_max sigma_max N_p, eq. (25)."""
    prune_limit: int
    """K_max - K_min + N_g."""
    certificates_held: int

    @property
    def rank_settled(self) -> bool:
        """The hypothesis of Proposition 3, eq. (27), as far as a finite run can show it."""
        return self.rank_low == self.rank_high

    @property
    def inside(self) -> bool:
        """Whether K ended where the proposition says."""
        return self.expected[0] <= self.k <= self.expected[1]

    @property
    def in_time(self) -> bool:
        """Whether K rested as early as the appendix says."""
        return self.last_event <= self.time_limit

    @property
    def cumulative_holds(self) -> bool:
        """Whether all jumps together keep to the corollary's bound."""
        return self.cumulative_jump <= self.cumulative_bound and self.prunes <= self.prune_limit

    @property
    def all_hold(self) -> bool:
        """Whether every event's certificate held."""
        return self.certificates_held == self.grows + self.prunes

    def to_json(self) -> dict[str, Any]:
        """The conclusion as JSON can hold it, verdicts included; null stands for a number that is not finite."""
        verdicts = ("rank_settled", "inside", "in_time", "cumulative_holds", "all_hold")
        return dict(finite({**dataclasses.asdict(self), **{name: getattr(self, name) for name in verdicts}}))


def conclude(
    config: HeadsConfig,
    mask: Sequence[bool],
    ranks: Sequence[float],
    shares: Sequence[float],
    certificates: Sequence[Certificate],
) -> Conclusion:
    """Sum up a run.

    :param mask: which heads were active at the end
    :param ranks: of all checks at which the rank was measured, in order; the last quarter of them, three at least,
        decides whether it has settled
    :param shares: of the heads that were active at the end
    :param certificates: of all events
    """
    if not ranks:
        raise ValueError("no rank was measured: the run ended before its first check")
    tail = [NON_NEGATIVE("ranks", rank) for rank in ranks][-max(3, len(ranks) // 4) :]
    beta = equidistribution(shares, mask)
    (low, _), (_, high) = steady_state_interval(config, min(tail)), steady_state_interval(config, max(tail))
    high_beta = max(high, len(mask)) if math.isinf(beta) else steady_state_interval(config, max(tail), beta)[1]
    prunes = [each for each in certificates if isinstance(each, PruneCertificate)]
    grows = len(certificates) - len(prunes)
    lipschitz, threshold, sigma_max = (
        float(np.max([getattr(each, name) for each in prunes], initial=0.0))  # NaN stays NaN
        for name in ("lipschitz_upper", "threshold", "largest_norm")
    )
    k_init = sum(mask) - grows + len(prunes)
    return Conclusion(
        k=sum(mask),
        rank_low=min(tail),
        rank_high=max(tail),
        beta=beta,
        interval=(low, high),
        interval_beta=(low, high_beta),
        expected=allowed_part((low, high), config.k_min, len(mask)),
        last_event=max((each.step for each in certificates), default=0),
        time_limit=convergence_steps(config, k_init, sum(mask)),
        grows=grows,
        prunes=len(prunes),
        cumulative_jump=sum(each.jump for each in certificates),
        cumulative_bound=lipschitz * threshold * len(mask) * sigma_max * len(prunes),
        prune_limit=len(mask) - config.k_min + grows,
        certificates_held=sum(each.holds for each in certificates),
    )
