"""Learning per hour: how long each takes on this machine until its policy tracks 85 % better than the baseline.

Run with ``python benchmarks/learning_per_hour.py [--out FILE] [--figure FILE]``: preset memory, tau_z = 5 s, W = 20,
five seeds each, about three quarters of an hour on two cores. The engine, sbx and Stable-Baselines3 train on the same
task with the same settings (``SacConfig``), one training after another, each in a process of its own with all cores to
itself. PyTorch takes one thread, with which it is quicker than with two; JAX takes what it wants.

The clock runs while a training is set up and while it trains, compiling included. It stands still while the
deterministic policy is evaluated, every thousand steps, on the evaluation's own rollouts. The first evaluation at or
below -85 % ends the training. With ``--out`` what was done is kept, and the same command goes on from there.

What differs: the engine's actor has a penalty on inadmissible actions, as in ``incrt train``, and the others have none;
the engine and ``sb3-heads`` attend to the window, sbx and sb3 see it flattened. ``sb3-heads`` takes long and runs only
where it is asked for.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import inf
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import jax
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger

from incrt import EncoderConfig, Population, Run, SacConfig, TaskConfig, evaluate, evaluate_policy, make_task
from incrt.arm.gym import StribeckEnv
from incrt.config import parse_seeds
from incrt.controllers.evaluation import delta_pct
from incrt.engine import policy_of
from incrt.engine.ahead import wait_for_all
from incrt.engine.compilation import compilations, covered
from incrt.engine.progress import Checkpoint
from incrt.runs import reference_rmse
from incrt.sb3 import RuntimeHeads, policy_kwargs
from incrt.sb3.settings import make_sac
from incrt.storage.json import finite, json_line, read_lines

TASK = TaskConfig(tau_z=5.0)
GOAL = -85.0
"""Change of the RMSE against the baseline, in per cent, that ends a training."""
EVERY = 1000
"""Steps between two evaluations."""


@dataclass(frozen=True)
class Point:
    """One evaluation: after how much training, and what it found."""

    step: int
    seconds: float
    """Of training, compiling included."""
    compiling: float
    """Those of them in which JAX made programs."""
    delta_pct: float


@dataclass(frozen=True)
class Training:
    """One training of somebody with one seed, to the goal or to its end."""

    who: str
    seed: int
    steps: int
    """That it had at most."""
    whole_s: float
    """That it took with the evaluations."""
    points: list[Point]

    def first(self, level: float) -> Point | None:
        """The first evaluation at or below this change."""
        return next((point for point in self.points if point.delta_pct <= level), None)


# --- one training --------------------------------------------------------------------------------------------------


class Watch:
    """The clock of a training, and what it has shown so far."""

    def __init__(self, name: str) -> None:
        self.points: list[Point] = []
        self._name = name
        self._baseline = reference_rmse("baseline", TASK, TASK)
        self._seconds = self._compiling = 0.0
        self._begin, self._made_before = 0.0, 0

    def start(self) -> None:
        """Count from here on."""
        self._made_before = len(compilations())
        self._begin = time.monotonic()

    def _stop(self) -> None:
        self._seconds += time.monotonic() - self._begin
        self._compiling += covered(compilations()[self._made_before :])

    def look(self, step: int, rmse: Callable[[], float]) -> bool:
        """Evaluate while the clock stands still; whether the goal is reached."""
        self._stop()
        change = delta_pct(rmse(), self._baseline)
        self.points.append(Point(step, self._seconds, self._compiling, change))
        words = f"{self._name}: step {step}, {self._seconds:.1f} s, Δ% {change:.1f}"
        print(f"\r{words:79s}", end="", file=sys.stderr, flush=True)
        self.start()
        return change <= GOAL


def train_engine(encoder: EncoderConfig, sac: SacConfig, seed: int, watch: Watch) -> None:
    """The engine on the CPU."""
    watch.start()
    environment, params = make_task(TASK)
    run = Run(seed, environment, params, TASK.window, encoder, sac=sac)
    for news in Population([run], "cpu").train(save_every=EVERY):
        for _, saved in news.saved:
            wait_for_all()  # else programs would be compiled while the clock stands still
            if watch.look(saved.progress.step, partial(engine_rmse, run, saved)):
                return


def engine_rmse(run: Run, saved: Checkpoint) -> float:
    """Of the policy in a checkpoint."""
    return evaluate(TASK, policy_of(run, saved.state))[0].rmse


class Look(BaseCallback):
    """Evaluates a model of Stable-Baselines3 or sbx between two steps, and ends its training at the goal."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def _on_step(self) -> bool:
        return self.num_timesteps % EVERY != 0 or not self._watch.look(self.num_timesteps, self._rmse)

    def _rmse(self) -> float:
        return evaluate_policy(TASK, lambda contexts: self.model.predict(contexts, deterministic=True)[0])[0].rmse


