"""Training into folders: runs go on from where they stand, are saved as they go, and stop when asked to."""

import dataclasses
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from incrt.bench import make_bench
from incrt.config import BenchConfig, EncoderConfig, RuntimeConfig, SacConfig
from incrt.config.rules import COUNT, whole
from incrt.sac.folder import RunFolder, made_by
from incrt.sac.population import News, Population, find_device
from incrt.sac.progress import Progress, Run, Saved, first_progress


class Job(NamedTuple):
    """A run and where it is kept."""

    run: Run
    folder: Path
    about: Mapping[str, Any]
    """What config.json is to say of the environment, whose settings only its maker knows."""


def bench_job(
    folder: Path | str,
    seed: int,
    bench: BenchConfig,
    *,
    encoder: EncoderConfig | None = None,
    runtime: RuntimeConfig | None = None,
    sac: SacConfig | None = None,
) -> Job:
    """A run on the bench; what is not given is as in preset memory."""
    environment, params = make_bench(bench)
    run = Run(
        seed,
        environment,
        params,
        bench.window,
        encoder or EncoderConfig(),
        runtime or RuntimeConfig(),
        sac or SacConfig(),
    )
    return Job(run, Path(folder), {"bench": dataclasses.asdict(bench)})


def train(
    jobs: Sequence[Job],
    device: str = "auto",
    save_every: int = 5000,
    on_news: Callable[[Population, News], None] | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> list[Progress]:
    """Train every job to its end, or until SIGINT or SIGTERM; what was done is saved either way.

    :param save_every: environment steps between two checkpoints of a run; checkpoints fall on checks
    :param on_news: told of every advance, and once before the first
    :param warn: told of checkpoints that cannot be used
    """
    whole("save_every", save_every, COUNT)
    if len({job.folder.resolve() for job in jobs}) < len(jobs):
        raise ValueError("every run needs a folder of its own")
    find_device(device)
    for job in jobs:
        first_progress(job.run)  # what cannot be trained is refused before any folder is made
    folders = [RunFolder(job.folder, job.run, job.about, warn) for job in jobs]
    with ExitStack() as open_folders:
        for folder in folders:
            open_folders.callback(folder.close)
        return _train(folders, device, save_every, on_news or (lambda *_: None))


def _train(
    folders: Sequence[RunFolder], device: str, save_every: int, tell: Callable[[Population, News], None]
) -> list[Progress]:
    maker = made_by(find_device(device).device_kind)
    found = {i: saved for i, folder in enumerate(folders) if (saved := folder.open(maker)) is not None}
    population = Population([folder.run for folder in folders], device, found)
    tell(population, News([], []))
    with until_signalled() as stop, ThreadPoolExecutor(1) as writer:
        writing: list[Future[None]] = []
        for news in population.train(save_every, stop):
            for report in news.reports:
                folders[report.number].add(report)
            if news.saved:
                _wait(writing)
                # Checkpoints are written while training goes on, with the logs' lengths of this moment.
                writing = [_submit(writer, folders[i], saved) for i, saved in news.saved]
            tell(population, news)
        _wait(writing)
    return population.progress


def _submit(writer: ThreadPoolExecutor, folder: RunFolder, saved: Saved) -> Future[None]:
    return writer.submit(folder.save, saved, folder.log_lengths())


def _wait(writing: Sequence[Future[None]]) -> None:
    for each in writing:
        each.result()


@contextmanager
def until_signalled() -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGINT or SIGTERM has come; a second one of them acts as it always does."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield lambda: False
        return
    asked = threading.Event()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler not in {None, signal.SIG_IGN}}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(*_: Any) -> None:
        asked.set()
        restore()

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked.is_set
    finally:
        restore()
