"""Checks of a run that is only a record: nothing is trained, and events measure nothing."""

from collections.abc import Sequence

import numpy as np

from incrt.config import HeadsConfig
from incrt.heads.certificates import Evidence, PruneMeasures
from incrt.heads.check import Check, HeadsState, Measured, Watched, check_run
from incrt.heads.triggers import Decision, PaperTrigger, Trigger


def check_record(
    trigger: Trigger, controller: HeadsState, step: int, rank: float | None, shares: Sequence[float] | None
) -> tuple[Check, HeadsState]:
    """One check with these signals."""

    def measure() -> Measured:
        return Measured(rank, shares)  # type: ignore[arg-type]  # what is no signal is to be refused

    def weigh(decision: Decision) -> PruneMeasures:
        return PruneMeasures(controller.k, decision.head, 0.0, 0.0, np.ones(len(controller.mask)), 1.0, 1.0)

    def act(_: Decision) -> Evidence:
        still = {"policy": np.zeros((1, 1))}
        return Evidence(still, still, np.zeros(2))

    return check_run(step, Watched(trigger, controller), measure, weigh, act)


def decide(
    config: HeadsConfig, controller: HeadsState, step: int, rank: float | None, shares: Sequence[float] | None
) -> tuple[Decision, HeadsState]:
    """What the paper's rule decides."""
    check, after = check_record(PaperTrigger(config), controller, step, rank, shares)
    return check.decision, after
