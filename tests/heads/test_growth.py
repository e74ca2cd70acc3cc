"""Grow and prune: what an event changes and what it leaves alone, and Adam across events."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from jax import Array

from incrt.heads.adam import adam
from incrt.heads.attention import Heads, attend, hold_inactive, init_attention, map_heads
from incrt.heads.certificates import Policy, unit_gains
from incrt.heads.encoders import Encoded
from incrt.heads.growth import Learned, grow, prune
from incrt.heads.layers import init_mlp, init_norm, mlp

WINDOW, OBSERVED, D_K, K_MAX = 6, 5, 4, 8
D_MODEL = K_MAX * D_K
RATE = 3e-4


def network(key: Array, mask: Array, out: int) -> Policy:
    encoder_key, mlp_key = jax.random.split(key)
    body = init_attention(encoder_key, mask, WINDOW, OBSERVED, D_K)
    return Policy(Encoded(body, init_norm(D_MODEL)), init_mlp(mlp_key, (D_MODEL, 16, out)))


def learner(seed: int = 0, active: int = 1) -> Learned:
    actor_key, critic_key, target_key = jax.random.split(jax.random.key(seed), 3)
    mask = jnp.arange(K_MAX) < active
    actor, critic, target = (network(key, mask, 3) for key in (actor_key, critic_key, target_key))
    optimiser = adam(RATE)
    return Learned(mask, actor, critic, target, optimiser.init(actor), optimiser.init(critic))


contexts = jax.random.normal(jax.random.key(99), (32, WINDOW, OBSERVED))


@jax.jit
def outputs(learned: Learned) -> dict[str, Array]:
    """Everything that a grow event must not change."""
    nets = {"actor": learned.actor, "critic": learned.critic, "target": learned.target}
    blocks = {f"{name} block": attend(net.encoder.body, learned.mask, contexts) for name, net in nets.items()}
    return {**blocks, **{name: unit_gains(net, learned.mask, contexts) for name, net in nets.items()}}


def loss(params: Policy, mask: Array, wanted: Array) -> Array:
    return jnp.mean((mlp(params.layers, attend(params.encoder.body, mask, contexts)) - wanted) ** 2)


@jax.jit
def update(learned: Learned, seed: Array) -> Learned:
    """An update of the three networks as SAC's: two Adam steps and Polyak averaging."""
    wanted = jax.random.normal(jax.random.key(seed), (2, len(contexts), 3))
    new: dict[str, Any] = {}
    for name, goal in zip(("actor", "critic"), wanted, strict=True):
        params = getattr(learned, name)
        gradient = jax.grad(loss)(params, learned.mask, goal)
        step, state = adam(RATE).update(gradient, getattr(learned, f"{name}_adam"))
        new |= {name: optax.apply_updates(params, step), f"{name}_adam": state}
    target = jax.tree.map(lambda old, online: 0.995 * old + 0.005 * online, learned.target, new["critic"])
    return learned._replace(**new, target=hold_inactive(learned.mask, learned.target, target))


def updated(learned: Learned, updates: int) -> Learned:
    for seed in range(updates):
        learned = update(learned, jnp.asarray(seed))
    return learned


def heads_of(learned: Learned) -> dict[str, Heads]:
    nets = {"actor": learned.actor, "critic": learned.critic, "target": learned.target}
    return {name: jax.tree.map(np.asarray, net.encoder.body.heads) for name, net in nets.items()}


