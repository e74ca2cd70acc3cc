"""Reinforcement-learned control with attention that grows while it learns."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from incrt.arm.law import Gains
from incrt.arm.task import Task, make_task
from incrt.config import EncoderConfig, HeadsConfig, RunConfig, SacConfig, TaskConfig, preset
from incrt.controllers.evaluation import evaluate, evaluate_policy
from incrt.controllers.tuning import CONTROLLERS, reference_controller
from incrt.engine import Population, Run, load_policy, make_job, train
from incrt.tasks.actuators import actuators_task
from incrt.tasks.recall import recall_task

if TYPE_CHECKING:
    from incrt import env as env
    from incrt import sb3 as sb3

__version__ = "0.2.0"

__all__ = [
    "CONTROLLERS",
    "EncoderConfig",
    "Gains",
    "HeadsConfig",
    "Population",
    "Run",
    "RunConfig",
    "SacConfig",
    "Task",
    "TaskConfig",
    "actuators_task",
    "evaluate",
    "evaluate_policy",
    "load_policy",
    "make_job",
    "make_task",
    "preset",
    "recall_task",
    "reference_controller",
    "train",
]


def __getattr__(name: str) -> ModuleType:
    """Load ``incrt.env`` and ``incrt.sb3`` when they are asked for: the core runs without what they need."""
    if name in {"env", "sb3"}:
        return import_module(f"incrt.{name}")
    raise AttributeError(f"module 'incrt' has no attribute {name!r}")


if find_spec("gymnasium") is not None:  # the core runs without it
    import gymnasium

    gymnasium.register("incrt/Stribeck-v0", entry_point="incrt.arm.gym:StribeckEnv")
    gymnasium.register("incrt/Recall-v0", entry_point="incrt.tasks.gym:RecallEnv")
    gymnasium.register("incrt/Actuators-v0", entry_point="incrt.tasks.gym:ActuatorsEnv")
