"""Runs small enough for tests: they compile in seconds and train a few hundred steps a second."""

from typing import Any

from tasks import preset_task

from incrt.arm.task import make_task
from incrt.config import EncoderConfig, HeadsConfig, RunConfig, SacConfig
from incrt.engine.progress import Run

TASK = preset_task(window=5, horizon=40, eval_payloads=(0.5,), eval_rollouts=1)
ENCODER = EncoderConfig(k_max=3, d_k=4)
HEADS = HeadsConfig(check_every=20, grace=40, tokens=30, share_batch=16)
SAC = SacConfig(steps=140, buffer=100, batch=16, hidden=(8, 8), learning_starts=10)
RUN = RunConfig(task=TASK, encoder=ENCODER, heads=HEADS, sac=SAC)


def small_run(seed: int, **changes: Any) -> Run:
    """A run of the task; ``changes`` are fields of Run."""
    environment, params = make_task(TASK)
    fields = {"params": params, "window": TASK.window, "encoder": ENCODER, "heads": HEADS, "sac": SAC, **changes}
    return Run(seed, environment, **fields)
