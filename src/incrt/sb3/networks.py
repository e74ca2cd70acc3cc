"""The networks of a policy of Stable-Baselines3: what an event changes in them, and what certifies it."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor, nn

from incrt.config import OPTIMISER_RULES
from incrt.config.rules import one_of
from incrt.heads.attention import attend, head_norms, shares
from incrt.heads.certificates import PruneMeasures, norm_stretch
from incrt.heads.encoders import normalised
from incrt.sb3.extractor import VarHeadExtractor

_NO_STEEPER_THAN_ONE = (nn.ReLU, nn.Tanh, nn.Hardtanh, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Softplus, nn.Identity)
"""Activations that do not stretch, as their default settings have them."""


class Networks:
    """All networks of a policy. Each extractor in them has the same heads active, before an event and after it."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.has_targets = isinstance(policy, SACPolicy | TD3Policy) or _is_like_sac(policy)  # TD3's is DDPG's too
        if hasattr(policy, "lstm_actor"):
            raise ValueError(
                f"{type(policy).__name__} remembers by an LSTM behind its features: heads that read a window of "
                "observations make no sense in front of it, and no batch of windows says what they do to its actions; "
                "train PPO on incrt.env.ContextWindow(env, window=8) instead"
            )
        actors: list[Any]
        critics: list[Any]
        if isinstance(policy, ActorCriticPolicy):  # of PPO and A2C
            actors, critics = [policy.pi_features_extractor], [policy.vf_features_extractor]
            self.downstream = nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)
        elif self.has_targets:
            acting, judging = [policy.actor], [policy.critic, policy.critic_target]
            if isinstance(policy, TD3Policy):
                acting.append(policy.actor_target)
                self.downstream = policy.actor.mu
            else:
                self.downstream = nn.Sequential(policy.actor.latent_pi, policy.actor.mu, nn.Tanh())
            actors, critics = ([each.features_extractor for each in networks] for networks in (acting, judging))
        else:
            raise ValueError(
                f"heads grow in the policies of SAC, TD3, DDPG, TQC, PPO and A2C, got {type(policy).__name__}"
            )
        # The first of each learns, a second one follows it as its target.
        self._actors, self._critics = ([_heads_of(each) for each in networks] for networks in (actors, critics))
        self.extractor = self._actors[0]
        self._learning = list(dict.fromkeys([self._actors[0], self._critics[0]]))
        self._targets = {target: source for source, *targets in (self._actors, self._critics) for target in targets}
        masks = {tuple(each.mask.tolist()) for each in (*self._learning, *self._targets)}
        if len(masks) > 1:
            raise ValueError(f"actor, critic and targets must have the same heads active, got {sorted(masks)}")

    @property
    def critic_extractor(self) -> VarHeadExtractor:
        """The heads of the critic that learns."""
        return self._critics[0]

    @property
    def are_shared(self) -> bool:
        """Whether actor and critic read the same heads."""
        return len(self._learning) == 1

    @property
    def mask(self) -> tuple[bool, ...]:
        """Which heads are active."""
        return tuple(self.extractor.mask.tolist())

    def contexts(self, observations: Any) -> Tensor:
        """Windows as a batch on the policy's device."""
        return torch.as_tensor(np.asarray(observations), dtype=torch.float32, device=self.extractor.mask.device)

    # --- events ----------------------------------------------------------------------------------------------------

    def grow(self, head: int, generator: np.random.Generator, optimiser: str) -> None:
        """Grow(i) in every network; a target's head is a copy of that of the network which it follows."""
        for extractor in self._learning:
            extractor.grow(head, generator)
        for target, source in self._targets.items():
            target.copy_head(head, source)
        self._after_event(head, optimiser)

    def prune(self, head: int, optimiser: str) -> None:
        """Prune(i) in every network."""
        for extractor in (*self._learning, *self._targets):
            extractor.prune(head)
        self._after_event(head, optimiser)

    def prune_and_compensate(self, head: int, actor_head: int, optimiser: str, contexts: Tensor) -> None:
        """Prune the critic's ``head`` and the actor's ``actor_head``; in each network the others make up for it.

        As in :func:`incrt.heads.growth.prune_and_compensate`: the actor's other head takes the number that becomes
        free.
        """
        if self.are_shared and actor_head != head:
            raise ValueError(
                f"actor and critic share their heads, so that none of the actor's own can go: actor_head must be "
                f"{head}, got {actor_head}; or leave share_features_extractor at False"
            )
        for extractor in dict.fromkeys(self._actors):
            extractor.make_up_for(actor_head, contexts)
            extractor.exchange(actor_head, head)
        for extractor in dict.fromkeys(self._critics):
            if extractor not in self._actors:
                extractor.make_up_for(head, contexts)
        for first, second in zip(self.extractor.head(actor_head), self.extractor.head(head), strict=True):
            for each in self.optimisers():
                kept = {matrix: each.state.pop(matrix) for matrix in {first, second} if matrix in each.state}
                each.state.update({second if matrix is first else first: state for matrix, state in kept.items()})
        self.prune(head, optimiser)

    def optimisers(self) -> Iterator[torch.optim.Optimizer]:
        """Of all networks that learn."""
        for module in (self.policy, getattr(self.policy, "actor", None), getattr(self.policy, "critic", None)):
            if isinstance(found := getattr(module, "optimizer", None), torch.optim.Optimizer):
                yield found

    def _after_event(self, head: int, optimiser: str) -> None:
        """Moments and steps of what is not in an optimiser's state begin at zero."""
        one_of(OPTIMISER_RULES)("optimiser", optimiser)
        for each in self.optimisers():
            if optimiser == "rebuild":
                each.state.clear()
            for extractor in self._learning:
                for matrix in extractor.head(head):
                    each.state.pop(matrix, None)

    # --- measures --------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def shares(self, contexts: Tensor) -> list[float]:
        """pi_i of the actor's heads."""
        norms = head_norms(self.extractor.encoded().body, self.extractor.mask, contexts, torch)
        found: list[float] = shares(norms, self.extractor.mask, torch).tolist()
        return found

    @torch.no_grad()
    def outputs(self, contexts: Tensor) -> dict[str, Any]:
        """What a growth must not change: the actor's features, the policy, and all values.

        The policy is the mean action before it is scaled to the environment's bounds, or the logits of its choices.
        """
        features = self.extractor(contexts)
        action = self.downstream(features)
        found = {"encoder": features, "policy": action}
        if self.has_targets:
            found["critic"] = _side_by_side(self.policy.critic(contexts, action))
            found["target"] = _side_by_side(self.policy.critic_target(contexts, action))
            if isinstance(self.policy, TD3Policy):
                found["target_policy"] = self.policy.actor_target(contexts)
        else:
            found["value"] = self.policy.predict_values(contexts)
        return {name: output.cpu().numpy() for name, output in found.items()}

    @torch.no_grad()
    def energy(self) -> float:
        """Sum of squares of the actor's parameters in use; in PPO and A2C, where it is not apart, of all networks'."""
        whole = getattr(self.policy, "actor", self.policy)
        unused = {
            matrix
            for extractor in self._learning
            for index in np.flatnonzero(~np.array(self.mask))
            for matrix in extractor.head(int(index))
        }
        return sum(float((each.double() ** 2).sum()) for each in whole.parameters() if each not in unused)

    def act(self, block: Tensor) -> Tensor:
        """The policy, of what the actor's attention block puts out."""
        acted: Tensor = self.downstream(normalised(self.extractor.encoded().norm, block, torch))
        return acted

    def judge(self, block: Tensor, actions: Tensor) -> Tensor:
        """The values of actions, of what the critic's attention block puts out, (critics, B); of quantiles the mean."""
        features = normalised(self.critic_extractor.encoded().norm, block, torch)
        seen = torch.cat([features, actions], dim=-1)
        return torch.stack([values(seen).mean(dim=-1) for values in self.policy.critic.q_networks])

    @torch.no_grad()
    def measure_prune(self, head: int, contexts: Tensor, fitted_on: Tensor | None = None) -> PruneMeasures:
        """What the removal of a head does to the policy, as :func:`incrt.heads.certificates.measure_prune` has it.

        With ``fitted_on``, a batch of contexts, the others make up for the head as they learn to on it.
        """
        body, mask = self.extractor.encoded().body, self.extractor.mask
        if fitted_on is None:
            w_o = body.heads.w_o.clone()
            w_o[head] = 0
        else:
            w_o = self.extractor.outputs_without_each(fitted_on)[head]
        after = body._replace(heads=body.heads._replace(w_o=w_o))
        block, left = (attend(each, mask, contexts, torch) for each in (body, after))
        jumps = torch.linalg.norm(self.act(left) - self.act(block), dim=-1)
        slopes = torch.func.vmap(torch.func.jacrev(self.act))(block)
        norms = head_norms(body, mask, contexts, torch)
        return PruneMeasures(
            k=int(mask.sum()),
            head=head,
            jump=float(jumps.mean()),
            worst_jump=float(jumps.max()),
            norms=norms.cpu().numpy(),
            lipschitz_upper=stretch(self.downstream)
            * float(norm_stretch(self.extractor.encoded().norm, block, block - left, torch)),
            lipschitz_local=float(torch.linalg.matrix_norm(slopes, ord=2).max()),
        )


