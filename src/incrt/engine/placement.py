"""How a lone run is laid onto the cores: left to all of them, or kept on one, whichever is faster on this machine.

With more than one core XLA hands the kernels of a step from thread to thread. With a step of two milliseconds that may
gain or cost, and which of the two differs from machine to machine. How many threads there are is settled when JAX
starts, so the first start of a run leaves it all cores, the second keeps it on one, and from then on the faster of the
two is taken. Where a run is trained makes no difference to its bits.
"""

import contextlib
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Self

from incrt.storage.cache import cache_folder
from incrt.storage.json import read_json, write_json
from incrt.storage.lock import HeldError, lock

_GAIN = 0.97
"""One core must take less than this part of the time that all take, else the run is left all of them."""
_SLOW, _PATIENCE = 0.7, 3
"""After so many stretches in a row at less than this part of the best rate it is taken that another process is in the
way on the core; the run may then move."""
_THREADS = Path("/proc/self/task")
_CAN_PLACE = hasattr(os, "sched_setaffinity") and _THREADS.is_dir()
"""Whether threads can be told where to run: on Linux."""


class Placement:
    """Of a run that trains alone, from before JAX starts to the end; ``program`` names what shapes its program.

    A core that another process keeps a run on in this way is not taken; where none is free the run has all. Where
    something else keeps the core busy the run is let go.
    """

    def __init__(self, program: str, folder: Path | None = None) -> None:
        self._folder = (folder or cache_folder()) / "placement"
        self._name = f"{_machine()}: {program}"
        self._held: IO[str] | None = None
        self._all = os.sched_getaffinity(0) if _CAN_PLACE else set()
        self._fastest: dict[str, float] = {}
        measured = self._read().get(self._name, {})
        rates = [pair for way in measured.values() for pair in way.items()]
        self._best = dict(sorted(rates, key=lambda pair: pair[1]))  # the higher of two of one key
        self._slow = 0
        self.on_one_core = len(self._all) > 1 and _prefers_one_core(measured) and self._take_core()

    def note(self, heads: int, steps_per_s: float) -> None:
        """A stretch with so many active heads was trained at this rate; the fastest counts."""
        key = str(heads)
        self._fastest[key] = max(self._fastest.get(key, 0.0), round(steps_per_s, 1))
        self._slow = self._slow + 1 if steps_per_s < _SLOW * self._best.get(key, 0.0) else 0
        if self._slow >= _PATIENCE:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what was measured, and let the core go."""
        if len(self._all) > 1:
            self._keep()
        self._let_go()

    def _take_core(self) -> bool:
        """Move to a core that no other process has taken, if there is one."""
        for core in sorted(self._all):
            with contextlib.suppress(HeldError, OSError):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._held = lock(self._folder / f"core-{core}.lock", wait=False)
                _move_all_threads({core})
                return True
        return False

    def _let_go(self) -> None:
        """Give all threads all cores again."""
        if self._held is not None:
            _move_all_threads(self._all)
            self._held.close()
            self._held = None

    def _keep(self) -> None:
        known = self._read()
        way = "one" if self.on_one_core else "all"
        measured = known.get(self._name, {})
        before = measured.get(way, {})
        fastest = {key: max(rate, before.get(key, 0.0)) for key, rate in {**before, **self._fastest}.items()}
        known[self._name] = {**measured, way: fastest}
        with contextlib.suppress(OSError):  # where nothing can be kept, the next start measures again
            self._folder.mkdir(parents=True, exist_ok=True)
            write_json(self._folder / "measured.json", known)

    def _read(self) -> dict[str, Any]:
        """Rates by machine and program, by way, by active heads; what cannot be read is measured anew."""
        with contextlib.suppress(ValueError):
            found = read_json(self._folder / "measured.json")
            if isinstance(found, dict) and all(_is_measured(entry) for entry in found.values()):
                return found
        return {}


def _prefers_one_core(measured: dict[str, dict[str, float]]) -> bool:
    """By the time of a step, over the numbers of heads that were trained both ways."""
    every, one = measured.get("all", {}), measured.get("one", {})
    common = every.keys() & one.keys()
    if not common:
        return bool(every)
    return sum(1 / one[key] for key in common) < _GAIN * sum(1 / every[key] for key in common)


def _is_measured(entry: Any) -> bool:
    ways = entry.values() if isinstance(entry, dict) else [None]
    return all(isinstance(way, dict) and all(isinstance(r, float) and r > 0 for r in way.values()) for way in ways)


def limit_cores(count: int) -> None:
    """Let this process have so many of its cores; called before JAX starts, which then has as many threads."""
    usable = usable_cores()
    if count > usable:
        raise ValueError(f"cores must be at most {usable}, which is how many this process may use; got {count}")
    if _CAN_PLACE and count < usable:
        _move_all_threads(set(sorted(os.sched_getaffinity(0))[-count:]))


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


def _move_all_threads(cores: set[int]) -> None:
    for thread in _THREADS.iterdir():
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            os.sched_setaffinity(int(thread.name), cores)
