"""How networks and batches lie in memory. The update is one text for all layouts; only these functions differ."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import jax
from jax import Array

from incrt.engine import networks
from incrt.engine import replay as memory
from incrt.engine.networks import Actor, Critic
from incrt.engine.replay import Batch, Replay
from incrt.heads.encoders import Encoder

if TYPE_CHECKING:
    from incrt.engine.update import Learner


class Noise(NamedTuple):
    """Standard normal draws for the actions of an update, as the layout has actions."""

    now: Array
    later: Array


class Layout(Protocol):
    """What an update asks of networks and batches."""

    def pack(self, learner: "Learner") -> "Learner":
        """The learner in this layout, at the beginning of a stretch of training."""

    def unpack(self, packed: "Learner", before: "Learner") -> "Learner":
        """The learner at the end of a stretch; ``before`` is the one that was packed."""

    def sample(self, replay: Replay, bits: Array, actions: int, learning: Array) -> Batch:
        """Transitions, chosen by :func:`incrt.engine.replay.random_bits`; of no meaning unless ``learning`` is true."""

    def noise(self, key: Array, batch: int, actions: int) -> Noise:
        """Draws for an update."""

    def features(self, network: Actor | Critic, mask: Array, contexts: Array) -> Array:
        """What the network's own encoder makes of the contexts."""

    def sample_action(self, actor: Actor, features: Array, noise: Array) -> tuple[Array, Array]:
        """Actions in [-1, 1], and the logarithm of their density."""

    def q_values(self, critic: Critic, features: Array, actions: Array) -> Array:
        """Both values of each action, shape (2, B)."""

    def act(self, actor: Actor, mask: Array, context: Array, noise: Array) -> Array:
        """The action for one context of shape (W, d_c)."""

    @property
    def sample_axis(self) -> int:
        """The axis of observations and actions that counts samples."""


@dataclass(frozen=True)
class Rows:
    """Each sample is a row, as the equations are usually written: for every encoder and every device."""

    encoder: Encoder
    sample_axis = 0

    def pack(self, learner: "Learner") -> "Learner":
        return learner

    def unpack(self, packed: "Learner", before: "Learner") -> "Learner":
        return packed

    def sample(self, replay: Replay, bits: Array, actions: int, learning: Array) -> Batch:
        return memory.sample(replay, bits, self.encoder.window, actions)

    def noise(self, key: Array, batch: int, actions: int) -> Noise:
        return Noise(*flat_normal(key, (2, batch, actions)))

    def features(self, network: Actor | Critic, mask: Array, contexts: Array) -> Array:
        return self.encoder.features(network.encoder, mask, contexts)

    def sample_action(self, actor: Actor, features: Array, noise: Array) -> tuple[Array, Array]:
        return networks.sample_action(actor, features, noise)

    def q_values(self, critic: Critic, features: Array, actions: Array) -> Array:
        return networks.q_values(critic, features, actions)

    def act(self, actor: Actor, mask: Array, context: Array, noise: Array) -> Array:
        return self.sample_action(actor, self.features(actor, mask, context), noise)[0]


def flat_normal(key: Array, shape: tuple[int, ...]) -> Array:
    """``jax.random.normal``, drawn as a vector: a CPU takes five times as long where the last axis is short."""
    return jax.random.normal(key, (math.prod(shape),)).reshape(shape)
