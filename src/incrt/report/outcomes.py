"""What a report is made of: one row a run, one row a reference controller, and what each run left on its way.

The figures in tables and verdicts, and most charts, come from the rows alone, which ``runs.csv`` and ``references.csv``
keep. The other files of :mod:`incrt.report.archive` hold the rest.
"""

import csv
import dataclasses
import io
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """How one run did, on one test. Angles in rad, torques in N m, times in environment steps."""

    study: str
    preset: str
    variant: str
    """Name of the variant in its study, such as ``runtime`` or ``K_max 2``."""
    tau_z: float
    window: int
    seed: int
    condition: str
    """Name of what it was tested on; empty for what it was trained on."""
    folder: str
    """Of the run, in the study's folder; several studies may name the same run."""
    steps: int
    """That it was to be trained."""
    failure: str | None
    """Why training stopped early; such a run has not succeeded, and its figures are not counted."""
    rmse: float | None
    """None where the arm was lost: its RMSE was not below 1 rad, or it did not stay finite."""
    delta_pct: float | None
    success: bool
    """Whether it was trained to its end, and its RMSE is below 0.10 rad."""
    headroom_closed: float | None
    max_error: float | None
    torque_rms: float | None
    torque_tv: float | None
    shield_active_pct: float | None
    encoder: str
    k_max: int
    heads: int
    """K at the end; 0 for an encoder without heads."""
    grows: int
    prunes: int
    certificates_held: int
    """Of all grows and prunes."""
    last_grow: int | None
    saturated_at: int | None
    """Step from which on K = K_max, if it came to that."""
    largest_grow_jump: float | None
    largest_prune_jump: float | None
    """In the mean over a batch, as a part of its bound. Jumps that were not finite are infinite."""
    worst_prune_jump: float | None
    """The same of the single context that jumped most."""
    inside: bool | None
    """Whether K ended where Proposition 3 has it; None where it was not concluded."""
    rank_settled: bool | None
    """Whether the rank came to rest, as the proposition assumes."""
    cumulative_holds: bool | None
    """Whether the jumps of all events together keep to the corollary's bound."""
    beta: float | None
    """At the end, the largest share of a head over the smallest; infinite where a head puts out nothing."""

    @property
    def key(self) -> tuple[str, str, str, float, int, str]:
        """Which test of which run it is; there is one row of it."""
        return self.study, self.preset, self.variant, self.tau_z, self.seed, self.condition

    @property
    def is_sound(self) -> bool:
        """Whether its figures count: it was trained to its end, and the arm was not lost."""
        return self.failure is None and self.delta_pct is not None


@dataclass(frozen=True)
class Reference:
    """How a reference controller does on a test: what stands beside the learned results of a study."""

    study: str
    preset: str
    variant: str
    """For whose task it was tuned and tested on it; empty where all variants of the regime have the same one."""
    tau_z: float
    condition: str
    controller: str
    rmse: float | None
    """None where the arm was lost."""
    delta_pct: float | None
    headroom_closed: float | None
    max_error: float | None
    torque_rms: float | None
    torque_tv: float | None

    @property
    def key(self) -> tuple[str, str, str, float, str, str]:
        """Which test of which controller it is."""
        return self.study, self.preset, self.variant, self.tau_z, self.condition, self.controller


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
    """One a feature and joint."""
    attention: Floats
    """Of the middle payload: (moments, heads, W), oldest observation first, active heads only; empty without heads."""
    attention_time: Floats
    """(moments,), in seconds."""


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
    """Runs without an outcome: they could not be trained, evaluated or read, and why."""
    unread: tuple[str, ...]
    """What else could not be read, and why."""
    configuration: dict[str, Any]
    """Of each variant and regime: what can be set, as config.json has it."""
    command: str
    """How to repeat it."""


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
class Material:
    """All that a report is made of."""

    studies: Sequence[StudyRecord]
    outcomes: Sequence[Outcome]
    references: Sequence[Reference]
    histories: dict[str, History]
    """By the run's folder."""
    episodes: dict[str, Episodes]
    """By the run's folder, of representative runs."""
    made_by: Sequence[dict[str, Any]]
    """Versions, commits and devices that trained the runs, each once."""
    commands: Sequence[Command]
    """The oldest first."""
    title: str = ""
    """Of the page."""


Row = TypeVar("Row", Outcome, Reference, Command)


def to_csv(rows: Iterable[Row], kind: type[Row]) -> str:
    """A line a row; nothing for None."""
    names = [field.name for field in dataclasses.fields(kind)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([["" if (value := getattr(row, name)) is None else value for name in names] for row in rows])
    return text.getvalue().replace("\r", " ")  # which would end a line when it is read


def from_csv(text: str, kind: type[Row]) -> list[Row]:
    """The rows that :func:`to_csv` wrote; what it cannot have written is refused, by its line.

    A version before may not have known the last columns; those have defaults.
    """
    fields, hints = dataclasses.fields(kind), typing.get_type_hints(kind)
    lines = csv.reader(io.StringIO(text))
    names = next(lines, [])
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    if len(names) < len(needed) or names != [field.name for field in fields][: len(names)]:
        raise ValueError(f"the first line must be {','.join(field.name for field in fields)}")
    if not text.endswith("\n"):
        raise ValueError("it ends in the middle of a line")
    rows = []
    for cells in lines:
        if len(cells) != len(names):
            raise ValueError(f"line {lines.line_num} must have {len(names)} cells, got {len(cells)}")
        try:
            rows.append(kind(**{name: _parse(hints[name], cell) for name, cell in zip(names, cells, strict=True)}))
        except ValueError as error:
            raise ValueError(f"line {lines.line_num}: {error}") from None
    return rows


def _parse(hint: Any, text: str) -> Any:
    options = [each for each in typing.get_args(hint) if each is not types.NoneType]
    if options:
        return None if not text else _parse(options[0], text)
    if hint is bool and text not in {"True", "False"}:
        raise ValueError(f"must be True or False, got {text!r}")
    return text == "True" if hint is bool else hint(text)
