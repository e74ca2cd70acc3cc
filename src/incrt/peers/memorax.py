"""memorax's SAC with its self-attention, on the task.

memorax sees one observation at a time, trains on sequences and takes a loss at each of their steps, where the engine
takes one for each window. Version 1.0.1 needs two patches in its caller:

- its head for Q values drops an axis that its SAC drops again, so the head here keeps it (:class:`_Value`);
- the temperature's update shows the network a step without the axis of time, so it gets one (:class:`_PatchedSac`).

Importing it imports the clients of three tracking services too, of which Neptune's does not install beside our
pinned versions. None is needed to train, so an empty module stands for them, and memorax is to be installed
without its dependencies.
"""

import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import flashbax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import Array

from incrt.arm.task import make_task
from incrt.config import EncoderConfig, SacConfig, TaskConfig
from incrt.peers.timing import Training


class _NoLoggers(ModuleType):
    def __getattr__(self, name: str) -> None:
        return None


sys.modules.setdefault("memorax.loggers", _NoLoggers("memorax.loggers"))
from memorax.algorithms.sac import SAC, SACConfig  # noqa: E402
from memorax.networks import FeatureExtractor, Network  # noqa: E402
from memorax.networks.blocks import Residual  # noqa: E402
from memorax.networks.heads import Alpha, SquashedGaussian  # noqa: E402
from memorax.networks.sequence_models import SelfAttention  # noqa: E402

STRIDE = 10
"""Steps of a compiled call."""


class _Episodes:
    """The task as memorax calls environments: with its numbers inside, and an automatic reset."""

    def __init__(self, config: TaskConfig) -> None:
        self._task, self._params = make_task(config)
        self.actions = self._task.num_actions

    def reset(self, key: Array, _: None) -> tuple[Array, Any]:
        return self._task.reset_env(key, self._params)

    def step(self, key: Array, state: Any, action: Array, _: None) -> tuple[Array, Any, Array, Array, dict[str, Any]]:
        step_key, reset_key = jax.random.split(key)
        observation, after, reward, terminated, _info = self._task.step_env(step_key, state, action, self._params)
        done = terminated | self._task.is_truncated(after, self._params)
        fresh = self._task.reset_env(reset_key, self._params)
        observation, after = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, (observation, after))
        return observation, after, reward, done, {}

    def action_space(self, _: None) -> Any:
        shape = (self.actions,)
        return SimpleNamespace(shape=shape, sample=lambda key: jax.random.uniform(key, shape, minval=-1, maxval=1))


class _Layers(nn.Module):
    widths: Sequence[int]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for width in self.widths:
            x = nn.relu(nn.Dense(width)(x))
        return x


class _Policy(nn.Module):
    widths: Sequence[int]
    actions: int

    @nn.compact
    def __call__(self, x: Array, **others: Any) -> Any:
        return SquashedGaussian(self.actions)(_Layers(self.widths)(x), **others)


class _Features(nn.Module):
    """In the place of a head: what comes before it."""

    def __call__(self, x: Array, **others: Any) -> Array:
        return x


class _Value(nn.Module):
    """Q values with an axis of one behind them, which memorax's SAC takes away."""

    widths: Sequence[int]

    @nn.compact
    def __call__(self, x: Array, action: Array) -> tuple[Array, dict[str, Any]]:
        return nn.Dense(1)(_Layers(self.widths)(jnp.concatenate([x, action], -1))), {}

    @nn.nowrap
    def loss(self, values: Array, _: dict[str, Any], targets: Array) -> Array:
        return 0.5 * jnp.mean(jnp.square(values.squeeze(-1) - targets))


class _TwinCritic(nn.Module):
    """One attention and two stacks of layers behind it, as the engine's critic."""

    features: Any
    head1: _Value
    head2: _Value

    def __call__(
        self, observation: Array, mask: Array, action: Array, reward: Array, done: Array, carry: Any = None
    ) -> tuple[Any, Any]:
        carry, x = self.features(observation, mask, action, reward, done, carry)
        return carry, (self.head1(x, action), self.head2(x, action))

    @nn.nowrap
    def initialize_carry(self, shape: tuple[int, ...]) -> Any:
        return self.features.initialize_carry(shape)


class _PatchedSac(SAC):  # type: ignore[misc]  # memorax has no types
    def _update_alpha(self, key: Array, state: Any) -> tuple[Any, dict[str, Array]]:
        # Not super(): a dataclass of flax with slots of its own would not know it.
        after, info = SAC._update_alpha(self, key, state.replace(timestep=state.timestep.to_sequence()))  # noqa: SLF001
        return after.replace(timestep=state.timestep), info


def make_memorax(config: TaskConfig, encoder: EncoderConfig, sac: SacConfig, sequences: int) -> Any:
    """Its SAC with the engine's settings, which updates on so many sequences of W steps."""
    episodes = _Episodes(config)

    def network(head: nn.Module) -> Any:
        attention = SelfAttention(
            features=encoder.d_model,
            num_heads=encoder.k_max,
            context_length=config.window,
            dtype=jnp.float32,
            param_dtype=jnp.float32,
            kernel_init=nn.initializers.xavier_normal(),
            bias_init=nn.initializers.zeros_init(),
        )
        return Network(FeatureExtractor(nn.Dense(encoder.d_model)), Residual(attention), head)

    settings = SACConfig(
        name="peer",
        **dict.fromkeys(("actor_lr", "critic_lr", "alpha_lr"), sac.learning_rate),
        **dict.fromkeys(("num_envs", "num_eval_envs", "train_frequency", "target_update_frequency"), 1),
        buffer_size=sac.buffer,
        gamma=sac.gamma,
        tau=sac.tau,
        batch_size=sequences,
        initial_alpha=1.0,
        target_entropy_scale=1.0,
        learning_starts=sac.learning_starts,
        max_grad_norm=0.0,
    )
    buffer = flashbax.make_trajectory_buffer(
        add_batch_size=1,
        sample_batch_size=sequences,
        sample_sequence_length=config.window,
        period=1,
        min_length_time_axis=config.window,
        max_length_time_axis=sac.buffer,
    )
    adam = optax.adam(sac.learning_rate)
    return _PatchedSac(
        cfg=settings,
        env=episodes,
        env_params=None,
        actor_network=network(_Policy(sac.hidden, episodes.actions)),
        critic_network=_TwinCritic(network(_Features()), _Value(sac.hidden), _Value(sac.hidden)),
        alpha_network=Alpha(1.0),
        actor_optimizer=adam,
        critic_optimizer=adam,
        alpha_optimizer=adam,
        buffer=buffer,
    )


def begin(config: TaskConfig, encoder: EncoderConfig, sac: SacConfig, sequences: int) -> Training:
    """Its training, with as many random steps before it as the engine takes and a window more."""
    algorithm = make_memorax(config, encoder, sac, sequences)
    now = algorithm.warmup(*algorithm.init(jax.random.key(0)), sac.learning_starts + config.window)

    def train(steps: int) -> None:
        nonlocal now
        for _ in range(steps // STRIDE):
            key, state, _info = algorithm.train(*now, STRIDE)
            now = key, state
        jax.block_until_ready(now)

    train(2 * STRIDE)  # compiles
    return Training(train, STRIDE)
