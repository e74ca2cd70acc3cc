"""The presets: each names a bench, an encoder and a runtime controller that belong together."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from incrt.config.bench import BenchConfig
from incrt.config.heads import EncoderConfig, RuntimeConfig
from incrt.config.rules import check_name


class Preset(NamedTuple):
    """What a preset changes of the defaults."""

    bench: Mapping[str, Any]
    encoder: Mapping[str, Any]
    runtime: Mapping[str, Any]


PRESETS: Mapping[str, Preset] = {
    # The feed-forward bound exceeds the friction, so that knowing the memory pays.
    "memory": Preset(bench={}, encoder={}, runtime={}),
    # The paper's bounds and its raw reward, as far as they can be recovered (docs/bench.md), and its bookkeeping.
    "paper": Preset(
        bench={"eta_max": (8.0, 5.5), "reward_error": 1.0, "reward_velocity": 2e-4},
        encoder={"layer_norm": False},
        runtime={"optimiser": "rebuild"},
    ),
}


def preset(name: str = "memory", **changes: Any) -> BenchConfig:
    """The bench of the named preset, with the given fields changed."""
    return BenchConfig().replace(**{**_known(name).bench, **changes})


def encoder_preset(name: str = "memory", **changes: Any) -> EncoderConfig:
    """The encoder of the named preset, with the given fields changed."""
    return EncoderConfig().replace(**{**_known(name).encoder, **changes})


def runtime_preset(name: str = "memory", **changes: Any) -> RuntimeConfig:
    """The runtime controller of the named preset, with the given fields changed."""
    return RuntimeConfig().replace(**{**_known(name).runtime, **changes})


def _known(name: str) -> Preset:
    check_name("preset", name, tuple(PRESETS))
    return PRESETS[name]
