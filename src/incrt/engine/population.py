"""Many runs together: which of them share a program, and in which order they advance.

On a GPU all runs that can advance in step do, those of one program as one batch. On a CPU every run is a group of its
own, and as many groups advance at a time as there are cores (docs/engine.md has the figures for these choices).
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from incrt.config.rules import COUNT, one_of
from incrt.engine.batch import Stack
from incrt.engine.checks import shaping
from incrt.engine.device_loop import Group
from incrt.engine.progress import Checkpoint, Progress, Report, Run, first_progress
from incrt.engine.threads import usable_cores

DEVICES = ("auto", "cpu", "gpu")
"""Where to train; ``auto`` takes a GPU if there is one."""


class News(NamedTuple):
    """What one advance of some runs brought."""

    reports: list[Report]
    saved: list[tuple[int, Checkpoint]]
    """The runs that may be saved now, by their number."""


class Population:
    """Runs that train together; ``saved`` has an entry for each run that goes on from a checkpoint.

    On a CPU ``cores`` of them train at a time, as many as there are if it is not given.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        device: str = "auto",
        saved: Mapping[int, Checkpoint] | None = None,
        cores: int | None = None,
    ) -> None:
        if not runs:
            raise ValueError("a population must have at least one run")
        self.device = find_device(device)
        saved = saved or {}
        self.progress = [saved[i].progress if i in saved else first_progress(run) for i, run in enumerate(runs)]
        is_host = self.device.platform == "cpu"
        cores = cores or usable_cores()
        self._workers = cores if is_host else 1
        # On a single core compiling would take it from the training. On a GPU XLA tries out kernels while it compiles,
        # and training would be in the way of its clock.
        looks_ahead = is_host and cores > 1
        arranged = arrange(self.progress, set(saved), together=not is_host)
        with jax.default_device(self.device):
            self.groups = [
                Group(
                    [self._stack(each, saved) for each in stacks],
                    self.device,
                    lags=not is_host,
                    looks_ahead=looks_ahead,
                )
                for stacks in arranged
            ]

    def _stack(self, indices: Sequence[int], saved: Mapping[int, Checkpoint]) -> Stack:
        states = [saved[i].state for i in indices] if indices[0] in saved else None
        return Stack(indices, [self.progress[i] for i in indices], states)

    def train(self, save_every: int | None = None, stop: Callable[[], bool] = lambda: False) -> Iterator[News]:
        """Train to the end, or until ``stop`` says so; then, and every ``save_every`` steps, runs can be saved.

        A group is idle while its news are looked at.
        """
        if save_every is not None:
            COUNT("save_every", save_every)
        begun = {group: group.step for group in self.groups}
        saved_at: dict[Group, int] = {}

        def news(group: Group, reports: list[Report]) -> News:
            is_due = save_every is not None and group.step - saved_at.get(group, begun[group]) >= save_every
            if not (stop() or group.finished or is_due) or saved_at.get(group) == group.step:
                return News(reports, [])
            saved_at[group] = group.step
            reports.extend(group.rest())
            return News(reports, [(i, Checkpoint(self.progress[i].copy(), at)) for i, at in group.states().items()])

        waiting = deque(group for group in self.groups if not group.finished)
        busy: dict[Future[list[Report]], Group] = {}
        # At the end the groups' threads are waited for first: they may ask for programs until then.
        with ExitStack() as at_end, ThreadPoolExecutor(self._workers) as pool:
            for group in self.groups:
                at_end.callback(group.drop_ahead)
            while busy or (waiting and not stop()):
                while waiting and len(busy) < self._workers and not stop():
                    group = waiting.popleft()
                    busy[pool.submit(group.advance)] = group
                for done in wait(busy, return_when=FIRST_COMPLETED).done:
                    group = busy.pop(done)
                    yield news(group, done.result())
                    if not group.finished:
                        waiting.append(group)
        for group in waiting:  # those that were stopped
            yield news(group, [])


def arrange(progress: Sequence[Progress], resumed: AbstractSet[int], *, together: bool) -> list[list[list[int]]]:
    """Groups of stacks of the numbers of all runs that have something left to do.

    ``together`` puts all runs into one group that can advance in step; otherwise each is a group of its own.
    """
    groups: dict[Hashable, dict[Hashable, list[int]]] = {}
    for i, each in enumerate(progress):
        if not each.finished:
            pace, kind = (_pace(each), (_kind(each), i in resumed)) if together else (i, i)
            groups.setdefault(pace, {}).setdefault(kind, []).append(i)
    return [list(stacks.values()) for stacks in groups.values()]


def _pace(progress: Progress) -> Hashable:
    """What runs must have in common to advance together."""
    return (progress.step, progress.run.sac.steps, progress.run.heads.check_every)


def _kind(progress: Progress) -> Hashable:
    """What runs must have in common to be stacked."""
    run = progress.run
    leaves, structure = jax.tree.flatten(run.params)
    shapes = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    return (run.program(), shaping(run.heads, run.sac), structure, shapes)


def find_device(name: str) -> jax.Device:
    """The device to train on; one that is not there is refused."""
    one_of(DEVICES)("device", name)
    try:
        device = jax.devices(None if name == "auto" else name)[0]
    except RuntimeError as error:
        raise ValueError(f"there is no {name} here ({error}); device auto takes what there is") from None
    if device.platform not in DEVICES:
        raise ValueError(f"training runs on {' or '.join(DEVICES[1:])}, not on {device.platform}; name one of them")
    return device
