"""How heads begin: active, silent, or frozen until they are grown."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from incrt import EncoderConfig, HeadsConfig, Population, Run, SacConfig, recall_task
from incrt.engine.columns import Columns, layout_for
from incrt.engine.layouts import Rows
from incrt.engine.population import News
from incrt.heads.attention import Heads
from incrt.heads.encoders import make_encoder

CLOCK = HeadsConfig(trigger="clock", check_every=100, grace=200, tokens=20, share_batch=16)


def a_run(encoder: EncoderConfig, **sac: Any) -> Run:
    environment, params = recall_task(2, 4)
    fields = {"steps": 500, "buffer": 500, "batch": 16, "hidden": (8,), **sac}
    return Run(0, environment, params, 4, encoder, CLOCK, SacConfig(**fields))


def heads_of(state: Any) -> list[Heads]:
    """Of actor, critic and target."""
    learned = state.learner.learned
    found = [network.encoder.body.heads for network in (learned.actor, learned.critic, learned.target)]
    return [jax.tree.map(np.asarray, heads) for heads in found]


def trained(run: Run) -> list[tuple[int, list[Heads]]]:
    """The heads at each check, by step."""
    population, found = Population([run], "cpu"), []

    def note(news: News) -> None:
        for _, saved in news.saved:
            found.append((saved.progress.step, heads_of(saved.state)))

    for news in population.train(save_every=100):
        note(news)
    return found


def test_silent_heads_are_all_active_and_put_out_nothing() -> None:
    encoder = make_encoder(EncoderConfig(encoder="static", k_max=3, d_k=4, head_start="silent"), 4, 4)
    body = encoder.init(jax.random.key(0)).body
    assert encoder.first_mask.tolist() == [True] * 3
    assert not np.any(body.heads.w_o)
    assert np.all(np.any(body.heads.w_v, axis=(1, 2)))


def test_frozen_heads_put_out_what_they_would_if_all_were_active() -> None:
    config = EncoderConfig(k_max=3, d_k=4, head_start="frozen")
    frozen, whole = make_encoder(config, 4, 4), make_encoder(EncoderConfig(encoder="static", k_max=3, d_k=4), 4, 4)
    params = frozen.init(jax.random.key(0))
    np.testing.assert_array_equal(params.body.heads.w_o, whole.init(jax.random.key(0)).body.heads.w_o)
    contexts = jax.random.normal(jax.random.key(1), (5, 4, 4))
    features = frozen.features(params, frozen.first_mask, contexts)
    np.testing.assert_array_equal(features, whole.features(params, whole.first_mask, contexts))

    def loss(given: Any) -> Any:
        return jnp.sum(frozen.features(given, jnp.array([True, False, True]), contexts) ** 3)

    slopes = jax.grad(loss)(params).body.heads
    for slope in slopes:
        assert np.any(slope[0])
        assert not np.any(slope[1])
        assert np.any(slope[2])


def test_a_frozen_head_learns_from_its_growth_on() -> None:
    checks = trained(a_run(EncoderConfig(k_max=3, d_k=4, head_start="frozen")))
    assert [step for step, _ in checks] == [100, 200, 300, 400, 500]
    by_step = dict(checks)
    for network in range(2):  # actor and critic; the target follows the critic
        for head, grown_at in ((1, 200), (2, 400)):
            for before, after in ((100, 200), (200, 300), (300, 400), (400, 500)):
                same = all(
                    np.array_equal(old[head], new[head])
                    for old, new in zip(by_step[before][network], by_step[after][network], strict=True)
                )
                assert same == (after <= grown_at), (network, head, before)


def test_the_growth_of_a_frozen_head_changes_no_output() -> None:
    population = Population([a_run(EncoderConfig(k_max=3, d_k=4, head_start="frozen"))], "cpu")
    for _ in population.train():
        pass
    (progress,) = population.progress
    assert [each.jump for each in progress.certificates] == [0.0, 0.0]
    assert progress.heads == 3


def test_silent_heads_share_the_program_of_active_ones() -> None:
    silent = EncoderConfig(encoder="static", k_max=3, d_k=4, head_start="silent")
    frozen = EncoderConfig(k_max=3, d_k=4, head_start="frozen")
    active = EncoderConfig(k_max=3, d_k=4)
    assert a_run(silent).program() == a_run(active).program() != a_run(frozen).program()
    assert isinstance(layout_for(make_encoder(active, 4, 4), 1, "cpu"), Columns)
    assert isinstance(layout_for(make_encoder(frozen, 4, 4), 1, "cpu"), Rows)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: EncoderConfig(encoder="gru", head_start="silent"), "head_start goes with encoder runtime or static"),
        (lambda: EncoderConfig(encoder="static", head_start="frozen"), "head_start frozen goes with encoder runtime"),
        (lambda: EncoderConfig(head_start="asleep"), "head_start must be one of active, silent, frozen"),
    ],
)
def test_a_start_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_frozen_heads_need_a_trigger_that_never_prunes() -> None:
    environment, params = recall_task(2, 4)
    with pytest.raises(ValueError, match="frozen goes with trigger clock, which never prunes, not with 'paper'"):
        Run(0, environment, params, 4, EncoderConfig(k_max=3, d_k=4, head_start="frozen"))


def test_only_where_it_is_not_the_default_is_it_written() -> None:
    assert "head_start" not in EncoderConfig().to_json()
    assert EncoderConfig(head_start="silent", encoder="static").to_json()["head_start"] == "silent"
