"""Certificates of single events: they hold where the paper says so, and say so where they do not."""

import dataclasses
import json
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import Array

from incrt.config import HeadsConfig
from incrt.heads.adam import adam
from incrt.heads.attention import attend, head_norms, init_attention, outputs_without_each, shares
from incrt.heads.certificates import (
    Certificate,
    Evidence,
    GrowCertificate,
    Policy,
    PruneCertificate,
    PruneMeasures,
    certify_grow,
    certify_prune,
    from_json,
    lipschitz_upper,
    mean_jump,
    measure_prune,
    outputs,
    parameter_energy,
    promise_prune,
    to_json,
    unit_gains,
)
from incrt.heads.check import Check, Measured, Watched, check_run, first_heads
from incrt.heads.encoders import Encoded
from incrt.heads.growth import Learned, grow, prune
from incrt.heads.guarantees import conclude
from incrt.heads.layers import Dense, init_mlp, init_norm, layer_norm, mlp
from incrt.heads.triggers import Decision, PaperTrigger

K_MAX, WINDOW, OBSERVED, D_K = 4, 6, 5, 4
D_MODEL = K_MAX * D_K
ALL = jnp.ones(K_MAX, bool)
contexts = jax.random.normal(jax.random.key(9), (64, WINDOW, OBSERVED))
output = jax.jit(unit_gains)
measure = jax.jit(measure_prune)


@pytest.fixture(scope="module", autouse=True)
def full_single_precision() -> Iterator[None]:
    """What is measured in full precision is compared with what is computed in full precision, on a GPU too."""
    with jax.default_matmul_precision("highest"):
        yield


def policy(seed: int = 0, *, norm: bool = True, faint: dict[int, float] | None = None) -> Policy:
    """A policy in which every head is live; ``faint`` scales the output of single heads."""
    encoder_key, mlp_key, norm_key = jax.random.split(jax.random.key(seed), 3)
    body = init_attention(encoder_key, ALL, WINDOW, OBSERVED, D_K)
    w_o = body.heads.w_o
    for head, factor in (faint or {}).items():
        w_o = w_o.at[head].multiply(factor)
    body = body._replace(heads=body.heads._replace(w_o=w_o))
    scale = init_norm(D_MODEL)._replace(scale=1 + 0.3 * jax.random.normal(norm_key, (D_MODEL,)))
    return Policy(Encoded(body, scale if norm else None), init_mlp(mlp_key, (D_MODEL, 16, 3)))


def pruned(net: Policy, head: int, config: HeadsConfig, seen: Array = contexts) -> PruneCertificate:
    energies = float(parameter_energy(net, ALL)), float(parameter_energy(net, ALL.at[head].set(False)))
    threshold = PaperTrigger(config).share_threshold(K_MAX)
    promise = promise_prune(1500, head, threshold, None, measure(net, ALL, head, seen))
    before, after = (outputs(net, mask, seen) for mask in (ALL, ALL.at[head].set(False)))
    return certify_prune(promise, mean_jump(Evidence(before, after, energies)), energies)


# --- growth -------------------------------------------------------------------------------------------------------


def test_a_growth_by_soft_initialisation_is_certified_with_zero() -> None:
    net, mask = policy(), ALL.at[2].set(False)
    optimiser = adam(3e-4)
    before = Learned(mask, net, policy(1), policy(2), optimiser.init(net), optimiser.init(net))
    after = grow(before, 2, jax.random.key(0), "carry")
    look = jax.jit(outputs)
    old, new = (
        {
            f"{name} {what}": value
            for name in ("actor", "critic", "target")
            for what, value in look(getattr(each, name), each.mask, contexts).items()
        }
        for each in (before, after)
    )
    energy, energy_after = (float(parameter_energy(each.actor, each.mask)) for each in (before, after))
    found = certify_grow(1500, 2, old, new, (energy, energy_after))
    assert len(found.jumps) == 6
    assert set(found.jumps.values()) == {0.0}
    assert (found.jump, found.bound, found.holds) == (0.0, 0.0, True)
    head = sum(float(jnp.sum(w[2] ** 2)) for w in after.actor.encoder.body.heads)
    assert found.energy_after - found.energy_before == pytest.approx(head, rel=1e-4)


