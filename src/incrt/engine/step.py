"""One run as pure functions: its whole state, and one step of training.

Many runs are a ``vmap``. Every draw of a step comes from the run's own key and step, so a seed gets the same draws in
whatever company it trains.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from incrt.engine import replay as memory
from incrt.engine.environment import Environment, distance_function, from_unit
from incrt.engine.layouts import Layout, Noise
from incrt.engine.replay import Replay, quantised
from incrt.engine.update import Algorithm, Learner, Losses, init_learner, update
from incrt.heads.context import first_context, next_context

CAUSES = (
    "",
    "the environment's observation or reward is not finite",
    "the critic's loss is not finite",
    "the actor's loss is not finite",
    "the actor's action is not finite",
)
"""What may end a run, by the number in :attr:`RunState.cause`."""


@dataclass(frozen=True)
class Program:
    """What shapes the compiled program of a run."""

    algorithm: Algorithm
    environment: Environment

    @property
    def window(self) -> int:
        return self.algorithm.encoder.window


class RunState(NamedTuple):
    """All of a run: what is in here, and the program, decide everything that follows."""

    key: Array
    """Data of the run's random keys, one for its steps and one for its checks; draws come from them and the step."""
    step: Array
    """Environment steps taken."""
    learner: Learner
    replay: Replay
    environment: Any
    """State of the environment."""
    context: Array
    """The window that the next action is chosen from, shape (W, d_c)."""
    total: Array
    """Sum of the current episode's rewards."""
    cause: Array
    """0 while the run is sound, else the number in CAUSES of what ended it; ``step`` then stays where it was."""


class Record(NamedTuple):
    """What one step measured."""

    losses: Losses
    reward: Array
    total: Array
    """Sum of rewards of the episode that ended with this step, NaN where none did."""
    learning: Array
    """1 where there was an update, else 0."""


def start(program: Program, params: Any, key: Array, mask: Array, loud: Array) -> RunState:
    """A run before its first step, with the heads of the mask, and those that put out something."""
    learner_key, reset_key, *kept = jax.random.split(key, 4)
    algorithm = program.algorithm
    observation, state = program.environment.reset_env(reset_key, params)
    replay = memory.empty(algorithm.sac.buffer, observation.shape[0], algorithm.actions)
    return RunState(
        key=jax.random.key_data(jnp.stack(kept)),
        step=jnp.zeros((), jnp.int32),
        learner=init_learner(algorithm, learner_key, mask, loud),
        replay=memory.begin(replay, observation),
        # An environment may start with Python numbers; with weak types the first stretch would need its own program.
        environment=jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state),
        context=first_context(observation, program.window),
        total=jnp.zeros(()),
        cause=jnp.zeros((), jnp.int32),
    )


class Draws(NamedTuple):
    """All that is random in a step."""

    act: Array
    """Standard normal, for the action."""
    step_key: Array
    """Data of the key that the environment steps with."""
    reset_key: Array
    """The same of the key that the next episode begins with if one ends here."""
    sample: Array
    """Bits that choose the transitions of the update."""
    noise: Noise


def draw(program: Program, layout: Layout, state: RunState, steps: int) -> Draws:
    """What so many steps from the state's on draw; the first axis counts them.

    For many steps at once, since a generator's loop costs more than the few numbers that a single step needs.
    """
    algorithm = program.algorithm
    batch, actions = algorithm.sac.batch, algorithm.actions

    def of_step(step: Array) -> Draws:
        act_key, step_key, reset_key, sample_key, noise_key = jax.random.split(_key(state, 0, step), 5)
        return Draws(
            act=jax.random.normal(act_key, (actions,)),
            step_key=jax.random.key_data(step_key),
            reset_key=jax.random.key_data(reset_key),
            sample=memory.random_bits(sample_key, batch),
            noise=layout.noise(noise_key, batch, actions),
        )

    return jax.vmap(of_step)(state.step + jnp.arange(steps))


def train_step(program: Program, params: Any, layout: Layout, state: RunState, draws: Draws) -> tuple[RunState, Record]:
    """Act, step the plant, store, sample, update. The state's learner and the draws' noise are in the given layout."""
    algorithm, environment = program.algorithm, program.environment
    sac, actions = algorithm.sac, algorithm.actions
    sound = state.cause == 0
    learning = state.step >= sac.learning_starts

    # act
    learned = state.learner.learned
    chosen = layout.act(learned.actor, learned.mask, state.context, draws.act)
    random = 2 * jax.scipy.stats.norm.cdf(draws.act) - 1
    action = quantised(jnp.where(learning, chosen, random))

    # step
    observation, after, reward, terminated, _ = environment.step_env(
        jax.random.wrap_key_data(draws.step_key), state.environment, from_unit(environment, params, action), params
    )
    truncated = environment.is_truncated(after, params)
    done = terminated | truncated
    first, fresh = environment.reset_env(jax.random.wrap_key_data(draws.reset_key), params)
    acts = jnp.all(jnp.isfinite(action))
    healthy = sound & acts & jnp.isfinite(reward) & jnp.all(jnp.isfinite(observation))
    healthy &= ~done | jnp.all(jnp.isfinite(first))

    # store and sample
    replay = memory.add(state.replay, action, reward, terminated, done, observation, first, counts=healthy)
    batch = layout.sample(replay, draws.sample, actions, learning)

    # update
    distance = distance_function(environment, params, layout.sample_axis) if sac.penalty else None
    learner, losses = update(algorithm, state.learner, batch, draws.noise, distance, healthy & learning, layout)

    cause = jnp.select(
        [
            ~sound,
            ~acts,
            ~healthy,
            learning & ~jnp.isfinite(losses.critic_loss),
            learning & ~jnp.isfinite(losses.actor_loss),
        ],
        [state.cause, 4, 1, 2, 3],
        0,
    )
    total = state.total + reward
    context = jnp.where(done, first_context(first, program.window), next_context(state.context, observation))
    moved = RunState(
        key=state.key,
        step=state.step + 1,
        learner=learner,
        replay=replay,
        environment=jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, after),
        context=context,
        total=jnp.where(done, 0, total),
        cause=cause,
    )
    # Learner and replay stay as they are by themselves; selecting them here would copy them at every step.
    kept = moved._replace(
        step=jnp.where(cause == 0, moved.step, state.step),
        environment=jax.tree.map(lambda new, old: jnp.where(healthy, new, old), moved.environment, state.environment),
        context=jnp.where(healthy, moved.context, state.context),
        total=jnp.where(healthy, moved.total, state.total),
    )
    return kept, Record(losses, reward, jnp.where(done, total, jnp.nan), learning)


def check_key(state: RunState) -> Array:
    """The key for all draws of a check at the present step."""
    return _key(state, 1, state.step)


def _key(state: RunState, stream: int, step: Array) -> Array:
    return jax.random.fold_in(jax.random.wrap_key_data(state.key[stream]), step)


def as_row(record: Record) -> Array:
    """The figures of a step in one row for each run: a GPU would write each of them by a kernel of its own."""
    return jnp.stack([jnp.asarray(figure, jnp.float32) for figure in jax.tree.leaves(record)], axis=-1)


def as_record(rows: Any) -> Record:
    """The figures of rows of shape (steps, figures)."""
    columns = list(rows.T)
    losses = len(Losses._fields)
    return Record(Losses(*columns[:losses]), *columns[losses:])
