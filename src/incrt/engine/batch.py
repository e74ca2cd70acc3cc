"""Runs of one program, their states stacked along a first axis."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from threadpoolctl import ThreadpoolController

from incrt.engine.ahead import Ahead
from incrt.engine.checks import Look, Shaping, act, look, measure, measure_removal, shaping
from incrt.engine.columns import Columns, layout_for
from incrt.engine.layouts import Layout
from incrt.engine.progress import Metrics, Progress, Run
from incrt.engine.replay import latest_contexts
from incrt.engine.step import Program, RunState, start
from incrt.heads.certificates import Evidence
from incrt.heads.check import ACTIONS, Check, Measured, Watched, check_runs
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision

_BLAS = ThreadpoolController()
_BLAS_LIMITED = threading.Lock()
"""The limit is the whole process's: of two threads that set it, the first to end would lift it for the other."""


class Stack:
    """``indices`` are the runs' numbers in the population; ``states`` those to go on from, or None at the start."""

    def __init__(self, indices: Sequence[int], members: Sequence[Progress], states: Sequence[RunState] | None) -> None:
        self.indices, self.members = tuple(indices), list(members)
        self.count = len(members)
        self.ahead = Ahead()
        self.program = members[0].run.program()
        self._shaping = shaping(members[0].run.heads)
        self.params = stacked([each.run.params for each in members])
        if states is None:
            keys = jnp.stack([jax.random.key(each.run.seed) for each in members])
            self.states: RunState = _start(self.program, self.count, self.params, keys)
        else:
            self.states = stacked(states)

    def layout(self, platform: str, *, more: bool = False) -> Layout:
        """How the next stretch is to be computed on a device of this kind; or one with ``more`` heads than that fits.

        Where no more are possible that is the same.
        """
        encoder, heads = self.program.algorithm.encoder, max(member.heads for member in self.members)
        layout = layout_for(encoder, heads, platform)
        if more and isinstance(layout, Columns):
            return layout_for(encoder, layout.slots + 1, platform)
        return layout

    def host_states(self) -> list[RunState]:
        """The state of each run, on the host."""
        states = jax.device_get(self.states)
        return [one(states, i) for i in range(self.count)]

    # --- checks ------------------------------------------------------------------------------------------------

    def look(self) -> Look:
        """Ask the device for what a check is shown."""
        found: Look = _look(self.program, self._shaping, self.count, self.states)
        return found

    def may_act(self, step: int) -> bool:
        """Whether a check at this step can be an event of any run, whatever it is shown."""
        try:
            return any(run.can_act(step) for run in self._watched().values())
        except ValueError:  # what a trigger answers makes no sense: the check will say of which run
            return True

    def check(self, step: int, seen: Look, metrics: Mapping[int, Metrics] | None = None) -> dict[int, Check]:
        """The check of every sound run, by its place in the stack; events happen and are certified.

        ``metrics`` are those of the stretch before it, which triggers are shown too. A run whose trigger answers what
        makes no sense does not go on; the others do.
        """
        # Heads whose output is not finite end the run at its next action.
        runs = {i: run for i, run in self._watched(metrics).items() if np.all(np.isfinite(seen.shares[i]))}
        checks: dict[int, Check] = {}

        def refuse(i: int, error: ValueError) -> None:
            self.members[i].refused = ValueError(f"step {step}: {error}")

        for i, (check, heads_state) in check_runs(step, runs, partial(self._measure, seen), self._act, refuse).items():
            self.members[i].note(check, heads_state)
            checks[i] = check
        return checks

    def ask_ahead(self, states: RunState) -> None:
        """Have the program of an event compiled, for states like these."""
        each = jax.ShapeDtypeStruct((self.count,), np.int32)
        self.ahead.ask(_act, _act, self.program, self._shaping, self.count, states, each, each)

    def _watched(self, metrics: Mapping[int, Metrics] | None = None) -> dict[int, Watched]:
        """The runs that have checks and can go on."""
        return {
            i: Watched(each.run.trigger, each.heads_state, **(metrics[i].signals() if metrics else {}))
            for i, each in enumerate(self.members)
            if each.is_going_on and each.heads_state is not None
        }

    def _measure(self, seen: Look, wanted: Sequence[int]) -> dict[int, Measured]:
        def rank_of(i: int) -> float | None:
            run = self.members[i].run
            tokens = latest_contexts(one(seen.recent, i), run.heads.tokens, run.window)
            try:
                return effective_rank(tokens, run.heads.alpha)
            except ValueError as error:  # a decomposition that does not converge, for example: of this run alone
                self.members[i].refused = ValueError(f"a rank of its contexts cannot be taken: {error}")
                return None

        if len(wanted) == 1:
            ranks = [rank_of(wanted[0])]
        else:
            # One rank is too little work for the threads of a linear algebra library, many are enough for our own.
            with _BLAS_LIMITED, _BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor() as pool:
                ranks = list(pool.map(rank_of, wanted))
        known = ((i, rank) for i, rank in zip(wanted, ranks, strict=True) if rank is not None)
        return {i: Measured(rank, seen.shares[i].tolist()) for i, rank in known}

    def _act(self, events: Mapping[int, Decision]) -> dict[int, Evidence]:
        """Grow and prune what was decided, all runs at once."""
        actions, heads = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)
        for i, decision in events.items():
            actions[i], heads[i] = ACTIONS.index(decision.action), decision.head or 0
        shape = (self.program, self._shaping, self.count)
        self.ahead.take(_act)
        prunes = [i for i, decision in events.items() if decision.action == "prune"]
        removal = jax.device_get(_measure_removal(*shape, self.states, heads)) if prunes else None
        self.states, evidence = _act(*shape, self.states, actions, heads)
        evidence = jax.device_get(evidence)
        return {i: one(evidence, i)._replace(removal=one(removal, i) if i in prunes else None) for i in events}


def look_alone(run: Run, state: RunState) -> Look:
    """What a check of one run is shown, by the program that checks of one run have."""
    found: Look = one(jax.device_get(_look(run.program(), shaping(run.heads), 1, stacked([state]))), 0)
    return found


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree with one more axis in front."""
    # Through NumPy, which knows no weak types: numbers and arrays then need the same program.
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees))


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
def _look(program: Program, shaped: Shaping, count: int, states: RunState) -> Any:
    return many(count, partial(look, program, shaped))(states)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure_removal(program: Program, shaped: Shaping, count: int, states: RunState, heads: Array) -> Any:
    return many(count, partial(measure_removal, program, shaped))(states, heads)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _act(
    program: Program, shaped: Shaping, count: int, states: RunState, actions: Array, heads: Array
) -> tuple[Any, Any]:
    def of_one(state: RunState, action: Array, head: Array) -> tuple[Any, Any]:
        after = act(shaped, state, action, head)
        return after, measure(program, shaped, state, after.learner.learned)

    after, evidence = many(count, of_one)(states, actions, heads)
    return after, evidence
