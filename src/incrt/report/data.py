"""What a report is made of: rows of runs and controllers, studies as they were asked for, and what runs left.

Numbers in tables and verdicts, and most charts, come from the rows alone (:mod:`incrt.report.schema`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from incrt.config import format_seeds
from incrt.storage.records import Episodes, Floats
from incrt.studies.study import command_name


@dataclass(frozen=True)
class History:
    """What one run left on its way; arrays over the stretches, and over the checks at which something was measured."""

    k_init: int
    steps: Floats
    """At the end of each stretch."""
    returns: Floats
    """Mean return of the episodes that ended in the stretch; NaN if none did."""
    event_steps: Floats
    event_actions: tuple[str, ...]
    """grow or prune."""
    event_heads: Floats
    """K after each event."""
    check_steps: Floats
    ranks: Floats
    shares: Floats
    """Of each check and head slot; 0 where the head is not active."""


@dataclass(frozen=True)
class StudyRecord:
    """A study as it was asked for."""

    name: str
    preset: str
    about: str
    seeds: tuple[int, ...]
    variants: tuple[str, ...]
    """In the order in which they are shown."""
    compare: Mapping[str, str]
    """The variants that are compared with another one, and with which."""
    regimes: tuple[tuple[float, int], ...]
    """(tau_z, window)."""
    conditions: Mapping[str, Mapping[str, Any]]
    """What its runs are also tested on, by name: the fields of the task that differ."""
    trained_by: tuple[str, ...]
    """The studies that train its runs, if it only tests them."""
    runs_wanted: int
    failed: tuple[tuple[str, str], ...]
    """Runs without a row: they could not be trained, evaluated or read, and why."""
    unread: tuple[str, ...]
    """What else could not be read, and why."""
    configuration: dict[str, Any]
    """Of each variant and regime: what can be set, as config.json has it."""
    command: str
    """How to repeat it."""

    @property
    def tau_zs(self) -> tuple[float, ...]:
        """Each once, whatever windows the variants have there."""
        return tuple(dict.fromkeys(tau_z for tau_z, _ in self.regimes))

    @property
    def tests(self) -> dict[str, str]:
        """What its runs are tested on, by name: the fields that differ from what they were trained on, as JSON."""
        return {name: as_json(changes) for name, changes in {"": {}, **self.conditions}.items()}


@dataclass(frozen=True)
class Dataset:
    """All that a report is made of."""

    studies: Sequence[StudyRecord]
    runs: pl.DataFrame
    controllers: pl.DataFrame
    histories: Mapping[str, History]
    """By the run's folder."""
    episodes: Mapping[str, Episodes]
    """By the run's folder, of representative runs."""
    made_by: Sequence[Mapping[str, Any]]
    """Versions, commits and devices that trained the runs, each once."""
    commands: pl.DataFrame
    """The oldest first."""
    title: str = ""
    """Of the page."""

    @property
    def presets(self) -> list[str]:
        return list(dict.fromkeys(study.preset for study in self.studies))


def as_json(value: Any) -> str:
    """The same text for the same settings."""
    return json.dumps(value, sort_keys=True)


def cell_name(variant: str, tau_z: float) -> str:
    """How a study's record names what differs in seeds alone."""
    return f"{variant}, tau_z = {tau_z:g} s"


def controllers_of(cell: str) -> str:
    """How a study's record names what of it could not be read, before a colon and why."""
    return f"reference controllers of {cell}"


def command_for(name: str, preset: str, seeds: Sequence[int]) -> str:
    """How to repeat a study."""
    return f"incrt study run {command_name(name)} --preset {preset} --seeds {format_seeds(seeds)} --out DIR"
