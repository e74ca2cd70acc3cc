"""The engine as its peers are timed: begun, warm, and with a number of active heads that stays."""

import dataclasses

from incrt.arm.task import make_task
from incrt.config import EncoderConfig, HeadsConfig, SacConfig, preset
from incrt.engine.population import Population
from incrt.engine.progress import Checkpoint, Run
from incrt.peers.timing import Training

TAU_Z = 5.0
"""Of all that is timed on a CPU; it makes no difference to the time."""
_STRETCH = HeadsConfig.check_every


def study_run(seed: int, window: int, tau_z: float, steps: int, k_max: int = EncoderConfig.k_max) -> Run:
    """A run of the paper's main study."""
    environment, params = make_task(preset(task={"window": window, "tau_z": tau_z}).task)
    return Run(seed, environment, params, window, EncoderConfig(k_max=k_max), sac=SacConfig(steps=steps))


def begin_engine(window: int, count: int, heads: int = EncoderConfig.k_max) -> Training:
    """So many runs at once, with plant, replay and checks; each keeps the given number of active heads.

    They train from their first check on, from the same checkpoint every time.
    """
    runs = [with_heads(study_run(seed, window, TAU_Z, 2 * _STRETCH), heads) for seed in range(count)]
    begun: dict[int, Checkpoint] = {}
    for news in Population(runs, "cpu").train(save_every=_STRETCH):
        begun = {**dict(news.saved), **begun}  # the first of each run

    def train(steps: int) -> None:
        for _ in Population(runs, "cpu", {i: _up_to(each, steps) for i, each in begun.items()}).train():
            pass

    return Training(train, _STRETCH, count)


def with_heads(run: Run, heads: int) -> Run:
    """The same run with so many active heads all the time: none may go, and no rank is enough to ask for one.

    It is checked as often as another. Where few heads are active a run is faster.
    """
    return dataclasses.replace(
        run, encoder=run.encoder.replace(k_init=heads), heads=run.heads.replace(k_min=heads, eps_grow=1e9)
    )


def _up_to(begun: Checkpoint, steps: int) -> Checkpoint:
    """What goes on from the checkpoint for so many steps."""
    progress, run = begun.progress.copy(), begun.progress.run
    progress.run = dataclasses.replace(run, sac=run.sac.replace(steps=progress.step + steps))
    return begun._replace(progress=progress)
