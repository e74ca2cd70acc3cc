"""What a trigger is shown, what it answers, and how a configuration names one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from incrt.config import TRIGGERS, HeadsConfig
from incrt.config.rules import NON_NEGATIVE

DEFAULT_SIGNALS = ("rank", "shares")
"""What a trigger is shown that does not say what it wants."""
OTHER_SIGNALS = ("residual", "spread", "worth", "removal_jumps", "importance", "gradients", "potential", "expansion")
"""What a trigger is shown if it asks for it."""


@dataclass(frozen=True)
class Signals:
    """What a check is shown."""

    step: int
    """Environment steps so far."""
    k: int
    """K: number of active heads."""
    mask: tuple[bool, ...]
    """Which of the K_max heads are active."""
    rank: float | None
    """Effective rank of the latest contexts; None, as the shares, where the trigger wanted no measurement."""
    shares: tuple[float, ...] | None
    """Each head's share of the attention output, 0 for an inactive one."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """What learning measured since the last check, by name; empty before anything was learned."""
    returns: float | None = None
    """Mean return of the episodes that ended since the last check, None where none did."""
    may_prune: bool = True
    """False where the trigger is asked again, since the prune that it wanted would break its promise."""
    reward: float | None = None
    """Mean reward of the steps since the last check."""
    residual: float | None = None
    """Mean squared error of the critic on a batch from replay."""
    spread: float | None = None
    """Variance of what it is to explain there: the residual of a critic that knows nothing."""
    worth: tuple[float, ...] | None = None
    """By how much the residual would be larger without each head of the critic, the others making up for it."""
    removal_jumps: tuple[float, ...] | None = None
    """By how much the policy would change without each head of the actor, the others making up for it."""
    importance: tuple[float, ...] | None = None
    """Each head's share of |contribution . slope of the critic's loss|."""
    gradients: tuple[float, ...] | None = None
    """Mean size of each head's gradient, relative to the mean of the active heads."""
    potential: float | None = None
    """Largest first gradient of a silent head, relative to what it would be if all samples agreed."""
    expansion: float | None = None
    """Fraction of the critic's loss that a first natural step of a silent head promises to take away."""

    def others(self) -> dict[str, Any]:
        """The signals beside rank and shares that were measured, by name."""
        return {name: value for name in OTHER_SIGNALS if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Decision:
    """What a check came to."""

    action: Literal["noop", "grow", "prune"]
    reason: str
    """Why, for people; it stands in events.jsonl."""
    head: int | None = None
    """The head to grow or prune. A growth without one takes the first that is inactive."""
    actor_head: int | None = None
    """Of a prune for which the others are to make up: the actor's head that goes, while ``head`` is the critic's."""


class Trigger(Protocol):
    """What decides.

    It may name the ``signals`` that it wants, fields of :class:`Signals`; rank and shares if it does not. One that has
    ``max_jump`` says by how much a prune may change the policy, and none happens that would do more.

    Two more methods are asked where a trigger has them, both before anything is measured.

    ``measures(step, state) -> bool``: whether it wants its signals at this check. Where it does not, they are None.
    ``can_act(step, mask, state) -> bool``: whether the check can come to an event, whatever its signals are. Where it
    cannot, a GPU trains on beside the check.

    A trigger without them is always shown everything and may always act.
    """

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """What is to be done, and the state that the next check gets.

        The state is None at the first check, later what JSON makes of the last one returned: lists for tuples.
        """


def wanted_signals(trigger: Trigger) -> tuple[str, ...]:
    """The names of the signals that a trigger wants."""
    return tuple(getattr(trigger, "signals", DEFAULT_SIGNALS))


def make_trigger(config: HeadsConfig) -> Trigger:
    """The trigger that a configuration names, refers to or holds."""
    chosen = config.trigger
    is_name = isinstance(chosen, str) and chosen in TRIGGERS
    found: Trigger = TRIGGERS[chosen](config) if is_name else TRIGGERS.find("trigger", chosen)
    known = (*DEFAULT_SIGNALS, *OTHER_SIGNALS)
    wanted = getattr(found, "signals", DEFAULT_SIGNALS)
    if hasattr(found, "max_jump"):
        NON_NEGATIVE(f"max_jump of trigger {type(found).__name__}", found.max_jump)
    if isinstance(wanted, str) or not set(wanted) <= set(known):
        raise ValueError(f"trigger {type(found).__name__}: signals must be among {', '.join(known)}; got {wanted!r}")
    return found
