"""Stable-Baselines3's SAC, or one that is built on it, trained so many steps at a time on the task, for the clock."""

from dataclasses import fields
from time import perf_counter
from typing import Any

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger

from incrt.arm.gym import StribeckEnv
from incrt.config import SacConfig, TaskConfig
from incrt.config.rules import COUNT
from incrt.engine.threads import usable_cores
from incrt.sb3.settings import make_sac

RANDOM_STEPS = 50
"""Steps before the first update. Batches are drawn with replacement, so an update costs the same from the first on."""
WARM_UP = 20
"""Steps with an update each that are not timed: compilers, caches and threads get ready in them."""
_TRIAL_STEPS = 10
_TRIAL_SECONDS = 1.0


class TimedSac:
    """SAC on the Gymnasium environment of a task, with the engine's settings but an early first update, and begun.

    Every further step is one of the environment and one update. It has as many threads of PyTorch, one or one for each
    core that this process may use, as it is fastest with.
    """

    def __init__(
        self,
        config: TaskConfig,
        sac: SacConfig,
        policy_kwargs: dict[str, Any],
        seed: int = 0,
        algorithm: Any = SAC,
    ) -> None:
        env = StribeckEnv(**{field.name: getattr(config, field.name) for field in fields(config)})
        self.model = make_sac(
            env, sac, policy_kwargs, seed, algorithm=algorithm, learning_starts=RANDOM_STEPS, device="cpu"
        )
        self.model.set_logger(Logger(None, []))  # its own would leave a folder behind
        self.model.learn(RANDOM_STEPS + WARM_UP)
        choices = sorted({1, usable_cores()})
        self.threads = max(choices, key=self._trial) if len(choices) > 1 else choices[0]

    def train(self, steps: int, threads: int | None = None) -> None:
        """So many steps, with the given number of threads or the one that is fastest."""
        steps = COUNT("steps", steps)
        before = torch.get_num_threads()
        torch.set_num_threads(threads or self.threads)
        try:
            self.model.learn(steps, reset_num_timesteps=False)
        finally:
            torch.set_num_threads(before)

    def _trial(self, threads: int) -> float:
        """Steps a second with so many threads, over about a second."""
        self.train(_TRIAL_STEPS, threads)
        steps, begin = 0, perf_counter()
        while (taken := perf_counter() - begin) < _TRIAL_SECONDS:
            self.train(_TRIAL_STEPS, threads)
            steps += _TRIAL_STEPS
        return steps / taken
