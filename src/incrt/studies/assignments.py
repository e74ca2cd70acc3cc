"""A batch of runs as an assignment for a worker, and what became of it; both travel as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incrt.config.earlier import read_settings
from incrt.studies.store import PlannedRun, Store
from incrt.studies.study import Cell, Study


@dataclass(frozen=True)
class Assignment:
    """Runs that one worker trains together and evaluates."""

    store: Path
    runs: tuple[PlannedRun, ...]
    tests: Mapping[str, Mapping[str, Any]]
    """By name, the fields of the task that differ from training."""
    trained_by: tuple[str, ...]
    """Not empty: the runs are only evaluated, and these studies train them."""
    device: str
    cores: int | None
    """On a CPU, how many runs train at a time; None for as many as there are cores."""

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(run.folder for run in self.runs)

    def to_json(self) -> str:
        runs = [(run.cell.variant, run.cell.config.to_json(), run.seed, str(run.folder)) for run in self.runs]
        return json.dumps({**vars(self), "store": str(self.store), "runs": runs})

    @classmethod
    def from_json(cls, text: str) -> "Assignment":
        found = json.loads(text)
        runs = tuple(
            PlannedRun(Cell(variant, read_settings(settings)), seed, Path(folder))
            for variant, settings, seed, folder in found["runs"]
        )
        paths = {"store": Path(found["store"]), "trained_by": tuple(found["trained_by"])}
        return cls(**{**found, **paths, "runs": runs})


@dataclass
class Spent:
    """How many runs were trained, and where the time of workers went, in seconds."""

    runs: int = 0
    """From their first step to their last: those that were only gone on with took less than they would have."""
    train_s: float = 0.0
    """All that training takes besides compiling, writing checkpoints for example."""
    compile_s: float = 0.0
    """While at least one program was being made, as JAX reports it; on a CPU other runs may train meanwhile."""
    evaluate_s: float = 0.0
    """Reference controllers included."""

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def rounded(self) -> dict[str, Any]:
        """To tenths of a second."""
        return {name: round(value, 1) for name, value in vars(self).items()}


@dataclass
class AssignmentResult:
    """What a worker says at the end of an assignment."""

    problems: dict[str, str] = field(default_factory=dict)
    """Folders of runs that could not be trained or evaluated, and why."""
    held: list[str] = field(default_factory=list)
    """Folders of runs that another process trains."""
    no_space: str | None = None
    """Why nothing more can be written at all."""
    spent: Spent = field(default_factory=Spent)

    def to_json(self) -> str:
        return json.dumps({**vars(self), "spent": vars(self.spent)})

    @classmethod
    def from_json(cls, text: str) -> "AssignmentResult":
        found = json.loads(text)
        return cls(**{**found, "spent": Spent(**found["spent"])})


def split(
    store: Store, study: Study, runs: Sequence[PlannedRun], size: int, device: str, cores: int | None
) -> list[Assignment]:
    """Tasks of at most ``size`` runs. Runs that can advance in step are together, those of one cell first of all."""
    paces: dict[Any, list[PlannedRun]] = {}
    for run in runs:
        paces.setdefault((run.cell.config.sac.steps, run.cell.config.heads.check_every), []).append(run)
    return [
        Assignment(store.path, part, study.tests, study.trained_by, device, cores)
        for pace in paces.values()
        for part in _parts(pace, size)
    ]


def halves(assignment: Assignment) -> list[Assignment]:
    """The assignment in two, so that the run that kills its worker is found."""
    middle = len(assignment.runs) // 2
    return [
        Assignment(**{**vars(assignment), "runs": part})
        for part in (assignment.runs[:middle], assignment.runs[middle:])
    ]


def _parts(runs: Sequence[PlannedRun], size: int) -> Iterator[tuple[PlannedRun, ...]]:
    """As few parts as there can be, all of nearly the same length: a last one of a single run would take as long."""
    count = -(-len(runs) // size)
    for i in range(count):
        yield tuple(runs[i * len(runs) // count : (i + 1) * len(runs) // count])
