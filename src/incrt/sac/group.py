"""Runs that share a compiled program and advance together.

A stretch, from one check to the next, is one call of one program. The device is asked for a stretch and for what the
check at its end looks at; the host takes the ranks while the device is busy with the next stretch, and the device
waits for the host only where the check can be an event (:func:`incrt.runtime.can_act`).
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from incrt.certificates import Certificate, certify_grow, certify_prune
from incrt.config import RuntimeConfig
from incrt.rank import effective_rank
from incrt.runtime import Decision, can_act, check, is_check, is_cooling
from incrt.sac.checks import ACTIONS, Look, act, look, measure, measure_removal
from incrt.sac.progress import Check, Failure, Progress, Report, summarise
from incrt.sac.replay import latest_contexts
from incrt.sac.run import CAUSES, Program, Record, RunState, start, stretch

_HEADS = CAUSES.index("the heads' output")


class _Pending(NamedTuple):
    """A stretch that the device was asked for and the host has not looked at yet."""

    step: int
    steps: int
    record: Record
    step_reached: Array
    cause: Array
    look: Look | None


class _Signals(NamedTuple):
    """What a check was shown, and what it came to."""

    decision: Decision
    rank: float | None
    shares: tuple[float, ...] | None


class Group:
    """Some of the population's runs, all at the same step; ``states`` of runs that go on from a checkpoint, or None."""

    def __init__(
        self,
        indices: Sequence[int],
        progress: Sequence[Progress],
        states: Sequence[RunState] | None,
        device: jax.Device,
    ) -> None:
        self.indices, self.progress = tuple(indices), list(progress)
        self._device, self._count = device, len(progress)
        self._run = progress[0].run
        self._program, self._settings = self._run.program(), self._run.runtime
        self._step = progress[0].step
        self._pending: deque[_Pending] = deque()
        self._clock = time.perf_counter()
        with jax.default_device(device):
            self._params = stacked([each.run.params for each in progress])
            if states is None:
                keys = jnp.stack([jax.random.key(each.run.seed) for each in progress])
                self._states = _start(self._program, self._count, self._params, keys)
            else:
                self._states = stacked(states)

    @property
    def finished(self) -> bool:
        """Whether no run has anything left to do."""
        return not self._pending and self._at_end

    @property
    def step(self) -> int:
        """How far the device has been asked to go."""
        return self._step

    def advance(self) -> list[Report]:
        """Train to the next check. The host looks at it at once where it may be an event, else one stretch later."""
        with jax.default_device(self._device):
            self._dispatch()
            reports = self._catch_up(lag=0 if self._device.platform == "cpu" else 1)
            if self._pending and any(map(self._may_act, self.progress)):
                reports += self._settle()
        return reports + self.rest() if self._at_end else reports

    def rest(self) -> list[Report]:
        """Let the host catch up, so that the runs may be saved."""
        with jax.default_device(self._device):
            return self._catch_up(lag=0)

    def _catch_up(self, lag: int) -> list[Report]:
        reports = []
        while len(self._pending) > lag:
            reports += self._settle()
        return reports

    @property
    def _at_end(self) -> bool:
        return self._step >= self._run.sac.steps or all(each.failure is not None for each in self.progress)

    def states(self) -> list[RunState]:
        """The state of each run, on the host."""
        states = jax.device_get(self._states)
        return [_one(states, i) for i in range(self._count)]

    def _dispatch(self) -> None:
        """Ask the device for the stretch up to the next check, and for what the check will look at."""
        until = self._settings.check_every - self._step % self._settings.check_every
        steps = min(until, self._run.sac.steps - self._step)
        train = _STRETCH["cpu" if self._device.platform == "cpu" else "gpu"]
        self._states, record, reached, cause = train(self._program, steps, self._count, self._params, self._states)
        self._step += steps
        is_due = self._run.adapts and is_check(self._settings, self._step)
        seen = _look(self._program, self._settings, self._count, self._states) if is_due else None
        self._pending.append(_Pending(self._step, steps, record, reached, cause, seen))

    def _may_act(self, progress: Progress) -> bool:
        """Whether the check that is pending can be an event of this run."""
        pending, controller, settings = self._pending[0], progress.controller, progress.run.runtime
        if controller is None or progress.failure is not None or pending.look is None:
            return False
        return not is_cooling(settings, controller, pending.step) and can_act(settings, controller)

    def _settle(self) -> list[Report]:
        """Catch up with the oldest pending stretch: figures, failures, checks, events."""
        pending = self._pending.popleft()
        record, reached, causes, seen = jax.device_get(pending[2:])
        now = time.perf_counter()
        rate, self._clock = pending.steps / (now - self._clock), now
        sound = [i for i, each in enumerate(self.progress) if each.failure is None]
        for i in sound:
            self.progress[i].step = int(reached[i])
            if causes[i]:
                self.progress[i].failure = Failure(int(reached[i]), CAUSES[causes[i]])
        metrics = {i: summarise(self.progress[i].step, _one(record, i), rate) for i in sound}
        signals = {} if seen is None else {i: self._decide(i, pending.step, _one(seen, i)) for i in sound}
        decided = {i: found for i, found in signals.items() if found is not None}
        certified = self._apply(pending.step, {i: found.decision for i, found in decided.items()})
        return [
            Report(self.indices[i], metrics[i], self._checked(i, pending.step, decided.get(i), certified.get(i)))
            for i in sound
        ]

    def _decide(self, i: int, step: int, seen: Look) -> _Signals | None:
        """What the runtime controller of one run makes of a check; None if the run has failed."""
        progress = self.progress[i]
        controller, settings = progress.controller, progress.run.runtime
        if controller is None or progress.failure is not None:
            return None
        rank = shares = None
        if not is_cooling(settings, controller, step):
            if not np.all(np.isfinite(seen.shares)):
                progress.failure = Failure(step, CAUSES[_HEADS])
                self._states = self._states._replace(cause=self._states.cause.at[i].set(_HEADS))
                return None
            shares = tuple(float(share) for share in seen.shares)
            tokens = latest_contexts(seen.recent, settings.tokens, progress.run.window)
            rank = effective_rank(tokens, settings.rank, settings.alpha)
            progress.ranks.append(rank)
        decision, progress.controller = check(settings, controller, step, rank, shares)
        return _Signals(decision, rank, shares)

    def _apply(self, step: int, decisions: Mapping[int, Decision]) -> dict[int, Certificate]:
        """Grow and prune what was decided, all runs at once, and certify each event."""
        events = {i: decision for i, decision in decisions.items() if decision.action != "noop"}
        if not events:
            return {}
        actions, heads = np.zeros(self._count, np.int32), np.zeros(self._count, np.int32)
        for i, decision in events.items():
            actions[i], heads[i] = ACTIONS.index(decision.action), decision.head
        shape = (self._program, self._settings, self._count)
        removal = None
        if any(decision.action == "prune" for decision in events.values()):
            removal = jax.device_get(_measure_removal(*shape, self._states, heads))
        self._states, evidence = _act(*shape, self._states, actions, heads)
        evidence = jax.device_get(evidence)
        found: dict[int, Certificate] = {}
        for i, decision in events.items():
            one, head = _one(evidence, i), int(heads[i])
            energy = (float(one.energy[0]), float(one.energy[1]))
            if decision.action == "grow":
                found[i] = certify_grow(step, head, one.before, one.after, energy)
            else:
                found[i] = certify_prune(step, self.progress[i].run.runtime, _one(removal, i), energy)
            self.progress[i].certificates.append(found[i])
        return found

    def _checked(self, i: int, step: int, found: _Signals | None, certificate: Certificate | None) -> Check | None:
        controller = self.progress[i].controller
        if found is None or controller is None:
            return None
        return Check(step, found.decision, controller.k, found.rank, found.shares, certificate)


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree with one more axis in front."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def _one(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


