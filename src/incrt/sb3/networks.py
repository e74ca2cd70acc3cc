"""The networks of a policy of Stable-Baselines3: what an event changes in them, and what certifies it."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor, nn

from incrt.config import OPTIMISER_RULES
from incrt.config.rules import one_of
from incrt.heads.attention import attend, contributions, head_norms, shares
from incrt.heads.certificates import PruneMeasures, norm_stretch
from incrt.heads.encoders import normalised
from incrt.sb3.extractor import VarHeadExtractor

_NO_STEEPER_THAN_ONE = (nn.ReLU, nn.Tanh, nn.Hardtanh, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Softplus, nn.Identity)
"""Activations that do not stretch, as their default settings have them."""


class Networks:
    """All networks of a policy. Each extractor in them has the same heads active, before an event and after it."""

    def __init__(self, policy: BasePolicy) -> None:
        self.policy = policy
        targets: list[tuple[nn.Module, nn.Module]] = []
        if isinstance(policy, ActorCriticPolicy) and not hasattr(policy, "lstm_actor"):  # of PPO and A2C
            self.extractor = _heads_of(policy.pi_features_extractor)
            learning = [self.extractor, _heads_of(policy.vf_features_extractor)]
            self.downstream = nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)
        elif isinstance(policy, SACPolicy | TD3Policy):  # TD3's is DDPG's too
            self.extractor = _heads_of(policy.actor.features_extractor)
            learning = [self.extractor, _heads_of(policy.critic.features_extractor)]
            targets.append((policy.critic_target, policy.critic))
            if isinstance(policy, TD3Policy):
                targets.append((policy.actor_target, policy.actor))
                self.downstream = policy.actor.mu
            else:
                self.downstream = nn.Sequential(policy.actor.latent_pi, policy.actor.mu, nn.Tanh())
        else:
            raise ValueError(f"heads grow in the policies of SAC, TD3, DDPG, PPO and A2C, got {type(policy).__name__}")
        self._learning = list(dict.fromkeys(learning))
        self._targets = {_heads_of(each.features_extractor): _heads_of(of.features_extractor) for each, of in targets}
        masks = {tuple(each.mask.tolist()) for each in (*self._learning, *self._targets)}
        if len(masks) > 1:
            raise ValueError(f"actor, critic and targets must have the same heads active, got {sorted(masks)}")

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
        if isinstance(self.policy, ActorCriticPolicy):
            found["value"] = self.policy.predict_values(contexts)
        elif isinstance(self.policy, SACPolicy | TD3Policy):
            found["critic"] = torch.cat(self.policy.critic(contexts, action), dim=1)
            found["target"] = torch.cat(self.policy.critic_target(contexts, action), dim=1)
            if isinstance(self.policy, TD3Policy):
                found["target_policy"] = self.policy.actor_target(contexts)
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

    def measure_prune(self, head: int, contexts: Tensor) -> PruneMeasures:
        """What the removal of a head does to the policy, as :func:`incrt.heads.certificates.measure_prune` has it."""
        with torch.no_grad():
            (body, norm), mask = self.extractor.encoded(), self.extractor.mask

            def output(block: Tensor) -> Tensor:
                acted: Tensor = self.downstream(normalised(norm, block, torch))
                return acted

            block, each = attend(body, mask, contexts, torch), contributions(body, mask, contexts, torch)
            without = mask.clone()
            without[head] = False
            jumps = torch.linalg.norm(output(attend(body, without, contexts, torch)) - output(block), dim=-1)
            slopes = torch.func.vmap(torch.func.jacrev(output))(block)
            upper = stretch(self.downstream) * float(norm_stretch(norm, block, each[:, head], torch))
            return PruneMeasures(
                k=int(mask.sum()),
                head=head,
                jump=float(jumps.mean()),
                worst_jump=float(jumps.max()),
                norms=head_norms(body, mask, contexts, torch).cpu().numpy(),
                lipschitz_upper=upper,
                lipschitz_local=float(torch.linalg.matrix_norm(slopes, ord=2).max()),
            )


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