def test_outputs_are_those_of_block_and_policy() -> None:
    net = policy()
    found = outputs(net, ALL, contexts)
    np.testing.assert_allclose(found["encoder"], attend(net.encoder.body, ALL, contexts), atol=1e-6)
    np.testing.assert_allclose(found["policy"], unit_gains(net, ALL, contexts), atol=1e-6)


def test_a_nan_is_the_largest_jump_wherever_it_stands() -> None:
    for jumps in ({"a": 0.0, "b": float("nan")}, {"a": float("nan"), "b": 0.0}, {"a": 1.0, "b": float("nan")}):
        found = GrowCertificate(1, 1, jumps, 1.0, 2.0)
        assert np.isnan(found.jump)
        assert not found.holds


@pytest.mark.parametrize("jump", [1e-7, 0.5, float("nan"), float("inf")])
def test_a_growth_that_changes_anything_does_not_hold(jump: float) -> None:
    before = {"policy": np.zeros((4, 3)), "critic": np.zeros((4, 3))}
    after = {"policy": np.zeros((4, 3)), "critic": np.zeros((4, 3))}
    after["policy"][1, 2] = -jump
    found = certify_grow(1500, 1, before, after, (1.0, 2.0))
    assert not found.holds
    assert found.jumps["critic"] == 0.0
    written = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert written["holds"] is False
    assert written["jump"] == (pytest.approx(jump) if np.isfinite(jump) else None)


def test_outputs_must_have_names_and_the_same_ones() -> None:
    with pytest.raises(ValueError, match="must be the same"):
        certify_grow(1, 1, {"policy": 0.0}, {"critic": 0.0}, (0.0, 0.0))
    with pytest.raises(ValueError, match="must be the same"):
        certify_grow(1, 1, {}, {}, (0.0, 0.0))
    with pytest.raises(ValueError, match=r"policy must have one shape before and after, got \(4, 2\) and \(1, 2\)"):
        certify_grow(1, 1, {"policy": np.zeros((4, 2))}, {"policy": np.zeros((1, 2))}, (0.0, 0.0))


def test_nan_is_not_taken_for_continuity() -> None:
    """A network that puts out NaN jumps by NaN, at a growth and at a prune."""
    net, lost = policy(), contexts * jnp.nan
    before, after = output(net, ALL, lost), output(net, ALL.at[1].set(False), lost)
    assert bool(jnp.all(jnp.isnan(before)))
    assert not certify_grow(1, 1, {"policy": before}, {"policy": after}, (0.0, 0.0)).holds
    found = pruned(net, 1, HeadsConfig(), lost)
    assert not found.holds
    assert not found.premise_holds
    assert to_json(found)["jump"] is None


# --- pruning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [True, False])
def test_what_is_measured_at_a_prune(norm: bool) -> None:
    net = policy(norm=norm, faint={1: 1e-4})
    found = pruned(net, 1, HeadsConfig())
    change = np.asarray(output(net, ALL.at[1].set(False), contexts) - output(net, ALL, contexts), np.float64)
    jumps = np.linalg.norm(change, axis=-1)
    assert found.jump == pytest.approx(jumps.mean(), rel=1e-3)
    assert found.worst_jump == pytest.approx(jumps.max(), rel=1e-3)
    norms = np.asarray(head_norms(net.encoder.body, ALL, contexts))
    assert found.share == pytest.approx(norms[1] / norms.sum(), rel=1e-4)
    assert found.total == pytest.approx(norms.sum(), rel=1e-5)
    assert found.largest_norm == pytest.approx(norms.max(), rel=1e-5)
    assert found.bound == pytest.approx(found.lipschitz_upper * 1e-3 * norms.sum(), rel=1e-5)
    assert found.head == 1
    assert found.premise_holds
    assert 0 < found.jump <= found.bound_local <= found.bound
    assert found.holds
    assert found.holds_local
    assert found.holds_everywhere
    assert found.energy_after < found.energy_before


