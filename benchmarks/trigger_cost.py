"""What each trigger's check costs beside the training between two checks, in a run as ``incrt train`` has it.

Run with ``taskset -c 0,1 python benchmarks/trigger_cost.py`` on an idle machine: one run a row, all heads active, once
on preset memory and once on recall with sixteen heads. Medians of fifteen checks (with the rank on the host, where the
trigger wants it) and of as many stretches of training, turn by turn.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import numpy as np

from incrt import EncoderConfig, HeadsConfig, Run, SacConfig, TaskConfig, make_task, recall_task
from incrt.engine.batch import Stack
from incrt.engine.device_loop import Group
from incrt.engine.progress import first_progress
from incrt.heads.triggers import Decision

TRIGGERS = ("paper", "clock", "potential", "expansion", "importance", "earned")
STEPS = 500
ROUNDS = 15
WARM_UP = 3


class Looking:
    """A trigger that is shown what another one is shown, and does nothing."""

    def __init__(self, signals: tuple[str, ...]) -> None:
        self.signals = signals

    def decide(self, signals: Any, state: Any) -> tuple[Decision, Any]:
        """Nothing."""
        return Decision("noop", "timing"), None


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def cost(run: Run) -> tuple[float, float]:
    """Seconds of a check, and of the training between two."""
    stack = Stack([0], [first_progress(run)], None)
    group = Group([stack], jax.devices()[0], lags=False)
    for _ in range(WARM_UP):
        group.advance()
    learner = stack.states.learner
    everyone = learner.learned._replace(mask=learner.learned.mask.at[:].set(True))
    stack.states = stack.states._replace(learner=learner._replace(learned=everyone))
    checks, stretches = [], []
    for number in range(ROUNDS + 1):
        check = seconds(lambda: stack._measure(jax.device_get(stack.look()), [0]))  # noqa: SLF001
        stretch = seconds(group.advance) - check  # which looks as well
        if number:  # the first has compiled
            checks.append(check)
            stretches.append(stretch)
    return median(checks), median(stretches)


def signals_of(trigger: str) -> tuple[str, ...]:
    """What a trigger of this name wants."""
    from incrt.heads.triggers import make_trigger, wanted_signals

    return wanted_signals(make_trigger(HeadsConfig(trigger=trigger)))


def main() -> None:
    """Print one row a trigger and task."""
    sac = SacConfig(steps=(WARM_UP + 2 * ROUNDS) * STEPS)
    arm, recall = make_task(TaskConfig()), recall_task(3, 8)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, numpy {np.__version__}")
    print("| trigger | task | check, ms | training between two, ms | part |")
    print("|---|---|---|---|---|")
    for trigger in TRIGGERS:
        heads = HeadsConfig(trigger=Looking(signals_of(trigger)))
        for name, (environment, params), window, encoder in (
            ("memory, 8 heads", arm, 20, EncoderConfig(encoder="runtime")),
            ("recall, 16 heads", recall, 8, EncoderConfig(k_max=16, d_k=8)),
        ):
            check, training = cost(Run(0, environment, params, window, encoder, heads, sac))
            part = f"{100 * check / training:.1f} %"
            print(f"| {trigger} | {name} | {1000 * check:.1f} | {1000 * training:.0f} | {part} |", flush=True)


if __name__ == "__main__":
    main()
