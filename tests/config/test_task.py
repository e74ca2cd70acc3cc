"""Configurations: presets, and errors that name the field."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks import preset_task

from incrt.config import PRESETS, TaskConfig, preset


def test_presets_differ_in_feed_forward_bound_and_reward() -> None:
    assert preset_task("memory") == TaskConfig()
    paper = preset_task("paper")
    assert paper.eta_max == (8.0, 5.5)
    assert (paper.reward_error, paper.reward_velocity) == (1.0, 2e-4)
    assert set(PRESETS) == {"memory", "paper"}


def test_fields_override_the_preset() -> None:
    config = preset_task("paper", tau_z=2, window=50, eta_max=[1, 2])
    assert (config.tau_z, config.window, config.eta_max) == (2.0, 50, (1.0, 2.0))


def test_derived_sizes() -> None:
    assert TaskConfig().observation_dim == 11
    assert TaskConfig().action_dim == 6


@pytest.mark.parametrize(("tau_z", "window", "coverage"), [(1.0, 20, 0.2), (2.0, 50, 0.25), (5.0, 500, 1.0)])
def test_memory_coverage_is_the_fraction_of_the_horizon_a_window_sees(
    tau_z: float, window: int, coverage: float
) -> None:
    assert TaskConfig(tau_z=tau_z, window=window).memory_coverage == pytest.approx(coverage)


def test_equal_configurations_are_equal_whatever_their_number_types() -> None:
    numbers: dict[str, Any] = {"tau_z": np.float32(2), "window": np.int64(20), "inertia": np.array([1.2, 0.6])}
    numpy_config = TaskConfig(**numbers)
    assert numpy_config == TaskConfig(tau_z=2)
    assert hash(numpy_config) == hash(TaskConfig(tau_z=2))


def test_a_configuration_survives_json() -> None:
    config = preset_task("paper", torque_limit=(60, 40), k_d_range=((20, 40), (10, 30)), baseline_k_d=(30, 20))
    assert TaskConfig(**json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("tau_z", 0, "> 0"),
        ("tau_z", -1.0, "> 0"),
        ("tau_z", math.nan, "> 0"),
        ("tau_z", math.inf, "> 0"),
        ("tau_z", "long", "a number"),
        ("tau_z", "5", "a number"),
        ("tau_z", None, "a number"),
        ("tau_z", True, "a number"),
        ("tau_z", 1e300, "<= 1e+09"),
        ("dt", 0.0, "> 0"),
        ("window", 0, ">= 1"),
        ("window", 2.5, "whole number"),
        ("window", True, "a number"),
        ("window", math.nan, "whole number"),
        ("horizon", 0, ">= 1"),
        ("substeps", 0, ">= 1"),
        ("delay", -1, ">= 0"),
        ("noise_velocity", -0.1, ">= 0"),
        ("inertia", (0.0, 1.0), "> 0"),
        ("inertia", (), "2 entries"),
        ("inertia", 1.0, "list of numbers"),
        ("inertia", None, "list of numbers"),
        ("inertia", "12", "list of numbers"),
        ("inertia", (1.0, None), "a number"),
        ("k_d_range", None, "list of numbers"),
        ("eta_max", (), "at least one entry"),
        ("coulomb", (1.0,), "2 entries, one a joint"),
        ("breakaway", (1.0, 1.0), "at least coulomb"),
        ("payload_range", (1.0, 0.5), "min <= max"),
        ("payload_range", (-1.0, 0.5), "0 <= min"),
        ("k_d_range", (40.0, 20.0), "min <= max"),
        ("lam_range", (6.0, 4.0), "min <= max"),
        ("lam_range", (4.0,), "(min, max)"),
        ("eta_max", (-1.0, 1.0), ">= 0"),
        ("torque_limit", (0.0, 1.0), "> 0"),
        ("torque_limit", (5.0,), "2 entries"),
        ("payload_nominal", 9.0, "payload_range = [0.0, 1.5]"),
        ("baseline_k_d", 10.0, "k_d_range = [20.0, 40.0]"),
        ("eval_payloads", (), "at least one"),
        ("eval_payloads", (-0.5,), ">= 0"),
        ("eval_payloads", (1.0, 1.0), "differ"),
        ("eval_rollouts", 0, ">= 1"),
        ("trajectory", "circle", "paper, slow, fast"),
        ("trajectory", ["paper"], "one of paper, slow"),
        ("robot", None, "one of two_link"),
        ("friction", 3, "one of stribeck"),
        ("shield", "yes", "True or False"),
        ("shield_rate", 0.0, "> 0"),
    ],
)
def test_bad_values_are_refused_by_field_and_accepted_range(field: str, value: Any, accepted: str) -> None:
    with pytest.raises(ValueError, match=field) as refusal:
        TaskConfig(**{field: value})
    assert accepted in str(refusal.value)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.floats() | st.none(), max_size=3),
)


@given(st.sampled_from([field.name for field in dataclasses.fields(TaskConfig)]), ANYTHING)
def test_whatever_a_field_is_given_it_is_valid_or_refused_by_name(field: str, value: Any) -> None:
    try:
        config = TaskConfig().replace(**{field: value})
    except ValueError as refusal:
        assert field in str(refusal) or "breakaway" in str(refusal) or "payload_nominal" in str(refusal)  # noqa: PT017
    else:
        assert TaskConfig(**json.loads(json.dumps(config.to_json()))) == config


def test_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="preset must be one of memory, paper; got 'fast'"):
        preset("fast")


def test_unknown_field_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown field tauz; accepted: .*tau_z"):
        preset("memory", task={"tauz": 1})
    with pytest.raises(ValueError, match=r"unknown field tauz; accepted: .*tau_z"):
        TaskConfig(tauz=1)  # type: ignore[call-arg]
