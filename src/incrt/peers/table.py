"""The peers. To add one, write a function that begins its training, and give it a row in ``PEERS``.

All have the engine's batch, buffer, layers and settings as far as they have them, eight heads active where they have
heads, and take one step of the task and one update a step. Libraries are imported when a training begins, so that one
that is not installed is missed by its own peer alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.peers.timing import Training


class Setting(NamedTuple):
    """What is trained."""

    task: TaskConfig
    encoder: EncoderConfig
    sac: SacConfig


@dataclass(frozen=True)
class Peer:
    """Another training of the same task."""

    name: str
    work: str
    """What it does in an update, beside what the engine does."""
    comes_with: str
    """The command that installs what it needs."""
    begin: Callable[[Setting], Training]


def _sb3_literal(setting: Setting) -> Training:
    from incrt.sb3.literal import LiteralAttention

    arguments = {"encoder": setting.encoder}
    return _of_sb3(setting, {"features_extractor_class": LiteralAttention, "features_extractor_kwargs": arguments})


def _sb3_heads(setting: Setting) -> Training:
    from incrt.sb3 import policy_kwargs

    encoder, k = setting.encoder, setting.encoder.k_max
    return _of_sb3(setting, policy_kwargs(k_max=k, k_init=k, d_k=encoder.d_k, layer_norm=encoder.layer_norm))


def _sb3_flat(setting: Setting) -> Training:
    return _of_sb3(setting, {})


def _sbx_flat(setting: Setting) -> Training:
    from sbx import SAC

    return _of_sb3(setting, {}, algorithm=SAC)


def _of_sb3(setting: Setting, policy_kwargs: dict[str, Any], **others: Any) -> Training:
    from incrt.sb3.timing import TimedSac

    return Training(TimedSac(setting.task, setting.sac, policy_kwargs, **others).train)


def _memorax(setting: Setting) -> Training:
    from incrt.peers.memorax import begin

    return begin(setting.task, setting.encoder, setting.sac, setting.sac.batch)


def _memorax_few(setting: Setting) -> Training:
    from incrt.peers.memorax import begin

    return begin(setting.task, setting.encoder, setting.sac, -(-setting.sac.batch // setting.task.window))


_SB3 = "pip install -c constraints.txt -e '.[sb3]' brings it"
_BENCH = "pip install -c constraints.txt -e '.[bench]' brings it"
_MEMORAX = f"{_BENCH}, with pip install --no-deps memorax==1.0.1 after it"

_WRITTEN_OUT = "the paper's attention written out: every head attends at every step of the window"
_HEADS = "the engine's heads in PyTorch: attention at the last step of the window alone"
_FLAT = "a flattened window and no attention: a cheaper network"
_SEQUENCES = "a loss at every step of a sequence: 256 sequences of W steps, so W times the losses"
_FEW_SEQUENCES = "a loss at every step of a sequence: 256 / W sequences of W steps, so as many losses of fewer windows"

PEERS = (
    Peer("sb3-literal", _WRITTEN_OUT, _SB3, _sb3_literal),
    Peer("sb3-heads", _HEADS, _SB3, _sb3_heads),
    Peer("sb3-flat", _FLAT, _SB3, _sb3_flat),
    Peer("sbx-flat", _FLAT, _BENCH, _sbx_flat),
    Peer("memorax", _SEQUENCES, _MEMORAX, _memorax),
    Peer("memorax-few", _FEW_SEQUENCES, _MEMORAX, _memorax_few),
)
