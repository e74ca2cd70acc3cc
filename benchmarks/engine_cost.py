"""What a step of training costs against the number of runs S, the window W and the head-count cap K_max.

Run with ``python benchmarks/engine_cost.py [--figure FILE]``; it takes the GPU if there is one. From S = 1 (CPU) or 30
(GPU), W = 20, K_max = 8 one of the three is changed at a time. Every point trains for some hundred steps (CPU) or some
thousand (GPU), plant, replay and checks included; compiling is not counted.
"""

import argparse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from incrt import HeadsConfig
from incrt.cli.bench import study_run, training_seconds

STEPS = {"cpu": 500, "gpu": 5000}
"""Of a point; on a GPU they must outweigh what it takes to begin."""
REPEATS = 2
SWEEPS = {
    "cpu": {"S": (1, 2, 4, 8), "W": (10, 20, 50, 100), "K_max": (1, 2, 4, 8, 16)},
    "gpu": {"S": (1, 10, 30, 100, 300), "W": (20, 50, 100), "K_max": (2, 8, 16)},
}


def train(point: Mapping[str, int], steps: int, device: str) -> float:
    """Seconds for all runs of a point."""
    runs = [study_run(seed, point["W"], 5.0, steps, point["K_max"]) for seed in range(point["S"])]
    return training_seconds(runs, device)


def main() -> None:
    """Print one line a point, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    device = "cpu" if jax.default_backend() == "cpu" else "gpu"
    steps = STEPS[device]
    base = {"S": 1 if device == "cpu" else 30, "W": 20, "K_max": 8}
    points = {(name, value): {**base, name: value} for name, values in SWEEPS[device].items() for value in values}
    with ThreadPoolExecutor() as pool:  # compiles
        list(pool.map(lambda point: train(point, HeadsConfig.check_every, device), points.values()))
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    print(f"on {jax.devices()[0].device_kind}: S = {base['S']}, W = {base['W']}, K_max = {base['K_max']}, but for")
    for axis, (name, values) in zip(figure.subplots(1, 3), SWEEPS[device].items(), strict=True):
        cost = []
        for value in values:
            point = points[name, value]
            cost.append(1e3 * min(train(point, steps, device) for _ in range(REPEATS)) / steps)
            print(f"{name:>6s} = {value:4d}  {cost[-1]:8.3f} ms a step, {cost[-1] / point['S']:7.3f} a run", flush=True)
        axis.plot(values, cost, "o-")
        axis.set(xlabel=name, ylabel="ms a step of all runs", xlim=(0, None), ylim=(0, None))
        axis.grid(visible=True, alpha=0.3)
    if options.figure is not None:
        options.figure.parent.mkdir(parents=True, exist_ok=True)
        figure.suptitle(f"training on {device}, at S = {base['S']}, W = {base['W']}, K_max = {base['K_max']}")
        figure.savefig(options.figure, dpi=110)


if __name__ == "__main__":
    main()
