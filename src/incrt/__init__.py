"""Reinforcement-learned control with attention that grows while it learns."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from incrt.bench import Bench, make_bench
from incrt.config import (
    BenchConfig,
    EncoderConfig,
    RuntimeConfig,
    SacConfig,
    encoder_preset,
    preset,
    runtime_preset,
)
from incrt.evaluation import evaluate, evaluate_policy
from incrt.sac import Population, Run, bench_job, load_policy, train
from incrt.tuning import CONTROLLERS, reference_controller

if TYPE_CHECKING:
    from incrt import env as env
    from incrt import sb3 as sb3

__version__ = "0.1.0"

__all__ = [
    "CONTROLLERS",
    "Bench",
    "BenchConfig",
    "EncoderConfig",
    "Population",
    "Run",
    "RuntimeConfig",
    "SacConfig",
    "bench_job",
    "encoder_preset",
    "evaluate",
    "evaluate_policy",
    "load_policy",
    "make_bench",
    "preset",
    "reference_controller",
    "runtime_preset",
    "train",
]


def __getattr__(name: str) -> ModuleType:
    """Load ``incrt.env`` and ``incrt.sb3`` when they are asked for: the core runs without what they need."""
    if name in {"env", "sb3"}:
        return import_module(f"incrt.{name}")
    raise AttributeError(f"module 'incrt' has no attribute {name!r}")


if find_spec("gymnasium") is not None:  # the core runs without it
    import gymnasium

    gymnasium.register("incrt/Stribeck-v0", entry_point="incrt.env:StribeckEnv")
