"""Heads that grow inside Stable-Baselines3: a features extractor, a callback, and the way to the engine and back.

PyTorch appears in this package alone; the attention itself is the text of :mod:`incrt.heads.attention`.
"""

try:
    import stable_baselines3 as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"incrt.sb3 needs Stable-Baselines3 and PyTorch, the extra sb3 of incrt ({error})", name=error.name
    ) from error

from incrt.sb3.callback import RuntimeHeads
from incrt.sb3.conversion import load_policy, save_policy
from incrt.sb3.extractor import VarHeadExtractor, policy_kwargs
from incrt.sb3.saving import SaveEvery, load, save

__all__ = [
    "RuntimeHeads",
    "SaveEvery",
    "VarHeadExtractor",
    "load",
    "load_policy",
    "policy_kwargs",
    "save",
    "save_policy",
]