def _is_like_sac(policy: Any) -> bool:
    """Whether it is built as SAC's is: TQC's, whose class is in sb3-contrib, which need not be there."""
    return hasattr(policy, "critic_target") and hasattr(getattr(policy, "actor", None), "action_log_prob")


def _side_by_side(values: Any) -> Tensor:
    """What a critic gives: one column for each of its networks, or quantiles, (B, networks, quantiles)."""
    return values.flatten(1) if isinstance(values, Tensor) else torch.cat(values, dim=1)


def _heads_of(module: Any) -> VarHeadExtractor:
    """A features extractor; one without heads is refused."""
    if not isinstance(module, VarHeadExtractor):
        raise ValueError(
            f"the policy's features extractor is {type(module).__name__}, which has no heads; pass "
            "policy_kwargs=incrt.sb3.policy_kwargs(k_max=8) to the model"
        )
    return module


def stretch(module: nn.Module) -> float:
    """How far a stack of layers can pull two inputs apart; NaN where it has a layer of which that is not known."""
    if isinstance(module, nn.Sequential):
        return math.prod(stretch(each) for each in module)
    if isinstance(module, nn.Linear):
        return float(torch.linalg.matrix_norm(module.weight.detach(), ord=2))
    return 1.0 if isinstance(module, _NO_STEEPER_THAN_ONE) else math.nan
