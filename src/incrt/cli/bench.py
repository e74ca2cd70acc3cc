"""``incrt bench``: how fast the engine is, beside a peer."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Bench:
    """Time the engine."""

    device: Annotated[Literal["cpu", "gpu"], tyro.conf.Positional]
    """What to time."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
