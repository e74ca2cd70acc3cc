"""What a step of training costs against the window W, the heads and the number of runs S.

Run with ``python benchmarks/engine_cost.py [--figure FILE]``; it takes the GPU if there is one. On a GPU S, W and K_max
are changed one at a time from S = 30, W = 20, K_max = 8, and heads grow as they do. On a CPU it is one run: against W,
with all eight heads active and beside those peers of ``incrt bench cpu`` that see windows and are installed, and
against the number of active heads K of K_max = 8 at W = 20. Plant, replay and checks are included everywhere; compiling
is not.
"""

import argparse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from incrt import HeadsConfig
from incrt.cli.bench import begin_peers, training_seconds
from incrt.peers.engine import begin_engine, study_run
from incrt.peers.table import PEERS
from incrt.peers.timing import in_rounds, speed_of

GPU_STEPS = 5000
"""Of a point; they must outweigh what it takes to begin."""
REPEATS = 2
GPU_SWEEPS = {"S": (1, 10, 30, 100, 300), "W": (20, 50, 100), "K_max": (2, 8, 16)}
GPU_BASE = {"S": 30, "W": 20, "K_max": 8}
WINDOWS, HEADS = (10, 20, 50, 100), range(1, 9)
PEERS_OF_WINDOWS = [peer for peer in PEERS if "memorax" not in peer.name]  # which would take minutes at W = 100
ROUNDS, SECONDS = 3, 1.0


def train(point: Mapping[str, int], steps: int) -> float:
    """Seconds for all runs of a point on the GPU."""
    runs = [study_run(seed, point["W"], 5.0, steps, point["K_max"]) for seed in range(point["S"])]
    return training_seconds(runs, "gpu")


def on_a_gpu(figure: Figure) -> None:
    """Milliseconds a step of all runs, one line a point."""
    points = {(name, value): {**GPU_BASE, name: value} for name, values in GPU_SWEEPS.items() for value in values}
    with ThreadPoolExecutor() as pool:  # compiles
        list(pool.map(lambda point: train(point, HeadsConfig.check_every), points.values()))
    print(f"on {jax.devices()[0].device_kind}: {GPU_BASE}, but for")
    for axis, (name, values) in zip(figure.subplots(1, 3), GPU_SWEEPS.items(), strict=True):
        cost = []
        for value in values:
            point = points[name, value]
            cost.append(1e3 * min(train(point, GPU_STEPS) for _ in range(REPEATS)) / GPU_STEPS)
            print(f"{name:>6s} = {value:4d}  {cost[-1]:8.3f} ms a step, {cost[-1] / point['S']:7.3f} a run", flush=True)
        axis.plot(values, cost, "o-")
        axis.set(xlabel=name, ylabel="ms a step of all runs", xlim=(0, None), ylim=(0, None))
        axis.grid(visible=True, alpha=0.3)
    figure.suptitle("training on gpu, at S = 30, W = 20, K_max = 8")


def on_a_cpu(figure: Figure) -> None:
    """Steps a second of one run and of its peers, medians of some rounds; bars are the lowest and the highest."""
    by_window, by_heads = figure.subplots(1, 2, width_ratios=(3, 2))
    against_windows(by_window)
    against_heads(by_heads)
    for axis in (by_window, by_heads):
        axis.set(ylabel="steps/s")
        axis.grid(visible=True, alpha=0.3)


def against_windows(axis: Axes) -> None:
    """The engine and its peers."""
    found: dict[str, dict[int, list[float]]] = {}
    for window in WINDOWS:
        trainings = {"incrt": begin_engine(window, 1), **dict(begin_peers(PEERS_OF_WINDOWS, window, lambda _: None))}
        for name, speeds in in_rounds(trainings, ROUNDS, SECONDS, lambda _: None).items():
            found.setdefault(name, {})[window] = speeds
            print(f"{name:12s} W = {window:4d}  {speed_of(speeds).median:8.1f} steps/s", flush=True)
    for name, points in found.items():
        draw(axis, points, name, width=2.5 if name == "incrt" else 1.0)
    axis.set(xlabel="W", xscale="log", yscale="log", title="eight heads active")
    axis.set_xticks(WINDOWS, labels=[str(window) for window in WINDOWS])
    axis.minorticks_off()
    axis.legend(fontsize="small", loc="lower left")


def against_heads(axis: Axes) -> None:
    """The engine alone."""
    speeds = in_rounds({str(k): begin_engine(20, 1, k) for k in HEADS}, ROUNDS, SECONDS, lambda _: None)
    for name, each in speeds.items():
        print(f"incrt        K = {name:>4s}  {speed_of(each).median:8.1f} steps/s", flush=True)
    draw(axis, {int(name): each for name, each in speeds.items()}, "incrt", width=2.5)
    axis.set(xlabel="K, active heads of eight", title="W = 20", ylim=(0, None))


def draw(axis: Axes, points: Mapping[int, list[float]], name: str, width: float) -> None:
    """A line through the medians."""
    speeds = [speed_of(each) for each in points.values()]
    medians = [each.median for each in speeds]
    spread = [[each.median - each.low for each in speeds], [each.high - each.median for each in speeds]]
    axis.errorbar(list(points), medians, spread, fmt="o-", markersize=3, capsize=2, linewidth=width, label=name)


def main() -> None:
    """Print one line a point, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    (on_a_cpu if jax.default_backend() == "cpu" else on_a_gpu)(figure)
    if options.figure is not None:
        options.figure.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.figure, dpi=110)


if __name__ == "__main__":
    main()
