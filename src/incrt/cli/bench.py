"""``incrt bench``: how fast the engine trains, on this machine and in this process."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
import tyro
from rich.console import Console
from rich.table import Table

from incrt.cli.terminal import log, new_table, print_json
from incrt.config import EncoderConfig, SacConfig, preset
from incrt.config.rules import COUNT
from incrt.engine.population import Population
from incrt.engine.progress import Run
from incrt.peers.engine import TAU_Z, begin_engine, study_run
from incrt.peers.table import PEERS, Peer, Setting
from incrt.peers.timing import Training, in_rounds, speed_of

WINDOWS = (20, 50)
RUNS = (1, 2, 8)
ROUNDS = 5
SECONDS = 2.0
"""Of each training in a round, with the CPU."""
_WARM_UP = 2000
"""Steps after which every program of a run has been compiled: the first head grows at step 1500."""


@dataclass(frozen=True)
class Bench:
    """Time training as it is, with plant, replay and checks.

    cpu: one run, two and eight at once, all heads active, beside what one would train with instead (Stable-Baselines3,
    sbx, memorax, as far as they are installed) on the same cores and in turns; with all of them it takes ten minutes.
    gpu: the 30 runs of the paper's main study, one run, and 150 runs, each from start to end.
    """

    device: Annotated[Literal["cpu", "gpu"], tyro.conf.Positional]
    """What to time."""
    steps: int | None = None
    """Environment steps of a run, with gpu alone; 50 000 if not given."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the tables."""
        if self.device == "cpu" and self.steps is not None:
            raise ValueError("--steps goes with bench gpu; bench cpu times steps, not whole runs")
        steps = SacConfig.steps if self.steps is None else COUNT("steps", self.steps)
        rows = _time_cpu() if self.device == "cpu" else _time_gpu(steps)
        if self.json:
            print_json(rows)
        elif self.device == "cpu":
            _print_cpu(rows)
        else:
            Console().print(_table(f"Training on {jax.devices('gpu')[0].device_kind}", rows))


# --- beside peers, on a CPU ------------------------------------------------------------------------------------------


def _time_cpu() -> list[dict[str, Any]]:
    rows = []
    peers: Sequence[Peer] = PEERS
    with log.status("") as status:
        for window in WINDOWS:

            def tell(words: str, window: int = window) -> None:
                status.update(f"W = {window}: {words}")

            trainings = dict(begin_peers(peers, window, tell))
            peers = [peer for peer in peers if peer.name in trainings]
            for count in RUNS:
                tell(f"{_engine(count)} begins")
                trainings[_engine(count)] = begin_engine(window, count)
            rows += comparison(window, in_rounds(trainings, ROUNDS, SECONDS, tell))
    return rows


def begin_peers(peers: Sequence[Peer], window: int, tell: Callable[[str], None]) -> Iterator[tuple[str, Training]]:
    """The training of each peer that is installed, by its name; of the others it is said how to get them."""
    task = preset(task={"window": window, "tau_z": TAU_Z}).task
    missing: dict[str, list[str]] = {}
    for peer in peers:
        tell(f"{peer.name} begins")
        try:
            yield peer.name, peer.begin(Setting(task, EncoderConfig(), SacConfig()))
        except ImportError as error:
            missing.setdefault(f"({error}): {peer.comes_with}", []).append(peer.name)
    for why, names in missing.items():
        log.print(f"left out: {', '.join(names)} {why}", markup=False, soft_wrap=True)


