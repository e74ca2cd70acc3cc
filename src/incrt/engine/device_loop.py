"""Runs that advance together, in step: from one check to the next in one call of one compiled program.

The device is asked for a stretch of steps and for what the check at its end is shown. The host takes the ranks while
the device is busy with the next stretch; the device waits for the host only where the check can be an event
(:class:`incrt.heads.triggers.Trigger`). Runs of different programs (windows, encoders) are stacked apart and share the
stretch.
"""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import Array

from incrt.engine.ahead import Ahead
from incrt.engine.batch import Stack, one
from incrt.engine.checks import Look
from incrt.engine.layouts import Layout
from incrt.engine.progress import Failure, Progress, Report, summarise
from incrt.engine.step import CAUSES, Draws, Program, RunState, as_record, as_row, draw, train_step
from incrt.heads.check import is_due

_WORTH_IT = 8000
"""Steps that must remain: compiling a program for fewer, some ten seconds, could take longer than to train them."""
_BLOCK = 64
"""Of about so many steps random numbers are drawn at once, and kept in memory until then."""


class _Pending(NamedTuple):
    """A stretch that the device was asked for and the host has not looked at yet."""

    step: int
    steps: int
    found: list["_Found"]
    """Of each stack."""


class _Found(NamedTuple):
    """What a stretch left for the host, of the runs of one stack."""

    rows: Array
    step: Array
    cause: Array
    look: Look | None


class Group:
    """Stacks of runs that are all at the same step and have the same cadence of checks.

    ``lags`` says whether the host may be one stretch behind the device: yes, unless the device is the host.
    ``looks_ahead`` says whether programs are compiled beside the training.
    """

    def __init__(self, stacks: Sequence[Stack], device: jax.Device, *, lags: bool, looks_ahead: bool = False) -> None:
        self.stacks, self._device, self._lags, self._looks_ahead = list(stacks), device, lags, looks_ahead
        self._run = stacks[0].members[0].run
        self.step = stacks[0].members[0].step
        self._pending: _Pending | None = None
        self._ahead = Ahead()
        self._clock = time.perf_counter()

    @property
    def members(self) -> list[Progress]:
        return [each for stack in self.stacks for each in stack.members]

    @property
    def finished(self) -> bool:
        """Whether no run has anything left to do."""
        return self._pending is None and self._at_end

    @property
    def _at_end(self) -> bool:
        return self.step >= self._run.sac.steps or not any(each.is_going_on for each in self.members)

    def advance(self) -> list[Report]:
        """Train to the next check. The host looks at it at once where it may be an event, else beside the next."""
        cadence = self._run.heads.check_every
        steps = min(cadence - self.step % cadence, self._run.sac.steps - self.step)
        platform = "cpu" if self._device.platform == "cpu" else "gpu"
        layouts = tuple(stack.layout(platform) for stack in self.stacks)
        programs, counts, params, states = zip(
            *((each.program, each.count, each.params, each.states) for each in self.stacks), strict=True
        )
        behind, self._pending = self._pending, None
        with ThreadPoolExecutor(1) as host, jax.default_device(self._device):
            # In a thread: a call of the device keeps the caller busy nearly as long as the device is.
            catching_up = host.submit(self._look_at, behind)
            self._ahead.take((layouts, steps))
            states, rows = _TRAIN[platform](programs, counts, layouts, steps, params, states)
            self.step += steps
            self._ask_ahead(platform, programs, counts, layouts, params, states)
            found = []
            for stack, state, row in zip(self.stacks, states, rows, strict=True):
                stack.states = state
                checked = stack.looks and is_due(self._run.heads, self.step)
                # Step and cause are copied, since the next stretch takes the states' memory over.
                found.append(_Found(row, state.step.copy(), state.cause.copy(), stack.look() if checked else None))
            self._pending = _Pending(self.step, steps, found)
            reports = catching_up.result()
        if not self._lags or self._at_end or any(stack.may_act(self.step) for stack in self.stacks):
            reports += self.rest()
        return reports

    def _ask_ahead(
        self,
        platform: str,
        programs: tuple[Program, ...],
        counts: tuple[int, ...],
        layouts: tuple[Layout, ...],
        params: tuple[Any, ...],
        states: tuple[Any, ...],
    ) -> None:
        """Have compiled what the next growth will need."""
        run = self._run
        is_worth_it = any(stack.adapts for stack in self.stacks) and run.sac.steps - self.step >= _WORTH_IT
        if not (self._looks_ahead and is_worth_it):
            return
        for stack, state in zip(self.stacks, states, strict=True):
            stack.ask_ahead(state)
        grown = tuple(stack.layout(platform, more=True) for stack in self.stacks)
        if grown != layouts:
            cadence = run.heads.check_every
            self._ahead.ask((grown, cadence), _TRAIN[platform], programs, counts, grown, cadence, params, states)

    def drop_ahead(self) -> None:
        """No program is needed any more that has not been called."""
        for ahead in (self._ahead, *(stack.ahead for stack in self.stacks)):
            ahead.drop()

    def rest(self) -> list[Report]:
        """Let the host catch up, so that the runs may be saved."""
        pending, self._pending = self._pending, None
        return self._look_at(pending)

    def _look_at(self, pending: _Pending | None) -> list[Report]:
        """Catch up with what the device has done."""
        if pending is None:
            return []
        found = jax.device_get(pending.found)
        now = time.perf_counter()
        rate, self._clock = pending.steps / (now - self._clock), now
        with jax.default_device(self._device):
            return [
                report
                for stack, of_stack in zip(self.stacks, found, strict=True)
                for report in _settle(stack, pending.step - pending.steps, pending.step, of_stack, rate)
            ]

    def states(self) -> dict[int, RunState]:
        """The state of each run that was not refused, on the host, by its number in the population."""
        return {
            i: state
            for stack in self.stacks
            for i, member, state in zip(stack.indices, stack.members, stack.host_states(), strict=True)
            if member.refused is None
        }


