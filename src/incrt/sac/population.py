"""Many runs together: which of them share a program, and in which order they advance.

On a GPU, runs that need the same program are one group and train in one batch. On a CPU every run is a group of its own,
and as many groups advance at a time as there are cores (docs/engine.md has the figures for this choice).
"""

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import jax
import numpy as np

from incrt.config.rules import check_name
from incrt.sac.group import Group
from incrt.sac.progress import Progress, Report, Run, first_progress
from incrt.sac.run import RunState

DEVICES = ("auto", "cpu", "gpu")
"""Where to train; ``auto`` takes a GPU if there is one."""


class Saved(NamedTuple):
    """All that it takes to go on with a run."""

    progress: Progress
    state: RunState


class News(NamedTuple):
    """What one advance of some runs brought."""

    reports: list[Report]
    saved: list[tuple[int, Saved]]
    """The runs that may be saved now, by their number."""


class Population:
    """Runs that train together; ``saved`` has an entry for each run that goes on from a checkpoint."""

    def __init__(self, runs: Sequence[Run], device: str = "auto", saved: dict[int, Saved] | None = None) -> None:
        if not runs:
            raise ValueError("a population must have at least one run")
        self.device = find_device(device)
        saved = saved or {}
        self.progress = [saved[i].progress if i in saved else first_progress(run) for i, run in enumerate(runs)]
        members: dict[Hashable, list[int]] = {}
        for i, progress in enumerate(self.progress):
            if not progress.finished:
                members.setdefault(self._kinship(i, progress), []).append(i)
        self._groups = [
            Group(
                indices,
                [self.progress[i] for i in indices],
                [saved[i].state for i in indices] if indices[0] in saved else None,
                self.device,
            )
            for indices in members.values()
        ]

    def _kinship(self, index: int, progress: Progress) -> Hashable:
        """What runs must have in common to train in one batch."""
        if self.device.platform == "cpu":
            return index
        run = progress.run
        shapes = [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in jax.tree.leaves(run.params)]
        looks = (run.runtime.check_every, run.runtime.tokens, run.runtime.share_batch, run.runtime.optimiser)
        return (run.program(), jax.tree.structure(run.params), tuple(shapes), looks, progress.step)

    def train(self, save_every: int, stop: Callable[[], bool] = lambda: False) -> Iterator[News]:
        """Train to the end, or until ``stop`` says so; every ``save_every`` steps, and then, runs can be saved."""
        for group, reports in self._advances(stop):
            saved: list[tuple[int, Saved]] = []
            if stop() or group.finished or group.step % save_every == 0:
                reports += group.rest()
                states = zip(group.indices, group.states(), strict=True)
                saved = [(i, Saved(self.progress[i], state)) for i, state in states]
            yield News(reports, saved)

    def _advances(self, stop: Callable[[], bool]) -> Iterator[tuple[Group, list[Report]]]:
        """Each group as it has advanced, idle until the next one is asked for; at the end those that were stopped."""
        workers = usable_cores() if self.device.platform == "cpu" else 1
        waiting = deque(self._groups)
        busy: dict[Future[list[Report]], Group] = {}
        with ThreadPoolExecutor(workers) as pool:
            while busy or (waiting and not stop()):
                while waiting and len(busy) < workers and not stop():
                    group = waiting.popleft()
                    busy[pool.submit(group.advance)] = group
                for done in wait(busy, return_when=FIRST_COMPLETED).done:
                    group = busy.pop(done)
                    yield group, done.result()
                    if not group.finished:
                        waiting.append(group)
        for group in waiting:
            yield group, []


def find_device(name: str) -> jax.Device:
    """The device to train on; one that is not there is refused."""
    check_name("device", name, DEVICES)
    try:
        return jax.devices(None if name == "auto" else name)[0]
    except RuntimeError as error:
        raise ValueError(f"there is no {name} here: {error}") from None


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