def test_the_slope_is_the_largest_of_the_jacobian() -> None:
    net = policy()
    block = attend(net.encoder.body, ALL, contexts)

    def after_block(x: Array) -> Array:
        assert net.encoder.norm is not None
        return jnp.tanh(mlp(net.layers, layer_norm(net.encoder.norm, x)))

    slopes = [np.linalg.svd(np.asarray(jax.jacfwd(after_block)(x)), compute_uv=False)[0] for x in block]
    assert float(measure(net, ALL, 1, contexts).lipschitz_local) == pytest.approx(max(slopes), rel=1e-4)


@given(seed=st.integers(0, 1000), norm=st.booleans(), faint=st.sampled_from([1e-3, 0.3, 1.0, 10.0]))
def test_no_step_is_longer_than_the_upper_bound_on_l_allows(seed: int, norm: bool, faint: float) -> None:
    """Also where the removed head is most of the output, and the normalisation is at its steepest."""
    net = policy(seed, norm=norm, faint={0: faint})
    block = attend(net.encoder.body, ALL, contexts)
    removed = block - attend(net.encoder.body, ALL.at[0].set(False), contexts)
    upper = float(lipschitz_upper(net, block, removed))
    parts = jnp.linspace(0, 1, 9)[:, None, None]
    points = block - parts * removed
    normed = points if net.encoder.norm is None else layer_norm(net.encoder.norm, points)
    values = jnp.tanh(mlp(net.layers, normed))
    steps = np.linalg.norm(np.diff(values, axis=0), axis=-1)
    lengths = np.linalg.norm(np.diff(np.asarray(points), axis=0), axis=-1)
    assert np.all(steps <= upper * lengths * (1 + 1e-4) + 1e-6)


@pytest.mark.parametrize("strength", [1.0, 30.0])
def test_the_bound_on_l_is_not_too_small_where_only_the_normalisation_stretches(strength: float) -> None:
    """A layer that does not stretch, so that nothing hides the normalisation: its scale, its steepest context, its way.

    With a head thirty times as strong the normalisation is far steeper after the prune than before it.
    """
    net = policy(faint={0: strength})
    assert net.encoder.norm is not None
    scale = net.encoder.norm._replace(scale=3 * net.encoder.norm.scale)
    layer = Dense(1e-3 * jnp.eye(D_MODEL), jnp.zeros(D_MODEL))
    net = Policy(net.encoder._replace(norm=scale), (layer,))
    block = attend(net.encoder.body, ALL, contexts)
    removed = block - attend(net.encoder.body, ALL.at[0].set(False), contexts)
    upper = float(lipschitz_upper(net, block, removed))

    def slope(x: Array) -> float:
        jacobian = jax.jacfwd(lambda y: 1e-3 * layer_norm(scale, y))(x)
        return float(np.linalg.svd(np.asarray(jacobian), compute_uv=False)[0])

    slopes = [slope(block[i] - part * removed[i]) for i in range(0, 64, 8) for part in (0.0, 0.5, 1.0)]
    assert max(slopes) <= upper * (1 + 1e-4)
    if strength == 1.0:
        worst = min(range(64), key=lambda i: float(jnp.std(block[i]) - jnp.std(removed[i])))
        spread = float(jnp.std(block[worst]) - jnp.std(removed[worst]))
        expected = 1e-3 * float(jnp.max(jnp.abs(scale.scale))) / np.sqrt(spread**2 + 1e-5)
        assert upper == pytest.approx(expected, rel=1e-3)


