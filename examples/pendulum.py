"""The engine on an environment of someone else's: a pendulum that swings up without seeing its velocity.

This is gymnax's Pendulum-v1 with the velocity left out of the observation. (cos, sin) of the angle does not say which
way the pendulum moves; the window of the latest observations does, and attention reads it from there. A head is grown
whenever the rank of these windows asks for one. Needs ``pip install incrt[gymnax]``; run with
``python examples/pendulum.py``, a few minutes on two cores. The exit status is 1 unless two seeds reach the goal.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from gymnax.environments.classic_control.pendulum import Pendulum

from incrt.config import RuntimeConfig, SacConfig
from incrt.sac import Population, Run
from incrt.sac.progress import Progress

GOAL = -250.0
"""Return of an episode of 200 steps; a pendulum that hangs still gets -1974."""


class HiddenVelocity(Pendulum):  # type: ignore[misc]  # gymnax has no types
    """Pendulum-v1 whose observation is (cos theta, sin theta); the rest of what the engine asks for is inherited."""

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> jax.Array:
        return jnp.stack([jnp.cos(state.theta), jnp.sin(state.theta)])

    def observation_space(self, params: Any) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (2,))


PENDULUM = HiddenVelocity()
"""One for all runs, so that they share a compiled program."""


def make_run(seed: int, steps: int) -> Run:
    """What is to be trained: heads that grow, checked after every five episodes, on windows of eight observations."""
    return Run(
        seed,
        PENDULUM,
        PENDULUM.default_params,
        window=8,
        runtime=RuntimeConfig(check_every=1000),
        sac=SacConfig(steps=steps, buffer=steps),
    )


def train(runs: Sequence[Run]) -> tuple[list[Progress], list[float]]:
    """How each run ended, and the mean return of its latest episodes, those since the check before the last."""
    population = Population(runs)
    returns = [-math.inf] * len(runs)
    for news in population.train(save_every=20_000):
        for i, metrics, check in news.reports:
            if metrics.episode_return is not None:
                returns[i] = metrics.episode_return
            line = f"seed {runs[i].seed}  step {metrics.step:5}  return {returns[i]:7.1f}"
            line += f"  K = {population.progress[i].heads}"
            if check is not None and check.certificate is not None:
                line += f"  {check.decision.action}: {check.decision.reason}; jump {check.certificate.jump:g}"
            print(line, flush=True)
    return population.progress, returns


def main(seeds: Sequence[int] = (0, 1, 2), steps: int = 20_000) -> int:
    """Train, print a verdict for each seed, and give the exit status."""
    progress, returns = train([make_run(seed, steps) for seed in seeds])
    print(f"\nMean return of the last five episodes of training, exploration included; the goal is {GOAL:g}:")
    reached = [each.failure is None and found > GOAL for each, found in zip(progress, returns, strict=True)]
    for seed, found, is_reached in zip(seeds, returns, reached, strict=True):
        print(f"seed {seed}  {found:7.1f}  {'reached' if is_reached else 'not reached'}")
    return 0 if sum(reached) >= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
