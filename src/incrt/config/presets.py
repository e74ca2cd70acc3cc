"""The presets: each gives a whole run, whose parts belong together."""

from collections.abc import Mapping
from typing import Any

from incrt.config.rules import one_of
from incrt.config.run import RunConfig

PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    # The feed-forward bound exceeds the friction, so that knowing the memory pays. All defaults are of this preset.
    "memory": {},
    # The paper's bounds and its raw reward, as far as they can be recovered (docs/task.md), and its bookkeeping.
    "paper": {
        "task": {"eta_max": (8.0, 5.5), "reward_error": 1.0, "reward_velocity": 2e-4},
        "encoder": {"layer_norm": False},
        "heads": {"optimiser": "rebuild"},
    },
}


def preset(name: str = "memory", **changes: Any) -> RunConfig:
    """The run of the named preset, with the given parts changed: ``preset("paper", task={"tau_z": 2.0}, seed=7)``."""
    one_of(tuple(PRESETS))("preset", name)
    return RunConfig().replace(**PRESETS[name]).replace(**changes)
