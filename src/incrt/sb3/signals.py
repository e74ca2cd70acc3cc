"""What a trigger can be shown beside rank and shares, in PyTorch: the signals of :mod:`incrt.engine.signals`.

They are taken on a batch from replay, against the target of the algorithm's own: that of SAC, of TD3 (and DDPG), or the
mean of the quantiles that TQC keeps. The tests hold them against the engine's on the same networks.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from incrt.heads.attention import Attention, Heads, attend, contributions, read_values
from incrt.sb3.extractor import VarHeadExtractor
from incrt.sb3.networks import Networks

_DAMPING, _TINY = 1e-3, float(np.finfo(np.float32).tiny)
"""Those of :mod:`incrt.engine.signals`."""


class Batch(NamedTuple):
    """Transitions from replay."""

    contexts: Tensor
    actions: Tensor
    target: Tensor
    """What the critic is to learn of each, shape (B,)."""


def measure_signals(
    model: Any, networks: Networks, names: Sequence[str], size: int, generator: np.random.Generator
) -> dict[str, Any]:
    """The signals of these names, as numbers and lists."""
    with own_draws(generator, model.device):
        both = model.replay_buffer.sample(2 * size, env=model.get_vec_normalize_env())
        # What a network is fitted on says too little of what it does elsewhere.
        samples, other = (_rows(both, slice(i, None, 2)) for i in (0, 1))
        batch = Batch(samples.observations, samples.actions, own_target(model, samples))
    fitted_on, wanted = other.observations, set(names)
    found: dict[str, Tensor] = {"spread": batch.target.var(correction=0)}
    if "removal_jumps" in wanted:
        found["removal_jumps"] = removal_jumps(networks, fitted_on, batch.contexts)
    if wanted & {"residual", "worth"}:
        found["residual"], found["worth"] = worth(networks, fitted_on, batch)
    if wanted & {"importance", "gradients"}:
        found["importance"], found["gradients"] = gradient_importance(networks, batch)
    if wanted & {"potential", "expansion"}:
        found["potential"], found["expansion"] = probe(networks, batch, _silent_head(networks, generator))
    return {name: found[name].tolist() for name in names}


@contextmanager
def own_draws(generator: np.random.Generator, device: torch.device) -> Iterator[None]:
    """Stable-Baselines3 draws from generators of the process: seed them, and leave them as they were."""
    seed, is_cuda = int(generator.integers(2**32)), device.type == "cuda"
    before = np.random.get_state()  # noqa: NPY002  # it is what replay draws from
    with torch.random.fork_rng(devices=[device] if is_cuda else []):
        try:
            np.random.seed(seed)  # noqa: NPY002
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every device
            if is_cuda:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


@torch.no_grad()
def own_target(model: Any, samples: Any) -> Tensor:
    """What the algorithm has its critics learn of these samples, shape (B,); of TQC's quantiles the mean."""
    policy, contexts = model.policy, samples.next_observations
    if hasattr(policy, "actor_target"):  # of TD3
        noise = torch.zeros_like(samples.actions).normal_(0, model.target_policy_noise)
        noise = noise.clamp(-model.target_noise_clip, model.target_noise_clip)
        actions, cost = (policy.actor_target(contexts) + noise).clamp(-1, 1), torch.zeros(())
    else:
        actions, log_prob = policy.actor.action_log_prob(contexts)
        alpha = model.ent_coef_tensor if model.log_ent_coef is None else model.log_ent_coef.exp()
        cost = alpha * log_prob.reshape(-1)
    found = policy.critic_target(contexts, actions)
    if hasattr(model, "top_quantiles_to_drop_per_net"):  # of TQC
        quantiles, dropped = found.flatten(1).sort().values, model.top_quantiles_to_drop_per_net * found.shape[1]
        value = quantiles[:, : quantiles.shape[1] - dropped].mean(dim=1)
    else:
        value = torch.cat(found, dim=1).amin(dim=1)
    discounts = model.gamma if samples.discounts is None else samples.discounts.reshape(-1)
    going_on = 1 - samples.dones.reshape(-1)
    target: Tensor = samples.rewards.reshape(-1) + going_on * discounts * (value - cost.to(value.device))
    return target


@torch.no_grad()
def without_each(extractor: VarHeadExtractor, fitted_on: Tensor, contexts: Tensor) -> Tensor:
    """The output of the attention block without each head in turn, and last as it is: (K_max + 1, B, d_model)."""
    body, mask = extractor.encoded().body, extractor.mask
    outputs = torch.cat([extractor.outputs_without_each(fitted_on), body.heads.w_o[None]])
    return torch.stack(
        [attend(body._replace(heads=body.heads._replace(w_o=w_o)), mask, contexts, torch) for w_o in outputs]
    )


@torch.no_grad()
def removal_jumps(networks: Networks, fitted_on: Tensor, contexts: Tensor) -> Tensor:
    """By how much the deterministic policy would change without each head: mean norm over the contexts, (K_max,)."""
    outputs = networks.act(without_each(networks.extractor, fitted_on, contexts))
    jumps: Tensor = torch.linalg.norm(outputs[:-1] - outputs[-1], dim=-1).mean(dim=-1)
    return jumps


