"""Records that studies write and reports read. Neither has to know the other for them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Command:
    """A command that ran a study and was not killed, and where its time went, in seconds."""

    study: str
    preset: str
    seeds: str
    batch: int
    """Most runs that were trained together."""
    begun: str
    wall_s: float
    runs: int
    """That it trained from their first step to their last."""
    train_s: float
    compile_s: float
    evaluate_s: float
    part: str = ""
    """Variants and tau_z that it was to train; empty for the whole study. Lines of a version before do not have it."""


@dataclass(frozen=True)
class Episodes:
    """One episode a payload of one policy. Arrays are (payloads, steps, joints), unless it is said otherwise."""

    payloads: Floats
    time: Floats
    """(steps,), in seconds."""
    q: Floats
    q_d: Floats
    torque: Floats
    k_d: Floats
    lam: Floats
    eta: Floats
    """One a joint."""
    attention: Floats
    """Of the middle payload: (moments, heads, W), oldest observation first, active heads only; empty without heads."""
    attention_time: Floats
    """(moments,), in seconds."""
