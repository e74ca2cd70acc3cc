"""Growth and pruning in mid-training, on every algorithm of Stable-Baselines3: what they change and what not."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sb3_models import (
    ALGORITHMS,
    DEVICES,
    WINDOW,
    grower,
    make_model,
    optimisers,
    parameters,
)
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

from incrt.heads.attention import Heads
from incrt.heads.certificates import Policy as JaxPolicy
from incrt.heads.certificates import PruneCertificate, measure_prune
from incrt.heads.layers import Dense
from incrt.sb3.networks import Networks, stretch

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to run .* on the GPU")

CASES = [(name, device) for name in ALGORITHMS for device in DEVICES]
contexts = np.random.default_rng(0).standard_normal((32, WINDOW, 3), np.float32)


class Watch(BaseCallback):
    """Keeps what the model predicts, and all its parameters, at every step; one stands on each side of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.predicted: dict[int, Any] = {}
        self.parameters: dict[int, dict[str, torch.Tensor]] = {}

    def _on_step(self) -> bool:
        step = self.model.num_timesteps
        self.predicted[step] = self.model.predict(contexts, deterministic=True)[0]
        self.parameters[step] = parameters(self.model)
        return True


def names_of_head(model: Any, head: int) -> list[str]:
    """Of its parameters in every network."""
    return [
        name
        for name, _ in model.policy.named_parameters(remove_duplicate=False)
        if name.split(".")[-1] == str(head) and name.split(".")[-2] in Heads._fields
    ]


# --- growth in mid-training ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "device"), CASES)
def test_growth_leaves_every_prediction_as_it_was_and_trains_the_new_head(
    name: str, device: str, tmp_path: Path
) -> None:
    model, before, after = make_model(name, device=device), Watch(), Watch()
    model.learn(80, callback=[before, grower(tmp_path), after])
    memory = model.runtime_heads
    (first, second) = memory.certificates
    assert (first.step, first.head, second.step, second.head) == (30, 1, 70, 2)
    for certificate in memory.certificates:
        assert certificate.holds
        step = certificate.step
        np.testing.assert_array_equal(before.predicted[step], after.predicted[step])
        silent = [each for each in names_of_head(model, certificate.head) if "w_o" in each]
        assert all(not after.parameters[step][each].any() for each in silent)
    assert set(first.jumps) >= {"encoder", "policy"}

    # The optimiser trains the new head, and nothing that is not part of the policy.
    end = parameters(model)
    online = [each for each in names_of_head(model, 1) if "target" not in each]
    for each in online:
        assert not torch.equal(after.parameters[30][each].cpu(), end[each].cpu()), each
    for owner, optimiser in optimisers(model).items():
        trained = {p for group in optimiser.param_groups for p in group["params"]}
        if owner == "temperature":
            continue
        wanted = dict(
            model.policy.named_parameters() if owner == "policy" else getattr(model, owner).named_parameters()
        )
        if name == "SAC-shared" and owner == "critic":  # there the critic does not train what it shares
            wanted = {each: p for each, p in wanted.items() if "features_extractor" not in each}
        assert trained == set(wanted.values())
    for network in model.policy.modules():
        if hasattr(network, "mask"):
            assert network.mask.tolist() == [True, True, True]

    # Until it was active, the third head did not move.
    for each in names_of_head(model, 2):
        if "target" not in each:
            assert torch.equal(before.parameters[1][each].cpu(), before.parameters[70][each].cpu())


@pytest.mark.parametrize(("name", "steps"), [("SAC", 41), ("SAC-shared", 41), ("TD3", 41), ("PPO", 65), ("A2C", 73)])
def test_ten_updates_after_its_growth_a_heads_output_has_moved(name: str, steps: int, tmp_path: Path) -> None:
    model, watch = make_model(name), Watch()
    model.learn(steps, callback=[grower(tmp_path), watch])
    for key in (each for each in names_of_head(model, 1) if "w_o" in each and "target" not in each):
        assert not watch.parameters[30][key].any()
        assert watch.parameters[steps][key].any()


def test_the_head_of_a_target_is_a_copy_of_that_which_it_follows(tmp_path: Path) -> None:
    for name in ("SAC", "SAC-shared", "TD3", "TD3-shared"):
        model, watch = make_model(name), Watch()
        model.learn(30, callback=[grower(tmp_path / name), watch])
        for network in ("critic", "actor") if name.startswith("TD3") else ("critic",):
            for part in Heads._fields:
                online = watch.parameters[30][f"{network}.features_extractor.{part}.1"]
                target = watch.parameters[30][f"{network}_target.features_extractor.{part}.1"]
                assert torch.equal(online, target)


