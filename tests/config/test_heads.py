"""Configurations of the encoder and of its heads while they learn."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.config import EncoderConfig, HeadsConfig, preset


def test_defaults_are_the_papers_table_4() -> None:
    encoder, heads = EncoderConfig(), HeadsConfig()
    assert (encoder.k_max, encoder.heads_at_start, encoder.d_k, encoder.d_model) == (8, 1, 16, 128)
    assert (heads.k_min, heads.eps_grow, heads.eps_prune) == (1, 0.1, 1e-3)
    assert (heads.delta_grow, heads.delta_prune, heads.grace, heads.check_every) == (3, 3, 2000, 500)
    assert (heads.tokens, heads.alpha, heads.share, heads.trigger) == (1000, 0.95, "absolute", "paper")


def test_presets_differ_in_normalisation_and_bookkeeping() -> None:
    memory, paper = preset("memory"), preset("paper")
    assert (memory.encoder, memory.heads) == (EncoderConfig(), HeadsConfig())
    assert (memory.encoder.layer_norm, paper.encoder.layer_norm) == (True, False)
    assert (memory.heads.optimiser, paper.heads.optimiser) == ("carry", "rebuild")
    assert preset("paper", encoder={"k_max": 16}).encoder == EncoderConfig(k_max=16, layer_norm=False)


def test_width_and_heads_at_the_start() -> None:
    assert EncoderConfig(encoder="static").heads_at_start == 8
    assert EncoderConfig(encoder="static", k_init=7).heads_at_start == 7
    assert EncoderConfig().replace(k_max=np.int64(4)) == EncoderConfig(k_max=4)


def test_thresholds() -> None:
    assert HeadsConfig().share_threshold(4) == 1e-3
    assert HeadsConfig(share="relative", eps_prune=0.5).share_threshold(4) == 0.125
    assert HeadsConfig().asks_for_growth(2, 1)
    assert not HeadsConfig(eps_grow=1.0).asks_for_growth(2, 1)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (EncoderConfig, {"encoder": "mamba"}, "encoder must be one of runtime, static, deep, gru, lstm, none"),
        (EncoderConfig, {"k_init": 9}, "k_init must be at most k_max = 8, got 9"),
        (EncoderConfig, {"k_init": 0}, "k_init must be a whole number >= 1"),
        (EncoderConfig, {"k_init": "one"}, "k_init must be a number"),
        (EncoderConfig, {"k_max": 1.5}, "k_max must be a whole number >= 1"),
        (EncoderConfig, {"layer_norm": 1}, "layer_norm must be True or False"),
        (HeadsConfig, {"grace": 100}, "grace must be at least check_every = 500, got 100"),
        (HeadsConfig, {"alpha": 1.0}, "alpha must be a number > 0 and < 1, got 1.0"),
        (HeadsConfig, {"eps_grow": -0.1}, "eps_grow must be a number >= 0"),
        (HeadsConfig, {"eps_prune": 0}, "eps_prune must be a number > 0"),
        (HeadsConfig, {"eps_prune": math.nan}, "eps_prune must be a number > 0"),
        (HeadsConfig, {"delta_grow": 0}, "delta_grow must be a whole number >= 1"),
        (HeadsConfig, {"tokens": 1}, "tokens must be at least 2"),
        (HeadsConfig, {"trigger": "rank"}, "trigger must be one of .*paper.*; got 'rank'"),
        (HeadsConfig, {"trigger": 3}, "trigger must be .* an object with decide; int has no decide"),
        (HeadsConfig, {"share": None}, "share must be one of absolute, relative; got None"),
        (HeadsConfig, {"optimiser": "keep"}, "optimiser must be one of carry, rebuild; got 'keep'"),
    ],
)
def test_bad_values_are_refused_by_field_and_accepted_range(kind: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**changes)


FIELDS = [(kind, field.name) for kind in (EncoderConfig, HeadsConfig) for field in dataclasses.fields(kind)]
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.lists(st.floats()))


@given(st.sampled_from(FIELDS), ANYTHING)
def test_whatever_a_field_is_given_it_is_valid_or_refused_by_name(field: tuple[Any, str], value: Any) -> None:
    kind, name = field
    try:
        config = kind().replace(**{name: value})
    except ValueError as refusal:
        assert name in str(refusal)  # noqa: PT017
    else:
        assert kind(**json.loads(json.dumps(dataclasses.asdict(config)))) == config
