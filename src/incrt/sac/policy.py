"""A learned policy as a controller of the bench, beside those of :mod:`incrt.controllers`."""

from dataclasses import dataclass, field

import jax
from jax import Array

from incrt.bench import Params, first_context, next_context
from incrt.control import Gains
from incrt.controllers import Sight
from incrt.encoders import Encoder
from incrt.sac.networks import Actor, mean_action


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearnedPolicy:
    """The deterministic policy: the actor's mean, from the window of the latest observations."""

    encoder: Encoder = field(metadata={"static": True})
    actor: Actor
    mask: Array

    def start(self, params: Params, sight: Sight) -> Array:
        """The first observation fills the window, and is still the only one in it when it comes again."""
        return first_context(sight.observation, self.encoder.window)

    def act(self, params: Params, memory: Array, sight: Sight) -> tuple[Gains, Array]:
        """Gains for the latest W observations, which are also what is remembered."""
        context = next_context(memory, sight.observation)
        features = self.encoder.features(self.actor.encoder, self.mask, context)
        return params.law.box.from_unit(mean_action(self.actor, features)), context
