"""The paper's rule (section 5.2 and Figure 1): the rank of the inputs asks for heads, a small share gives one up."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incrt.config import TRIGGERS, HeadsConfig
from incrt.heads.triggers.base import Decision, Signals


@dataclass(frozen=True)
class _Counts:
    """What the paper's rule remembers."""

    prune_counts: tuple[int, ...]
    """kappa_prune: for each head, checks in a row at which it was weak."""
    grow_count: int = 0
    """kappa_grow: checks in a row that asked for a head."""
    last_event: int | None = None
    """Step of the latest event; None before the first, which no cooldown precedes."""


@TRIGGERS.register("paper")
@dataclass(frozen=True)
class PaperTrigger:
    """Grows where the rank exceeds K, prunes where a share stays small, at most one event a check (eqs. 19 and 20).

    Both need confirmation by several checks in a row, and a cooldown follows every event.
    """

    config: HeadsConfig

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """The grow trigger, then the prune trigger. Inside the cooldown nothing is looked at and nothing counted."""
        config, mask, step = self.config, signals.mask, signals.step
        if not self.measures(step, state):
            return Decision("noop", f"cooldown: {step - state['last_event']:g} of {config.grace}"), state
        rank, shares = signals.rank, signals.shares
        if rank is None or shares is None:
            raise ValueError("rank and shares must be measured at a check outside the cooldown")
        counts = self._count(_counts(state, mask), signals.k, mask, rank, shares)
        if counts.grow_count >= config.delta_grow:
            reason = f"{self._grow_words(rank, signals.k)}, confirmation {counts.grow_count} of {config.delta_grow}"
            after = dataclasses.replace(counts, grow_count=0, last_event=step)
            return Decision("grow", reason, mask.index(False)), dataclasses.asdict(after)
        confirmed = [i for i, count in enumerate(counts.prune_counts) if count >= config.delta_prune]
        if confirmed and signals.may_prune:
            head = min(confirmed, key=lambda i: shares[i])
            reason = f"{self._prune_words(shares, signals.k, head)} for {counts.prune_counts[head]} checks"
            left = tuple(0 if i == head else count for i, count in enumerate(counts.prune_counts))
            after = dataclasses.replace(counts, prune_counts=left, last_event=step)
            return Decision("prune", reason, head), dataclasses.asdict(after)
        return Decision("noop", self._why_not(counts, signals.k, rank, shares)), dataclasses.asdict(counts)

    def measures(self, step: int, state: Any) -> bool:
        """Whether no cooldown runs. A check in it neither measures nor counts, as Figure 1 has it."""
        last_event = None if state is None else state["last_event"]
        return last_event is None or step - last_event >= self.config.grace

    def can_act(self, step: int, mask: Sequence[bool], state: Any) -> bool:
        """Whether this check can be the last confirmation that an event needs."""
        config, counts = self.config, _counts(state, mask)
        grows = not all(mask) and counts.grow_count + 1 >= config.delta_grow
        prunes = sum(mask) > config.k_min and max(counts.prune_counts) + 1 >= config.delta_prune
        return self.measures(step, state) and (grows or prunes)

    def share_threshold(self, k: int) -> float:
        """The share below which one of k active heads is weak."""
        return self.config.eps_prune if self.config.share == "absolute" else self.config.eps_prune / k

    def asks_for_growth(self, rank: float, k: int) -> bool:
        """The rank's part of eq. (19)."""
        return rank > k * (1 + self.config.eps_grow)

    def _count(self, counts: _Counts, k: int, mask: Sequence[bool], rank: float, shares: Sequence[float]) -> _Counts:
        """Both counters go on where their condition holds and start again where it does not."""
        asks = self.asks_for_growth(rank, k) and k < len(mask)
        active = [i for i, on in enumerate(mask) if on]
        strongest = max(active, key=lambda i: shares[i])
        threshold = self.share_threshold(k)

        def is_weak(i: int) -> bool:
            return k > self.config.k_min and i in active and i != strongest and shares[i] < threshold

        return dataclasses.replace(
            counts,
            grow_count=counts.grow_count + 1 if asks else 0,
            prune_counts=tuple(count + 1 if is_weak(i) else 0 for i, count in enumerate(counts.prune_counts)),
        )

    def _why_not(self, counts: _Counts, k: int, rank: float, shares: Sequence[float]) -> str:
        config = self.config
        if counts.grow_count:
            words = f"{self._grow_words(rank, k)}, confirmation {counts.grow_count} of {config.delta_grow}"
        elif self.asks_for_growth(rank, k):
            words = f"{self._grow_words(rank, k)}, but all {k} heads are active"
        else:
            words = f"rank {rank:g} <= {1 + config.eps_grow:g}·{k}"
        weakest = max(range(len(shares)), key=lambda i: (counts.prune_counts[i], -shares[i]))
        if count := counts.prune_counts[weakest]:
            words += f"; {self._prune_words(shares, k, weakest)}, confirmation {count} of {config.delta_prune}"
        return words

    def _grow_words(self, rank: float, k: int) -> str:
        return f"rank {rank:g} > {1 + self.config.eps_grow:g}·{k}"

    def _prune_words(self, shares: Sequence[float], k: int, head: int) -> str:
        eps = f"{self.config.eps_prune:g}"
        return f"share {shares[head]:.2g} of head {head} < {eps if self.config.share == 'absolute' else f'{eps}/{k}'}"


def _counts(state: Any, mask: Sequence[bool]) -> _Counts:
    return _Counts((0,) * len(mask)) if state is None else _Counts(**state)
