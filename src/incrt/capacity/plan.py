"""What a capacity study trains: variants of the heads, on a task for several numbers of channels D.

Studies are declared in TOML. Those that come with the library lie in ``declared/``; a user's own is a file of the same
form:

    about = "One sentence."
    task = "recall"                      # or "actuators"
    channels = [2, 3]                    # D: what must be remembered at once
    seeds = "200-219"
    solved = 0.02                        # error a channel below which the task is solved
    compare = "growing"                  # optional: the variant that the others are compared with
    [common]                             # fields of task, encoder, heads and sac in all variants
    encoder = { k_max = 16, d_k = 8 }
    [variants]                           # and in one
    growing.heads.trigger = "clock"
    "fixed, K = D".encoder = { encoder = "static", k_init = "D" }
    "fixed, K = D".seeds = "200-204"     # optional: fewer seeds for one variant

``k_init = "D"`` stands for as many heads as there are channels.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrt.config import EncoderConfig, HeadsConfig, SacConfig, parse_seeds
from incrt.config.rules import COUNT, POSITIVE, one_of
from incrt.engine.progress import Run
from incrt.engine.training import Job
from incrt.storage.json import checksum
from incrt.tasks.actuators import actuators_task
from incrt.tasks.recall import recall_task

_DECLARED = Path(__file__).parent / "declared"
TASKS: Mapping[str, Callable[..., tuple[Any, Any]]] = {"recall": recall_task, "actuators": actuators_task}
_PARTS = {"encoder": EncoderConfig, "heads": HeadsConfig, "sac": SacConfig}
_KEYS = ("about", "task", "channels", "seeds", "solved", "compare", "common", "variants")
_NEEDED = ("about", "task", "channels", "seeds", "variants")
_WINDOW = 8
"""W, unless the study says otherwise."""
_SOLVED = 0.02
_EVALUATIONS = 10
"""Episodes of the deterministic policy at each check: so many steps of a hundred each tell 0.02 from 0.01."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that a capacity study asks for."""

    variant: str
    channels: int
    seed: int
    solved: float
    """Error a channel below which the task is solved."""
    job: Job

    @property
    def settings(self) -> str:
        """Stands for all that decides its row, but for the seed."""
        run = self.job.run
        parts = {name: getattr(run, name).to_json() for name in ("encoder", "heads", "sac")}
        return checksum({**self.job.about, "solved": self.solved, **parts})[:10]

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        environment: Any = self.job.run.environment
        return int(environment.horizon)

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.job.folder


@dataclass(frozen=True)
class CapacityStudy:
    """A study as it is declared."""

    name: str
    about: str
    task: str
    channels: tuple[int, ...]
    seeds: Mapping[str, tuple[int, ...]]
    """Of each variant."""
    solved: float
    compare: str | None
    common: Mapping[str, Mapping[str, Any]]
    variants: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def planned(self, folder: Path, channels: Sequence[int] | None = None) -> list[PlannedRun]:
        """All runs, kept below a folder; with other numbers of channels if they are given."""
        return [
            self._run(folder, variant, number, seed)
            for number in (self.channels if channels is None else channels)
            for variant in self.variants
            for seed in self.seeds[variant]
        ]

    def _run(self, folder: Path, variant: str, channels: int, seed: int) -> PlannedRun:
        parts = _joined(self.common, self.variants[variant])
        task = {"window": _WINDOW, **parts.get("task", {})}
        encoder = dict(parts.get("encoder", {}))
        if encoder.get("k_init") == "D":
            encoder["k_init"] = channels
        if parts.get("sac", {}).get("evaluations") == 0:
            raise ValueError("sac.evaluations must be at least 1: errors are those of evaluations")
        sac = {"gamma": 0.01, "evaluations": _EVALUATIONS, **parts.get("sac", {})}
        try:
            environment, params = TASKS[self.task](channels, **task)
            run = Run(
                seed,
                environment,
                params,
                task["window"],
                EncoderConfig(**encoder),
                HeadsConfig(**parts.get("heads", {})),
                SacConfig(**sac),
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"variant {variant!r}, {channels} channels: {error}") from None
        place = folder / self.name / f"D{channels}" / re.sub(r"\W+", "-", variant).strip("-") / f"seed-{seed}"
        about = {"capacity": {"task": self.task, "channels": channels, **task}}
        return PlannedRun(variant, channels, seed, self.solved, Job(run, place, about))