# --- compiled programs ---------------------------------------------------------------------------------------------


def _many(count: int, one: Any) -> Any:
    """The function of one run for ``count`` of them; a single run is spared the batch axis, which costs time."""
    if count > 1:
        return jax.vmap(one)

    def single(*arguments: Any) -> Any:
        return jax.tree.map(lambda x: x[None], one(*jax.tree.map(lambda x: x[0], arguments)))

    return single


@partial(jax.jit, static_argnums=(0, 1))
def _start(program: Program, count: int, params: Any, keys: Array) -> Any:
    return _many(count, partial(start, program))(params, keys)


def _train(program: Program, steps: int, count: int, params: Any, states: RunState) -> tuple[Any, Record, Array, Array]:
    states, record = _many(count, partial(stretch, program, steps))(params, states)
    return states, record, states.step, states.cause


# The products of one run are too small for two cores to share. With one thread a run, the cores work on different runs.
_STRETCH = {
    "cpu": jax.jit(
        _train, static_argnums=(0, 1, 2), donate_argnums=4, compiler_options={"xla_cpu_multi_thread_eigen": False}
    ),
    "gpu": jax.jit(_train, static_argnums=(0, 1, 2), donate_argnums=4),
}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _look(program: Program, settings: RuntimeConfig, count: int, states: RunState) -> Any:
    return _many(count, partial(look, program, settings))(states)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure_removal(program: Program, settings: RuntimeConfig, count: int, states: RunState, heads: Array) -> Any:
    return _many(count, partial(measure_removal, program, settings))(states, heads)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _act(
    program: Program, settings: RuntimeConfig, count: int, states: RunState, actions: Array, heads: Array
) -> tuple[Any, Any]:
    def one(state: RunState, action: Array, head: Array) -> tuple[Any, Any]:
        after = act(settings, state, action, head)
        return after, measure(program, settings, state, after.learner.learned)

    return tuple(_many(count, one)(states, actions, heads))  # type: ignore[return-value]
