"""Tasks for tests that need nothing else of a run."""

from typing import Any

import incrt
from incrt.config import TaskConfig


def preset_task(name: str = "memory", **changes: Any) -> TaskConfig:
    """The task of a preset, with these fields changed."""
    return incrt.preset(name, task=changes).task