def declared_studies() -> dict[str, CapacityStudy]:
    """The studies that come with the library."""
    return {path.stem: load_study(path.stem) for path in sorted(_DECLARED.glob("*.toml"))}


def load_study(name: str, seeds: Sequence[int] | None = None, channels: Sequence[int] | None = None) -> CapacityStudy:
    """A study by its name, or a user's own by its file; ``seeds`` and ``channels`` take the place of the declared."""
    path = Path(name) if name.endswith(".toml") else _DECLARED / f"{name}.toml"
    if not path.is_file() or not re.fullmatch(r"\w[\w-]*", path.stem):
        known = ", ".join(sorted(each.stem for each in _DECLARED.glob("*.toml")))
        raise ValueError(f"there is no capacity study {name!r}; accepted: {known}, or a file that ends in .toml")
    try:
        study = _build(path.stem, tomllib.loads(path.read_text()), seeds, channels)
        _check_folders([run.folder for run in study.planned(Path())])  # and with them all settings
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise ValueError(f"capacity study {name}: {error}") from None
    return study


def _check_folders(folders: Sequence[Path]) -> None:
    if len(set(folders)) < len(folders):
        raise ValueError("channels, seeds and the letters and digits of the variants' names must differ")


def _check_form(declared: Mapping[str, Any]) -> None:
    """Refuse unknown and missing keys, and values of another kind."""
    if unknown := sorted(declared.keys() - set(_KEYS)):
        raise ValueError(f"unknown key {', '.join(unknown)}; accepted: {', '.join(_KEYS)}")
    if missing := [key for key in _NEEDED if key not in declared]:
        raise ValueError(f"{', '.join(missing)} must be given")
    for key, kind in (("channels", list), ("seeds", str), ("variants", dict)):
        if not isinstance(declared[key], kind):
            words = {list: "a list", str: 'text such as "200-219"', dict: "tables"}[kind]
            raise ValueError(f"{key} must be {words}, got {declared[key]!r}")
    if not declared["channels"]:
        raise ValueError("channels must have at least one entry")


def _build(
    name: str, declared: Mapping[str, Any], seeds: Sequence[int] | None, channels: Sequence[int] | None
) -> CapacityStudy:
    _check_form(declared)
    if others := [each for each in channels or () if each not in declared["channels"]]:
        raise ValueError(f"channels must be among {declared['channels']}, got {others}")
    variants = {variant: dict(_table(variant, parts)) for variant, parts in declared["variants"].items()}
    own_seeds = {variant: parts.pop("seeds", declared["seeds"]) for variant, parts in variants.items()}
    for where, parts in (("common", _table("common", declared.get("common", {}))), *variants.items()):
        if unknown := sorted(parts.keys() - {"task", *_PARTS}):
            raise ValueError(f"{where} has an unknown part {', '.join(unknown)}; accepted: task, {', '.join(_PARTS)}")
        for part, fields in parts.items():
            _table(f"{part} of {where}", fields)
    if not variants:
        raise ValueError("variants must have at least one entry")
    compare = declared.get("compare")
    if compare is not None:
        one_of(tuple(variants))("compare", compare)
    return CapacityStudy(
        name=name,
        about=str(declared["about"]),
        task=one_of(tuple(TASKS))("task", declared["task"]),
        channels=tuple(COUNT("channels", each) for each in channels or declared["channels"]),
        seeds={variant: tuple(seeds or parse_seeds(text)) for variant, text in own_seeds.items()},
        solved=POSITIVE("solved", declared.get("solved", _SOLVED)),
        compare=compare,
        common=declared.get("common", {}),
        variants=variants,
    )


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} must hold tables of fields, such as encoder.k_max = 16; got {value!r}")
    return value


def _joined(*changes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The fields of each part, the later ones over the earlier."""
    parts = {name for each in changes for name in each}
    return {part: {name: value for each in changes for name, value in each.get(part, {}).items()} for part in parts}
