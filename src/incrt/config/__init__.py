"""What can be set: the dataclasses and presets from which commands, files and documents are made."""

from incrt.config.heads import ENCODERS, OPTIMISER_RULES, SHARE_RULES, EncoderConfig, HeadsConfig
from incrt.config.presets import PRESETS, preset
from incrt.config.registry import FRICTIONS, ROBOTS, TRAJECTORIES, TRIGGERS
from incrt.config.run import RunConfig, check_together
from incrt.config.sac import SacConfig
from incrt.config.seeds import format_seeds, parse_seeds
from incrt.config.task import SUCCESS_RMSE, TaskConfig

__all__ = [
    "ENCODERS",
    "FRICTIONS",
    "OPTIMISER_RULES",
    "PRESETS",
    "ROBOTS",
    "SHARE_RULES",
    "SUCCESS_RMSE",
    "TRAJECTORIES",
    "TRIGGERS",
    "EncoderConfig",
    "HeadsConfig",
    "RunConfig",
    "SacConfig",
    "TaskConfig",
    "check_together",
    "format_seeds",
    "parse_seeds",
    "preset",
]
