"""Settings as earlier versions wrote them, in results, studies and the folders of runs."""

from collections.abc import Mapping
from typing import Any

from incrt.config.registry import LostPart
from incrt.config.run import PARTS, RunConfig

_RENAMED = {"bench": "task", "runtime": "heads"}
"""Parts that had another name in version 0.1."""
_GONE: Mapping[str, Mapping[str, Any]] = {
    "task": {"features": "identity"},
    "heads": {"rank": "energy"},
}
"""Fields that version 0.1 had, and the one value that stands for what is always so now."""


def describes_task(settings: Mapping[str, Any]) -> bool:
    """Whether they have the task of an arm, by the name of whichever version wrote them."""
    return any(_RENAMED.get(name, name) == "task" for name in settings)


def is_earlier(settings: Mapping[str, Any]) -> bool:
    """Whether version 0.1 wrote these settings."""
    return bool(settings.keys() & _RENAMED.keys())


def refuse_earlier(settings: Mapping[str, Any], why: str) -> None:
    """Refuse settings that version 0.1 wrote; ``why`` says what is (not) done with its files."""
    if is_earlier(settings):
        raise ValueError(f"incrt 0.1 wrote it, whose {why}")


def translated(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run by the names of this version, whichever version wrote them.

    What only an earlier version could do is refused by name.
    """
    if not is_earlier(settings):
        return dict(settings)
    found: dict[str, Any] = {_RENAMED.get(name, name): value for name, value in settings.items()}
    for part in PARTS:
        fields = dict(found.get(part, {}))
        for name, value in _GONE.get(part, {}).items():
            if fields.pop(name, value) != value:
                other = f"{part}.{name} other than {value!r}"
                raise ValueError(f"incrt 0.1 wrote it, with {other}, which version 0.2 no longer has")
        found[part] = fields
    found["task"] = translated_fields(found["task"])
    return found


def translated_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a task by the names of this version."""
    return {"trajectory" if name == "reference" else name: value for name, value in fields.items()}


def read_settings(settings: Mapping[str, Any], kind: type[RunConfig] = RunConfig, **others: Any) -> RunConfig:
    """The configuration that :meth:`RunConfig.to_json` wrote, in this version or an earlier one."""
    found = translated(settings)
    for name, value in found["task"].items():
        if isinstance(value, Mapping):
            raise ValueError(
                f"its {name} is an object of the user's own ({value.get('class')}), which no file holds; "
                f"training with a reference such as my_file.py:NAME as {name} makes a run that can be read again"
            )
    if isinstance(trigger := found["heads"].get("trigger"), Mapping):
        found["heads"] = {**found["heads"], "trigger": LostPart(trigger)}  # no evaluation asks it
    return kind(**{part: found[part] for part in PARTS}, **others)


def as_now(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings as this version would write them, whichever version did: fields that came since have their defaults."""
    return read_settings(settings).to_json() if is_earlier(settings) else settings
