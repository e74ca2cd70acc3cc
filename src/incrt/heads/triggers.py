"""The runtime controller: when a head is grown and when one is pruned (paper, section 5.2 and Figure 1).

A state machine in plain Python. It sees two signals, the effective rank of the recent contexts and the heads' shares of
the output, and decides; :mod:`incrt.heads.growth` acts and :mod:`incrt.heads.certificates` checks.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from incrt.config import TRIGGERS, HeadsConfig
from incrt.config.rules import COUNT, INDEX, NON_NEGATIVE

_ROUNDING = 1e-3
"""How far shares computed in single precision may sum from one."""


@dataclass(frozen=True)
class RuntimeState:
    """All that the controller remembers between two checks."""

    mask: tuple[bool, ...]
    """m: which of the K_max heads are active."""
    last_check: int = 0
    """Step of the latest check."""
    last_event: int | None = None
    """Step of the latest event; None before the first, which no cooldown precedes."""
    grow_count: int = 0
    """kappa_grow: checks in a row that asked for a head."""
    prune_counts: tuple[int, ...] = ()
    """kappa_prune: for each head, checks in a row at which it was weak; none stands for zeros."""

    def __post_init__(self) -> None:
        if not _are(bool, self.mask) or not any(self.mask):
            raise ValueError(f"mask must hold True or False for each head, and one True at least; got {self.mask!r}")
        counts = self.prune_counts or (0,) * len(self.mask)
        if not _are(int, counts) or len(counts) != len(self.mask) or min(counts) < 0:
            raise ValueError(f"prune_counts must be {len(self.mask)} whole numbers >= 0, one a head; got {counts!r}")
        for name in ("last_check", "grow_count") + (() if self.last_event is None else ("last_event",)):
            object.__setattr__(self, name, INDEX(name, getattr(self, name)))
        object.__setattr__(self, "mask", tuple(self.mask))
        object.__setattr__(self, "prune_counts", tuple(counts))

    @property
    def k(self) -> int:
        """K(t): number of active heads, eq. (12)."""
        return sum(self.mask)

    def to_json(self) -> dict[str, Any]:
        """The state as JSON can hold it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, written: Any) -> "RuntimeState":
        """The state that :meth:`to_json` wrote; anything else is refused."""
        fields = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(written, dict) or set(written) != fields:
            raise ValueError(f"a runtime state has the fields {', '.join(sorted(fields))}; got {written!r}")
        return cls(**written)


@dataclass(frozen=True)
class Decision:
    """What a check came to."""

    action: Literal["noop", "grow", "prune"]
    reason: str
    head: int | None = None
    """The head to grow or prune."""


def first_state(config: HeadsConfig, mask: Sequence[bool]) -> RuntimeState:
    """The state before the first check."""
    state = RuntimeState(tuple(mask))
    config.check_start(state.k)
    return state


def is_check(config: HeadsConfig, step: int) -> bool:
    """Whether the controller looks at this environment step."""
    return step > 0 and step % config.check_every == 0


def is_cooling(config: HeadsConfig, state: RuntimeState, step: int) -> bool:
    """Whether the cooldown still runs. A check then neither measures nor counts, as Figure 1 has it."""
    return _since_event(state, step) < config.grace


def _since_event(state: RuntimeState, step: int) -> float:
    return math.inf if state.last_event is None else step - state.last_event


def can_act(config: HeadsConfig, state: RuntimeState) -> bool:
    """Whether the next check outside the cooldown can be an event, whatever its signals are.

    Where it cannot, training need not wait for the signals: they may be measured beside it and counted later.
    """
    grows = state.k < len(state.mask) and state.grow_count + 1 >= config.delta_grow
    prunes = state.k > config.k_min and max(state.prune_counts) + 1 >= config.delta_prune
    return grows or prunes