def test_the_bound_on_l_is_reached_by_a_linear_head() -> None:
    """Without normalisation and for small outputs the bound is the slope itself: it is not loose for nothing."""
    net = policy(norm=False)
    net = net._replace(layers=(Dense(1e-3 * net.layers[0].w[:, :3], jnp.zeros(3)),))
    found = pruned(net, 1, HeadsConfig())
    assert found.lipschitz_upper == pytest.approx(found.lipschitz_local, rel=1e-3)


def test_a_prune_that_the_trigger_would_not_allow_does_not_hold() -> None:
    net = policy()._replace(layers=(Dense(jnp.eye(D_MODEL)[:, :8], jnp.zeros(8)),))
    found = pruned(net, 1, HeadsConfig())
    assert found.share > 0.1
    assert not found.premise_holds
    assert not found.holds
    assert to_json(found)["holds"] is False
    assert to_json(found)["premise_holds"] is False


def test_for_every_context_the_bound_need_not_hold_though_it_does_in_the_mean() -> None:
    """The paper states eq. (24) for any context. The trigger looks at a mean over a batch, which hides a rare one."""
    net = policy(norm=False)
    heads = net.encoder.body.heads
    # Head 1 reads the last observation's first entry alone, which is zero in every context but one.
    body = net.encoder.body._replace(
        embed=net.encoder.body.embed.at[0].set(0).at[0, 0].set(1),
        position=net.encoder.body.position.at[:, 0].set(0),
    )
    body = body._replace(embed=body.embed.at[1:, 0].set(0), heads=heads._replace(w_v=heads.w_v.at[1, 1:].set(0)))
    net = Policy(Encoded(body, None), (Dense(0.01 * jnp.eye(D_MODEL)[:, :8], jnp.zeros(8)),))
    seen = jax.random.normal(jax.random.key(3), (2000, WINDOW, OBSERVED)).at[..., 0].set(0).at[7, :, 0].set(1.0)
    config = HeadsConfig()
    weights = np.asarray(shares(head_norms(net.encoder.body, ALL, seen), ALL))
    assert 0 < weights[1] < config.eps_prune  # the trigger fires
    found = pruned(net, 1, config, seen)
    assert found.holds
    assert not found.holds_everywhere
    assert found.worst_jump > 10 * found.bound


def test_a_silent_head_can_go_without_a_jump() -> None:
    """Jump and bound are both zero where no head puts anything out; zero keeps to zero."""
    net = policy(faint=dict.fromkeys(range(K_MAX), 0.0))
    found = pruned(net, 1, HeadsConfig())
    assert (found.jump, found.bound, found.share) == (0.0, 0.0, 0.0)
    assert found.holds
    assert found.holds_local
    assert found.holds_everywhere


def test_the_threshold_is_that_of_the_heads_before_the_event() -> None:
    assert pruned(policy(), 1, HeadsConfig()).threshold == 1e-3
    assert pruned(policy(), 1, HeadsConfig(share="relative", eps_prune=0.2)).threshold == 0.05


def test_a_head_that_cannot_go_is_not_measured() -> None:
    for head, message in ((K_MAX, "head must be from 0 to 3"), (-1, "head must be a whole number"), (2, "inactive")):
        with pytest.raises(ValueError, match=message):
            measure_prune(policy(), ALL.at[2].set(False), head, contexts)


def test_measures_of_many_runs_are_a_vmap() -> None:
    nets = [policy(seed) for seed in range(3)]
    heads = jnp.array([0, 3, 1])
    together = jax.jit(jax.vmap(measure_prune, in_axes=(0, None, 0, None)))(
        jax.tree.map(lambda *x: jnp.stack(x), *nets), ALL, heads, contexts
    )
    for i, net in enumerate(nets):
        for found, expected in zip(together, measure(net, ALL, int(heads[i]), contexts), strict=True):
            np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-7)


def test_energy_counts_the_parameters_in_use() -> None:
    net = policy()
    leaves = sum(float(jnp.sum(x**2)) for x in jax.tree.leaves(net))
    assert float(parameter_energy(net, ALL)) == pytest.approx(leaves, rel=1e-5)
    second = sum(float(jnp.sum(w[1] ** 2)) for w in net.encoder.body.heads)
    assert float(parameter_energy(net, ALL.at[1].set(False))) == pytest.approx(leaves - second, rel=1e-5)


