"""Reinforcement-learned control with attention that grows while it learns."""

from importlib.util import find_spec

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

if find_spec("gymnasium") is not None:  # the core runs without it
    import gymnasium

    gymnasium.register("incrt/Stribeck-v0", entry_point="incrt.env:StribeckEnv")