def comparison(window: int, found: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """The rows of a window, one for each number of runs and peer, of the steps a second in each round.

    Spreads are the lowest and the highest of the rounds; ``of_one_run`` is how the runs together compare with one.
    Where there is no peer, what would be said of one is None.
    """
    rows = []
    one_run = speed_of(found[_engine(1)]).median
    peers = [each for each in PEERS if each.name in found]
    for count in RUNS:
        ours = found[_engine(count)]
        engine = speed_of(ours)
        of_engine = {
            "engine_steps_per_s": engine.median,
            "engine_spread": [engine.low, engine.high],
            "of_one_run": engine.median / one_run,
        }
        either: list[Peer | None] = [*peers] or [None]
        for peer in either:
            of_peer = dict.fromkeys(_OF_PEER) if peer is None else _compared(peer, ours, found[peer.name])
            rows.append({"window": window, "runs": count, **of_peer, **of_engine})
    return rows


_OF_PEER = ("peer", "peer_steps_per_s", "peer_spread", "ratio", "ratio_spread", "work")


def _compared(peer: Peer, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    speed, ratio = speed_of(theirs), speed_of([our / their for our, their in zip(ours, theirs, strict=True)])
    values = (
        peer.name,
        speed.median,
        [speed.low, speed.high],
        speed_of(ours).median / speed.median,
        [ratio.low, ratio.high],
        peer.work,
    )
    return dict(zip(_OF_PEER, values, strict=True))


def _engine(count: int) -> str:
    return "incrt, one run" if count == 1 else f"incrt, {count} runs at once"


def _print_cpu(rows: Sequence[dict[str, Any]]) -> None:
    """Of each window a table of peers and one of the engine's runs, and in the end what peers do otherwise."""
    console = Console()
    for window in dict.fromkeys(row["window"] for row in rows):
        of_window = [row for row in rows if row["window"] == window]
        peers = dict.fromkeys(row["peer"] for row in of_window)
        headings = ["training", "steps/s", "from", "to", *(f"{count} run{'s' if count > 1 else ''}" for count in RUNS)]
        title = f"W = {window}: medians of {ROUNDS} rounds, and incrt's runs against each peer"
        table = new_table(title, headings)
        for peer in peers:
            of_peer = [row for row in of_window if row["peer"] == peer]
            if peer is not None:
                times = [f"{row['ratio']:.2f}x" for row in of_peer]
                table.add_row(peer, *_speed(of_peer[0], "peer"), *times)
        of_engine = [row for row in of_window if row["peer"] == next(iter(peers))]
        for row in of_engine:
            table.add_row(_engine(row["runs"]), *_speed(row, "engine"), *("" for _ in RUNS))
        console.print(table)
        for row in of_engine[1:]:
            words = f"{row['runs']} runs at once take {row['of_one_run']:.2f} times the steps of one"
            console.print(f"W = {window}: {words}", soft_wrap=True)
    words = (
        "A step is one of the environment and one update of 256 windows, with all eight heads active where there are"
    )
    console.print(f"{words} heads; incrt is faster while few are.", soft_wrap=True)
    for name, work in {row["peer"]: row["work"] for row in rows if row["peer"] is not None}.items():
        console.print(f"{name}: {work}", soft_wrap=True)


def _speed(row: Mapping[str, Any], whose: str) -> list[str]:
    return [f"{value:.1f}" for value in (row[f"{whose}_steps_per_s"], *row[f"{whose}_spread"])]


# --- whole runs, on a GPU --------------------------------------------------------------------------------------------


def _time_gpu(steps: int) -> list[dict[str, Any]]:
    regimes = [(20, 1.0), (50, 2.0), (20, 5.0)]
    studies = [
        [(seed, window, tau_z) for window, tau_z in regimes for seed in range(42, 52)],
        [(42, 20, 5.0)],
        [(seed, 20, tau_z) for tau_z in (1.0, 2.0, 5.0) for seed in range(42, 92)],
    ]
    rows = []
    for study in studies:
        windows = ", ".join(str(window) for window in sorted({window for _, window, _ in study}))
        with log.status(f"{len(study)} runs, W = {windows}"):
            warm_up = training_seconds([study_run(*each, steps=_WARM_UP) for each in study], "gpu")
            training = training_seconds([study_run(*each, steps=steps) for each in study], "gpu")
        rows.append(
            {
                "runs": len(study),
                "window": windows,
                "ms_per_step": 1e3 * training / steps,
                "train_s": training,
                "compile_s": max(warm_up - training * _WARM_UP / steps, 0.0),
            }
        )
        log.print(f"{len(study)} runs, W = {windows}: {training:.1f} s")
    return rows


def training_seconds(runs: Sequence[Run], device: str) -> float:
    """How long it takes to train the runs to their end."""
    begin = time.perf_counter()
    for _ in Population(runs, device).train():
        pass
    return time.perf_counter() - begin


_FORMS = {
    "runs": ("runs", "{}"),
    "window": ("W", "{}"),
    "ms_per_step": ("ms/step", "{:.3f}"),
    "train_s": ("training [s]", "{:.1f}"),
    "compile_s": ("compiling [s]", "{:.1f}"),
}


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = new_table(title, [_FORMS[key][0] for key in rows[0]])
    for row in rows:
        table.add_row(*(_FORMS[key][1].format(value) for key, value in row.items()))
    return table
