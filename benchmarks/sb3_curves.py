"""The same training by the engine and by Stable-Baselines3 with this library's extractor and callback: do they agree?

Run with ``python benchmarks/sb3_curves.py [--figure FILE]``: preset memory, tau_z = 5 s, W = 20, 10 000 steps, three
seeds each, a quarter of an hour on two cores, most of it Stable-Baselines3's. Stable-Baselines3 has no penalty on
inadmissible actions, so the engine goes without it too. Both grow heads by the same rules. Two means agree if they are
within two standard errors of each other; with three seeds each, about one pair in nine that differs by chance alone
does not.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from incrt import Population, Run, SacConfig, TaskConfig, evaluate, evaluate_policy, make_task
from incrt.arm.gym import StribeckEnv
from incrt.engine import policy_of
from incrt.sb3 import RuntimeHeads, policy_kwargs
from incrt.sb3.settings import make_sac

STEPS = 10_000
SAC = SacConfig(steps=STEPS, penalty=False)
Floats = npt.NDArray[np.float64]


class Returns(BaseCallback):
    """Collects the return of every episode."""

    def __init__(self) -> None:
        super().__init__()
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        self.returns += [float(info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info]
        return True


def train_engine(task: TaskConfig, seeds: range) -> tuple[Floats, list[float]]:
    """Returns of the episodes of each seed, and the RMSE of each in the end."""
    environment, params = make_task(task)
    runs = [Run(seed, environment, params, task.window, sac=SAC) for seed in seeds]
    returns: dict[int, list[float]] = {i: [] for i in range(len(runs))}
    errors: dict[int, float] = {}
    population = Population(runs)
    for news in population.train():
        for i, metrics, _ in news.reports:  # a stretch is as long as an episode
            if metrics.episode_return is not None:
                returns[i].append(metrics.episode_return)
        errors |= {i: evaluate(task, policy_of(runs[i], saved.state))[0].rmse for i, saved in news.saved}
    for i, run in enumerate(runs):
        print(f"engine, seed {run.seed}: RMSE {errors[i]:.4f} rad, K = {population.progress[i].heads}", flush=True)
    return np.array([returns[i] for i in sorted(returns)]), [errors[i] for i in sorted(errors)]


def train_sb3(task: TaskConfig, seeds: range, folder: Path) -> tuple[Floats, list[float]]:
    """The same."""
    returns, errors = [], []
    for seed in seeds:
        model = make_sac(StribeckEnv(**task.to_json()), SAC, policy_kwargs(), seed)
        model.set_logger(Logger(None, []))
        collected = Returns()
        model.learn(STEPS, callback=[RuntimeHeads(events=folder / f"seed-{seed}.jsonl"), collected])
        returns.append(collected.returns)
        found, _ = evaluate_policy(task, lambda contexts: model.predict(contexts, deterministic=True)[0])  # noqa: B023  # at once
        errors.append(found.rmse)
        heads = model.policy.actor.features_extractor.k
        print(f"Stable-Baselines3, seed {seed}: RMSE {found.rmse:.4f} rad, K = {heads}", flush=True)
    return np.array(returns), errors


def line(name: str, ours: Floats, theirs: Floats) -> tuple[str, bool]:
    """Two means with their standard errors, and whether they are within two of their difference's."""
    (mean, error), (other, other_error) = ((x.mean(), x.std(ddof=1) / len(x) ** 0.5) for x in (ours, theirs))
    apart = abs(mean - other) / np.hypot(error, other_error)
    words = f"{name:>22s}  engine {mean:9.4g} ± {error:<7.2g}  SB3 {other:9.4g} ± {other_error:<7.2g}"
    return f"{words}  {apart:4.1f} standard errors apart", bool(apart <= 2)


def main() -> None:
    """Print one line a thousand steps, and what the runs came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    task, seeds = TaskConfig(tau_z=5.0), range(42, 42 + options.seeds)
    ours, our_errors = train_engine(task, seeds)
    with TemporaryDirectory() as folder:
        theirs, their_errors = train_sb3(task, seeds, Path(folder))
    blocks = range(1000, STEPS + 1, 1000)
    agree = []
    for i, (mine, other) in enumerate(zip(*(np.split(x, len(blocks), axis=1) for x in (ours, theirs)), strict=True)):
        words, agrees = line(f"return to step {blocks[i]}", mine.mean(1), other.mean(1))
        agree.append(agrees)
        print(words)
    print(f"{sum(agree)} of {len(agree)} points of the curve agree")
    print(line("return of all steps", ours.mean(1), theirs.mean(1))[0])
    print(line("RMSE in the end [rad]", np.array(our_errors), np.array(their_errors))[0])
    if options.figure is not None:
        draw(options.figure, task.horizon, {"engine": ours, "Stable-Baselines3": theirs})


def draw(path: Path, horizon: int, curves: dict[str, Floats]) -> None:
    """The mean return of an episode, and two standard errors around it."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    for name, returns in curves.items():
        steps = horizon * np.arange(1, returns.shape[1] + 1)
        mean, error = returns.mean(0), returns.std(0, ddof=1) / len(returns) ** 0.5
        axis.plot(steps, mean, "o-", markersize=3, label=name)
        axis.fill_between(steps, mean - 2 * error, mean + 2 * error, alpha=0.2)
    axis.set(xlabel="environment steps", ylabel="return of an episode", title="mean and two standard errors")
    axis.set_yscale("symlog", linthresh=100)
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
