"""The engine on an environment of someone else's: a pendulum that swings up without seeing its velocity.

This is gymnax's Pendulum-v1 with the velocity left out of the observation. (cos, sin) of the angle does not say which
way the pendulum moves; the window of the latest observations does, and attention reads it from there. A head is grown
whenever the rank of these windows asks for one. Needs gymnax (``pip install -e ".[gymnax]"``); run with
``python examples/pendulum.py``, a few minutes on two cores. The exit status is 1 unless two seeds reach the goal.
"""

import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from gymnax.environments.classic_control.pendulum import Pendulum

from incrt import HeadsConfig, SacConfig
from incrt.engine import Checkpoint, Population, Run, deterministic_returns, policy_of

GOAL = -250.0
"""Return of an episode of 200 steps; a pendulum that hangs still gets -1974."""
EPISODES = 20
"""Of the deterministic policy, for the verdict."""


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
        heads=HeadsConfig(check_every=1000),
        sac=SacConfig(steps=steps, buffer=steps),
    )


def train(runs: Sequence[Run]) -> list[Checkpoint]:
    """Each run as it ended."""
    population = Population(runs)
    ended: dict[int, Checkpoint] = {}
    for news in population.train():
        ended.update(news.saved)
        for i, metrics, check in news.reports:
            found = "-" if metrics.episode_return is None else f"{metrics.episode_return:.1f}"
            line = f"seed {runs[i].seed}  step {metrics.step:5}  return {found:>7}  K = {population.progress[i].heads}"
            if check is not None and check.certificate is not None:
                line += f"  {check.decision.action}: {check.decision.reason}; jump {check.certificate.jump:g}"
            print(line, flush=True)
    return [ended[i] for i in range(len(runs))]


def main(seeds: Sequence[int] = (0, 1, 2), steps: int = 20_000) -> int:
    """Train, print a verdict for each seed, and give the exit status."""
    reached = 0
    for progress, state in train([make_run(seed, steps) for seed in seeds]):
        returns = deterministic_returns(progress.run, policy_of(progress.run, state), EPISODES, jax.random.key(0))
        is_reached = progress.failure is None and float(returns.mean()) > GOAL
        reached += is_reached
        words = "reached" if is_reached else "not reached"
        print(
            f"seed {progress.run.seed}: mean return of {EPISODES} episodes {returns.mean():.1f}, goal {GOAL:g} {words}"
        )
    return 0 if reached >= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
