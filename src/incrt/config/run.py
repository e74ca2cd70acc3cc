"""One run: its task, its encoder, when heads come and go, how it learns, and its seed."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from incrt.config.heads import EncoderConfig, HeadsConfig
from incrt.config.registry import FRICTIONS, ROBOTS, TRAJECTORIES, TRIGGERS, file_digests
from incrt.config.rules import INDEX, Configuration, check_fields, documented, setting
from incrt.config.sac import SacConfig
from incrt.config.task import TASK_PARTS, TaskConfig

PARTS: dict[str, type[Configuration]] = {
    "task": TaskConfig,
    "encoder": EncoderConfig,
    "heads": HeadsConfig,
    "sac": SacConfig,
}
"""The parts of a run's configuration."""


@documented
@dataclass(frozen=True)
class RunConfig(Configuration):
    """All that decides a run. The defaults are preset ``memory``; :func:`incrt.preset` gives the others.

    A part may be given as a table of the fields that differ from its defaults: ``RunConfig(task={"tau_z": 2.0})``.
    """

    task: TaskConfig = field(default_factory=TaskConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    heads: HeadsConfig = field(default_factory=HeadsConfig)
    sac: SacConfig = field(default_factory=SacConfig)
    seed: int = setting(42, INDEX, "Of everything that is drawn in the run.")

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            object.__setattr__(self, name, _part(name, kind, kind(), getattr(self, name)))
        super().__post_init__()

    def check_relations(self) -> None:
        check_together(self.task.window, self.encoder, self.heads, self.sac)

    def replace(self, **changes: Any) -> Self:
        """A copy with the given parts changed, each as a whole or as a table of fields: ``replace(sac={"steps": 9})``.

        An unknown part or field is refused by name.
        """
        check_fields(type(self), changes)
        parts = {
            name: _part(name, PARTS[name], getattr(self, name), changes[name]) for name in changes if name in PARTS
        }
        return dataclasses.replace(self, **{**changes, **parts})

    def own_parts(self) -> list[Any]:
        """Those of its parts that the library does not name: references, files and objects of the user's own."""
        parts = [*(getattr(self.task, name) for name in TASK_PARTS), self.heads.trigger]
        named = {None, *ROBOTS, *FRICTIONS, *TRAJECTORIES, *TRIGGERS}
        return [part for part in parts if not isinstance(part, str | None) or part not in named]

    def files(self) -> dict[str, str]:
        """The files that these are made of, each with a digest of its content."""
        return file_digests(self.own_parts())

    def to_json(self) -> dict[str, Any]:
        """The parts by name, each with every field, as JSON has them; the seed is not among them."""
        return {name: getattr(self, name).to_json() for name in ("task", "heads", "encoder", "sac")}


def _part(name: str, kind: type[Configuration], before: Configuration, value: Any) -> Configuration:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a {kind.__name__} or a table of its fields, got {value!r}")
    return before.replace(**value)


def check_together(window: int, encoder: EncoderConfig, heads: HeadsConfig, sac: SacConfig) -> None:
    """Refuse what is right in each configuration, but not in one run."""
    more, why = (heads.tokens, "the tokens of the rank") if encoder.adapts else (2, "two transitions")
    if sac.buffer < window + more:
        needs = f"at least {window + more}, for a window of {window} and {why}"
        raise ValueError(f"buffer must be {needs}; got {sac.buffer}")
    if encoder.head_start == "frozen" and heads.trigger != "clock":
        raise ValueError(f"head_start frozen goes with trigger clock, which never prunes, not with {heads.trigger!r}")
    if encoder.adapts:
        heads.check_start(encoder.heads_at_start)
    if sac.steps <= sac.learning_starts:
        needs = f"more than learning_starts = {sac.learning_starts}, until when nothing is learned"
        raise ValueError(f"steps must be {needs}; got {sac.steps}")
