"""``incrt settings``."""

import dataclasses
import sys
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console

from incrt.cli.options import PRESET
from incrt.cli.terminal import new_table, print_json
from incrt.config import preset
from incrt.config.run import PARTS

_PIPED = 160
"""Columns where no terminal says how many there are: enough to find a field and its meaning in one line."""


@dataclass(frozen=True)
class Settings:
    """List every field of a run: its value in a preset, its unit, what it accepts and what it means.

    The names are those of incrt train --set, of the tables of a study and of config.json.
    """

    preset: Annotated[str, PRESET] = "memory"
    """Whose values to show."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Print the table."""
        rows = setting_rows(self.preset)
        if self.json:
            print_json(rows)
            return
        table = new_table(f"Settings, preset {self.preset}", ())
        for heading in ("field", "value", "unit", "accepted", "meaning"):
            table.add_column(heading, justify="left", overflow="fold", no_wrap=heading in {"field", "unit"})
        for row in rows:
            table.add_row(row["field"], str(row["value"]), row["unit"], row["accepted"], row["about"])
        Console(width=None if sys.stdout.isatty() else _PIPED).print(table)


def setting_rows(preset_name: str) -> list[dict[str, Any]]:
    """One row a field, as the command and the documents show them."""
    config = preset(preset_name)
    holders = {**{f"{part}.": getattr(config, part) for part in PARTS}, "": config}
    return [
        {
            "field": f"{prefix}{field.name}",
            "value": getattr(holder, field.name),
            "unit": field.metadata["unit"],
            "accepted": field.metadata["rule"].accepted,
            "about": field.metadata["about"],
        }
        for prefix, holder in holders.items()
        for field in dataclasses.fields(holder)
        if "rule" in field.metadata
    ]