# --- the whole loop -----------------------------------------------------------------------------------------------


def test_driven_by_the_relative_rule_k_falls_and_every_certificate_holds() -> None:
    """Two of four heads are faint. By the paper's rule neither is weak; relative to the uniform share both are."""
    net = policy(faint={1: 0.02, 3: 0.05})
    for rule, expected in (("absolute", [4]), ("relative", [4, 3, 2])):
        trigger = PaperTrigger(HeadsConfig(share=rule, eps_prune=0.1 if rule == "relative" else 1e-3))
        state, run = first_heads(trigger.config, [True] * K_MAX), Pruned(net)
        checks: list[Check] = []
        for step in range(500, 20_001, 500):
            check, state = check_run(step, Watched(trigger, state), run.measure, run.weigh, run.act)
            checks.append(check)
            assert state.mask == tuple(np.asarray(run.learned.mask).tolist())
        found = [check.certificate for check in checks if check.certificate is not None]
        assert [4, *(check.k for check in checks if check.certificate is not None)] == expected
        assert all(each.holds for each in found)
        assert [each.threshold for each in found if isinstance(each, PruneCertificate)] == [
            trigger.share_threshold(k)
            for k in expected[:-1]  # of the heads before the event
        ]
        ranks = [check.rank for check in checks if check.rank is not None]
        conclusion = conclude(trigger, state.mask, ranks, run.measure().shares, found)
        assert conclusion.inside == (rule == "relative")
        assert conclusion.cumulative_holds
        assert conclusion.all_hold
        assert [each.head for each in found] == ([1, 3] if rule == "relative" else [])


class Pruned:
    """A policy that is not trained, whose rank is two."""

    def __init__(self, net: Policy) -> None:
        self.learned = Learned(ALL, net, net, net, adam(3e-4).init(net), adam(3e-4).init(net))

    def measure(self) -> Measured:
        norms = head_norms(self.learned.actor.encoder.body, self.learned.mask, contexts)
        return Measured(2.0, np.asarray(shares(norms, self.learned.mask)).tolist())

    def weigh(self, decision: Decision) -> PruneMeasures:
        assert decision.action == "prune"
        assert decision.head is not None
        found: PruneMeasures = measure(self.learned.actor, self.learned.mask, decision.head, contexts)
        return found

    def act(self, decision: Decision) -> Evidence:
        assert decision.head is not None
        before, energy = self._look()
        self.learned = prune(self.learned, decision.head, "carry")
        after, energy_after = self._look()
        return Evidence(before, after, (energy, energy_after))

    def _look(self) -> tuple[dict[str, Array], Array]:
        actor, mask = self.learned.actor, self.learned.mask
        return outputs(actor, mask, contexts), parameter_energy(actor, mask)


def test_a_jump_is_the_mean_norm_of_what_the_policy_changed_by() -> None:
    before, after = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    found = mean_jump(Evidence({"policy": before, "critic": before}, {"policy": after, "critic": 9 * after}, (1, 1)))
    assert found == pytest.approx(sum(sum((y - x) ** 2) ** 0.5 for x, y in zip(before, after, strict=True)) / 5)


