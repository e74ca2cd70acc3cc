"""Rules and declarations of fields: what they accept, what they refuse, and where they are shown."""

import dataclasses
import inspect
import math
import pydoc
from typing import Any

import numpy as np
import pytest

from incrt.config import EncoderConfig, HeadsConfig, SacConfig, TaskConfig
from incrt.config.rules import (
    ANY,
    COUNT,
    FLAG,
    FRACTION,
    INDEX,
    JOINT_RANGES,
    JOINT_VALUES,
    NON_NEGATIVE,
    POSITIVE,
    RANGE,
    UP_TO_ONE,
    Configuration,
    Rule,
    describe,
    list_of,
    one_of,
    optional,
)
from incrt.config.run import PARTS

FIELDS = [(kind, field) for kind in PARTS.values() for field in dataclasses.fields(kind)]
NAMES = [f"{kind.__name__}.{field.name}" for kind, field in FIELDS]


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=NAMES)
def test_every_field_has_a_rule_a_unit_and_a_sentence(kind: type[Configuration], field: dataclasses.Field[Any]) -> None:
    assert isinstance(field.metadata["rule"], Rule)
    assert field.metadata["rule"].accepted
    assert isinstance(field.metadata["unit"], str)
    about = field.metadata["about"]
    assert len(about.split()) > 1
    assert about.endswith(".")
    assert field.metadata["rule"](field.name, field.default) == field.default == getattr(kind(), field.name)


@pytest.mark.parametrize("kind", [TaskConfig, EncoderConfig, HeadsConfig, SacConfig])
def test_help_shows_every_field_with_its_sentence_unit_and_rule(kind: type[Configuration]) -> None:
    shown = pydoc.plain(pydoc.render_doc(kind))
    for field in dataclasses.fields(kind):
        assert f":param {field.name}: {describe(kind, field.name)}" in inspect.getdoc(kind).splitlines()  # type: ignore[union-attr]
        assert field.metadata["about"] in shown


def test_a_description_has_sentence_unit_and_rule() -> None:
    assert describe(TaskConfig, "dt") == "Control interval. [s, a number > 0 and <= 1e+09]"
    assert describe(TaskConfig, "delay").endswith("[a whole number >= 0 and <= 1e+09]")  # it has no unit


@pytest.mark.parametrize(
    ("rule", "value", "settled"),
    [
        (COUNT, 3, 3),
        (COUNT, 3.0, 3),
        (COUNT, np.int64(3), 3),
        (INDEX, 0, 0),
        (ANY, -2, -2.0),
        (POSITIVE, np.float32(0.5), 0.5),
        (NON_NEGATIVE, 0, 0.0),
        (FRACTION, 0.5, 0.5),
        (UP_TO_ONE, 1, 1.0),
        (FLAG, False, False),
        (one_of(("a", "b")), "b", "b"),
        (optional(COUNT), None, None),
        (optional(COUNT), 2, 2),
        (list_of(COUNT), np.array([1, 2]), (1, 2)),
        (RANGE, [0, 2], (0.0, 2.0)),
        (JOINT_RANGES, (20, 40), (20.0, 40.0)),
        (JOINT_RANGES, [[20, 40], (1, 2)], ((20.0, 40.0), (1.0, 2.0))),
        (JOINT_VALUES, 3, 3.0),
        (JOINT_VALUES, [3, 4], (3.0, 4.0)),
    ],
)
def test_a_rule_gives_pythons_own_values(rule: Rule[Any], value: Any, settled: Any) -> None:
    found = rule("field", value)
    assert found == settled
    assert type(found) is type(settled)


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        (COUNT, 0, "a whole number >= 1"),
        (COUNT, math.inf, "a whole number >= 1"),
        (COUNT, 10**10, "<= 1e+09"),
        (COUNT, "3", "a number"),
        (INDEX, -1, "a whole number >= 0"),
        (ANY, math.nan, "a number"),
        (ANY, 2e9, "a number >= -1e+09 and <= 1e+09"),
        (ANY, 10**400, "a number"),
        (ANY, np.bool(True), "a number"),
        (POSITIVE, 0, "a number > 0"),
        (FRACTION, 1, "a number > 0 and < 1"),
        (UP_TO_ONE, 1.1, "a number > 0 and <= 1"),
        (FLAG, 1, "True or False"),
        (one_of(("a", "b")), "c", "one of a, b"),
        (one_of(("a", "b")), ["a"], "one of a, b"),
        (optional(COUNT), 0, "a whole number >= 1"),
        (list_of(COUNT), "12", "a list of numbers"),
        (list_of(COUNT), (1, 0), "a whole number >= 1"),
        (RANGE, (2, 1), "(min, max) with 0 <= min <= max"),
        (RANGE, (1, 2, 3), "(min, max)"),
        (JOINT_RANGES, ((20, 40), (2, 1)), "(min, max)"),
        (JOINT_RANGES, ((20, 40), 2), "a number"),
        (JOINT_RANGES, None, "a list of numbers"),
        (JOINT_VALUES, (1, 0), "a number > 0"),
        (JOINT_VALUES, "1", "a number"),
    ],
)
def test_what_is_refused_is_refused_by_the_fields_name_in_one_sentence(rule: Rule[Any], value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=r"^field must be ") as refusal:
        rule("field", value)
    assert words in str(refusal.value)
    assert "got" in str(refusal.value)
    assert "\n" not in str(refusal.value)