def same(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("optimiser", ["carry", "rebuild"])
def test_the_chain_from_one_head_to_eight_changes_no_output_by_a_single_bit(optimiser: str) -> None:
    learned = learner()
    for head in range(1, K_MAX):
        learned = updated(learned, 5)
        before = outputs(learned)
        learned = grow(learned, head, jax.random.key(head), optimiser)
        after = outputs(learned)
        for name, value in before.items():
            assert float(jnp.max(jnp.abs(after[name] - value))) == 0.0, name
    assert bool(jnp.all(learned.mask))


def test_a_grown_head_learns_from_then_on() -> None:
    learned = updated(grow(updated(learner(), 5), 1, jax.random.key(1), "carry"), 3)
    for name, heads in heads_of(learned).items():
        assert np.any(heads.w_o[1]), name
        assert not np.any(heads.w_o[2:]), name


def test_the_targets_new_head_is_the_critics_and_not_the_actors() -> None:
    heads = heads_of(grow(updated(learner(), 5), 1, jax.random.key(1), "carry"))
    assert same([w[1] for w in heads["critic"]], [w[1] for w in heads["target"]])
    assert not same([w[0] for w in heads["critic"]], [w[0] for w in heads["target"]])
    assert not np.array_equal(heads["critic"].w_q[1], heads["actor"].w_q[1])


def test_growing_touches_the_new_head_alone() -> None:
    before = updated(learner(active=2), 5)
    after = grow(before, 5, jax.random.key(1), "carry")
    np.testing.assert_array_equal(after.mask, [True, True, False, False, False, True, False, False])
    others = np.arange(K_MAX) != 5
    for name, heads in heads_of(after).items():
        for old, new in zip(heads_of(before)[name], heads, strict=True):
            np.testing.assert_array_equal(new[others], old[others])
        assert not np.array_equal(heads.w_q[5], heads_of(before)[name].w_q[5])
    rest = partial(map_heads, lambda _: None, lambda leaf: leaf)
    assert same(rest(before[1:4]), rest(after[1:4]))


@pytest.mark.parametrize("optimiser", ["carry", "rebuild"])
def test_a_pruned_head_is_frozen_to_the_bit_in_all_three_networks(optimiser: str) -> None:
    learned = prune(updated(learner(active=3), 20), 1, optimiser)
    np.testing.assert_array_equal(learned.mask, [True, False, True, False, False, False, False, False])
    before = heads_of(learned)
    assert same(learned[1:4], updated(learner(active=3), 20)[1:4])  # the event itself changes no parameter
    after = heads_of(updated(learned, 100))
    for name in before:
        assert same([w[1] for w in before[name]], [w[1] for w in after[name]]), name
        assert not np.array_equal(before[name].w_o[0], after[name].w_o[0])


def test_a_pruned_head_takes_no_part_in_the_output() -> None:
    learned = updated(learner(active=3), 5)
    pruned = prune(learned, 1, "carry")
    expected = outputs(learned._replace(mask=jnp.array([True, False, True] + [False] * 5)))
    assert same(outputs(pruned), expected)
    assert not same(outputs(pruned), outputs(learned))


def test_growing_a_head_that_was_pruned_starts_it_anew() -> None:
    pruned = updated(prune(updated(learner(active=3), 20), 1, "carry"), 5)
    old = heads_of(pruned)
    before = outputs(pruned)
    regrown = grow(pruned, 1, jax.random.key(7), "carry")
    assert float(max(jnp.max(jnp.abs(x - before[name])) for name, x in outputs(regrown).items())) == 0.0
    for name, heads in heads_of(regrown).items():
        assert not np.any(heads.w_o[1]), name
        assert not np.array_equal(heads.w_q[1], old[name].w_q[1]), name
    for state in (regrown.actor_adam, regrown.critic_adam):
        assert int(state.head_steps[1]) == 0


@pytest.mark.parametrize("event", ["grow", "prune"])
def test_nothing_of_the_head_is_left_in_the_optimisers(event: str) -> None:
    learned = updated(learner(active=3), 20)
    changed = grow(learned._replace(mask=learned.mask.at[1].set(False)), 1, jax.random.key(1), "carry")
    if event == "prune":
        changed = prune(learned, 1, "carry")
    for before, state in ((learned.actor_adam, changed.actor_adam), (learned.critic_adam, changed.critic_adam)):
        for moments in (state.mu, state.nu):
            assert not any(np.any(w[1]) for w in moments.encoder.body.heads)
            assert all(np.any(w[0]) for w in moments.encoder.body.heads)
        np.testing.assert_array_equal(state.head_steps, before.head_steps.at[1].set(0))
        assert int(state.steps) == 20


def gradients(learned: Learned) -> Policy:
    goal = jax.random.normal(jax.random.key(5), (len(contexts), 3))
    found: Policy = jax.jit(jax.grad(loss))(learned.actor, learned.mask, goal)
    return found


def without_head(tree: Any, head: int) -> Any:
    keep = np.arange(K_MAX) != head
    return map_heads(lambda heads: Heads(*(np.asarray(w)[keep] for w in heads)), np.asarray, tree)


@pytest.mark.parametrize("event", ["grow", "prune"])
def test_with_carry_survivors_take_the_step_they_would_have_taken(event: str) -> None:
    learned = updated(learner(active=3), 20)
    changed = grow(learned, 3, jax.random.key(1), "carry") if event == "grow" else prune(learned, 1, "carry")
    head = 3 if event == "grow" else 1
    gradient = gradients(learned)
    for before, after in ((learned.actor_adam, changed.actor_adam), (learned.critic_adam, changed.critic_adam)):
        step, _ = adam(RATE).update(gradient, before)
        carried, _ = adam(RATE).update(gradient, after)
        assert same(without_head(step, head), without_head(carried, head))


def test_a_grown_head_does_not_disturb_the_gradient_of_the_others() -> None:
    learned = updated(learner(active=3), 20)
    grown = grow(learned, 3, jax.random.key(1), "carry")
    before, after = (without_head(gradients(each), 3) for each in (learned, grown))
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-8)


def test_rebuild_forgets_everything() -> None:
    learned = updated(learner(active=3), 20)
    for changed in (grow(learned, 3, jax.random.key(1), "rebuild"), prune(learned, 1, "rebuild")):
        for state, params in ((changed.actor_adam, changed.actor), (changed.critic_adam, changed.critic)):
            assert same(state, adam(RATE).init(params))


