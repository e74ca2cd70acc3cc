"""What an environment must be to be trained on, and actions in its own bounds."""

from types import SimpleNamespace
from typing import Any, cast

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments.spaces import Box, Discrete
from jax import Array

from incrt.arm.gymnax import StribeckGymnax
from incrt.arm.task import make_task
from incrt.config import TaskConfig
from incrt.engine.environment import dimensions, distance_function, from_unit

NOTHING, NO = jnp.zeros(()), jnp.zeros((), bool)
METHODS = ("reset_env", "step_env", "is_truncated", "action_space")


class Made:
    """Whatever it is given."""

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)


def make(
    space: Any = None,
    observation: Any = None,
    without: str = "",
    step: Any = None,
    state: Any = (),
    truncated: Any = NO,
) -> Any:
    """An environment of three observations and two actions, but for what is changed or missing."""
    space = SimpleNamespace(low=-1.0, high=1.0, shape=(2,)) if space is None else space
    observation = jnp.zeros(3) if observation is None else observation
    stepped = (observation, state, jnp.zeros(()), jnp.zeros((), bool), {}) if step is None else step
    methods = {
        "reset_env": lambda *_: (observation, state),
        "step_env": lambda *_: stepped,
        "is_truncated": lambda *_: truncated,
        "action_space": lambda _: space,
    }
    return Made(**{name: method for name, method in methods.items() if name != without})


def box(low: Any, high: Any, shape: tuple[int, ...] = (2,)) -> Any:
    return Box(jnp.asarray(low), jnp.asarray(high), shape)


def test_dimensions_of_the_task_and_of_gymnaxs_own_environments() -> None:
    task, params = make_task(TaskConfig())
    assert dimensions(task, params) == (11, 6)
    wrapped: Any = StribeckGymnax(TaskConfig())
    assert dimensions(wrapped, wrapped.default_params) == (11, 6)
    pendulum, params = gymnax.make("Pendulum-v1")
    assert dimensions(pendulum, params) == (3, 1)
    assert dimensions(make(), None) == (3, 2)


@pytest.mark.parametrize("name", METHODS)
def test_an_environment_without_a_method_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"an environment must have {name}, as gymnax has it"):
        dimensions(make(without=name), None)
    lacking = make()
    setattr(lacking, name, 3)
    with pytest.raises(ValueError, match=f"must have {name},"):
        dimensions(lacking, None)


@pytest.mark.parametrize(
    "observation", [jnp.zeros((4, 3)), jnp.zeros(()), {"q": jnp.zeros(3)}, (jnp.zeros(3), jnp.zeros(1))], ids=str
)
def test_observations_that_are_no_vectors_are_refused(observation: Any) -> None:
    with pytest.raises(ValueError, match=r"observations must be vectors, got .*; flatten them first"):
        dimensions(make(observation=observation), None)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Discrete(3), "the action space must be a box of vectors"),
        (box(-1.0, 1.0, ()), "the action space must be a box of vectors"),
        (box(-1.0, 1.0, (2, 2)), "the action space must be a box of vectors"),
        (box(-np.inf, 1.0), "the action space must have finite bounds, got -inf to 1.0"),
        (box([0.0, 0.0], [1.0, np.inf]), "the action space must have finite bounds"),
        (box([0.0, np.nan], [1.0, 1.0]), "the action space must have finite bounds"),
        (box([0.0, 1.0], [1.0, 1.0]), "the action space must have finite bounds"),
        (box(1.0, -1.0), "the action space must have finite bounds"),
    ],
    ids=str,
)
def test_action_spaces_that_are_no_boxes_with_bounds_are_refused(space: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dimensions(make(space), None)


@pytest.mark.parametrize(
    "truncated", [None, jnp.zeros((1,), bool), jnp.zeros(()), jnp.zeros((), int)], ids=["none", "shape", "float", "int"]
)
def test_an_end_that_is_no_boolean_is_refused(truncated: Any) -> None:
    with pytest.raises(ValueError, match="is_truncated must give a"):
        dimensions(make(truncated=truncated), None)


@pytest.mark.parametrize(
    ("begun", "after", "message"),
    [
        ({"x": jnp.zeros(2)}, {"y": jnp.zeros(2)}, "states of one structure"),
        (jnp.zeros(2), jnp.zeros(3), "states of the same arrays"),
        (jnp.zeros(2), jnp.zeros(2, int), "states of the same arrays"),
        (jax.random.key(0), jax.random.key(0), "must not hold a typed random key"),
    ],
    ids=["structure", "shape", "type", "key"],
)
def test_states_that_cannot_follow_each_other_are_refused(begun: Any, after: Any, message: str) -> None:
    step: Any = (jnp.zeros(3), after, jnp.zeros(()), jnp.zeros((), bool), {})
    with pytest.raises(ValueError, match=message):
        dimensions(make(state=begun, step=step), None)


def test_observations_of_two_types_params_of_words_and_no_actions_are_refused() -> None:
    step: Any = (jnp.zeros(3, int), (), jnp.zeros(()), jnp.zeros((), bool), {})
    with pytest.raises(ValueError, match="observations of one type"):
        dimensions(make(step=step), None)
    with pytest.raises(ValueError, match="params must be numbers and arrays"):
        dimensions(make(), {"name": "x"})
    with pytest.raises(ValueError, match="at least one action"):
        dimensions(make(SimpleNamespace(low=-1.0, high=1.0, shape=(0,))), None)


def test_discrete_actions_of_gymnaxs_own_are_refused() -> None:
    cart_pole, params = gymnax.make("CartPole-v1")
    with pytest.raises(ValueError, match="the action space must be a box of vectors"):
        dimensions(cart_pole, params)


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 6.0), (np.array([-3.0, 0.5]), np.array([1.0, 2.5])), (np.float64(0), np.float64(1))]
)
def test_the_ends_and_the_centre_of_the_unit_box_are_those_of_the_environments(low: Any, high: Any) -> None:
    environment = make(SimpleNamespace(low=low, high=high, shape=(2,)))
    for unit, expected in ((-1, low), (0, (low + high) / 2), (1, high), (0.5, low + 0.75 * (high - low))):
        found = from_unit(environment, None, jnp.full(2, unit, jnp.float32))
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.broadcast_to(expected, 2))


