"""Runs of one program, their states stacked along a first axis."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from threadpoolctl import ThreadpoolController

from incrt.config import HeadsConfig
from incrt.engine.checks import ACTIONS, Look, act, look, measure, measure_removal
from incrt.engine.progress import Check, Progress
from incrt.engine.replay import latest_contexts
from incrt.engine.step import Program, RunState, start
from incrt.heads.certificates import Certificate, certify_grow, certify_prune
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision, RuntimeState, can_act, check, is_cooling

SHAPING = ("tokens", "share_batch", "optimiser")
"""What of a runtime controller's configuration shapes the programs of a check."""

_BLAS = ThreadpoolController()
_BLAS_LIMITED = threading.Lock()
"""The limit is the whole process's: of two threads that set it, the first to end would lift it for the other."""


class _Signals(NamedTuple):
    """What a check was shown, and what it came to."""

    decision: Decision
    rank: float | None
    shares: tuple[float, ...] | None


class Stack:
    """``indices`` are the runs' numbers in the population; ``states`` those to go on from, or None at the start."""

    def __init__(self, indices: Sequence[int], members: Sequence[Progress], states: Sequence[RunState] | None) -> None:
        self.indices, self.members = tuple(indices), list(members)
        self.count = len(members)
        self.program = members[0].run.program()
        shaping = {name: getattr(members[0].run.heads, name) for name in SHAPING}
        self._settings = HeadsConfig(**shaping)  # runs that differ in a threshold need no program of their own
        self.params = stacked([each.run.params for each in members])
        if states is None:
            keys = jnp.stack([jax.random.key(each.run.seed) for each in members])
            self.states: RunState = _start(self.program, self.count, self.params, keys)
        else:
            self.states = stacked(states)

    def host_states(self) -> list[RunState]:
        """The state of each run, on the host."""
        states = jax.device_get(self.states)
        return [one(states, i) for i in range(self.count)]

    # --- checks ------------------------------------------------------------------------------------------------

    def look(self) -> Look:
        """Ask the device for what a check is shown."""
        found: Look = _look(self.program, self._settings, self.count, self.states)
        return found

    def may_act(self, step: int) -> bool:
        """Whether a check at this step can be an event of any run, whatever it is shown."""

        def one_may(progress: Progress) -> bool:
            controller, settings = progress.controller, progress.run.heads
            if controller is None or progress.failure is not None:
                return False
            return not is_cooling(settings, controller, step) and can_act(settings, controller)

        return any(map(one_may, self.members))

    def check(self, step: int, seen: Look, *, may_act: bool = True) -> dict[int, Check]:
        """The check of every sound run, by its place in the stack; events happen and are certified.

        Without ``may_act``, the states being a stretch ahead of what was seen, an event would be an error.
        """
        # Heads whose output is not finite end the run at its next action.
        due = {
            i: each.controller
            for i, each in enumerate(self.members)
            if each.failure is None and each.controller is not None and np.all(np.isfinite(seen.shares[i]))
        }
        ranks = self._ranks(step, due, seen)
        signals = {i: _decide(self.members[i], due[i], step, ranks.get(i), seen.shares[i]) for i in due}
        if not may_act and any(found.decision.head is not None for found in signals.values()):
            raise RuntimeError(f"the check at step {step} came to an event, which can_act had ruled out")
        certified = self._apply(step, {i: found.decision for i, found in signals.items()})
        return {
            i: Check(step, *found, k=self.members[i].heads, certificate=certified.get(i))
            for i, found in signals.items()
        }

    def _ranks(self, step: int, due: Mapping[int, RuntimeState], seen: Look) -> dict[int, float]:
        """The effective ranks of those runs that are not in their cooldown."""

        def rank(i: int) -> float:
            run = self.members[i].run
            tokens = latest_contexts(one(seen.recent, i), run.heads.tokens, run.window)
            return effective_rank(tokens, run.heads.alpha)

        wanted = [i for i, each in due.items() if not is_cooling(self.members[i].run.heads, each, step)]
        if len(wanted) < 2:
            return {i: rank(i) for i in wanted}
        # One rank is too little work for the threads of a linear algebra library, many are enough for our own.
        with _BLAS_LIMITED, _BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor() as pool:
            return dict(zip(wanted, pool.map(rank, wanted), strict=True))

    def _apply(self, step: int, decisions: Mapping[int, Decision]) -> dict[int, Certificate]:
        """Grow and prune what was decided, all runs at once, and certify each event."""
        events = {i: decision for i, decision in decisions.items() if decision.head is not None}
        if not events:
            return {}
        actions, heads = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)
        for i, decision in events.items():
            actions[i], heads[i] = ACTIONS.index(decision.action), decision.head or 0
        shape = (self.program, self._settings, self.count)
        removal = None
        if any(decision.action == "prune" for decision in events.values()):
            removal = jax.device_get(_measure_removal(*shape, self.states, heads))
        self.states, evidence = _act(*shape, self.states, actions, heads)
        evidence = jax.device_get(evidence)
        found: dict[int, Certificate] = {}
        for i, decision in events.items():
            of_run, head = one(evidence, i), int(heads[i])
            energy = (float(of_run.energy[0]), float(of_run.energy[1]))
            if decision.action == "grow":
                found[i] = certify_grow(step, head, of_run.before, of_run.after, energy)
            else:
                found[i] = certify_prune(step, self.members[i].run.heads, one(removal, i), energy)
            self.members[i].certificates.append(found[i])
        return found


def _decide(progress: Progress, controller: RuntimeState, step: int, rank: float | None, shares: Array) -> _Signals:
    """What the runtime controller of one run makes of a check; during the cooldown there is no rank."""
    seen = None if rank is None else tuple(float(share) for share in shares)
    if rank is not None:
        progress.ranks.append(rank)
    decision, progress.controller = check(progress.run.heads, controller, step, rank, seen)
    return _Signals(decision, rank, seen)


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree with one more axis in front."""
    # Through NumPy, which knows no weak types: numbers and arrays then need the same program.
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves])), *trees)


def one(tree: Any, i: int) -> Any:
    """The tree of the i-th run."""
    return jax.tree.map(lambda leaf: leaf[i], tree)


def many(count: int, function: Any) -> Any:
    """A function of one run for ``count`` of them; a single run is spared the batch axis, which costs time."""
    if count > 1:
        return jax.vmap(function)

    def single(*arguments: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[None], function(*one(arguments, 0)))

    return single


# --- compiled programs ---------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=(0, 1))
def _start(program: Program, count: int, params: Any, keys: Array) -> Any:
    return many(count, partial(start, program))(params, keys)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _look(program: Program, settings: HeadsConfig, count: int, states: RunState) -> Any:
    return many(count, partial(look, program, settings))(states)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure_removal(program: Program, settings: HeadsConfig, count: int, states: RunState, heads: Array) -> Any:
    return many(count, partial(measure_removal, program, settings))(states, heads)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _act(
    program: Program, settings: HeadsConfig, count: int, states: RunState, actions: Array, heads: Array
) -> tuple[Any, Any]:
    def of_one(state: RunState, action: Array, head: Array) -> tuple[Any, Any]:
        after = act(settings, state, action, head)
        return after, measure(program, settings, state, after.learner.learned)

    after, evidence = many(count, of_one)(states, actions, heads)
    return after, evidence
