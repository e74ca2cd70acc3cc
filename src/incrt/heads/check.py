"""The check: what happens to the heads of a run between two stretches of training.

The runs whose triggers want signals are measured, the triggers decide, what they decided is done, and each event gets
its certificate. The engine, :class:`incrt.sb3.RuntimeHeads` and training loops of one's own all call
:func:`check_runs`, and bring two functions: one measures, the other acts.
"""

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from incrt.config import HeadsConfig
from incrt.config.rules import ANY, COUNT, INDEX, NON_NEGATIVE
from incrt.heads import certificates
from incrt.heads.certificates import (
    Certificate,
    Evidence,
    PruneCertificate,
    PruneMeasures,
    certify_grow,
    certify_prune,
    mean_jump,
    promise_prune,
)
from incrt.heads.growth import check_event
from incrt.heads.triggers import Decision, PaperTrigger, Signals, Trigger, wanted_signals

ACTIONS = ("noop", "grow", "prune")
"""What a check may come to."""

_ROUNDING = 1e-3
"""How far shares computed in single precision may sum from one."""


@dataclass(frozen=True)
class HeadsState:
    """What is kept of a run between two checks; JSON in checkpoints."""

    mask: tuple[bool, ...]
    """m: which of the K_max heads are active."""
    last_check: int = 0
    """Step of the latest check."""
    state: Any = None
    """The trigger's own."""

    def __post_init__(self) -> None:
        is_mask = isinstance(self.mask, list | tuple) and all(type(on) is bool for on in self.mask)
        if not is_mask or not any(self.mask):
            raise ValueError(f"mask must hold True or False for each head, and one True at least; got {self.mask!r}")
        object.__setattr__(self, "mask", tuple(self.mask))
        object.__setattr__(self, "last_check", INDEX("last_check", self.last_check))

    @property
    def k(self) -> int:
        """K(t): number of active heads, eq. (12)."""
        return sum(self.mask)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, written: Any) -> "HeadsState":
        """The record that :meth:`to_json` wrote; anything else is refused."""
        names = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(written, dict) or set(written) != names:
            raise ValueError(f"a record of the heads has the fields {', '.join(sorted(names))}; got {written!r}")
        return cls(**written)


def first_heads(config: HeadsConfig, mask: Sequence[bool]) -> HeadsState:
    """What is kept before the first check."""
    heads_state = HeadsState(tuple(mask))
    config.check_start(heads_state.k)
    return heads_state


def is_due(config: HeadsConfig, step: int) -> bool:
    """Whether there is a check at this environment step."""
    return step > 0 and step % config.check_every == 0