def _settle(stack: Stack, begun: int, step: int, found: _Found, rate: float) -> list[Report]:
    """Catch up with a stretch of one stack, from step ``begun`` on: figures, failures, checks, events."""
    sound = [i for i, each in enumerate(stack.members) if each.is_going_on]
    for i in sound:
        stack.members[i].step = int(found.step[i])
        if found.cause[i]:
            stack.members[i].failure = Failure(int(found.step[i]), CAUSES[found.cause[i]])
    # Of a run that failed only the steps before count.
    trained = {i: as_record(found.rows[: int(found.step[i]) - begun, i]) for i in sound}
    metrics = {i: summarise(stack.members[i].step, record, rate) for i, record in trained.items()}
    if found.look is not None:
        metrics = {i: each._replace(evaluation=_number(found.look.evaluation[i])) for i, each in metrics.items()}
    checks = {} if found.look is None else stack.check(step, found.look, metrics)
    return [Report(stack.indices[i], metrics[i], checks.get(i)) for i in sound if stack.members[i].refused is None]


def _number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def train_stacks(
    programs: tuple[Program, ...],
    counts: tuple[int, ...],
    layouts: tuple[Layout, ...],
    steps: int,
    params: tuple[Any, ...],
    states: tuple[Any, ...],
) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
    """So many steps of every stack; of each the states, and rows of figures of shape (steps, count, figures)."""
    shaped = list(zip(programs, counts, layouts, strict=True))
    # A single run goes without the batch axis: inside the loop it would make XLA copy the replay at every step.
    params, states = (tuple(map(_without_run_axis, counts, each)) for each in (params, states))
    block = block_of(steps)

    def take_block(states: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        draws = tuple(
            _over_runs(count, partial(draw, program, layout, steps=block), out_axes=1)(state)
            for (program, count, layout), state in zip(shaped, states, strict=True)
        )
        return jax.lax.scan(take_step, states, draws)

    def take_step(states: tuple[Any, ...], draws: tuple[Draws, ...]) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        moved = [
            _over_runs(count, partial(train_step, program, layout=layout))(each, state=state, draws=drawn)
            for (program, count, layout), each, state, drawn in zip(shaped, params, states, draws, strict=True)
        ]
        return tuple(state for state, _ in moved), tuple(as_row(record) for _, record in moved)

    def pack(layout: Layout, state: RunState) -> RunState:
        return state._replace(learner=layout.pack(state.learner))

    def unpack(layout: Layout, state: RunState, before: RunState) -> RunState:
        return state._replace(learner=layout.unpack(state.learner, before.learner))

    packed = tuple(
        _over_runs(count, partial(pack, layout))(state)
        for (_, count, layout), state in zip(shaped, states, strict=True)
    )
    packed, blocks = jax.lax.scan(take_block, packed, length=steps // block)
    rows = (rows.reshape(steps, *rows.shape[2:]) for rows in blocks)
    after = tuple(
        _over_runs(count, partial(unpack, layout))(*each)
        for (_, count, layout), *each in zip(shaped, packed, states, strict=True)
    )
    return tuple(map(_with_run_axis, counts, after)), tuple(
        row if count > 1 else row[:, None] for count, row in zip(counts, rows, strict=True)
    )


def block_of(steps: int) -> int:
    """The divisor of so many steps that is next to ``_BLOCK``, by their ratio.

    Not 1 unless there is a single step: a loop that runs once XLA takes apart and rounds in another way.
    """
    divisors = (count for count in range(2, steps + 1) if steps % count == 0)
    return min(divisors, key=lambda count: max(count / _BLOCK, _BLOCK / count), default=1)


def _over_runs(count: int, function: Any, out_axes: int = 0) -> Any:
    return jax.vmap(function, out_axes=out_axes) if count > 1 else function


def _without_run_axis(count: int, tree: Any) -> Any:
    return tree if count > 1 else one(tree, 0)


def _with_run_axis(count: int, tree: Any) -> Any:
    return tree if count > 1 else jax.tree.map(lambda leaf: leaf[None], tree)


COMPILER_OPTIONS: dict[str, dict[str, str | bool]] = {
    # Of XLA's two libraries for products YNNPACK is the faster one for ours, but not for what it would fuse with them.
    # Sums over a window are bound by loads; with vectors of 512 bits there are half as many, where the CPU has them.
    "cpu": {
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        "xla_cpu_prefer_vector_width": "512",
        # Finds more of what a loop carries that need not be copied.
        "xla_cpu_copy_insertion_use_region_analysis": True,
    },
    # A step is many kernels too small to fill a GPU: those that do not wait for each other run side by side.
    "gpu": {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"},
}
_TRAIN = {
    kind: jax.jit(train_stacks, static_argnums=(0, 1, 2, 3), donate_argnums=5, compiler_options=options)
    for kind, options in COMPILER_OPTIONS.items()
}
