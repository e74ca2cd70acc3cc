"""What can be set: the dataclasses and presets from which commands, files and documents are made."""

from incrt.config.bench import FEATURES, REFERENCES, SUCCESS_RMSE, BenchConfig
from incrt.config.heads import ENCODERS, OPTIMISER_RULES, RANKS, SHARE_RULES, EncoderConfig, RuntimeConfig
from incrt.config.presets import PRESETS, encoder_preset, preset, runtime_preset
from incrt.config.sac import SacConfig, check_together
from incrt.config.seeds import format_seeds, parse_seeds

__all__ = [
    "ENCODERS",
    "FEATURES",
    "OPTIMISER_RULES",
    "PRESETS",
    "RANKS",
    "REFERENCES",
    "SHARE_RULES",
    "SUCCESS_RMSE",
    "BenchConfig",
    "EncoderConfig",
    "RuntimeConfig",
    "SacConfig",
    "check_together",
    "encoder_preset",
    "format_seeds",
    "parse_seeds",
    "preset",
    "runtime_preset",
]