def test_actor_and_critic_get_heads_of_their_own(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(30, callback=grower(tmp_path))
    actor, critic = (network.features_extractor for network in (model.actor, model.critic))
    assert not torch.equal(actor.w_q[1], critic.w_q[1])


# --- pruning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "device"), CASES)
def test_a_pruned_head_does_not_move_any_more(name: str, device: str, tmp_path: Path) -> None:
    model, watch = make_model(name, device=device, k_init=3), Watch()
    # No rank asks for more than all heads, and every head but the strongest is weak.
    model.learn(64, callback=[grower(tmp_path, eps_prune=1.0, k_min=2), watch])
    (certificate,) = model.runtime_heads.certificates
    assert isinstance(certificate, PruneCertificate)
    assert certificate.step == 30
    assert certificate.holds
    assert 0 < certificate.jump <= certificate.worst_jump
    assert model.runtime_heads.heads_state.k == 2
    end = parameters(model)
    for each in names_of_head(model, certificate.head):
        if "target" not in each:
            assert torch.equal(watch.parameters[30][each].cpu(), end[each].cpu()), each


def jax_policy(model: Any) -> JaxPolicy:
    """The actor of a SAC model for the engine's certificates."""
    networks = Networks(model.policy)
    encoder = networks.extractor.encoded()

    def array(x: Any) -> Any:
        return jnp.asarray(x.detach().numpy())

    linears = [each for each in networks.downstream.modules() if isinstance(each, nn.Linear)]
    return JaxPolicy(
        jax.tree.map(array, encoder), tuple(Dense(array(each.weight.T), array(each.bias)) for each in linears)
    )


@pytest.mark.parametrize("layer_norm", [True, False])
def test_what_a_prune_measures_is_what_the_engine_measures(layer_norm: bool) -> None:
    model = make_model("SAC", k_init=3, layer_norm=layer_norm)
    networks = Networks(model.policy)
    found = networks.measure_prune(1, networks.contexts(contexts))
    expected = jax.jit(measure_prune)(jax_policy(model), jnp.ones(3, bool), 1, jnp.asarray(contexts))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_the_bound_of_a_stack_of_layers_is_kept_by_random_pairs() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Sequential(nn.Linear(7, 3), nn.ELU()))
    x, y = torch.randn(2, 1000, 5)
    with torch.no_grad():
        apart = (layers(x) - layers(y)).norm(dim=-1) / (x - y).norm(dim=-1)
    assert 0.2 * stretch(layers) < float(apart.max()) <= stretch(layers)
    assert np.isnan(stretch(nn.Sequential(nn.Linear(2, 2), nn.SiLU())))


# --- optimisers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["carry", "rebuild"])
def test_an_event_does_to_the_optimisers_what_its_rule_says(rule: str, tmp_path: Path) -> None:
    model, before, after = make_model("SAC", k_init=3), Watch(), Watch()
    model.learn(31, callback=[before, grower(tmp_path, eps_prune=1.0, k_min=2, optimiser=rule), after])
    kept, found = (
        {tuple(key.split()[1:]): value for key, value in each.parameters[30].items() if key.startswith("optimiser")}
        for each in (before, after)
    )
    head = model.runtime_heads.certificates[0].head
    for owner in ("actor", "critic"):
        names = [name for name, _ in getattr(model, owner).named_parameters()]
        gone = {names[int(number)] for by, number, _ in kept.keys() - found.keys() if by == owner}
        pruned = {f"features_extractor.{w}.{head}" for w in Heads._fields}
        assert gone == (set(names) if rule == "rebuild" else pruned)
    assert {by for by, _, _ in found} == ({"temperature"} if rule == "rebuild" else {"actor", "critic", "temperature"})
    for key, value in found.items():
        assert torch.equal(value, kept[key])


def test_a_new_head_counts_its_own_steps(tmp_path: Path) -> None:
    model = make_model("SAC")
    model.learn(40, callback=grower(tmp_path))
    for owner in ("actor", "critic"):
        extractor, state = getattr(model, owner).features_extractor, optimisers(model)[owner].state
        assert {int(state[w]["step"]) for w in extractor.head(0)} == {35}  # updates follow steps 6 to 40
        assert {int(state[w]["step"]) for w in extractor.head(1)} == {11}
        assert all(w not in state for w in extractor.head(2))


def test_weight_decay_does_not_move_inactive_heads() -> None:
    model, watch = make_model("SAC", k_init=2, optimizer_kwargs={"weight_decay": 0.1}), Watch()
    model.learn(30, callback=watch)
    for each in (name for name in names_of_head(model, 2) if "target" not in name):
        assert torch.equal(watch.parameters[1][each], watch.parameters[30][each])
