"""Triggers: what decides at a check whether a head is grown or pruned.

A trigger is anything with ``decide(signals, state) -> (Decision, state)``. It is plain Python and sees no tensor; what
it remembers between two checks is its state, which JSON holds in checkpoints. :mod:`incrt.heads.check` asks it,
:mod:`incrt.heads.growth` acts and :mod:`incrt.heads.certificates` checks.

| name | grows | prunes |
|---|---|---|
| paper | where the rank of the contexts exceeds K | a head with a small share of the output |
| clock | every ``grace`` steps | never |
| potential | where a silent head would have a large gradient (GradMax) | a head with small gradients (GraMa) |
| expansion | where a silent head promises to lower the loss (SENN) | a head with small gradients (GraMa) |
| importance | ``grace`` steps after the latest event | a head with little importance by gradient (Michel et al.) |
| earned | where the critic leaves much unexplained and has stopped improving | a head that the others can make up for |
"""

from incrt.heads.triggers.base import (
    Decision,
    Signals,
    Trigger,
    make_trigger,
    wanted_signals,
)
from incrt.heads.triggers.paper import PaperTrigger

# isort: split
# In the order in which they are to be named, the default first.
from incrt.heads.triggers.others import Clock, ExpansionTrigger, ImportanceTrigger, PotentialTrigger

# isort: split
from incrt.heads.triggers.earned import EarnedTrigger

__all__ = [
    "Clock",
    "Decision",
    "EarnedTrigger",
    "ExpansionTrigger",
    "ImportanceTrigger",
    "PaperTrigger",
    "PotentialTrigger",
    "Signals",
    "Trigger",
    "make_trigger",
    "wanted_signals",
]
