"""Rules from elsewhere, to compare with: by the clock, and by gradients.

Each was published for units or layers and says when to grow or what to prune, not both. Where one is silent the clock
grows. A condition must hold at ``delta_grow`` or ``delta_prune`` checks in a row, and a cooldown of ``grace`` steps
follows every event, as in the paper's rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from incrt.config import TRIGGERS, HeadsConfig
from incrt.heads.triggers.base import Decision, Signals

_POTENTIAL = 0.02
"""Gradient of a silent head, relative to what it would be if all samples agreed, from which on a head is grown."""
_EXPANSION = 0.05
"""Fraction of the critic's loss that a silent head must promise to take away."""
_DORMANT = 0.05
"""A head is dormant whose gradient is below this fraction of the mean of all heads."""
_UNIMPORTANT = 0.1
"""A head is unimportant whose share of the importance is below this fraction of the uniform one, 1/K."""


@TRIGGERS.register("clock")
@dataclass(frozen=True)
class Clock:
    """Grows one head every ``grace`` steps until all are active. It is what the paper's rule comes to in practice."""

    config: HeadsConfig

    signals: ClassVar[tuple[str, ...]] = ()

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """Whether it is time."""
        last = 0 if state is None else state
        if all(signals.mask):
            return Decision("noop", f"all {signals.k} heads are active"), last
        if signals.step - last < self.config.grace:
            return Decision("noop", f"{signals.step - last} of {self.config.grace} steps"), last
        return Decision("grow", f"{self.config.grace} steps have passed"), signals.step

    def measures(self, step: int, state: Any) -> bool:
        """It wants to know nothing."""
        return False

    def can_act(self, step: int, mask: Sequence[bool], state: Any) -> bool:
        """Only when its time has come."""
        return not all(mask) and step - (0 if state is None else state) >= self.config.grace


@dataclass(frozen=True)
class ConfirmedTrigger(ABC):
    """A rule whose conditions must hold at some checks in a row; the subclasses say which conditions."""

    config: HeadsConfig

    signals: ClassVar[tuple[str, ...]]

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """Growth first, then the prune of the weakest head that has been weak for long enough."""
        config, step = self.config, signals.step
        state = state or {"last_event": 0, "grow": 0, "prune": [0] * len(signals.mask)}
        if (since := step - state["last_event"]) < config.grace:
            return Decision("noop", f"cooldown: {since} of {config.grace}"), state
        asks, words = self.asks(signals)
        size = self.sizes(signals)
        active = [i for i, on in enumerate(signals.mask) if on]
        weak = {i for i in active if size[i] < self.least(signals.k) and signals.k > config.k_min}
        grow = state["grow"] + 1 if asks and not all(signals.mask) else 0
        prune = [count + 1 if i in weak else 0 for i, count in enumerate(state["prune"])]
        if grow >= config.delta_grow:
            return Decision("grow", words), {"last_event": step, "grow": 0, "prune": prune}
        confirmed = [i for i, count in enumerate(prune) if count >= config.delta_prune]
        if confirmed and signals.may_prune:
            head = min(confirmed, key=lambda i: size[i])
            reason = f"head {head} has {size[head]:.3g} < {self.least(signals.k):.3g}"
            after = {"last_event": step, "grow": grow, "prune": [0 if i == head else n for i, n in enumerate(prune)]}
            return Decision("prune", reason, head), after
        return Decision("noop", f"{words}; {len(weak)} weak"), {**state, "grow": grow, "prune": prune}

    @abstractmethod
    def asks(self, signals: Signals) -> tuple[bool, str]:
        """Whether a head is asked for, and why."""

    @abstractmethod
    def sizes(self, signals: Signals) -> Sequence[float]:
        """What a head is judged by, one number a head."""

    @abstractmethod
    def least(self, k: int) -> float:
        """The size below which one of k heads is weak."""


class _Dormancy(ConfirmedTrigger):
    """Prunes dormant heads."""

    def sizes(self, signals: Signals) -> Sequence[float]:
        sizes: Sequence[float] = _known(signals.gradients)
        return sizes

    def least(self, k: int) -> float:
        return _DORMANT


@TRIGGERS.register("potential")
class PotentialTrigger(_Dormancy):
    """Grows by the gradient of a silent head (GradMax), prunes by gradient (GraMa)."""

    signals = ("potential", "gradients")

    def asks(self, signals: Signals) -> tuple[bool, str]:
        potential = _known(signals.potential)
        return potential > _POTENTIAL, f"potential {potential:.3g}, {_POTENTIAL:g} asks for a head"


@TRIGGERS.register("expansion")
class ExpansionTrigger(_Dormancy):
    """Grows by the natural expansion score of a silent head (SENN), prunes by gradient (GraMa)."""

    signals = ("expansion", "gradients")

    def asks(self, signals: Signals) -> tuple[bool, str]:
        expansion = _known(signals.expansion)
        return expansion > _EXPANSION, f"expansion score {expansion:.3g}, {_EXPANSION:g} asks for a head"


@TRIGGERS.register("importance")
class ImportanceTrigger(ConfirmedTrigger):
    """Grows by the clock, prunes by importance (Michel et al.)."""

    signals = ("importance",)

    def asks(self, signals: Signals) -> tuple[bool, str]:
        return True, "the cooldown is over"

    def sizes(self, signals: Signals) -> Sequence[float]:
        sizes: Sequence[float] = _known(signals.importance)
        return sizes

    def least(self, k: int) -> float:
        return _UNIMPORTANT / k


def _known(signal: Any) -> Any:
    if signal is None:
        raise ValueError("the trigger's signals must be measured at a check")
    return signal