def test_bounds_of_one_leave_actions_as_they_are() -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (1000, 2)).astype(np.float32)
    found = jax.jit(jax.vmap(lambda one: from_unit(make(), None, one)))(actions)
    np.testing.assert_array_equal(found, actions)


def test_distances_are_the_shields_of_each_action_of_a_batch() -> None:
    assert distance_function(make(), None) is None
    environment = make()
    environment.shield_distance = lambda observation, action, params: params * observation[0] + action[1]
    distance = distance_function(environment, 10.0)
    assert distance is not None
    np.testing.assert_array_equal(
        distance(jnp.array([[1.0, 9, 9], [2.0, 9, 9]]), jnp.array([[9, 0.5], [9, 0.25]])), [10.5, 20.25]
    )


def test_the_distance_of_the_task_is_what_its_shield_reports() -> None:
    task, params = make_task(TaskConfig())
    distance = distance_function(task, params)
    assert distance is not None

    @jax.jit
    @jax.vmap
    def reported(key: Array) -> tuple[Array, Array, Array]:
        observation, state = task.reset_env(key, params)
        action = jax.random.uniform(key, (6,), minval=-1, maxval=1)
        return observation, action, task.step_env(key, state, action, params)[-1]["shield_distance"]

    observation, action, expected = reported(jax.random.split(jax.random.key(0), 512))
    assert 5 < np.count_nonzero(expected) < 500
    np.testing.assert_allclose(jax.jit(distance)(observation, action), expected, atol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0.05, 1.7), (-10.0, 0.3)])
def test_no_action_leaves_the_box_by_rounding(low: float, high: float) -> None:
    environment = make(box(jnp.full(2, low), jnp.full(2, high)))
    reached = from_unit(environment, None, jnp.array([-1.0, 1.0]))
    np.testing.assert_array_equal(reached, np.array([low, high], np.float32))


class Unhashable(Made):
    """Such as a dataclass that is not frozen."""

    __hash__ = None  # type: ignore[assignment]


def test_an_environment_that_cannot_be_hashed_is_refused() -> None:
    with pytest.raises(ValueError, match="must be hashable, Unhashable is not"):
        dimensions(cast("Any", Unhashable(**vars(make()))), None)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ((jnp.zeros(3), (), NOTHING, NO), "must give observation, state, reward, terminated and info.* got 4 values"),
        ((jnp.zeros(3), (), NOTHING, NO, NO, {}), "got 6 values"),
        (jnp.zeros(3), "got ShapeDtypeStruct"),
        ((jnp.zeros(4), (), NOTHING, NO, {}), r"for observation an array of shape \(3,\)"),
        ((jnp.zeros(3), (), jnp.zeros(1), NO, {}), r"for reward an array of shape \(\)"),
        ((jnp.zeros(3), (), NOTHING, jnp.zeros(1, bool), {}), r"for terminated an array of shape \(\)"),
        ((jnp.zeros(3), (), NOTHING, NOTHING, {}), "a boolean for terminated, got float32"),
    ],
)
def test_a_step_that_gives_something_else_is_refused(step: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dimensions(make(step=step), None)