def learn(model: Any, sac: SacConfig, *callbacks: BaseCallback) -> None:
    """What sbx and Stable-Baselines3 have in common."""
    model.set_logger(Logger(None, []))  # its own would leave a folder behind
    model.learn(sac.steps, callback=CallbackList([*callbacks]))


def train_sbx(sac: SacConfig, seed: int, watch: Watch) -> None:
    """sbx flattens the window by itself."""
    sbx = import_module("sbx")
    watch.start()
    learn(make_sac(make_env(), sac, {}, seed, algorithm=sbx.SAC), sac, Look(watch))


def train_sb3(sac: SacConfig, seed: int, watch: Watch) -> None:
    """So does Stable-Baselines3."""
    watch.start()
    learn(make_sac(make_env(), sac, {}, seed, device="cpu"), sac, Look(watch))


def train_sb3_with_heads(sac: SacConfig, seed: int, watch: Watch) -> None:
    """Stable-Baselines3 with this library's extractor, and heads that grow by the engine's rules."""
    watch.start()
    with TemporaryDirectory() as folder:
        heads = RuntimeHeads(events=Path(folder) / "events.jsonl")
        learn(make_sac(make_env(), sac, policy_kwargs(), seed, device="cpu"), sac, heads, Look(watch))


def make_env() -> StribeckEnv:
    """The task as the others see it."""
    return StribeckEnv(**TASK.to_json())


class Contender(NamedTuple):
    """Somebody who learns the task."""

    name: str
    train: Callable[[SacConfig, int, Watch], None]
    minutes: float
    """That a training usually takes, evaluations included, for the first guess at how long the rest does."""


CONTENDERS = {
    "engine": Contender("engine, heads that grow", partial(train_engine, EncoderConfig()), 1.5),
    "engine-fixed": Contender("engine, eight heads", partial(train_engine, EncoderConfig(encoder="static")), 2.5),
    "sbx": Contender("sbx, flat window", train_sbx, 2),
    "sb3": Contender("SB3, flat window", train_sb3, 4),
    "sb3-heads": Contender("SB3, heads that grow", train_sb3_with_heads, 20),
}


def train(who: str, seed: int, steps: int) -> Training:
    """One training in this process, which must not have trained before: what is compiled already would cost nothing."""
    begin = time.monotonic()
    jax.config.update("jax_platforms", "cpu")
    torch.set_num_threads(1)
    compilations()
    watch = Watch(f"{who}, seed {seed}")
    CONTENDERS[who].train(SacConfig(steps=steps), seed, watch)
    print(file=sys.stderr)
    return Training(who, seed, steps, time.monotonic() - begin, watch.points)


