"""Training into folders: runs go on from where they stand, are saved as they go, and stop when asked to."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jax

from incrt.arm.task import make_task
from incrt.config import RunConfig
from incrt.config.rules import COUNT
from incrt.engine.population import News, Population, find_device
from incrt.engine.progress import Checkpoint, Progress, Run, first_progress
from incrt.engine.run_folder import RunFolder, made_by


class Job(NamedTuple):
    """A run and where it is kept."""

    run: Run
    folder: Path
    about: Mapping[str, Any]
    """What config.json is to say of the environment, whose settings only its maker knows."""


def make_job(folder: Path | str, config: RunConfig) -> Job:
    """A run of the task that a configuration describes, kept in a folder."""
    environment, params = make_task(config.task)
    run = Run(config.seed, environment, params, config.task.window, config.encoder, config.heads, config.sac)
    return Job(run, Path(folder), {"task": config.task.to_json(), "files": config.files()})


def train(
    jobs: Sequence[Job],
    device: str = "auto",
    save_every: int = 5000,
    on_news: Callable[[Population, News], None] | None = None,
    warn: Callable[[str], None] = warnings.warn,
    on_refused: Callable[[Job, ValueError], None] | None = None,
    cores: int | None = None,
) -> list[Progress]:
    """Train every job to its end, or until SIGINT or SIGTERM; what was done is saved either way.

    :param save_every: environment steps between two checkpoints of a run; checkpoints fall on checks
    :param on_news: told of every advance, and once before the first
    :param warn: told of checkpoints that cannot be used
    :param on_refused: told of each job whose folder cannot be used, or that a check has ended (by nonsense of its
        trigger, for example), and why; the others are trained. Without it one such folder is an error at once, and all
        runs that checks have ended are one error once the others are trained.
    :param cores: on a CPU, how many runs train at a time; as many as there are cores if not given
    """
    COUNT("save_every", save_every)
    if len({job.folder.resolve() for job in jobs}) < len(jobs):
        raise ValueError("every run needs a folder of its own")
    place = find_device(device)
    for job in jobs:
        first_progress(job.run)  # what cannot be trained is refused before any folder is made
    tell = on_news or (lambda *_: None)
    with ExitStack() as open_folders:
        taken, found = _take(jobs, place, warn, on_refused, open_folders)
        if not taken:
            return []
        folders = [folder for _, folder in taken]
        population = Population([folder.run for folder in folders], device, found, cores)
        tell(population, News([], []))
        with until_signalled() as stop, ThreadPoolExecutor(1) as writer:
            writing: list[Future[None]] = []
            for news in population.train(save_every, stop):
                for report in news.reports:
                    folders[report.number].add(report)
                if news.saved:
                    _wait(writing)
                    # Checkpoints are written while training goes on, with the logs' lengths of this moment.
                    writing = [
                        writer.submit(_save, place, folders[i], saved, folders[i].log_lengths())
                        for i, saved in news.saved
                    ]
                tell(population, news)
            _wait(writing)
        _tell_refused(taken, population.progress, on_refused)
        return population.progress


def _tell_refused(
    taken: Sequence[tuple[Job, RunFolder]],
    progress: Sequence[Progress],
    on_refused: Callable[[Job, ValueError], None] | None,
) -> None:
    """Say which runs could not go on, and why, once the others are trained."""
    refused = [(*kept, each.refused) for kept, each in zip(taken, progress, strict=True) if each.refused is not None]
    said = [(job, f"{error} (run {folder.path}{_going_on(folder)})") for job, folder, error in refused]
    for _, folder, _ in reversed(refused):  # the first may have made a folder for all
        folder.discard()
    if said and on_refused is None:
        raise ValueError("; ".join(why for _, why in said))
    for job, why in said:
        with _refusing(job, on_refused):
            raise ValueError(why)


def _going_on(folder: RunFolder) -> str:
    return "" if folder.is_bare else ", which goes on from its last checkpoint once that is mended"


def _take(
    jobs: Sequence[Job],
    place: jax.Device,
    warn: Callable[[str], None],
    on_refused: Callable[[Job, ValueError], None] | None,
    open_folders: ExitStack,
) -> tuple[list[tuple[Job, RunFolder]], dict[int, Checkpoint]]:
    """The folders of the runs that can be trained, ready for it, and by their number those that go on."""
    found: list[tuple[Job, RunFolder, Checkpoint | None]] = []
    for job in jobs:
        folder = RunFolder(job.folder, job.run, job.about, warn)
        open_folders.callback(folder.close)
        try:
            with _refusing(job, on_refused):
                found.append((job, folder, folder.take()))
        except ValueError:
            for _, other, _ in reversed(found):
                if other.is_new:
                    other.discard()
            raise
    maker = made_by(place.device_kind)
    taken: list[tuple[Job, RunFolder]] = []
    resumed: dict[int, Checkpoint] = {}
    for job, folder, saved in found:  # nothing was changed before all were taken: one may be refused
        with _refusing(job, on_refused), jax.default_device(place):
            folder.begin(maker)
            if saved is not None:
                resumed[len(taken)] = saved
            taken.append((job, folder))
    return taken, resumed


@contextmanager
def _refusing(job: Job, on_refused: Callable[[Job, ValueError], None] | None) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if on_refused is None:
            raise
        on_refused(job, error)


def _save(place: jax.Device, folder: RunFolder, saved: Checkpoint, log_lengths: Mapping[str, int]) -> None:
    with jax.default_device(place):  # a thread of its own has a default of its own
        folder.save(saved, log_lengths)


def _wait(writing: Sequence[Future[None]]) -> None:
    for each in writing:
        each.result()


@contextmanager
def until_signalled(on_signal: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGINT or SIGTERM has come; a second one of them acts as it always does.

    ``on_signal`` is called as it comes: to save takes some seconds, and who asked wants to know that he was heard.

    One inside another passes it on, so that both are asked to stop, and is asked from the start if the other was.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield lambda: False
        return
    if any(each.is_set() for each in _ASKING.values()):
        yield lambda: True
        return
    asked = threading.Event()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler not in {None, signal.SIG_IGN}}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        restore()
        on_signal()
        outer: Any = before[signal.Signals(number)]
        if outer in _ASKING:
            outer(number, frame)

    for number in before:
        signal.signal(number, ask)
    _ASKING[ask] = asked
    try:
        yield asked.is_set
    finally:
        del _ASKING[ask]
        if not asked.is_set():
            restore()


_ASKING: dict[Any, threading.Event] = {}
"""The handlers of all :func:`until_signalled` that are under way, and whether they were called."""