@dataclass(frozen=True)
class Watched:
    """A run as the check finds it."""

    trigger: Trigger
    heads_state: HeadsState
    losses: Mapping[str, float] = field(default_factory=dict)
    """See :class:`incrt.heads.triggers.Signals`."""
    returns: float | None = None
    reward: float | None = None

    def measures(self, step: int) -> bool:
        """Whether its trigger wants rank and shares."""
        return self._asks("measures", step, self._state())

    def can_act(self, step: int) -> bool:
        """Whether the check can come to an event."""
        return self._asks("can_act", step, self.heads_state.mask, self._state())

    def signals(self, step: int, measured: "Measured | None") -> Signals:
        """What its trigger is shown; None stands for what it did not want."""
        mask, k = self.heads_state.mask, self.heads_state.k
        rank, shares = _known(mask, measured)
        wanted = () if measured is None else wanted_signals(self.trigger)
        known = {} if measured is None else measured.more
        more = {name: _as_signal(name, known[name], mask) for name in wanted if name in known}
        return Signals(step, k, mask, rank, shares, self.losses, self.returns, reward=self.reward, **more)

    def decide(self, signals: Signals) -> tuple[Decision, Any]:
        """What its trigger makes of a check, the state as JSON gives it back; what makes no sense is refused."""
        can_act = self.can_act(signals.step)
        answer = self._call("decide", signals, self._state())
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Decision):
            raise self._refused("decide", f"returned {answer!r}", "a pair of a Decision and a state")
        decision = self._sound(answer[0])
        if decision.action != "noop" and not can_act:
            raise self._refused("decide", f"returned {decision.action}", "noop where can_act has said False")
        try:
            return decision, json.loads(json.dumps(answer[1], allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            what = f"returned the state {answer[1]!r} ({error})"
            raise self._refused("decide", what, "a state that JSON can hold, without NaN and infinity") from error

    def _sound(self, decision: Decision) -> Decision:
        """The decision with the head that it is about."""
        mask = self.heads_state.mask
        if decision.action not in ACTIONS or not isinstance(decision.reason, str):
            raise self._refused("decide", f"returned {decision}", f"an action among {', '.join(ACTIONS)} and a reason")
        if decision.action == "noop":
            return dataclasses.replace(decision, head=None)
        grows = decision.action == "grow"
        if all(mask) if grows else self.heads_state.k == 1:
            accepted = f"grow while one of the {len(mask)} heads is inactive" if grows else "prune while two are active"
            raise self._refused("decide", f"returned {decision}", accepted)
        try:
            head = mask.index(False) if grows and decision.head is None else INDEX("head", decision.head)
            check_event(mask, head, active=grows)
        except ValueError as error:
            fit = [i for i, on in enumerate(mask) if on != grows]
            raise self._refused("decide", f"returned {decision} ({error})", f"a head among {fit}") from error
        if grows or decision.actor_head is None:
            return dataclasses.replace(decision, head=head, actor_head=None)
        active = [i for i, on in enumerate(mask) if on]
        if decision.actor_head not in active:
            raise self._refused("decide", f"returned {decision}", f"an actor_head among {active}")
        return dataclasses.replace(decision, head=head)

    def _state(self) -> Any:
        return copy.deepcopy(self.heads_state.state)  # a trigger may change what it is given

    def _asks(self, name: str, *arguments: Any) -> bool:
        return bool(self._call(name, *arguments)) if hasattr(self.trigger, name) else True

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self.trigger, name)(*arguments)
        except Exception as error:  # whatever the user's own code raises
            raise self._refused(name, f"raised {type(error).__name__}: {error}") from error

    def _refused(self, name: str, what: str, accepted: str = "") -> ValueError:
        ending = f"; accepted is {accepted}" if accepted else ""
        return ValueError(f"trigger {type(self.trigger).__name__}: {name} {what}{ending}")


class Measured(NamedTuple):
    """What was measured of a run. Of the lists, one entry a head, those of inactive heads are ignored."""

    rank: float | None
    """None where the trigger does not want it."""
    shares: Sequence[float]
    more: Mapping[str, Any] = MappingProxyType({})
    """The other signals that the trigger wants, by name."""


def _known(mask: Sequence[bool], measured: Measured | None) -> tuple[float | None, tuple[float, ...] | None]:
    """The signals as Python numbers; what cannot be decided upon is refused by name."""
    if measured is None:
        return None, None
    if len(measured.shares) != len(mask):
        raise ValueError(f"shares must have {len(mask)} entries, one a head; got {len(measured.shares)}")
    shares = tuple(
        NON_NEGATIVE(f"share of head {head}", share) if active else 0.0
        for head, (share, active) in enumerate(zip(measured.shares, mask, strict=True))
    )
    if abs(sum(shares) - 1) > _ROUNDING:  # norms, for example, do not
        raise ValueError(f"shares of active heads must sum to 1, got {shares}")
    return None if measured.rank is None else NON_NEGATIVE("rank", measured.rank), shares


def _as_signal(name: str, value: Any, mask: Sequence[bool]) -> Any:
    """A signal as Python numbers; one that is not finite is refused by name. Those of inactive heads are 0."""
    if not isinstance(value, Sequence):
        return ANY(name, value)
    return tuple(ANY(f"{name} of head {i}", each) if mask[i] else 0.0 for i, each in enumerate(value))


class Check(NamedTuple):
    """One check of one run."""

    step: int
    decision: Decision
    rank: float | None
    """None, as the shares, where nothing was measured."""
    shares: tuple[float, ...] | None
    mask: tuple[bool, ...]
    """After the check."""
    certificate: Certificate | None = None
    more: Mapping[str, Any] = MappingProxyType({})
    """The other signals that the trigger was shown."""

    @property
    def k(self) -> int:
        """K after the check."""
        return sum(self.mask)

    def to_json(self) -> dict[str, Any]:
        """One line of events.jsonl."""
        entry = {
            "step": self.step,
            "action": self.decision.action,
            "reason": self.decision.reason,
            "k": self.k,
            "rank": self.rank,
            "shares": self.shares,
        }
        entry |= self.more
        if self.decision.action == "prune" and self.decision.actor_head is not None:
            entry["actor_head"] = self.decision.actor_head
        return entry if self.certificate is None else {**entry, **certificates.to_json(self.certificate)}

    def figures(self) -> dict[str, float]:
        """What TensorBoard shows of it, by name: K, rank and shares, and an event by its head and certificate."""
        found: dict[str, float] = {"heads/k": self.k}
        if self.rank is not None and self.shares is not None:
            was_active = [on != (i == self.decision.head) for i, on in enumerate(self.mask)]
            shares = {f"heads/share_{i}": share for i, share in enumerate(self.shares) if was_active[i]}
            found |= {"heads/rank": self.rank, **shares}
        if self.certificate is not None and self.decision.head is not None:
            certificate = self.certificate
            found |= {f"heads/{self.decision.action}": self.decision.head, "heads/jump": certificate.jump}
            found |= {"heads/bound": certificate.bound, "heads/holds": float(certificate.holds)}
        return found


Measure = Callable[[Sequence[int]], Mapping[int, Measured]]
"""Takes the signals of the runs with these numbers; a run that it leaves out has no check."""
Weigh = Callable[[Mapping[int, Decision]], Mapping[int, PruneMeasures]]
"""Measures what these prunes would do, before any of them is done."""
Act = Callable[[Mapping[int, Decision]], Mapping[int, Evidence]]
"""Lets these events happen, all of them with a head, and measures what each did."""
Answer = TypeVar("Answer")


def check_runs(
    step: int,
    runs: Mapping[int, Watched],
    measure: Measure,
    weigh: Weigh,
    act: Act,
    on_refused: Callable[[int, ValueError], None] | None = None,
) -> dict[int, tuple[Check, HeadsState]]:
    """The check of many runs at one step, by their numbers, and what is to be kept of each until the next.

    A trigger that answers what makes no sense is a ValueError, before anything is changed; ``on_refused`` is told of it
    instead, and the check is that of the other runs. A prune whose certificate would not hold does not happen.
    """
    step = COUNT("step", step)
    for run in runs.values():
        if step <= run.heads_state.last_check:
            raise ValueError(f"step must be after the latest check at {run.heads_state.last_check}, got {step}")
    left = dict(runs)

    def of_each(ask: Callable[[int, Watched], Answer]) -> dict[int, Answer]:
        found = {}
        for i, run in list(left.items()):
            try:
                found[i] = ask(i, run)
            except ValueError as error:
                if on_refused is None:
                    raise
                on_refused(i, error)
                del left[i]
        return found

    wanted = [i for i, measures in of_each(lambda _, run: run.measures(step)).items() if measures]
    measured = measure(wanted) if wanted else {}
    for i in wanted:
        if i not in measured:
            del left[i]
    shown = of_each(lambda i, run: run.signals(step, measured.get(i)))
    decided = of_each(lambda i, run: run.decide(shown[i]))
    promises = _promise(step, runs, shown, decided, weigh)
    events = {i: decision for i, (decision, _) in decided.items() if decision.head is not None}
    evidence = act(events) if events else {}
    found = {}
    for i, (decision, state) in decided.items():
        mask = tuple(on != (head == decision.head) for head, on in enumerate(shown[i].mask))
        certificate = None if i not in events else _certify(step, decision, promises.get(i), evidence[i])
        check = Check(step, decision, shown[i].rank, shown[i].shares, mask, certificate, shown[i].others())
        found[i] = check, HeadsState(mask, step, state)
    return found


def check_run(
    step: int,
    run: Watched,
    measure: Callable[[], Measured],
    weigh: Callable[[Decision], PruneMeasures],
    act: Callable[[Decision], Evidence],
) -> tuple[Check, HeadsState]:
    """The check of a single run."""
    return check_runs(
        step,
        {0: run},
        lambda _: {0: measure()},
        lambda prunes: {0: weigh(prunes[0])},
        lambda events: {0: act(events[0])},
    )[0]


def _promise(
    step: int,
    runs: Mapping[int, Watched],
    shown: Mapping[int, Signals],
    decided: dict[int, tuple[Decision, Any]],
    weigh: Weigh,
) -> dict[int, PruneCertificate]:
    """The certificates of the prunes that may happen. Instead of the others the trigger decides once more."""
    prunes = {i: decision for i, (decision, _) in decided.items() if decision.action == "prune"}
    promises = {}
    weighed = weigh(prunes) if prunes else {}
    if missing := prunes.keys() - weighed.keys():
        raise ValueError(f"weigh must measure every prune that it is given; runs {sorted(missing)} are missing")
    for i, measured in weighed.items():
        decision, trigger = prunes[i], runs[i].trigger
        # Only the paper's rule promises how small the share of a head is that it prunes.
        threshold = trigger.share_threshold(int(measured.k)) if type(trigger) is PaperTrigger else None
        limit = getattr(trigger, "max_jump", None)
        promise = promise_prune(step, decision.head or 0, threshold, limit, measured)
        if promise.holds:
            promises[i] = promise
        else:
            least = "and no bound is known" if math.isnan(promise.bound) else f"more than {promise.bound:.3g}"
            words = f"the policy would move by {promise.jump:.3g}, {least}: {decision.reason}"
            words = f"no prune of head {decision.head}, {words}"
            again, state = runs[i].decide(dataclasses.replace(shown[i], may_prune=False))
            # A trigger of one's own may not look whether it may prune.
            decided[i] = Decision("noop", words), state if again.action == "noop" else runs[i].heads_state.state
    return promises


def _certify(step: int, decision: Decision, promise: PruneCertificate | None, evidence: Evidence) -> Certificate:
    energy = (float(evidence.energy[0]), float(evidence.energy[1]))
    if promise is not None:
        return certify_prune(promise, mean_jump(evidence), energy)
    return certify_grow(step, decision.head or 0, evidence.before, evidence.after, energy)