def train_apart(who: str, seed: int, steps: int) -> Training:
    """The same in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(train, who, seed, steps).result()


# --- all of them ---------------------------------------------------------------------------------------------------

Key: TypeAlias = tuple[str, int, int]


def read(path: Path) -> dict[Key, Training]:
    """What was done, by who, seed and steps."""
    found = {}
    for line in read_lines(path) if path.exists() else []:
        points = [
            Point(**{**point, "delta_pct": inf if point["delta_pct"] is None else point["delta_pct"]})
            for point in line["points"]
        ]
        training = Training(**{**line, "points": points})
        found[training.who, training.seed, training.steps] = training
    return found


def study(keys: Sequence[Key], out: Path, train: Callable[..., Training] = train_apart) -> list[Training]:
    """Train whoever has not trained yet, one after another; each is written as soon as it is done."""
    done = read(out)
    missing = [key for key in keys if key not in done]
    for i, key in enumerate(missing):
        rest = sum(usual_minutes(who, done.values()) for who, *_ in missing[i:])
        words = f"{CONTENDERS[key[0]].name}, seed {key[1]}: {i + 1} of {len(missing)}"
        print(f"{words}; about {rest:.0f} min to go", file=sys.stderr, flush=True)
        done[key] = train(*key)
        with out.open("a") as file:
            file.write(json_line(asdict(done[key])))
    return [done[key] for key in keys]


def usual_minutes(who: str, done: Iterable[Training]) -> float:
    """How long a training takes, as far as is known."""
    known = [each.whole_s / 60 for each in done if each.who == who]
    return fmean(known) if known else CONTENDERS[who].minutes


def summary(trainings: Sequence[Training]) -> dict[str, Any]:
    """Of one contender: median, least and most of what it took; a goal that was not reached took infinitely much.

    The best evaluation of each training is told too, which says how far those came that did not reach it.
    """
    ends = [training.first(GOAL) for training in trainings]

    def spread(of: Callable[[Point], float]) -> dict[str, float]:
        values = [inf if end is None else of(end) for end in ends]
        return {"median": median(values), "min": min(values), "max": max(values)}

    return {
        "who": trainings[0].who,
        "seeds": len(trainings),
        "reached": sum(end is not None for end in ends),
        "best_delta_pct": median(min(point.delta_pct for point in training.points) for training in trainings),
        "steps": spread(lambda point: point.step),
        "seconds": spread(lambda point: point.seconds),
        "seconds_without_compiling": spread(lambda point: point.seconds - point.compiling),
    }


def cell(found: Mapping[str, float]) -> str:
    """A median, and the range around it."""
    median, low, high = ("never" if found[name] == inf else f"{found[name]:.0f}" for name in ("median", "min", "max"))
    return f"{median} ({low} to {high})"


def table(summaries: Sequence[Mapping[str, Any]]) -> str:
    """One line a contender."""
    columns = {"steps": "steps", "seconds": "seconds", "seconds_without_compiling": "without compiling"}
    lines = [f"{f'to {GOAL:g} %':24s} reached  best Δ%" + "".join(f"{name:>25s}" for name in columns.values())]
    for found in summaries:
        reached = f"{found['reached']}/{found['seeds']}"
        cells = "".join(f"{cell(found[name]):>25s}" for name in columns)
        lines.append(f"{CONTENDERS[found['who']].name:24s} {reached:>7s} {found['best_delta_pct']:8.1f}{cells}")
    return "\n".join(lines)


def draw(path: Path, trainings: Mapping[str, Sequence[Training]]) -> None:
    """What each training had reached by when, and the median time to every level."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    levels = range(0, int(GOAL) - 1, -1)
    for i, (who, of_one) in enumerate(trainings.items()):
        for training in of_one:
            axis.plot(
                [point.seconds for point in training.points],
                [point.delta_pct for point in training.points],
                color=f"C{i}",
                linewidth=0.6,
                alpha=0.5,
            )
        firsts = [[training.first(level) for training in of_one] for level in levels]
        times = [median(inf if point is None else point.seconds for point in points) for points in firsts]
        axis.plot(times, levels, color=f"C{i}", linewidth=2.2, label=CONTENDERS[who].name)
    axis.axhline(GOAL, color="black", linewidth=0.8, linestyle=":")
    axis.set(xlabel="seconds of training, compiling included", ylabel="Δ% against the baseline", ylim=(-92, 20))
    axis.set_xlim(left=0)
    axis.set_title("thin: one seed; thick: median time to be as good for the first time", fontsize=10)
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train whoever has not yet, and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--who", nargs="+", choices=CONTENDERS, default=["engine", "engine-fixed", "sbx", "sb3"])
    parser.add_argument("--seeds", type=parse_seeds, default="200-204")
    parser.add_argument("--steps", type=int, default=SacConfig.steps)
    parser.add_argument("--out", type=Path, help="JSON lines, one a training; those that are there are not done again")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if "sbx" in options.who and find_spec("sbx") is None:
        parser.error("sbx is not installed: pip install sbx-rl, or name others with --who")
    # A seed of each in turn: what else the machine does meanwhile then meets all of them.
    keys = [(who, seed, options.steps) for seed in options.seeds for who in options.who]
    with TemporaryDirectory() as folder:
        trainings = study(keys, options.out or Path(folder) / "trainings.jsonl")
    by_who = {who: [training for training in trainings if training.who == who] for who in options.who}
    summaries = [summary(of_one) for of_one in by_who.values()]
    print(json.dumps(finite(summaries), indent=2) if options.json else table(summaries))
    if options.figure is not None:
        draw(options.figure, by_who)


if __name__ == "__main__":
    main()