@torch.no_grad()
def worth(networks: Networks, fitted_on: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean squared error of the critics' mean value, and by how much it would be larger without each head."""
    blocks = without_each(networks.critic_extractor, fitted_on, batch.contexts)
    left = torch.stack(
        [((networks.judge(block, batch.actions) - batch.target).mean(dim=0) ** 2).mean() for block in blocks]
    )
    return left[-1], left[:-1] - left[-1]


def gradient_importance(networks: Networks, batch: Batch) -> tuple[Tensor, Tensor]:
    """Of each head: its share of |contribution . slope of the loss|, and the mean size of its gradient."""
    body, mask = _detached(networks), networks.critic_extractor.mask
    _, slopes, _ = _slopes(networks, batch)
    each = contributions(body, mask, batch.contexts, torch)
    importance = torch.einsum("bkm,bm->bk", each, slopes).abs().mean(dim=0)

    heads = Heads(*(matrices.requires_grad_() for matrices in body.heads))
    with torch.enable_grad():
        loss = _loss(networks, attend(body._replace(heads=heads), mask, batch.contexts, torch), batch)
        gradients = torch.autograd.grad(loss / len(batch.target), heads)
    sizes = torch.stack([gradient.abs().mean(dim=(1, 2)) for gradient in gradients]).mean(dim=0)
    mean = sizes.sum() / mask.sum()
    return importance / importance.sum().clamp(min=_TINY), sizes / mean.clamp(min=_TINY)


def probe(networks: Networks, batch: Batch, fresh: Heads) -> tuple[Tensor, Tensor]:
    """How much a silent head that began as ``fresh`` could lower the critic's loss: GradMax's and SENN's measures."""
    body = _detached(networks)
    d_model = body.embed.shape[1]
    alone = torch.ones(1, dtype=torch.bool, device=body.embed.device)
    loss, slopes, jacobians = _slopes(networks, batch)
    everything = fresh._replace(w_v=torch.eye(d_model).to(body.embed)[None])
    read = read_values(body._replace(heads=everything), alone, batch.contexts, torch)[:, 0]
    gradient = read.T @ slopes / len(slopes)
    agreed = torch.sqrt((read**2).sum(dim=-1).mean() * (slopes**2).sum(dim=-1).mean())
    potential = torch.linalg.matrix_norm(gradient, ord=2) / agreed.clamp(min=_TINY)

    values = read_values(body._replace(heads=fresh), alone, batch.contexts, torch)[:, 0]
    inside = _damped(values.T @ values / len(values))
    outside = _damped(torch.einsum("tbm,tbn->mn", jacobians, jacobians) / len(values))
    gradient = (values.T @ slopes / len(slopes)).double()
    natural = torch.linalg.solve(inside, gradient) @ torch.linalg.inv(outside)
    return potential, 0.5 * (gradient * natural).sum() / (loss / len(slopes)).clamp(min=_TINY)


def _rows(samples: Any, rows: slice) -> Any:
    return type(samples)(*(None if each is None else each[rows] for each in samples))


def _detached(networks: Networks) -> Attention:
    """The critic's attention, apart from what trains it."""
    embed, position, heads = networks.critic_extractor.encoded().body
    return Attention(embed.detach(), position.detach(), Heads(*(matrices.detach() for matrices in heads)))


def _silent_head(networks: Networks, generator: np.random.Generator) -> Heads:
    """One that soft initialisation gives, eqs. (13) and (14)."""
    body = _detached(networks)
    _, d_model, d_k = body.heads.w_q.shape
    draws = (2 / (d_model + d_k)) ** 0.5 * generator.standard_normal((3, 1, d_model, d_k))
    w_q, w_k, w_v = torch.as_tensor(draws).to(body.embed)
    return Heads(w_q, w_k, w_v, torch.zeros(1, d_k, d_model, device=body.embed.device))


def _loss(networks: Networks, block: Tensor, batch: Batch) -> Tensor:
    """Half the squared error of each critic's value, summed over critics and batch."""
    return 0.5 * ((networks.judge(block, batch.actions) - batch.target) ** 2).sum()


def _slopes(networks: Networks, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """The critic's loss; of each sample its slope at the block, (B, d_model), and each value's, (n, B, d_model)."""
    with torch.enable_grad():
        block = attend(_detached(networks), networks.critic_extractor.mask, batch.contexts, torch).requires_grad_()
        loss, values = _loss(networks, block, batch), networks.judge(block, batch.actions)
        (slopes,) = torch.autograd.grad(loss, block)
        jacobians = [torch.autograd.grad(each.sum(), block, retain_graph=True)[0] for each in values]
    return loss.detach(), slopes, torch.stack(jacobians)


def _damped(covariance: Tensor) -> Tensor:
    found = covariance.double()
    size = found.trace() / len(found)
    return found + (_DAMPING * size + _TINY) * torch.eye(len(found), dtype=found.dtype, device=found.device)
