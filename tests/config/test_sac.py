"""Configuration of Soft Actor-Critic."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import SacConfig


def test_defaults_are_the_papers_appendix_b() -> None:
    sac = SacConfig()
    assert (sac.steps, sac.buffer, sac.batch, sac.learning_starts) == (50_000, 50_000, 256, 100)
    assert (sac.learning_rate, sac.gamma, sac.tau, sac.hidden) == (3e-4, 0.99, 0.005, (64, 64))
    assert sac.target_entropy is None
    assert sac.penalty is True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"steps": 1.5}, "steps must be a whole number >= 1"),
        ({"buffer": 0}, "buffer must be a whole number >= 1"),
        ({"buffer": "50000"}, "buffer must be a number, got '50000'"),
        ({"learning_starts": -1}, "learning_starts must be a whole number >= 0"),
        ({"learning_starts": True}, "learning_starts must be a number, got True"),
        ({"batch": 0}, "batch must be a whole number >= 1"),
        ({"batch": math.inf}, "batch must be a whole number >= 1"),
        ({"learning_rate": 0}, "learning_rate must be a number > 0"),
        ({"learning_rate": -3e-4}, "learning_rate must be a number > 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a number > 0"),
        ({"gamma": 1.0}, "gamma must be a number > 0 and < 1, got 1.0"),
        ({"gamma": 0}, "gamma must be a number > 0 and < 1, got 0"),
        ({"tau": 0}, "tau must be a number > 0 and <= 1, got 0"),
        ({"tau": 1.01}, "tau must be a number > 0 and <= 1, got 1.01"),
        ({"hidden": 64}, "hidden must be a list of numbers, got 64"),
        ({"hidden": None}, "hidden must be a list of numbers, got None"),
        ({"hidden": (64, 0)}, "hidden must be a whole number >= 1"),
        ({"hidden": (64, 2.5)}, "hidden must be a whole number >= 1"),
        ({"hidden": "64"}, "hidden must be a list of numbers, got '64'"),
        ({"target_entropy": "auto"}, "target_entropy must be a number, got 'auto'"),
        ({"target_entropy": False}, "target_entropy must be a number, got False"),
        ({"penalty": 1}, "penalty must be True or False, got 1"),
        ({"penalty": None}, "penalty must be True or False, got None"),
        ({"penalty_limit": -1e-3}, "penalty_limit must be a number >= 0"),
        ({"penalty_rate": -1e-3}, "penalty_rate must be a number >= 0"),
        ({"penalty_rate": math.inf}, "penalty_rate must be a number >= 0"),
        ({"lr": 1e-3}, "unknown field lr; accepted: .*learning_rate"),
    ],
    ids=str,
)
def test_bad_values_are_refused_by_field_and_accepted_range(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SacConfig().replace(**changes)


def test_what_lies_on_the_border_is_accepted() -> None:
    sac = SacConfig(steps=1, buffer=1, learning_starts=0, batch=1, tau=1, penalty_limit=0, penalty_rate=0, hidden=())
    assert (sac.learning_starts, sac.tau, sac.penalty_limit, sac.penalty_rate, sac.hidden) == (0, 1, 0, 0, ())


def test_equal_configurations_are_equal_whatever_their_numbers_came_as() -> None:
    given = SacConfig(
        steps=np.int64(7),  # type: ignore[arg-type]
        gamma=np.float64(0.5),
        hidden=[np.int32(8), 4.0],  # type: ignore[arg-type]
        target_entropy=-3,
    )
    plain = SacConfig(steps=7, gamma=0.5, hidden=(8, 4), target_entropy=-3.0)
    assert given == plain
    assert hash(given) == hash(plain)
    assert [type(width) for width in given.hidden] == [int, int]
    assert isinstance(given.steps, int)
    assert isinstance(given.target_entropy, float)


FIELDS = [field.name for field in dataclasses.fields(SacConfig)]
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-2, 99), st.floats(), st.text(max_size=1)), max_size=3),
)


@given(st.sampled_from(FIELDS), ANYTHING)
def test_whatever_a_field_is_given_it_is_valid_or_refused_by_name(name: str, value: Any) -> None:
    try:
        sac = SacConfig().replace(**{name: value})
    except ValueError as refusal:
        assert name in str(refusal)  # noqa: PT017
    else:
        assert SacConfig(**json.loads(json.dumps(dataclasses.asdict(sac)))) == sac