def test_a_promise_is_what_is_measured_before_and_becomes_the_certificate() -> None:
    """Of a policy that is to lose head 2 while the number that becomes free is 0."""
    measured = PruneMeasures(3, 2, 0.3, 0.8, np.array([4.0, 0.0, 1.0, 5.0]), 7.0, 6.0)
    promise = promise_prune(1500, 0, None, 0.4, measured)
    assert (promise.head, promise.share, promise.total, promise.largest_norm) == (0, 0.1, 10.0, 5.0)
    assert (promise.jump, promise.promised, promise.worst_jump) == (0.3, 0.3, 0.8)
    assert (promise.bound, promise.holds, promise.holds_everywhere) == (0.4, True, False)
    assert promise.bound_local == pytest.approx(6.0 * 0.1 * 10.0)
    assert np.isnan(promise.energy_before)
    found = certify_prune(promise, 0.35, (3.0, 2.0))
    assert found == dataclasses.replace(promise, jump=0.35, energy_before=3.0, energy_after=2.0)
    assert found.promised == 0.3
    assert not promise_prune(1500, 0, None, 0.2, measured).holds
    assert promise_prune(1500, 0, 0.25, None, measured).bound == pytest.approx(7.0 * 0.25 * 10.0)
    assert promise_prune(1500, 0, None, None, measured).bound == pytest.approx(7.0 * 0.1 * 10.0)


def test_a_limit_of_nothing_allows_only_prunes_that_move_nothing() -> None:
    for jump, holds in ((0.0, True), (1e-9, False)):
        assert promise_prune(1, 0, None, 0.0, PruneMeasures(2, 0, jump, jump, np.ones(2), 1.0, 1.0)).holds == holds


def test_what_a_prune_with_compensation_will_do_is_what_it_does() -> None:
    net = policy()
    w_o = outputs_without_each(net.encoder.body, ALL, contexts[:32])[1]
    body = net.encoder.body._replace(heads=net.encoder.body.heads._replace(w_o=w_o))
    after = Policy(net.encoder._replace(body=body), net.layers)
    measured = measure_prune(net, ALL, 1, contexts, after)
    change = np.asarray(output(after, ALL.at[1].set(False), contexts) - output(net, ALL, contexts), np.float64)
    jumps = np.linalg.norm(change, axis=-1)
    assert float(measured.jump) == pytest.approx(jumps.mean(), rel=1e-3)
    assert float(measured.worst_jump) == pytest.approx(jumps.max(), rel=1e-3)
    np.testing.assert_allclose(measured.norms, head_norms(net.encoder.body, ALL, contexts), rtol=1e-4)
    moved = attend(net.encoder.body, ALL, contexts) - attend(after.encoder.body, ALL, contexts)
    ways = np.linalg.norm(np.asarray(moved, np.float64), axis=-1)
    assert np.all(jumps <= float(measured.lipschitz_upper) * ways * (1 + 1e-4) + 1e-6)
    plain = float(measure(net, ALL, 1, contexts).jump)
    assert float(measured.jump) < plain


def test_certificates_of_versions_that_promised_nothing_can_still_be_read() -> None:
    found = pruned(policy(), 1, HeadsConfig())
    written = to_json(found)
    for name in ("promised", "limit"):
        del written[name]
    earlier = from_json(written)
    assert earlier == dataclasses.replace(found, promised=None, limit=None)
    assert isinstance(earlier, PruneCertificate)
    assert (earlier.bound, earlier.holds) == (found.bound, found.holds)
    for name in ("jump", "threshold"):
        with pytest.raises(ValueError, match=f"a certificate needs {name}; got"):
            from_json({key: value for key, value in written.items() if key != name})


def test_certificates_are_valid_json() -> None:
    prune_found = pruned(policy(), 1, HeadsConfig())
    of_another_trigger = dataclasses.replace(prune_found, threshold=None, limit=0.1)
    found: list[Certificate] = [prune_found, of_another_trigger, GrowCertificate(1, 2, {"policy": 0.0}, 1.0, 2.0)]
    for certificate in found:
        written = json.loads(json.dumps(to_json(certificate), allow_nan=False))
        assert {"step", "head", "jump", "bound", "holds", "energy_before", "energy_after"} <= set(written)
        assert from_json(written) == certificate
    lost = from_json(to_json(GrowCertificate(1, 2, {"policy": float("nan")}, 1.0, float("inf"))))
    assert isinstance(lost, GrowCertificate)
    assert np.isnan(lost.jump)
    with pytest.raises(ValueError, match="a certificate needs energy_after, energy_before, head, jump"):
        from_json({"step": 1})
