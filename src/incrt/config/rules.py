"""What a field of a configuration accepts, and the errors that say so.

A field is declared by :func:`setting`: its default, its rule, its sentence and its unit stand together. ``help()`` of a
configuration, the command line and the documents' table of settings are made of that one declaration.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np

T = TypeVar("T", covariant=True)  # noqa: PLC0105  # a rule only gives values
Class = TypeVar("Class", bound=type)

LARGEST = 1e9
"""Beyond this single precision soon overflows."""


@dataclass(frozen=True)
class Rule(Generic[T]):
    """What a field accepts, in words, and the function that makes a Python value of it or refuses it by name."""

    accepted: str
    settle: Callable[[str, Any], T]
    one_a_joint: bool = False
    """Whether the value is a list with one entry a joint; how many joints there are, no rule knows."""

    def __call__(self, name: str, value: Any) -> T:
        """The value as a field of this name keeps it; what is not accepted is a ValueError that names both."""
        return self.settle(name, value)


def setting(
    default: Any, rule: Rule[Any], about: str, unit: str = "", of: str | None = None, *, later: bool = False
) -> Any:
    """A field of a configuration: what it is by default, what it accepts, what it means, and in which unit.

    ``of`` names the robot or friction whose number it is; with another one it does not matter. One that came ``later``
    than results were published is written only where it is not the default: they keep the digests that name them.
    """
    metadata = {"rule": rule, "about": about, "unit": unit, "of": of, "later": later}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Configuration:
    """A frozen dataclass whose fields are checked by the rules that they are declared with."""

    def __new__(cls, *_: Any, **fields: Any) -> Self:
        check_fields(cls, fields)  # before __init__, whose own error for an unknown name says nothing of the known ones
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if rule := field.metadata.get("rule"):
                # Python's own numbers and tuples, so that equal configurations compare equal.
                object.__setattr__(self, field.name, rule(field.name, getattr(self, field.name)))
        self.check_relations()

    def check_relations(self) -> None:
        """Refuse fields that contradict each other."""

    def replace(self, **changes: Any) -> Self:
        """A copy with the given fields changed; an unknown field is refused by name."""
        check_fields(type(self), changes)
        return dataclasses.replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it, but for those that came later and are as they were before."""
        return dict(json.loads(json.dumps({name: getattr(self, name) for name in self._written()})))

    def _written(self) -> list[str]:
        return [
            field.name
            for field in dataclasses.fields(self)
            if not (field.metadata.get("later") and getattr(self, field.name) == field.default)
        ]


def check_fields(configuration: type[Configuration], names: Iterable[str]) -> None:
    """Refuse names that are no fields of a configuration."""
    known = {field.name for field in dataclasses.fields(configuration)}
    if unknown := sorted(set(names) - known):
        raise ValueError(f"unknown field {', '.join(unknown)}; accepted: {', '.join(sorted(known))}")


def describe(configuration: type[Configuration], name: str) -> str:
    """A field's sentence, unit and rule, as the command line and the documents show them."""
    field = {field.name: field for field in dataclasses.fields(configuration)}[name]
    unit, rule = field.metadata["unit"], field.metadata["rule"]
    return f"{field.metadata['about']} [{', '.join(filter(None, (unit, rule.accepted)))}]"


def documented(configuration: Class) -> Class:
    """The class with its fields described below its docstring, where ``help()`` shows them."""
    lines = [
        f":param {field.name}: {describe(configuration, field.name)}"
        for field in dataclasses.fields(configuration)
        if "rule" in field.metadata
    ]
    configuration.__doc__ = "\n".join([configuration.__doc__ or "", "", *lines])
    return configuration


# --- rules ------------------------------------------------------------------------------------------------------------


