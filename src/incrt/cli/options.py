"""Options that several commands have: fields of a run's configuration, with the sentences that stand beside them."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from incrt.config import PRESETS, RunConfig, TaskConfig
from incrt.config.rules import Configuration, describe
from incrt.config.run import PARTS
from incrt.engine.population import DEVICES


def shown(configuration: type[Configuration], name: str, more: str = "") -> Any:
    """The help of an option that is a field of a configuration."""
    return tyro.conf.arg(help=describe(configuration, name) + more)


def choice(names: Iterable[str]) -> Any:
    """An option that is one of these names, as its help shows it; what it is given is checked where it is used."""
    return tyro.conf.arg(metavar=f"{{{','.join(names)}}}")


PRESET, DEVICE = choice(PRESETS), choice(DEVICES)
AS_PRESET = " As in the preset if not given."


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Options that change the task."""

    robot: Annotated[str | None, shown(TaskConfig, "robot", AS_PRESET)] = None
    friction: Annotated[str | None, shown(TaskConfig, "friction", AS_PRESET)] = None
    trajectory: Annotated[str | None, shown(TaskConfig, "trajectory", AS_PRESET)] = None

    @property
    def task_options(self) -> dict[str, Any]:
        """The fields of the task that they are, None where they were not given."""
        return {"robot": self.robot, "friction": self.friction, "trajectory": self.trajectory}


@dataclass(frozen=True, kw_only=True)
class Conditions(TaskOptions):
    """Options that change the test."""

    payloads: Annotated[tuple[float, ...] | None, shown(TaskConfig, "eval_payloads", AS_PRESET)] = None
    noise_position: Annotated[float | None, shown(TaskConfig, "noise_position", AS_PRESET)] = None
    noise_velocity: Annotated[float | None, shown(TaskConfig, "noise_velocity", AS_PRESET)] = None
    delay: Annotated[int | None, shown(TaskConfig, "delay", AS_PRESET)] = None

    @property
    def conditions(self) -> dict[str, Any]:
        """The fields of the task that are to change."""
        return given(
            **self.task_options,
            eval_payloads=self.payloads,
            noise_position=self.noise_position,
            noise_velocity=self.noise_velocity,
            delay=self.delay,
        )


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def with_settings(
    config: RunConfig, assignments: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> RunConfig:
    """A configuration with fields set by texts such as ``task.eta_max=[8, 5.5]``; the values are TOML's.

    ``options`` are by part the fields that have an option of their own, and what it says: None where it was not given.
    Of one field two values would contradict each other. All fields change at once: a robot and what must fit it.
    """
    changes: dict[str, dict[str, Any]] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        part, dot, field = name.strip().partition(".")
        if not (equals and dot) or part not in PARTS:
            raise ValueError(f"--set takes PART.FIELD=VALUE with a part among {', '.join(PARTS)}; got {text!r}")
        if field in (options or {}).get(part, {}):
            raise ValueError(f"--set {text}: this field has an option of its own, --{field.replace('_', '-')}")
        if field in changes.get(part, {}):
            raise ValueError(f"--set {text}: this field is set twice")
        try:
            changes.setdefault(part, {})[field] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"--set {text}: {error}; texts stand in quotes, lists in brackets") from None
    for part, fields in (options or {}).items():
        changes.setdefault(part, {}).update(given(**fields))
    return config.replace(**changes)
