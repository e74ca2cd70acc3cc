"""Earned growth: heads are added while something is left to explain, and pruned where others can make up for them.

The paper's rule counts what the inputs span, which says nothing of what the task needs. This one asks the critic:

- *left*, the fraction of the targets' variance that the critic leaves unexplained. The variance is the largest so far,
  for it falls while the policy improves, and the fraction would rise without anything having become worse.
- *worth* of a head: by how much more would be left without it, if the others made up for it as well as they can.

**Grow** where more than ``enough`` is left and that has stopped falling. Growing is generous: a plateau is left sooner
with more heads than the task needs.

**Prune** where no more than ``enough`` is left, or all heads are active and it has stopped falling: the critic's head
of least worth, if that is at most ``worth``, together with the actor's head that moves the policy least, if that is at
most ``max_jump``. Actor and critic each have their own order of heads, so the two need not have the same number. Heads
share their work, and plain leave-one-out finds each of them needed where half of them would do. So the others make up
for a head when its worth is measured, and when it is pruned (:func:`incrt.heads.attention.outputs_without_each`).

Once a head has been pruned, each further growth waits twice as long as the one before: K does not swing for ever. What
K comes to, and under which assumptions, is Proposition 3' in docs/paper.md.
"""

from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from incrt.config import TRIGGERS, HeadsConfig
from incrt.heads.triggers.base import Decision, Signals

_LEVEL = 3
"""Checks whose mean says how much is left."""
_FALLING = 0.9
"""What is left still falls if it is below this fraction of what was left ``_LEVEL`` checks before."""
_REST = 2
"""Checks between an event and the next prune."""


@dataclass(frozen=True)
class Memory:
    """What is remembered between two checks."""

    spread: float = 0.0
    """Largest variance of the targets so far."""
    left: tuple[float, ...] = ()
    """What was left at the latest checks since the latest growth."""
    last_event: int = 0
    has_pruned: bool = False
    regrown: int = 0
    """Growths after the first prune."""


@TRIGGERS.register("earned")
@dataclass(frozen=True)
class EarnedTrigger:
    """Grows while the critic leaves much unexplained, prunes heads for which the others can make up."""

    config: HeadsConfig

    signals = ("residual", "spread", "worth", "removal_jumps")

    @property
    def max_jump(self) -> float:
        """The largest jump of the policy that a prune may bring; its certificate holds it to that."""
        return self.config.max_jump

    def decide(self, signals: Signals, state: Any) -> tuple[Decision, Any]:
        """Grow, or else prune, or neither."""
        residual, spread = signals.residual, signals.spread
        if residual is None or spread is None or signals.worth is None or signals.removal_jumps is None:
            raise ValueError(f"{', '.join(self.signals)} must be measured at a check")
        memory = Memory() if state is None else Memory(**{**state, "left": tuple(state["left"])})
        spread = max(memory.spread, spread)
        left = residual / spread if spread > 0 else 0.0
        memory = replace(memory, spread=spread, left=(*memory.left, left)[-2 * _LEVEL :])
        decision, after = self._decide(memory, signals)
        return decision, asdict(after)

    def _decide(self, memory: Memory, signals: Signals) -> tuple[Decision, Memory]:
        if len(memory.left) < 2 * _LEVEL:
            seen = f"check {len(memory.left)} of {2 * _LEVEL} since the start or the latest growth"
            return Decision("noop", f"{memory.left[-1]:.3f} left now; {seen}"), memory
        before, now = fmean(memory.left[:_LEVEL]), fmean(memory.left[-_LEVEL:])
        if now <= self.config.enough:
            return self._prune(f"{now:.3f} left <= {self.config.enough:g}", memory, signals)
        words = f"{now:.3f} left > {self.config.enough:g}"
        if now < _FALLING * before:
            return Decision("noop", f"{words}, but it falls, from {before:.3f}"), memory
        if all(signals.mask):
            return self._prune(f"{words}, and all {signals.k} heads are active", memory, signals)
        return self._grow(words, memory, signals)

    def _grow(self, words: str, memory: Memory, signals: Signals) -> tuple[Decision, Memory]:
        since, wait = signals.step - memory.last_event, self.config.grace * 2**memory.regrown
        if since < wait:
            return Decision("noop", f"{words}; cooldown: {since} of {wait}"), memory
        regrown = memory.regrown + memory.has_pruned
        return Decision("grow", words), replace(memory, left=(), last_event=signals.step, regrown=regrown)

    def _prune(self, words: str, memory: Memory, signals: Signals) -> tuple[Decision, Memory]:
        """The head of either network that is needed least, if neither is needed at all."""
        if signals.k <= self.config.k_min:
            return Decision("noop", f"{words}; K_min = {self.config.k_min}"), memory
        since, rest = signals.step - memory.last_event, _REST * self.config.check_every
        if since < rest:
            return Decision("noop", f"{words}; rest: {since} of {rest}"), memory
        worth, jumps = signals.worth or (), signals.removal_jumps or ()
        active = [i for i, on in enumerate(signals.mask) if on]
        critic, actor = min(active, key=lambda i: worth[i]), min(active, key=lambda i: jumps[i])
        least = worth[critic] / memory.spread if memory.spread > 0 else 0.0
        words += (
            f"; without head {critic} {least:.4f} more, without head {actor} of the actor a jump of {jumps[actor]:.4f}"
        )
        # Written so that NaN prunes nothing.
        can_go = least <= self.config.worth and jumps[actor] <= self.max_jump
        if not (can_go and signals.may_prune):
            return Decision("noop", words), memory
        after = replace(memory, last_event=signals.step, has_pruned=True)
        return Decision("prune", words, head=critic, actor_head=actor), after
