"""What a field of a configuration accepts, and the errors that say so."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np


class Rule(NamedTuple):
    """What a field accepts: words for the error message, and the test of one number."""

    accepted: str
    accepts: Callable[[float], bool]


LARGEST = 1e9
"""Beyond this single precision soon overflows."""

ANY = Rule("a number", lambda _: True)
POSITIVE = Rule("a number > 0", lambda x: x > 0)
NON_NEGATIVE = Rule("a number >= 0", lambda x: x >= 0)
FRACTION = Rule("a number > 0 and < 1", lambda x: 0 < x < 1)
PART = Rule("a number > 0 and <= 1", lambda x: 0 < x <= 1)
COUNT = Rule("a whole number >= 1", lambda x: x >= 1)
INDEX = Rule("a whole number >= 0", lambda x: x >= 0)


@dataclass(frozen=True)
class Configuration:
    """A frozen dataclass whose fields are checked."""

    def replace(self, **changes: Any) -> Self:
        """A copy with the given fields changed; an unknown field is refused by name."""
        known = {field.name for field in dataclasses.fields(self)}
        if unknown := sorted(set(changes) - known):
            raise ValueError(f"unknown field {', '.join(unknown)}; accepted: {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)


def number(name: str, value: Any) -> float:
    """The value as a float; what is not a number is refused by name."""
    try:
        if not isinstance(value, (str, bool, np.bool)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be a number, got {value!r}")


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """The value as a tuple of floats; what is not a list of numbers is refused by name."""
    try:
        if not isinstance(value, str):
            return tuple(number(name, entry) for entry in value)
    except TypeError:
        pass
    raise ValueError(f"{name} must be a list of numbers, got {value!r}")


def check(name: str, value: Any, rule: Rule) -> float:
    """The value as a float; what is no number or outside its range is refused by name."""
    found = number(name, value)
    if not (abs(found) <= LARGEST and rule.accepts(found)):  # NaN fails the first test
        limit = f" and <= {LARGEST:g}" if rule in {POSITIVE, NON_NEGATIVE, COUNT, INDEX} else ""
        raise ValueError(f"{name} must be {rule.accepted}{limit}, got {value!r}")
    return found


def whole(name: str, value: Any, rule: Rule) -> int:
    """The value as an int; what is no whole number or outside its range is refused by name."""
    if number(name, value) % 1 != 0:  # NaN and infinity fail this test too
        raise ValueError(f"{name} must be {rule.accepted}, got {value!r}")
    return int(check(name, value, rule))


def check_name(name: str, value: Any, accepted: Sequence[str]) -> None:
    """Refuse a name that is not on its list."""
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(accepted)}; got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def settle_scalars(config: Configuration, scalars: Mapping[str, Rule], wholes: Mapping[str, Rule]) -> None:
    """Turn NumPy numbers into Python's, so that equal configurations compare equal, and check each against its rule."""
    for name, rule in scalars.items():
        object.__setattr__(config, name, check(name, getattr(config, name), rule))
    for name, rule in wholes.items():
        object.__setattr__(config, name, whole(name, getattr(config, name), rule))