def _number(name: str, value: Any) -> float:
    """The value as a float; what is not a number is refused by name."""
    try:
        if not isinstance(value, (str, bool, np.bool)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be a number, got {value!r}")


def _real(words: str, accepts: Callable[[float], bool]) -> Rule[float]:
    def settle(name: str, value: Any) -> float:
        found = _number(name, value)
        if not (abs(found) <= LARGEST and accepts(found)):  # NaN fails the first test
            raise ValueError(f"{name} must be {words}, got {value!r}")
        return found

    return Rule(words, settle)


def _whole(words: str, accepts: Callable[[float], bool]) -> Rule[int]:
    inside = _real(words, accepts)

    def settle(name: str, value: Any) -> int:
        if _number(name, value) % 1 != 0:  # NaN and infinity fail this test too
            raise ValueError(f"{name} must be {words}, got {value!r}")
        return int(inside(name, value))

    return Rule(words, settle)


_LIMIT = f" and <= {LARGEST:g}"
ANY = _real(f"a number >= {-LARGEST:g}{_LIMIT}", lambda _: True)
POSITIVE = _real(f"a number > 0{_LIMIT}", lambda x: x > 0)
NON_NEGATIVE = _real(f"a number >= 0{_LIMIT}", lambda x: x >= 0)
FRACTION = _real("a number > 0 and < 1", lambda x: 0 < x < 1)
UP_TO_ONE = _real("a number > 0 and <= 1", lambda x: 0 < x <= 1)
COUNT = _whole(f"a whole number >= 1{_LIMIT}", lambda x: x >= 1)
INDEX = _whole(f"a whole number >= 0{_LIMIT}", lambda x: x >= 0)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


FLAG = Rule("True or False", _flag)


def one_of(names: Sequence[str]) -> Rule[str]:
    """One of these names."""

    def settle(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{name} must be one of {', '.join(names)}; got {value!r}")
        return value

    return Rule(f"one of {', '.join(names)}", settle)


def optional(rule: Rule[T]) -> Rule[T | None]:
    """What the rule accepts, or None."""

    def settle(name: str, value: Any) -> T | None:
        return None if value is None else rule(name, value)

    return Rule(f"{rule.accepted}, or None", settle, rule.one_a_joint)


def list_of(rule: Rule[T], words: str = "") -> Rule[tuple[T, ...]]:
    """A list of what the rule accepts; ``words`` say how many."""

    def settle(name: str, value: Any) -> tuple[T, ...]:
        try:
            if not isinstance(value, str):
                return tuple(rule(name, entry) for entry in value)
        except TypeError:
            pass
        raise ValueError(f"{name} must be a list of numbers, got {value!r}")

    return Rule(f"a list{words}, each {rule.accepted}", settle)


def per_joint(rule: Rule[float]) -> Rule[tuple[float, ...]]:
    """One number a joint."""
    return dataclasses.replace(list_of(rule, " with one entry a joint"), one_a_joint=True)


def _range(name: str, value: Any) -> tuple[float, ...]:
    values = list_of(ANY)(name, value)
    if len(values) != 2 or not 0 <= values[0] <= values[1]:
        raise ValueError(f"{name} must be (min, max) with 0 <= min <= max <= {LARGEST:g}, got {value!r}")
    return values


RANGE = Rule(f"(min, max) with 0 <= min <= max <= {LARGEST:g}", _range)


def _joint_ranges(name: str, value: Any) -> tuple[Any, ...]:
    try:
        nested = [isinstance(entry, Iterable) and not isinstance(entry, str) for entry in value]
    except TypeError:
        nested = []
    return tuple(_range(name, entry) for entry in value) if nested and all(nested) else _range(name, value)


JOINT_RANGES = Rule(f"{RANGE.accepted}, for all joints or one such pair a joint", _joint_ranges)


def _joint_values(name: str, value: Any) -> float | tuple[float, ...]:
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    return per_joint(POSITIVE)(name, value) if is_list else POSITIVE(name, value)


JOINT_VALUES = Rule(f"{POSITIVE.accepted}, for all joints or one a joint", _joint_values)