def check(
    config: HeadsConfig, state: RuntimeState, step: int, rank: float | None, shares: Sequence[float] | None
) -> tuple[Decision, RuntimeState]:
    """One check: the grow trigger, then the prune trigger, at most one event.

    ``shares`` has one entry a head, those of inactive heads being ignored. During the cooldown the signals are not
    looked at and may be None (:func:`is_cooling`).
    """
    step = COUNT("step", step)
    if step <= state.last_check:
        raise ValueError(f"step must be after the latest check at {state.last_check}, got {step}")
    state = dataclasses.replace(state, last_check=step)
    if is_cooling(config, state, step):
        return Decision("noop", f"cooldown: {_since_event(state, step):g} of {config.grace}"), state
    rank, shares = _known_signals(state, rank, shares)
    state = _count(config, state, rank, shares)
    if state.grow_count >= config.delta_grow:
        head = state.mask.index(False)
        reason = f"{_grow_words(config, state, rank)}, confirmation {state.grow_count} of {config.delta_grow}"
        return Decision("grow", reason, head), _after(state, step, head, active=True)
    confirmed = [i for i, count in enumerate(state.prune_counts) if count >= config.delta_prune]
    if confirmed:
        head = min(confirmed, key=lambda i: shares[i])
        reason = f"{_prune_words(config, state, shares, head)} for {state.prune_counts[head]} checks"
        return Decision("prune", reason, head), _after(state, step, head, active=False)
    return Decision("noop", _why_not(config, state, rank, shares)), state


def _count(config: HeadsConfig, state: RuntimeState, rank: float, shares: Sequence[float]) -> RuntimeState:
    """Both counters go on where their condition holds and start again where it does not."""
    asks = config.asks_for_growth(rank, state.k) and state.k < len(state.mask)
    active = [i for i, on in enumerate(state.mask) if on]
    strongest = max(active, key=lambda i: shares[i])
    threshold = config.share_threshold(state.k)

    def is_weak(i: int) -> bool:
        return state.k > config.k_min and i in active and i != strongest and shares[i] < threshold

    return dataclasses.replace(
        state,
        grow_count=state.grow_count + 1 if asks else 0,
        prune_counts=tuple(count + 1 if is_weak(i) else 0 for i, count in enumerate(state.prune_counts)),
    )


def _after(state: RuntimeState, step: int, head: int, *, active: bool) -> RuntimeState:
    """The state after an event: the counter that fired starts again, and so does the cooldown."""
    return RuntimeState(
        mask=tuple(active if i == head else on for i, on in enumerate(state.mask)),
        last_check=step,
        last_event=step,
        grow_count=0 if active else state.grow_count,
        prune_counts=tuple(0 if i == head else count for i, count in enumerate(state.prune_counts)),
    )


def _why_not(config: HeadsConfig, state: RuntimeState, rank: float, shares: Sequence[float]) -> str:
    if state.grow_count:
        words = f"{_grow_words(config, state, rank)}, confirmation {state.grow_count} of {config.delta_grow}"
    elif config.asks_for_growth(rank, state.k):
        words = f"{_grow_words(config, state, rank)}, but all {state.k} heads are active"
    else:
        words = f"rank {rank:g} <= {1 + config.eps_grow:g}·{state.k}"
    weakest = max(range(len(shares)), key=lambda i: (state.prune_counts[i], -shares[i]))
    if count := state.prune_counts[weakest]:
        words += f"; {_prune_words(config, state, shares, weakest)}, confirmation {count} of {config.delta_prune}"
    return words


def _grow_words(config: HeadsConfig, state: RuntimeState, rank: float) -> str:
    return f"rank {rank:g} > {1 + config.eps_grow:g}·{state.k}"


def _prune_words(config: HeadsConfig, state: RuntimeState, shares: Sequence[float], head: int) -> str:
    threshold = f"{config.eps_prune:g}" if config.share == "absolute" else f"{config.eps_prune:g}/{state.k}"
    return f"share {shares[head]:.2g} of head {head} < {threshold}"


def _known_signals(
    state: RuntimeState, rank: float | None, shares: Sequence[float] | None
) -> tuple[float, tuple[float, ...]]:
    """The signals as Python numbers; what cannot be decided upon is refused by name."""
    if rank is None or shares is None:
        raise ValueError("rank and shares must be measured at a check outside the cooldown")
    if len(shares) != len(state.mask):
        raise ValueError(f"shares must have {len(state.mask)} entries, one a head; got {len(shares)}")
    known = tuple(
        NON_NEGATIVE(f"share of head {head}", share) if active else 0.0
        for head, (share, active) in enumerate(zip(shares, state.mask, strict=True))
    )
    if abs(sum(known) - 1) > _ROUNDING:  # norms, for example, do not
        raise ValueError(f"shares of active heads must sum to 1, got {known}")
    return NON_NEGATIVE("rank", rank), known


def _are(kind: type, values: Any) -> bool:
    return isinstance(values, list | tuple) and all(type(value) is kind for value in values)


@TRIGGERS.register("paper")
def _paper(config: HeadsConfig) -> HeadsConfig:
    return config
