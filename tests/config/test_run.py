"""The configuration of a whole run: parts as tables, presets, and what is refused."""

import json
from typing import Any

import pytest

import incrt
from incrt.config import PRESETS, EncoderConfig, HeadsConfig, RunConfig, SacConfig, TaskConfig, preset
from incrt.config.earlier import read_settings


def test_a_part_is_given_whole_or_as_a_table_of_fields() -> None:
    by_tables: Any = {"task": {"tau_z": 2}, "encoder": {"k_max": 4}, "heads": {"grace": 3000}, "sac": {"steps": 900}}
    whole = RunConfig(
        task=TaskConfig(tau_z=2.0),
        encoder=EncoderConfig(k_max=4),
        heads=HeadsConfig(grace=3000),
        sac=SacConfig(steps=900),
        seed=7,
    )
    assert RunConfig(**by_tables, seed=7) == whole
    assert hash(RunConfig(**by_tables, seed=7)) == hash(whole)
    assert RunConfig(**by_tables) != whole  # of another seed


def test_replace_keeps_what_is_not_named() -> None:
    first = preset("paper", task={"tau_z": 2.0}, seed=7)
    second = first.replace(task={"window": 50}, sac={"steps": 900})
    assert (second.task.tau_z, second.task.window, second.task.eta_max) == (2.0, 50, (8.0, 5.5))
    assert (second.encoder, second.heads, second.seed) == (first.encoder, first.heads, 7)
    assert second.sac == SacConfig(steps=900)
    assert first.replace(sac=SacConfig(steps=901)).sac.steps == 901
    assert first.task.window == 20  # the first is as it was


def test_a_preset_is_its_tables_over_the_defaults() -> None:
    assert preset() == preset("memory") == RunConfig()
    for name, parts in PRESETS.items():
        found = incrt.preset(name)
        for part, fields in parts.items():
            for field, value in fields.items():
                assert getattr(getattr(found, part), field) == value
                assert value != getattr(getattr(RunConfig(), part), field)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bench": {}}, "unknown field bench; accepted: encoder, heads, sac, seed, task"),
        ({"task": {"tau": 1}}, r"unknown field tau; accepted: .*tau_z"),
        ({"task": 3}, "task must be a TaskConfig or a table of its fields, got 3"),
        ({"task": SacConfig()}, r"task must be a TaskConfig or a table of its fields, got SacConfig\("),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"seed": 1.5}, "seed must be a whole number >= 0"),
        (
            {"sac": {"buffer": 30}},
            "buffer must be at least 1020, for a window of 20 and the tokens of the rank",
        ),
        ({"sac": {"steps": 100}}, "steps must be more than learning_starts = 100"),
        ({"heads": {"k_min": 2}}, "1 heads are active, but k_min = 2"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    for make in (preset, RunConfig().replace):
        with pytest.raises(ValueError, match=message):
            make(**changes)


def test_a_wrong_part_of_the_constructor_is_refused_by_name() -> None:
    for wrong in ({"task": {"tau": 1}}, {"task": 3}, {"heads": None}):
        with pytest.raises(ValueError, match=r"unknown field tau|must be a \w+Config or a table"):
            RunConfig(**wrong)


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_written_is_read_again(name: str) -> None:
    config = preset(name, task={"k_d_range": [[20, 40], [10, 30]], "baseline_k_d": [30, 20]}, seed=7)
    written = json.loads(json.dumps(config.to_json()))
    assert set(written) == {"task", "encoder", "heads", "sac"}
    assert read_settings(written, seed=7) == config
