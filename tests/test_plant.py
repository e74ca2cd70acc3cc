"""The plant against the equations, SciPy and conservation laws."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import Array
from scipy.integrate import solve_ivp

from incrt.config import REFERENCES, TaskConfig
from incrt.arm.plant import (
    Plant,
    PlantState,
    Robot,
    _stick_or_slip,
    control_step,
    make_plant,
    make_trajectory,
    substep,
)

CONFIG = TaskConfig()
STEP = jax.jit(control_step, static_argnames="substeps")


class Coupled(NamedTuple):
    """A robot somebody else might plug in: a constant full mass matrix."""

    matrix: Array

    def mass(self, q: Array, payload: Array) -> Array:
        return self.matrix * (1 + payload)

    def coriolis(self, q: Array, dq: Array, payload: Array) -> Array:
        return jnp.zeros_like(dq)

    def gravity(self, q: Array, payload: Array) -> Array:
        return jnp.zeros_like(q)


class Pendulum(NamedTuple):
    """The textbook planar arm of two point masses under gravity, coupled and nonlinear."""

    gravity_constant: Array

    def mass(self, q: Array, payload: Array) -> Array:
        m, c = 1 + payload, jnp.cos(q[1])
        return jnp.array([[1 + 2 * m + 2 * m * c, m + m * c], [m + m * c, m]])

    def coriolis(self, q: Array, dq: Array, payload: Array) -> Array:
        m, s = 1 + payload, jnp.sin(q[1])
        return jnp.array([-m * s * (2 * dq[0] * dq[1] + dq[1] ** 2), m * s * dq[0] ** 2])

    def gravity(self, q: Array, payload: Array) -> Array:
        m, g = 1 + payload, self.gravity_constant
        both = m * g * jnp.sin(q[0] + q[1])
        return jnp.array([(1 + m) * g * jnp.sin(q[0]) + both, both])


def frictionless(plant: Plant) -> Plant:
    none = jnp.zeros_like(plant.friction.coulomb)
    return plant._replace(
        friction=plant.friction._replace(coulomb=none, breakaway=none, viscous=none, memory_gain=none)
    )


def at_rest(q: tuple[float, float] = (0.1, -0.2)) -> PlantState:
    return PlantState(jnp.asarray(q), jnp.zeros(2), jnp.zeros(2))


@given(st.floats(-0.999, 0.999), st.floats(-0.999, 0.999), st.floats(0, 1.5))
def test_below_breakaway_a_joint_at_rest_does_not_move_at_all(first: float, second: float, payload: float) -> None:
    torque = jnp.array([first, second]) * jnp.asarray(CONFIG.breakaway)
    start = at_rest()
    state = start
    for _ in range(20):
        state = STEP(make_plant(CONFIG), state, torque, jnp.asarray(payload), substeps=2)
    for before, after in zip(start, state, strict=True):
        assert np.array_equal(before, after)


@pytest.mark.parametrize("sign", [-1, 1])
def test_above_breakaway_it_moves_with_the_torque(sign: int) -> None:
    torque = sign * 1.001 * jnp.asarray(CONFIG.breakaway)
    state = STEP(make_plant(CONFIG), at_rest(), torque, jnp.asarray(0.75), substeps=2)
    assert np.all(np.sign(state.dq) == sign)


def test_stored_memory_can_move_a_joint_only_beyond_breakaway() -> None:
    plant, breakaway = make_plant(CONFIG), jnp.asarray(CONFIG.breakaway)
    held = at_rest()._replace(z=0.99 * breakaway)
    pushed = at_rest()._replace(z=1.2 * breakaway)
    assert np.array_equal(STEP(plant, held, jnp.zeros(2), jnp.asarray(0.0), substeps=2).q, held.q)
    assert np.all(STEP(plant, pushed, jnp.zeros(2), jnp.asarray(0.0), substeps=2).dq < 0)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("tau_z", [0.02, 1.0, 5.0])
def test_memory_is_exact_at_constant_velocity(tau_z: float) -> None:
    friction = make_plant(CONFIG.replace(tau_z=tau_z), jnp.float64).friction
    dq, start = np.array([0.7, -1.3]), np.array([2.0, -1.0])
    a, b = friction.memory_over(jnp.asarray(0.3))
    gain = np.asarray(CONFIG.memory_gain)
    solved = solve_ivp(lambda _, z: -z / tau_z + gain * dq, (0, 0.3), start, rtol=1e-11, atol=1e-11).y[:, -1]
    np.testing.assert_allclose(a * start + b * dq, solved, rtol=1e-8)


ENERGY_STATES = st.tuples(*[st.floats(-5, 5)] * 2, *[st.floats(-60, 60)] * 2)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("h", [1e-3, 5e-3, 0.05, 1.0])
@pytest.mark.parametrize("coupled", [False, True])
@given(start=ENERGY_STATES)
def test_friction_never_adds_energy(h: float, coupled: bool, start: tuple[float, ...]) -> None:
    """Kinetic energy and what the memory stores, z^2/(2 lambda_z), never grow together without a torque."""
    plant = make_plant(CONFIG.replace(tau_z=1.0), jnp.float64)
    if coupled:
        plant = plant._replace(robot=Coupled(jnp.array([[2.0, 0.7], [0.7, 0.6]])))
    payload = jnp.asarray(0.5)
    state = PlantState(jnp.zeros(2), jnp.asarray(start[:2]), jnp.asarray(start[2:]))

    def energy(state: PlantState) -> float:
        mass = plant.robot.mass(state.q, payload)
        momentum = mass @ state.dq if coupled else mass * state.dq
        return float(0.5 * state.dq @ momentum + 0.5 * jnp.sum(state.z**2 / plant.friction.memory_gain))

    before = energy(state)
    for _ in range(10):
        state = SUBSTEP(plant, state, jnp.zeros(2), payload, jnp.asarray(h))
        after = energy(state)
        assert after <= before * (1 + 1e-12)
        before = after


SUBSTEP = jax.jit(substep)


def sliding_error(h: float) -> float:
    """Distance to SciPy's solution of eqs. (1)-(4) after 0.5 s of sliding in one direction."""
    plant = make_plant(CONFIG.replace(tau_z=1.0), jnp.float64)
    payload, torque = 0.4, np.array([40.0, 26.0])
    inertia = np.asarray(CONFIG.inertia) + payload * np.asarray(CONFIG.payload_inertia)
    f_c, f_s = np.asarray(CONFIG.coulomb), np.asarray(CONFIG.breakaway)

    def equations(_: float, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        v, z = x[2:4], x[4:]
        dry = np.sign(v) * (f_c + (f_s - f_c) * np.exp(-((v / CONFIG.stribeck_velocity) ** 2)))
        friction = dry + np.asarray(CONFIG.viscous) * v + z
        return np.concatenate([v, (torque - friction) / inertia, -z / 1.0 + np.asarray(CONFIG.memory_gain) * v])

    start = np.array([0.0, 0.0, 0.3, 0.4, 0.0, 0.0])
    exact = solve_ivp(equations, (0, 0.5), start, rtol=1e-10, atol=1e-12).y[:, -1]
    assert exact[2] > 0, "the comparison is about sliding"
    assert exact[3] > 0
    state = PlantState(jnp.asarray(start[:2]), jnp.asarray(start[2:4]), jnp.asarray(start[4:]))
    for _ in range(round(0.5 / h)):
        state = SUBSTEP(plant, state, jnp.asarray(torque), jnp.asarray(payload), jnp.asarray(h))
    return float(np.abs(np.concatenate(state) - exact).max())


@pytest.mark.usefixtures("float64")
def test_sliding_converges_to_scipys_solution_at_first_order() -> None:
    coarse, fine, finest = (sliding_error(h) for h in (5e-3, 2.5e-3, 1.25e-3))
    assert finest < 0.1  # of a memory torque near 15 N m
    assert fine / coarse == pytest.approx(0.5, abs=0.1)
    assert finest / fine == pytest.approx(0.5, abs=0.1)


@pytest.mark.usefixtures("float64")
def test_a_coupled_arm_under_gravity_agrees_with_scipy() -> None:
    """The interface takes a robot with full mass matrix, Coriolis and gravity terms."""
    robot: Robot = Pendulum(jnp.asarray(9.81))
    plant = frictionless(make_plant(CONFIG, jnp.float64)._replace(robot=robot))
    payload, torque = jnp.asarray(0.3), np.array([1.0, -0.5])

    def equations(_: float, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        q, dq = jnp.asarray(x[:2]), jnp.asarray(x[2:])
        force = torque - robot.coriolis(q, dq, payload) - robot.gravity(q, payload)
        return np.concatenate([dq, np.linalg.solve(robot.mass(q, payload), force)])

    start = np.array([0.5, -0.4, 0.0, 0.2])
    exact = solve_ivp(equations, (0, 0.3), start, rtol=1e-9, atol=1e-9).y[:, -1]
    state = PlantState(jnp.asarray(start[:2]), jnp.asarray(start[2:]), jnp.zeros(2))
    for _ in range(3000):
        state = SUBSTEP(plant, state, jnp.asarray(torque), payload, jnp.asarray(1e-4))
    np.testing.assert_allclose(np.concatenate([state.q, state.dq]), exact, atol=2e-3)


@pytest.mark.usefixtures("float64")
def test_dry_friction_on_coupled_joints_solves_its_inclusion() -> None:
    """M v + level * sign(v) = momentum, with sign(0) anything in [-1, 1], for random mass matrices."""
    rng = np.random.default_rng(0)
    stuck = sliding = 0
    solve = jax.jit(_stick_or_slip)
    for _ in range(200):
        root = rng.normal(size=(3, 3))
        mass = root @ root.T + 0.3 * np.eye(3)
        momentum, level = 3 * rng.normal(size=3), rng.uniform(0, 3, size=3)
        v = np.asarray(solve(jnp.asarray(mass), jnp.asarray(momentum), jnp.asarray(level)))
        force = momentum - mass @ v
        moving = v != 0
        np.testing.assert_allclose(force[moving], (level * np.sign(v))[moving], atol=1e-6)
        assert np.all(np.abs(force[~moving]) <= level[~moving] + 1e-6)
        stuck, sliding = stuck + np.sum(~moving), sliding + np.sum(moving)
    assert min(stuck, sliding) > 50, "both cases must occur"


def test_dry_friction_falls_from_breakaway_to_coulomb_as_the_paper_says() -> None:
    friction = make_plant(CONFIG).friction
    f_c, f_s = np.asarray(CONFIG.coulomb), np.asarray(CONFIG.breakaway)
    for dq in (0.0, 0.02, -0.1, 0.17, 3.0):
        literal = f_c + (f_s - f_c) * np.exp(-((dq / CONFIG.stribeck_velocity) ** 2))
        np.testing.assert_allclose(friction.dry_level(jnp.full(2, dq)), literal, rtol=1e-6)


def test_a_thousand_plants_are_one_vmap() -> None:
    rng = np.random.default_rng(1)
    plant = make_plant(CONFIG)
    states = PlantState(*(jnp.asarray(rng.normal(size=(1000, 2)), jnp.float32) for _ in range(3)))
    torques = jnp.asarray(30 * rng.normal(size=(1000, 2)), jnp.float32)
    payloads = jnp.asarray(rng.uniform(0, 1.5, 1000), jnp.float32)
    batch = jax.vmap(lambda s, t, p: control_step(plant, s, t, p, 2))(states, torques, payloads)
    for i in (0, 17, 999):
        alone = STEP(plant, PlantState(*(x[i] for x in states)), torques[i], payloads[i], substeps=2)
        for one, many in zip(alone, batch, strict=True):
            np.testing.assert_allclose(one, many[i], atol=1e-6)


def test_regimes_differ_within_one_batch() -> None:
    """tau_z is a number of the plant, so a batch may hold one of each."""
    plants = [make_plant(CONFIG.replace(tau_z=tau_z)) for tau_z in (1.0, 5.0)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *plants)
    start = PlantState(jnp.zeros(2), jnp.ones(2), jnp.full(2, 10.0))
    batch = jax.vmap(lambda plant: control_step(plant, start, jnp.zeros(2), jnp.asarray(0.0), 2))(stacked)
    for i, plant in enumerate(plants):
        alone = STEP(plant, start, jnp.zeros(2), jnp.asarray(0.0), substeps=2)
        np.testing.assert_allclose(batch.z[i], alone.z, rtol=1e-6)
    assert np.all(batch.z[0] < batch.z[1])


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_derivatives_are_its_derivatives(name: str) -> None:
    reference = make_trajectory(CONFIG.replace(reference=name))
    for time in (0.0, 0.7, 4.2):
        target = reference.at(jnp.asarray(time))
        np.testing.assert_allclose(target.dq, jax.jacfwd(lambda t: reference.at(t).q)(time), atol=1e-5)
        np.testing.assert_allclose(target.ddq, jax.jacfwd(lambda t: reference.at(t).dq)(time), atol=1e-5)


def test_the_papers_reference_is_the_papers() -> None:
    target = make_trajectory(CONFIG).at(jnp.asarray(1.3))
    np.testing.assert_allclose(target.q, [0.5 * np.sin(1.3), 0.3 * np.sin(1.5 * 1.3)], rtol=1e-6)
