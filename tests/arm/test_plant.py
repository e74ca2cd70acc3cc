"""The plant against the equations, SciPy and conservation laws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_robots import Coupled, Pendulum
from scipy.integrate import solve_ivp

from incrt.arm.friction import Stribeck
from incrt.arm.plant import (
    PlantState,
    _stick_or_slip,
    control_step,
    make_plant,
    substep,
)
from incrt.config import TaskConfig

CONFIG = TaskConfig()
STEP = jax.jit(control_step, static_argnames="substeps")


def stribeck_of(config: TaskConfig, dtype: Any = jnp.float32) -> Stribeck:
    """The friction of a configuration."""
    friction = make_plant(config, dtype).friction
    assert isinstance(friction, Stribeck)
    return friction


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
    friction = stribeck_of(CONFIG.replace(tau_z=tau_z), jnp.float64)
    dq, start = np.array([0.7, -1.3]), np.array([2.0, -1.0])
    terms = friction.terms(jnp.asarray(dq), jnp.asarray(start), jnp.asarray(0.3))
    found = terms.keep * start + terms.feed * dq
    gain = np.asarray(CONFIG.memory_gain)
    solved = solve_ivp(lambda _, z: -z / tau_z + gain * dq, (0, 0.3), start, rtol=1e-11, atol=1e-11).y[:, -1]
    np.testing.assert_allclose(found, solved, rtol=1e-8)


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
        mass, _ = plant.robot.mass_and_bias(state.q, state.dq, payload)
        momentum = mass @ state.dq if coupled else mass * state.dq
        return float(0.5 * state.dq @ momentum + 0.5 * jnp.sum(state.z**2 / jnp.asarray(CONFIG.memory_gain)))

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
    robot = Pendulum(jnp.asarray(9.81))
    none = (0.0, 0.0)
    smooth = CONFIG.replace(robot=robot, coulomb=none, breakaway=none, viscous=none, memory_gain=none)
    plant = make_plant(smooth, jnp.float64)
    payload, torque = jnp.asarray(0.3), np.array([1.0, -0.5])

    def equations(_: float, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        q, dq = jnp.asarray(x[:2]), jnp.asarray(x[2:])
        mass, bias = robot.mass_and_bias(q, dq, payload)
        return np.concatenate([dq, np.linalg.solve(mass, torque - bias)])

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
    friction = stribeck_of(CONFIG)
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
