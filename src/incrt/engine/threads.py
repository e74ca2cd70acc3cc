"""How many threads XLA has on a CPU; for a run that trains alone, one or all, whichever is faster on this machine.

With more than one thread XLA hands the kernels of a step from thread to thread. With a step of two milliseconds that
may gain or cost, and which of the two differs from machine to machine. How many there are is settled when JAX starts,
so the first start of a run gives it all, the second a single one, and from then on the faster of the two is taken. No
thread is tied to a core: that would be no faster, and a run could not leave a core that something else keeps busy. How
many threads there are makes no difference to the bits of a run.
"""

import contextlib
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from incrt.storage.cache import cache_folder
from incrt.storage.json import read_json, write_json

_THREADS = "PJRT_NPROC"
"""Where XLA looks, when it starts, for how many threads are to compute."""
_GAIN = 0.97
"""A single thread must take less than this part of the time that all take, else the run gets all."""
_ENOUGH = 3
"""Stretches with one number of heads that a start must have trained before their best rate counts: in the first of them
programs are compiled, and a start that is stopped there has measured nothing."""


class ThreadChoice:
    """Of a run that trains alone, from before JAX starts to the end; ``program`` names what shapes its program.

    Where the user has chosen how many threads there are, nothing is chosen or measured.
    """

    def __init__(self, program: str, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / "threads" / "measured.json"
        self._name = f"{_machine()}: {program}"
        self._rates: dict[str, list[float]] = {}
        self._chooses = usable_cores() > 1 and _THREADS not in os.environ
        self.on_one_thread = self._chooses and _prefers_one_thread(self._read().get(self._name, {}))
        if self.on_one_thread:
            os.environ[_THREADS] = "1"

    def note(self, heads: int, steps_per_s: float) -> None:
        """A stretch with so many active heads was trained at this rate; of enough of them the fastest counts."""
        self._rates.setdefault(str(heads), []).append(round(steps_per_s, 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what was measured."""
        fastest = {heads: max(rates) for heads, rates in self._rates.items() if len(rates) >= _ENOUGH}
        if self._chooses and fastest:
            self._keep(fastest)
        if self.on_one_thread:
            del os.environ[_THREADS]

    def _keep(self, fastest: dict[str, float]) -> None:
        known = self._read()
        way = "one" if self.on_one_thread else "all"
        measured = known.get(self._name, {})
        before = measured.get(way, {})
        best = {heads: max(rate, before.get(heads, 0.0)) for heads, rate in {**before, **fastest}.items()}
        known[self._name] = {**measured, way: best}
        with contextlib.suppress(OSError):  # where nothing can be kept, the next start measures again
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._file, known)

    def _read(self) -> dict[str, Any]:
        """Rates by machine and program, by way, by active heads; what cannot be read is measured anew."""
        with contextlib.suppress(ValueError):
            found = read_json(self._file)
            if isinstance(found, dict) and all(_is_measured(entry) for entry in found.values()):
                return found
        return {}


def _prefers_one_thread(measured: dict[str, dict[str, float]]) -> bool:
    """By the time of a step, over the numbers of heads that were trained both ways."""
    every, one = measured.get("all", {}), measured.get("one", {})
    common = every.keys() & one.keys()
    if not common:
        return bool(every)
    return sum(1 / one[heads] for heads in common) < _GAIN * sum(1 / every[heads] for heads in common)


def _is_measured(entry: Any) -> bool:
    ways = entry.values() if isinstance(entry, dict) else [None]
    return all(isinstance(way, dict) and all(isinstance(r, float) and r > 0 for r in way.values()) for way in ways)


def limit_threads(count: int) -> None:
    """Let XLA compute with so many threads in this process; called before JAX starts."""
    usable = usable_cores()
    if count > usable:
        raise ValueError(f"cores must be at most {usable}, which is how many this process may use; got {count}")
    os.environ[_THREADS] = str(count)


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _machine() -> str:
    """What a rate belongs to: processor, usable cores, and the compiler's version."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {usable_cores()} cores, jaxlib {version('jaxlib')}"