def test_heads_that_cannot_be_grown_or_pruned_are_refused() -> None:
    learned = learner(active=2)
    for head, message in (
        (8, "head must be from 0 to 7, got 8"),
        (-1, "head must be a whole number >= 0"),
        (None, "head must be a number, got None"),
        (True, "head must be a number, got True"),
        (jnp.array([1, 2]), "head must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            grow(learned, head, jax.random.key(0), "carry")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=message):
            prune(learned, head, "carry")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the mask has shape \(8,\), but the critic has 0 heads"):
        grow(learned._replace(critic=init_mlp(jax.random.key(0), (3, 2))), 3, jax.random.key(0), "carry")
    with pytest.raises(ValueError, match="head 1 is already active"):
        grow(learned, 1, jax.random.key(0), "carry")
    with pytest.raises(ValueError, match="head 2 is already inactive"):
        prune(learned, 2, "carry")


def test_an_unknown_rule_for_the_optimiser_is_refused() -> None:
    with pytest.raises(ValueError, match="optimiser must be one of carry, rebuild; got 'keep'"):
        prune(learner(active=3), 1, "keep")


def test_events_of_many_runs_are_a_vmap() -> None:
    runs = [updated(learner(seed, active=2), 3) for seed in range(3)]
    together: Learned = jax.tree.map(lambda *x: jnp.stack(x), *runs)
    heads, keys = jnp.array([2, 5, 7]), jax.random.split(jax.random.key(0), 3)
    grown = jax.vmap(partial(grow, optimiser="carry"))(together, heads, keys)
    pruned = jax.vmap(partial(prune, optimiser="carry"))(together, jnp.array([0, 1, 0]))
    for i, run in enumerate(runs):
        assert same(jax.tree.map(lambda x, i=i: x[i], grown), grow(run, int(heads[i]), keys[i], "carry"))
        assert same(jax.tree.map(lambda x, i=i: x[i], pruned), prune(run, (0, 1, 0)[i], "carry"))


# --- Adam ---------------------------------------------------------------------------------------------------------


def random_gradients(params: Any, seed: int) -> Any:
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)])


def test_without_events_it_is_adam_as_optax_and_pytorch_have_it() -> None:
    params = learner().actor
    ours, theirs = adam(RATE), optax.adam(RATE)
    state, their_state = ours.init(params), theirs.init(params)
    tensors = [torch.zeros(x.shape, requires_grad=True) for x in jax.tree.leaves(params)]
    torch_adam = torch.optim.Adam(tensors, lr=RATE)
    for seed in range(20):
        gradient = random_gradients(params, seed)
        step, state = ours.update(gradient, state)
        their_step, their_state = theirs.update(gradient, their_state)
        for tensor, g in zip(tensors, jax.tree.leaves(gradient), strict=True):
            torch.nn.init.zeros_(tensor)
            tensor.grad = torch.tensor(np.asarray(g))
        torch_adam.step()
        for x, y, z in zip(jax.tree.leaves(step), jax.tree.leaves(their_step), tensors, strict=True):
            np.testing.assert_allclose(x, z.detach(), rtol=5e-6, atol=1e-6 * RATE)
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5 * RATE)  # optax forms 1 - beta^t with cancellation


def test_a_network_without_heads_can_be_trained() -> None:
    params = init_mlp(jax.random.key(0), (3, 4, 2))
    step, state = adam(RATE).update(random_gradients(params, 0), adam(RATE).init(params))
    np.testing.assert_allclose(jnp.abs(step[0].w), RATE, rtol=1e-5)
    assert state.head_steps.shape == (0,)


def test_with_carry_a_grown_head_moves_as_a_fresh_parameter_of_pytorch() -> None:
    """PyTorch counts steps for each parameter, so a new one beside old ones is what carry means."""
    learned = updated(learner(active=2), 50)
    grown = grow(learned, 2, jax.random.key(1), "carry")
    ours = grown.actor.encoder.body.heads.w_q[2]
    theirs = torch.tensor(np.asarray(ours), requires_grad=True)
    torch_adam, state, params = torch.optim.Adam([theirs], lr=RATE), grown.actor_adam, grown.actor
    naive = optax.adam(RATE)  # one count for all, moments of the new head at zero
    naive_state, moved = naive.init(ours), []
    naive_state = (naive_state[0]._replace(count=jnp.asarray(10_000)), *naive_state[1:])
    for seed in range(30):
        gradient = random_gradients(params, seed)
        step, state = adam(RATE).update(gradient, state)
        params = optax.apply_updates(params, step)
        theirs.grad = torch.tensor(np.asarray(gradient.encoder.body.heads.w_q[2]))
        torch_adam.step()
        naive_step, naive_state = naive.update(jnp.ones_like(ours), naive_state)
        moved.append(float(jnp.max(jnp.abs(naive_step))) / RATE)
    found = params.encoder.body.heads.w_q[2]
    np.testing.assert_allclose(found - ours, theirs.detach().numpy() - np.asarray(ours), rtol=1e-3, atol=1e-7)
    assert max(moved) > 6  # what the docstring of incrt.heads.adam says of a shared count
