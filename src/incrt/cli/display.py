"""How training shows itself: a live table on a terminal, plain lines elsewhere, TensorBoard on request."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from incrt.cli.terminal import LiveView, progress_bar
from incrt.engine.population import News, Population
from incrt.engine.progress import Progress, Report
from incrt.engine.run_folder import TENSORBOARD
from incrt.heads.check import Check

_SHOWN_RUNS = 16
_SECONDS_BETWEEN_LINES = 10.0


class Display(LiveView):
    """Told of all news of a population."""

    def __init__(self, folders: Sequence[Path], console: Console, *, tensorboard: bool) -> None:
        super().__init__(console)
        self._folders = list(folders)
        self._boards: list[Any] = [_Board(folder) for folder in folders] if tensorboard else []
        self._returns: dict[int, float] = {}
        self._events: dict[int, Check] = {}
        self._has_begun = False
        self._clocked: tuple[float, int] | None = None
        """When the first stretch was over, before which programs are compiled, and the steps that were done by then."""
        self._last_line = -_SECONDS_BETWEEN_LINES

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for board in self._boards:
            board.close()

    def warn(self, text: str) -> None:
        """Say what could not be used."""
        self._console.print(text, markup=False, soft_wrap=True)

    def update(self, population: Population, news: News) -> None:
        """Show how far the runs are."""
        if not self._has_begun:
            self._begin(population.progress)
        if self._clocked is None and news.reports:
            self._clocked = time.perf_counter(), sum(each.step for each in population.progress)
        for report in news.reports:
            self._note(report)
        if self._live is not None:
            self._live.update(self._picture(population.progress))
            return
        now = time.perf_counter()
        if news.reports and now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            self._console.print(self._line(population.progress), markup=False, soft_wrap=True)

    def _begin(self, runs: Sequence[Progress]) -> None:
        """Before the first advance: where the runs start from."""
        self._has_begun = True
        if self._boards:
            for board, progress in zip(self._boards, runs, strict=True):
                board.start(progress.step)
        finished, resumed = (
            sum(each.finished for each in runs),
            sum(each.step > 0 and not each.finished for each in runs),
        )
        if finished:
            self._console.print(f"{finished} of {len(runs)} runs are trained already")
        if resumed:
            self._console.print(f"{resumed} of {len(runs)} runs go on from their checkpoints")
        if self._live is None and finished < len(runs):
            self._console.print(f"training {_counted(len(runs) - finished)}; compiling comes first")

    def _note(self, report: Report) -> None:
        if report.metrics.episode_return is not None:
            self._returns[report.number] = report.metrics.episode_return
        if report.check is not None and report.check.certificate is not None:
            self._events[report.number] = report.check
        if self._boards:
            self._boards[report.number].add(report)

    def _line(self, runs: Sequence[Progress]) -> str:
        heads = sorted(each.heads for each in runs)
        words = [self._pace(runs), f"K {heads[0]}" if heads[0] == heads[-1] else f"K {heads[0]} to {heads[-1]}"]
        if self._events:
            last = max(self._events.values(), key=lambda check: check.step)
            words.append(f"last event: {_words(last)}")
        if self._returns:
            best, worst = max(self._returns.values()), min(self._returns.values())
            words.append(f"return {best:.4g}" + (f" (best) to {worst:.4g}" if len(runs) > 1 else ""))
        if failed := [f"{self._folders[i].name} at step {each.failure.step}" for i, each in _failed(runs)]:
            words.append(f"failed: {', '.join(failed)}")
        return ", ".join(words)

    def _pace(self, runs: Sequence[Progress]) -> str:
        done, wanted = (sum(counts) for counts in zip(*((each.step, each.run.sac.steps) for each in runs), strict=True))
        begun, before = self._clocked or (0.0, done)
        left = sum(0 if each.finished else each.run.sac.steps - each.step for each in runs)
        words = f"{100 * done / wanted:.0f} % of {_counted(len(runs))}"
        if done == before:
            return words if self._clocked else f"{words}, compiling"
        rate = (done - before) / max(time.perf_counter() - begun, 1e-9)
        return f"{words}, {rate:.0f} steps/s, {left / rate / 60:.1f} min left"

    def _picture(self, runs: Sequence[Progress]) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("run", "step", "K", "return", "last event"):
            table.add_column(heading, justify="left" if heading in {"run", "last event"} else "right")
        for i, progress in list(enumerate(runs))[:_SHOWN_RUNS]:
            found = f"{self._returns[i]:.4g}" if i in self._returns else ""
            event = _words(self._events[i]) if i in self._events else ""
            if progress.failure is not None:
                event = f"failed: {progress.failure.cause}"
            table.add_row(self._folders[i].name, str(progress.step), str(progress.heads), found, event)
        parts: list[Any] = [progress_bar(sum(each.step for each in runs), sum(each.run.sac.steps for each in runs))]
        parts += [Text(self._line(runs)), table]
        if len(runs) > _SHOWN_RUNS:
            parts.append(Text(f"and {len(runs) - _SHOWN_RUNS} more"))
        return Group(*parts)


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _failed(runs: Sequence[Progress]) -> list[tuple[int, Any]]:
    return [(i, each) for i, each in enumerate(runs) if each.failure is not None]


def _words(check: Check) -> str:
    return f"{check.decision.action} of head {check.decision.head} at {check.step}"


class _Board:
    """One run's figures for TensorBoard; a start says from which step on they are to be believed."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ValueError(
                f"--tensorboard needs the extra tensorboard: pip install incrt[tensorboard] ({error})"
            ) from None
        self._event, self._summary = event_pb2, summary_pb2
        self._open: Callable[[], Any] = partial(EventFileWriter, str(folder / TENSORBOARD))
        self._writer: Any = None

    def start(self, step: int) -> None:
        self._writer = self._open()
        session = self._event.SessionLog(status=self._event.SessionLog.START)
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step + 1, session_log=session))

    def add(self, report: Report) -> None:
        figures = {f"train/{name}": value for name, value in report.metrics._asdict().items() if name != "step"}
        figures["train/return"] = figures.pop("train/episode_return")  # as in metrics.jsonl
        if report.check is not None:
            figures |= report.check.figures()
        values = [
            self._summary.Summary.Value(tag=name, simple_value=value)
            for name, value in figures.items()
            if value is not None
        ]
        summary = self._summary.Summary(value=values)
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=report.metrics.step, summary=summary))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
