"""A learned policy as a controller of the task, beside those of :mod:`incrt.controllers.classical`."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import jax
import safetensors
import safetensors.numpy
from jax import Array

from incrt.arm.law import Gains
from incrt.arm.task import Params
from incrt.config import EncoderConfig
from incrt.controllers.base import ControllerInput
from incrt.engine.checkpoint import named, unnamed
from incrt.engine.networks import Actor, init_actor, mean_action
from incrt.engine.progress import Run
from incrt.engine.step import RunState
from incrt.heads.context import first_context, next_context
from incrt.heads.encoders import Encoder, make_encoder
from incrt.storage.atomic import write_whole


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearnedPolicy:
    """The deterministic policy: the actor's mean, from the window of the latest observations."""

    encoder: Encoder = field(metadata={"static": True})
    actor: Actor
    mask: Array

    def predict(self, contexts: Array) -> Array:
        """Actions in [-1, 1] for contexts of shape (..., W, d_c)."""
        features = self.encoder.features(self.actor.encoder, self.mask, contexts)
        return mean_action(self.actor, features)

    def start(self, params: Params, seen: ControllerInput) -> Array:
        """The first observation fills the window, and is still the only one in it when it comes again."""
        return first_context(seen.observation, self.encoder.window)

    def act(self, params: Params, memory: Array, seen: ControllerInput) -> tuple[Gains, Array]:
        """Gains for the latest W observations, which are also what is remembered."""
        context = next_context(memory, seen.observation)
        return params.law.box.from_unit(self.predict(context)), context


def policy_of(run: Run, state: RunState) -> LearnedPolicy:
    """The policy of a run as it stands."""
    learned = state.learner.learned
    return LearnedPolicy(run.own_encoder(), *jax.device_put((learned.actor, learned.mask)))


def save(path: Path, policy: LearnedPolicy) -> None:
    """Write a policy: its tensors, and in the header what encoder they belong to."""
    encoder = policy.encoder
    header = {
        "encoder": encoder.config.to_json(),
        "window": encoder.window,
        "observation_dim": encoder.observation_dim,
        "hidden": [int(layer.b.shape[0]) for layer in policy.actor.hidden],
    }
    tensors = named({"actor": policy.actor, "mask": policy.mask})
    # One entry: the order of several is not the same in every process.
    write_whole(path, safetensors.numpy.save(tensors, {"incrt": json.dumps(header)}))


def load(path: Path | str) -> LearnedPolicy:
    """The policy that :func:`save` wrote, or that of the run in a folder; anything else is refused."""
    path = Path(path) / "policy.safetensors" if Path(path).is_dir() else Path(path)
    try:
        with safetensors.safe_open(path, "numpy") as file:
            header = json.loads((file.metadata() or {})["incrt"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        encoder = make_encoder(EncoderConfig(**header["encoder"]), header["window"], header["observation_dim"])
        actions = tensors["actor.mean.b"].shape[0]
        shapes = jax.eval_shape(
            lambda key: init_actor(key, encoder, tuple(header["hidden"]), actions),
            jax.random.key(0),
        )
        found = unnamed(tensors, {"actor": shapes, "mask": encoder.first_mask})
    except (OSError, KeyError, ValueError, TypeError, safetensors.SafetensorError) as error:
        why = f"it has no {error}, as a policy does" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} holds no policy: {why}") from None
    return LearnedPolicy(encoder, *jax.device_put((found["actor"], found["mask"])))
