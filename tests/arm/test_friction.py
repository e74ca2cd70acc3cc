"""Frictions of a user's own: one that acts as written, and those of the wrong shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.integrate import solve_ivp

from incrt.arm.friction import FrictionTerms, Stribeck, make_friction
from incrt.arm.plant import PlantState, control_step, make_plant
from incrt.arm.task import make_task
from incrt.config import TaskConfig


class Viscous(NamedTuple):
    """No dry part and no memory."""

    damping: Array

    def start(self, dof: int) -> Array:
        return jnp.zeros(dof)

    def terms(self, dq: Array, z: Array, h: Array) -> FrictionTerms:
        none = jnp.zeros_like(dq)
        return FrictionTerms(none, self.damping, offset=none, keep=jnp.ones_like(dq), feed=none)


class Given(NamedTuple):
    """Gives whatever it is given."""

    first: Any
    found: Any

    def start(self, dof: int) -> Any:
        return self.first

    def terms(self, dq: Array, z: Array, h: Array) -> Any:
        return self.found


@pytest.mark.usefixtures("float64")
def test_a_friction_of_ones_own_slows_the_arm_as_its_equation_says() -> None:
    """M dv/dt = torque - d v, against SciPy."""
    config = TaskConfig(friction=Viscous(jnp.array([3.0, 2.0])), dt=1e-3)
    plant, torque = make_plant(config, jnp.float64), np.array([4.0, -1.0])
    mass = np.asarray(config.inertia) + 0.5 * np.asarray(config.payload_inertia)
    exact = solve_ivp(lambda _, v: (torque - np.array([3.0, 2.0]) * v) / mass, (0, 0.4), [0.5, 0.2], rtol=1e-9)
    state = PlantState(jnp.zeros(2), jnp.array([0.5, 0.2]), jnp.zeros(2))
    step = jax.jit(lambda state: control_step(plant, state, jnp.asarray(torque), jnp.asarray(0.5), 2))
    for _ in range(400):
        state = step(state)
    np.testing.assert_allclose(state.dq, exact.y[:, -1], rtol=1e-3)


def test_the_numbers_of_another_friction_do_not_matter() -> None:
    config = TaskConfig(friction=Viscous(jnp.array([3.0, 2.0])), coulomb=(9.0, 9.0, 9.0), breakaway=(1.0,))
    assert isinstance(make_friction(config), Viscous)
    with pytest.raises(ValueError, match="coulomb, breakaway must have 2 entries"):
        config.replace(friction="stribeck")


class Listed(Given):
    """Gives lists where arrays are asked for."""

    def terms(self, dq: Array, z: Array, h: Array) -> Any:
        return self.found._replace(dry=[0.0, 0.0])


PAIR = jnp.zeros(2)
TERMS = FrictionTerms(PAIR, PAIR, PAIR, PAIR, PAIR)


@pytest.mark.parametrize(
    ("friction", "message"),
    [
        (Given(jnp.zeros(3), TERMS), r"shape \(2,\), one entry a joint; start has \(3,\)"),
        (Given(PAIR, TERMS._replace(dry=jnp.zeros(()))), r"one entry a joint; dry has \(\)"),
        (Given(PAIR, TERMS._replace(damping=jnp.zeros((2, 2)))), r"one entry a joint; damping has \(2, 2\)"),
        (Given(PAIR, TERMS._replace(keep=jnp.zeros((1, 2)))), r"one entry a joint; keep has \(1, 2\)"),
        (Given(jnp.zeros(2, int), TERMS), r"must give numbers of type float32, as .*; start has int32"),
        (Given(PAIR, TERMS._replace(dry=jnp.zeros(2, complex))), "dry has complex64"),
        (Listed(PAIR, TERMS), r"the friction cannot be used \(TypeError: Cannot determine dtype of \[0.0"),
        (Given(PAIR, (PAIR, PAIR, PAIR)), r"must give FrictionTerms, got \("),
        (Stribeck(*[*[jnp.ones(3)] * 5, jnp.asarray(1.0)]), r"the friction cannot be used \(TypeError: .*shapes"),
    ],
)
def test_a_friction_of_the_wrong_shape_is_refused(friction: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task(TaskConfig(friction=friction))


def test_terms_may_be_whole_numbers() -> None:
    task, params = make_task(TaskConfig(friction=Given(PAIR, TERMS._replace(damping=jnp.array([3, 2])))))
    _, state = task.reset_env(jax.random.key(0), params)
    assert task.step_env(jax.random.key(0), state, jnp.ones(6), params)[2].dtype == jnp.float32


@pytest.mark.parametrize("friction", [object(), 3, Given, "coulomb", Viscous(jnp.ones(2)).start])
def test_what_is_no_friction_is_refused_by_the_field(friction: Any) -> None:
    with pytest.raises(ValueError, match="friction must be one of stribeck, a reference"):
        TaskConfig(friction=friction)


def test_a_friction_that_cannot_be_compiled_is_refused_before_training() -> None:
    class Branching(Viscous):
        def terms(self, dq: Array, z: Array, h: Array) -> FrictionTerms:
            return super().terms(dq if dq[0] > 0 else -dq, z, h)

    with pytest.raises(ValueError, match=r"the friction cannot be compiled: .* by if, while"):
        make_task(TaskConfig(friction=Branching(jnp.ones(2))))
