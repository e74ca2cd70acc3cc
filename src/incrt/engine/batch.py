"""Runs of one program, their states stacked along a first axis."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array
from threadpoolctl import ThreadpoolController

from incrt.engine.ahead import Ahead
from incrt.engine.checks import Look, Shaping, act, action_code, look, measure, measure_removal, shaping
from incrt.engine.columns import Columns, layout_for
from incrt.engine.layouts import Layout
from incrt.engine.progress import Metrics, Progress, Run
from incrt.engine.replay import latest_contexts
from incrt.engine.step import Program, RunState, start
from incrt.heads.certificates import Evidence, PruneMeasures
from incrt.heads.check import Check, Measured, Watched, check_runs
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision, wanted_signals

Computed = TypeVar("Computed")
_BLAS = ThreadpoolController()
_BLAS_LIMITED = threading.Lock()
"""The limit is the whole process's: of two threads that set it, the first to end would lift it for the other."""


_ONE_CHECK = threading.Lock()
"""On two cores two checks once waited for each other for ever: each for a thread of XLA's CPU client that the other one
kept, in LAPACK. Their programs call no LAPACK any more (a test looks); that they take turns is a second safeguard."""


class Stack:
    """``indices`` are the runs' numbers in the population; ``states`` those to go on from, or None at the start."""

    def __init__(self, indices: Sequence[int], members: Sequence[Progress], states: Sequence[RunState] | None) -> None:
        self.indices, self.members = tuple(indices), list(members)
        self.count = len(members)
        self.ahead = Ahead()
        self.program = members[0].run.program()
        run = members[0].run
        wanted = {name for each in members if each.run.encoder.adapts for name in wanted_signals(each.run.trigger)}
        self._shaping = shaping(run.heads, run.sac)._replace(signals=tuple(sorted(wanted - {"rank", "shares"})))
        self.params = stacked([each.run.params for each in members])
        if states is None:
            keys = jnp.stack([jax.random.key(each.run.seed) for each in members])
            encoders = [each.run.own_encoder() for each in members]
            masks, loud = (
                jnp.stack([getattr(each, name) for each in encoders]) for name in ("first_mask", "first_loud")
            )
            self.states: RunState = _start(self.program, self.count, self.params, keys, masks, loud)
        else:
            self.states = stacked(states)
        self._on_cpu = all(device.platform == "cpu" for device in self.states.step.devices())

    @property
    def adapts(self) -> bool:
        """Whether heads of some of its runs come and go."""
        return any(each.run.encoder.adapts for each in self.members)

    @property
    def looks(self) -> bool:
        """Whether there is anything to see at a check."""
        return self.adapts or self._shaping.evaluations > 0

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
        with self._alone():
            found: Look = _look(self.program, self._shaping, self.count, self.params, self.states)
            return self._settled(found)

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
        # Heads whose output is not finite end the run at its next action, and there is nothing to decide before.
        measured = (seen.shares, *seen.signals.values())
        runs = {
            i: run
            for i, run in self._watched(metrics).items()
            if all(np.all(np.isfinite(each[i])) for each in measured)
        }
        checks: dict[int, Check] = {}

        def refuse(i: int, error: ValueError) -> None:
            self.members[i].refused = ValueError(f"step {step}: {error}")

        for i, (check, heads_state) in check_runs(
            step, runs, partial(self._measure, seen), self._weigh, self._act, refuse
        ).items():
            self.members[i].note(check, heads_state)
            checks[i] = check
        return checks

    def ask_ahead(self, states: RunState) -> None:
        """Have the program of an event compiled, for states like these."""
        actions, heads = (jax.ShapeDtypeStruct((self.count, *more), np.int32) for more in ((), (2,)))
        self.ahead.ask(_act, _act, self.program, self._shaping, self.count, states, actions, heads)

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
            if "rank" not in wanted_signals(run.trigger):
                return None
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
        return {
            i: Measured(
                rank, seen.shares[i].tolist(), {name: found[i].tolist() for name, found in seen.signals.items()}
            )
            for i, rank in zip(wanted, ranks, strict=True)
            if self.members[i].refused is None
        }

    def _weigh(self, prunes: Mapping[int, Decision]) -> dict[int, PruneMeasures]:
        """Measure what these prunes would do."""
        with self._alone():
            found = _measure_removal(self.program, self._shaping, self.count, self.states, *self._coded(prunes))
            found = jax.device_get(found)
        return {i: one(found, i) for i in prunes}

    def _act(self, events: Mapping[int, Decision]) -> dict[int, Evidence]:
        """Grow and prune what was decided, all runs at once."""
        self.ahead.take(_act)
        with self._alone():
            shape = (self.program, self._shaping, self.count)
            self.states, evidence = _act(*shape, self.states, *self._coded(events))
            evidence = jax.device_get(evidence)
        return {i: one(evidence, i) for i in events}

    def _coded(self, events: Mapping[int, Decision]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """What is to happen in each run, and to which heads of actor and critic, as the compiled programs take it."""
        actions, heads = np.zeros(self.count, np.int32), np.zeros((self.count, 2), np.int32)
        for i, decision in events.items():
            actions[i] = action_code(decision)
            head = decision.head or 0
            heads[i] = head if decision.actor_head is None else decision.actor_head, head
        return actions, heads

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """On a CPU no other check computes meanwhile; the training of other runs goes on."""
        if not self._on_cpu:
            yield
            return
        jax.block_until_ready(self.states)
        with _ONE_CHECK:
            yield

    def _settled(self, found: Computed) -> Computed:
        """What was asked for; on a CPU once it is there."""
        if self._on_cpu:
            jax.block_until_ready(found)
        return found


def look_alone(run: Run, state: RunState) -> Look:
    """What a check of one run is shown, by the program that checks of one run have."""
    found: Look = one(
        jax.device_get(
            _look(
                run.program(),
                shaping(run.heads, run.sac)._replace(evaluations=0),
                1,
                stacked([run.params]),
                stacked([state]),
            )
        ),
        0,
    )
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
def _start(program: Program, count: int, params: Any, keys: Array, masks: Array, loud: Array) -> Any:
    return many(count, partial(start, program))(params, keys, masks, loud)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _look(program: Program, shaped: Shaping, count: int, params: Any, states: RunState) -> Any:
    return many(count, partial(look, program, shaped))(params, states)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure_removal(
    program: Program, shaped: Shaping, count: int, states: RunState, actions: Array, heads: Array
) -> Any:
    return many(count, partial(measure_removal, program, shaped))(states, actions, heads[:, 0])


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _act(
    program: Program, shaped: Shaping, count: int, states: RunState, actions: Array, heads: Array
) -> tuple[Any, Any]:
    def of_one(state: RunState, action: Array, pair: Array) -> tuple[Any, Any]:
        after = act(program, shaped, state, action, *pair)
        return after, measure(program, shaped, state, after.learner.learned)

    after, evidence = many(count, of_one)(states, actions, heads)
    return after, evidence
