"""A pendulum swings up without a sensor of its velocity: the engine on an environment that is not incrt's.

The environment is gymnax's Pendulum-v1 with the velocity left out, so a single observation, (cos, sin) of the angle, does
not say which way the pendulum moves; the window of the last observations does. Run with ``python examples/pendulum.py``
(``pip install incrt[gymnax]``); a few minutes on two cores. The exit status is 1 if fewer than two seeds swing it up.
"""

import sys
from collections.abc import Sequence
from typing import Any

import jax
from gymnax.environments import spaces
from gymnax.environments.classic_control.pendulum import Pendulum

from incrt.config import EncoderConfig, RuntimeConfig, SacConfig
from incrt.sac.population import Population
from incrt.sac.progress import Progress, Run

GOAL = -250.0
"""Return of an episode of 200 steps; hanging still costs some 1900, the best swing-ups 0 to 400, as they begin."""


class HiddenVelocity(Pendulum):  # type: ignore[misc]  # gymnax has no types
    """Pendulum-v1 whose observation is (cos theta, sin theta) alone; all else is inherited."""

    def reset_env(self, key: jax.Array, params: Any) -> tuple[jax.Array, Any]:
        return jax.tree.map(jax.numpy.asarray, super().reset_env(key, params))

    def get_obs(self, state: Any, params: Any = None, key: Any = None) -> jax.Array:
        return super().get_obs(state, params, key)[:2]

    def observation_space(self, params: Any) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (2,))


def train(seeds: Sequence[int], steps: int, check_every: int) -> tuple[list[Progress], list[float | None]]:
    """One run a seed; what became of each, and the mean return of the episodes since its last check but one."""
    environment = HiddenVelocity()
    runs = [
        Run(
            seed,
            environment,
            environment.default_params,
            window=8,
            encoder=EncoderConfig(k_max=4),
            runtime=RuntimeConfig(check_every=check_every),
            sac=SacConfig(steps=steps, buffer=steps),
        )
        for seed in seeds
    ]
    population = Population(runs)
    returns: list[float | None] = [None for _ in runs]
    for news in population.train(save_every=steps):
        for i, metrics, check in news.reports:
            returns[i] = metrics.episode_return
            line = f"seed {seeds[i]}  step {metrics.step:6}  return {metrics.episode_return or 0:7.1f} rate {metrics.steps_per_s:.0f}"
            if check is not None:
                line += f"  K = {check.k} r{check.rank} {check.shares}"
                if check.certificate is not None:
                    line += f"  {check.decision.action}, jump {check.certificate.jump:g}"
            print(line, flush=True)
    return population.progress, returns


if __name__ == "__main__":
    a = [int(x) for x in sys.argv[2:]]
    progress, returns = train(a or (0, 1, 2), int(sys.argv[1]), 1000)
    print([(p.heads, p.failure, p.certificates) for p in progress], returns)
