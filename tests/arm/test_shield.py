"""The shield against OSQP, against its own promise, and against finite differences."""

import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import osqp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax import Array
from own_robots import Coupled
from scipy import sparse
from scipy.optimize import minimize
from tasks import preset_task

from incrt.arm.law import Gains, tracking_error
from incrt.arm.plant import PlantState
from incrt.arm.robots import DecoupledArm
from incrt.arm.shield import (
    HalfSpace,
    Shield,
    ShieldResult,
    admissible_set,
    distance,
    lyapunov,
    project,
    shielded,
    slack_needed,
)
from incrt.arm.task import State, make_task
from incrt.arm.trajectories import Target, spline
from incrt.config import TaskConfig

COUNT = 100_000


class Cases(NamedTuple):
    """Proposed points of the cube, the half-spaces of their states, and what the shield made of them."""

    points: np.ndarray
    half_spaces: HalfSpace
    onto: np.ndarray
    feasible: np.ndarray


@pytest.fixture(scope="module")
def cases() -> Cases:
    """Random states, gains and shields, from harmless to hopeless."""
    _, params = make_task(preset_task("memory"))
    keys = jax.random.split(jax.random.key(0), 7)
    times = 5 * jax.random.uniform(keys[0], (COUNT,))
    e = 0.2 * jax.random.normal(keys[1], (COUNT, 2))
    de = 0.5 * jax.random.normal(keys[2], (COUNT, 2))
    points = jax.random.uniform(keys[3], (COUNT, 6), minval=-1, maxval=1)
    shields = Shield(
        rate=jax.random.uniform(keys[4], (COUNT,), maxval=15),
        friction=jax.random.uniform(keys[5], (COUNT, 2), minval=10, maxval=60),
        slack=jax.random.uniform(keys[6], (COUNT,), maxval=30),
    )

    def half_space(shield: Shield, e: Array, de: Array, time: Array, point: Array) -> HalfSpace:
        target = params.trajectory.at((), time)
        q, dq = target.q - e, target.dq - de
        return admissible_set(shield, params.law, target, q, dq, params.law.box.from_unit(point).lam)

    half_spaces = jax.jit(jax.vmap(half_space))(shields, e, de, times, points)
    onto, feasible = jax.jit(jax.vmap(project))(points, half_spaces)
    return Cases(np.asarray(points), half_spaces, np.asarray(onto), np.asarray(feasible))


def misses(points: np.ndarray, half_spaces: HalfSpace) -> np.ndarray:
    """Distance by which a point misses its half-space, in float64; negative inside."""
    normal, offset = np.asarray(half_spaces.normal, float), np.asarray(half_spaces.offset, float)
    missed: np.ndarray = (offset - np.sum(normal * points, -1)) / np.linalg.norm(normal, axis=-1)
    return missed


def test_projection_lies_in_cube_and_half_space(cases: Cases) -> None:
    assert np.abs(cases.onto).max() <= 1 + 1e-6
    assert misses(cases.onto, cases.half_spaces)[cases.feasible].max() <= 1e-6
    assert 0.2 < np.mean(misses(cases.points, cases.half_spaces) > 0) < 0.8, "both kinds of gains must be common"
    assert np.mean(~cases.feasible) > 0.01, "hopeless states must occur"


def test_projection_is_idempotent(cases: Cases) -> None:
    again, _ = jax.jit(jax.vmap(project))(jnp.asarray(cases.onto), cases.half_spaces)
    assert np.abs(np.asarray(again) - cases.onto).max() <= 1e-6


def test_projection_changes_nothing_that_is_admissible(cases: Cases) -> None:
    admissible = misses(cases.points, cases.half_spaces) < -1e-6
    assert np.array_equal(cases.points[admissible], cases.onto[admissible])


def test_projection_agrees_with_osqp(cases: Cases) -> None:
    normal, offset = np.asarray(cases.half_spaces.normal, float), np.asarray(cases.half_spaces.offset, float)
    scale = np.linalg.norm(normal, axis=-1)
    solver = osqp.OSQP()
    solver.setup(
        sparse.identity(6, format="csc"),
        np.zeros(6),
        sparse.csc_matrix(np.vstack([np.eye(6), np.ones(6)])),
        np.full(7, -1.0),
        np.array([1.0] * 6 + [np.inf]),
        eps_abs=1e-7,
        eps_rel=1e-7,
        rho=1.0,
        max_iter=20_000,
        polishing=True,
        verbose=False,
    )
    changed = np.flatnonzero(cases.feasible & (misses(cases.points, cases.half_spaces) > 0))
    solved = 0
    for i in changed:
        entries = np.stack([np.ones(6), normal[i] / scale[i]], axis=1).ravel()  # column by column
        lower = np.append(np.full(6, -1.0), offset[i] / scale[i])
        solver.update(q=-cases.points[i].astype(float), Ax=entries, l=lower)
        solution = solver.solve(raise_error=False)
        if solution.info.status == "solved":
            solved += 1
            assert np.abs(solution.x - cases.onto[i]).max() < 1e-5
    assert solved > 0.999 * len(changed)  # OSQP gives up on a few that barely have a solution


def test_a_half_space_out_of_reach_gives_the_least_violating_vertex(cases: Cases) -> None:
    hopeless = ~cases.feasible
    normal = np.asarray(cases.half_spaces.normal)[hopeless]
    reached = np.sum(normal * cases.onto[hopeless], -1)
    np.testing.assert_allclose(reached, np.abs(normal).sum(-1), rtol=1e-5)


@pytest.mark.parametrize(
    ("offset", "feasible"),
    [(-1.0, True), (0.0, True), (1e-9, False)],
)
def test_a_vanishing_direction_is_handled(offset: float, feasible: bool) -> None:
    point = jnp.linspace(-0.9, 0.9, 6)
    onto, found = project(point, HalfSpace(jnp.zeros(6), jnp.asarray(offset)))
    assert bool(found) == feasible
    np.testing.assert_array_equal(onto, point)


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-3, 1e6, 1e30])
def test_the_size_of_the_normal_does_not_matter(size: float) -> None:
    direction = jnp.array([1.0, 0.5, 0.0, 0.0, -2.0, 0.25])
    onto, feasible = project(jnp.zeros(6), HalfSpace(size * direction, jnp.asarray(size)))
    assert bool(feasible)
    np.testing.assert_allclose(onto, np.asarray(direction) / float(direction @ direction), rtol=1e-5)


def test_a_point_outside_the_cube_is_brought_inside() -> None:
    onto, feasible = project(jnp.full(6, 3.0), HalfSpace(jnp.zeros(6), jnp.asarray(-1.0)))
    assert bool(feasible)
    np.testing.assert_array_equal(onto, np.ones(6))


@pytest.mark.usefixtures("float64")
def test_projection_has_the_derivative_of_a_projection() -> None:
    rng = np.random.default_rng(3)
    checked = 0
    jacobian = jax.jit(jax.jacrev(lambda x, a, b: project(x, HalfSpace(a, b))[0], argnums=(0, 1, 2)))
    for _ in range(50):
        x, a, b = rng.uniform(-1, 1, 6), rng.normal(size=6), rng.uniform(0, 4)
        inputs = (jnp.asarray(x), jnp.asarray(a), jnp.asarray(b))

        def move(change: np.ndarray, inputs: tuple[Array, Array, Array] = inputs) -> np.ndarray:
            x, a, b = inputs
            return np.asarray(project(x + change[:6], HalfSpace(a + change[6:12], b + change[12]))[0])

        found = np.concatenate([np.asarray(part).reshape(6, -1) for part in jacobian(*inputs)], axis=1)
        step = 1e-6
        numeric = np.stack([(move(step * d) - move(-step * d)) / (2 * step) for d in np.eye(13)], axis=1)
        assert np.all(np.isfinite(found))
        if np.allclose(found, numeric, atol=1e-5):
            checked += 1
    assert checked >= 48  # a difference quotient may straddle a kink


@pytest.mark.parametrize("slack", [0.0, 30.0])
def test_the_penalty_on_a_policy_has_a_finite_gradient_everywhere(slack: float) -> None:
    """Distance to the admissible set as a function of the action: at corners, at e = de = 0, out of reach."""
    task, params = make_task(TaskConfig())
    params = params._replace(shield=params.shield._replace(slack=jnp.asarray(slack)))
    count = 5000
    keys = jax.random.split(jax.random.key(0), 4)
    actions = jax.random.uniform(keys[0], (count, 6), minval=-1, maxval=1).at[:100].set(1.0).at[100:200].set(-1.0)
    e = 0.2 * jax.random.normal(keys[1], (count, 2)).at[:300].set(0.0)
    de = 0.5 * jax.random.normal(keys[2], (count, 2)).at[:150].set(0.0)
    # A joint that barely errs beside one that does, and errors far below what a float can square.
    e = e.at[400:500].set(0.0)
    de = de.at[400:450].set(jnp.array([0.9, 1e-10])).at[450:500].set(jnp.array([1e-22, -1e-30]))
    q_d, dq_d = 0.3 * jax.random.normal(keys[3], (2, count, 2)).at[:, 400:500].set(0.0)
    observations = jnp.concatenate([q_d - e, dq_d - de, q_d, dq_d, jnp.zeros((count, 3))], axis=1)
    penalty = jax.value_and_grad(lambda action, o: task.shield_distance(o, action, params))
    values, gradients = jax.jit(jax.vmap(penalty))(actions, observations)
    assert np.all(np.isfinite(gradients))
    assert np.all(np.asarray(gradients)[np.asarray(values) == 0] == 0)
    assert np.mean(np.asarray(values) > 0) > 0.05


def test_distance_has_a_gradient_everywhere() -> None:
    point = jnp.array([0.1, 0.2])
    assert np.array_equal(jax.grad(distance)(point, point), np.zeros(2))
    np.testing.assert_allclose(jax.grad(distance)(point, jnp.zeros(2)), point / jnp.linalg.norm(point), rtol=1e-6)


def closed_loop(dt: float, substeps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V before and after each step with gains as bad as the box allows, and whether the shield acted.

    The promise is for a fixed Lambda; K_d and eta sit at the ends of the box, in half of the episodes jumping at every
    step. Friction stays inside F_bar whatever happens, since it is dry friction only, and the payload is the law's.
    """
    config = TaskConfig(dt=dt, substeps=substeps)
    dry, none = tuple(0.95 * x for x in config.shield_friction), (0.0, 0.0)
    task, params = make_task(config.replace(breakaway=dry, coulomb=dry, viscous=none, memory_gain=none))
    law = params.law

    def episode(key: Array) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, 5)
        _, state = task.start(keys[0], params, law.payload)
        far = PlantState(2 * jax.random.normal(keys[1], (2,)), 3 * jax.random.normal(keys[2], (2,)), jnp.zeros(2))
        state = state._replace(plant=far, measured_q=far.q, measured_dq=far.dq)
        jumping = jax.random.bernoulli(keys[3])

        def step(state: State, key: Array) -> tuple[State, tuple[Array, Array, Array]]:
            corner = jnp.sign(jax.random.normal(jnp.where(jumping, key, keys[4]), (6,)))
            gains = law.box.from_unit(corner.at[2:4].set(0.3))

            def v(state: State) -> Array:
                error = tracking_error(task.target(state, params), state.plant.q, state.plant.dq, gains.lam)
                return lyapunov(law, state.plant.q, error.s)

            after, outcome = task.apply(key, state, gains, params)
            return after, (v(state), v(after), outcome.shield.active)

        return jax.lax.scan(step, state, jax.random.split(keys[4], 1000))[1]

    before, after, active = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(5), 400))
    assert np.mean(active) > 0.01
    return np.asarray(before, float), np.asarray(after, float), np.asarray(active)


def test_in_closed_loop_v_falls_as_promised_outside_the_ball() -> None:
    """dV/dt <= -alpha V + epsilon, step by step, where holding the torque for a step costs next to nothing."""
    dt, config = 1e-3, TaskConfig()
    before, after, active = closed_loop(dt, substeps=1)
    outside = before > config.shield_slack / config.shield_rate
    assert np.sum(outside & active) > 1000
    promised = before + dt * (-config.shield_rate * before + config.shield_slack)
    assert np.all((after <= promised + 1e-5 * before)[outside])
    assert np.all((after < before)[outside])


def test_at_the_control_interval_of_the_task_v_falls_outside_a_somewhat_larger_ball() -> None:
    """A torque held for 10 ms adds a term of second order that the condition does not count (docs/task.md)."""
    config = TaskConfig()
    before, after, _ = closed_loop(config.dt, config.substeps)
    ball = config.shield_slack / config.shield_rate
    assert np.all((after < before)[before > 1.6 * ball])
    assert np.all((after < 1.05 * before)[before > ball])
    assert np.mean((after < before)[before > ball]) > 0.99
    assert np.all(after[before <= ball] < 1.1 * ball), "the ball is left by little"


def test_the_result_is_that_of_the_condition_written_out() -> None:
    """Sum s_i^2 K_d,i + s' eta >= alpha V + sum |s_i| F_bar_i - epsilon, in NumPy and double precision."""
    config = TaskConfig(shield_slack=17.0)
    task, params = make_task(config)
    count, rng = 20_000, np.random.default_rng(0)
    e, de, dq = 0.15 * rng.normal(size=(count, 2)), 0.4 * rng.normal(size=(count, 2)), rng.normal(size=(count, 2))
    points = rng.uniform(-1, 1, (count, config.action_dim))

    @jax.jit
    @jax.vmap
    def judge(e: Array, de: Array, dq: Array, point: Array) -> tuple[Gains, ShieldResult, Array]:
        q = jnp.zeros(2)
        target = Target(q + e, dq + de, q)
        gains = params.law.box.from_unit(point)
        result = shielded(params.shield, params.law, target, q, dq, gains)
        observation = jnp.concatenate([q, dq, target.q, target.dq, jnp.zeros(3)])
        return gains, result, task.shield_distance(observation, point, params)

    inputs = (jnp.asarray(x, jnp.float32) for x in (e, de, dq, points))
    gains, result, distance_by_observation = judge(*inputs)

    def surplus(gains: Gains) -> np.ndarray:
        k_d, lam, eta = (np.asarray(x, float) for x in gains)
        s = de + lam * e
        mass = np.asarray(config.inertia) + config.payload_nominal * np.asarray(config.payload_inertia)
        v = 0.5 * np.sum(mass * s**2, -1)
        needed = config.shield_rate * v + np.abs(s) @ np.asarray(config.shield_friction) - config.shield_slack
        left: np.ndarray = np.sum(s**2 * k_d + s * eta, -1) - needed
        return left

    proposed, passed = surplus(gains), surplus(result.gains)
    active, feasible = np.asarray(result.active), np.asarray(result.feasible)
    clear = np.abs(proposed) > 1e-3
    assert np.array_equal(active[clear], (proposed < 0)[clear])
    assert 0.1 < active.mean() < 0.9
    assert np.all(passed[feasible] > -1e-4)
    np.testing.assert_allclose(passed[active & feasible], 0, atol=1e-4)
    unit = jax.vmap(params.law.box.to_unit)
    moved = np.linalg.norm(np.asarray(unit(result.gains)) - np.asarray(unit(gains)), axis=-1)
    np.testing.assert_allclose(result.distance, moved, atol=1e-5)
    np.testing.assert_allclose(distance_by_observation, result.distance, atol=1e-4)
    for low, high, value in zip(params.law.box.lower, params.law.box.upper, result.gains, strict=True):
        assert np.all((value >= low) & (value <= high))


@given(
    point=arrays(np.float32, 6, elements=st.floats(-1.5, 1.5, width=32)),
    normal=arrays(np.float32, 6, elements=st.sampled_from([0.0, 1e-30, -1e-12, 1e-6, -0.3, 1.0, 50.0])),
    offset=st.floats(-3, 3, width=32),
)
def test_projection_and_its_gradient_on_awkward_half_spaces(
    point: np.ndarray, normal: np.ndarray, offset: float
) -> None:
    """Zero, tiny and mixed normals, points outside the cube: the result is in the cube, and nothing is NaN."""
    size = np.abs(normal).sum()
    offset = float(offset * size)
    onto, feasible = PROJECT(jnp.asarray(point), HalfSpace(jnp.asarray(normal), jnp.asarray(offset, jnp.float32)))
    onto = np.asarray(onto, float)
    assert np.abs(onto).max() <= 1
    if feasible and size > 1e-18:
        assert offset - normal.astype(float) @ onto <= 1e-5 * size
    gradient = GRADIENT(jnp.asarray(point), jnp.asarray(normal), jnp.asarray(offset, jnp.float32))
    assert all(np.all(np.isfinite(part)) for part in gradient)


PROJECT = jax.jit(project)
GRADIENT = jax.jit(
    jax.grad(lambda x, a, b: distance(project(x, HalfSpace(a, b))[0], jnp.clip(x, -1, 1)), argnums=(0, 1, 2))
)


@pytest.mark.parametrize("name", ["memory", "paper"])
def test_baseline_gains_are_admissible_in_every_state(name: str) -> None:
    """So the admissible set is never empty: the smallest surplus over all s is that of a parabola in each |s_i|."""
    config = preset_task(name)
    mass = np.asarray(config.inertia) + config.payload_nominal * np.asarray(config.payload_inertia)
    effective = np.asarray(config.by_joint("baseline_k_d")) - config.shield_rate * mass / 2
    assert np.all(effective > 0)
    assert np.sum(np.asarray(config.shield_friction) ** 2 / (4 * effective)) <= config.shield_slack


def test_admissible_gains_pass_to_the_last_bit() -> None:
    _, params = make_task(TaskConfig())
    gains = Gains(jnp.array([31.4159, 22.2]), jnp.array([4.123, 5.987]), jnp.array([1.1, -0.7]))
    target = params.trajectory.at((), jnp.asarray(0.3))
    dq = target.dq - 0.01
    result = shielded(params.shield, params.law, target, target.q - 0.02, dq, gains)
    assert not result.active
    assert float(result.distance) == 0
    for proposed, passed in zip(gains, result.gains, strict=True):
        assert np.array_equal(proposed, passed)


# --- the slack that the baseline's gains need ----------------------------------------------------------------------

POSITIVE = st.floats(0.5, 3.0)


def coupled(first: float, second: float, part: float, **fields: object) -> TaskConfig:
    """A task whose mass matrix at the law's payload has this diagonal, and this part of the largest coupling."""
    off = part * math.sqrt(first * second)
    matrix = jnp.array([[first, off], [off, second]]) / 1.75  # Coupled multiplies by 1 + payload
    return TaskConfig(robot=Coupled(matrix), shield=False, **fields)  # type: ignore[arg-type]


@given(POSITIVE, POSITIVE, st.floats(-0.9, 0.9), st.tuples(st.floats(0, 40), st.floats(0, 40)), st.floats(0.5, 9.0))
def test_the_slack_needed_is_the_largest_shortage_at_any_error(
    first: float, second: float, part: float, friction: tuple[float, float], rate: float
) -> None:
    """Maximised by SciPy over s in each quadrant, since |s| has kinks; a grid gives a lower bound."""
    config = coupled(first, second, part, shield_friction=friction, shield_rate=rate)
    _, params = make_task(config)
    k_d = np.full(2, 30.0)
    found = slack_needed(params.shield, params.law, jnp.zeros((1, 2)), jnp.asarray(k_d))
    mass = np.asarray(params.law.mass(jnp.zeros(2)), float)

    def shortage(s: np.ndarray) -> np.ndarray:
        """What the half-space asks for beyond what K_d gives, without epsilon and with eta = 0."""
        v = 0.5 * np.sum(s * (s @ mass), -1)
        missing: np.ndarray = rate * v + np.abs(s) @ np.asarray(friction) - s**2 @ k_d
        return missing

    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 121)] * 2), -1).reshape(-1, 2)
    assert found >= shortage(grid).max() - 1e-3
    best = 0.0
    for signs in ((1, 1), (1, -1)):
        bounds = [(0, None) if sign > 0 else (None, 0) for sign in signs]
        solved = minimize(lambda s: -shortage(s), 0.3 * np.array(signs), bounds=bounds, method="L-BFGS-B", tol=1e-12)
        best = max(best, -solved.fun)
    assert found == pytest.approx(best, rel=1e-3, abs=1e-3)


def test_no_slack_is_enough_where_the_gains_cannot_outrun_the_rate() -> None:
    """K_d - alpha/2 M must be positive definite; coupling alone may take that away."""
    weak = coupled(2.0, 2.0, 0.8, shield_rate=20.0)
    _, params = make_task(weak)
    assert slack_needed(params.shield, params.law, jnp.zeros((1, 2)), jnp.full(2, 30.0)) == math.inf
    assert slack_needed(params.shield, params.law, jnp.zeros((1, 2)), jnp.full(2, 40.0)) < math.inf
    with pytest.raises(ValueError, match=r"whatever its slack: baseline_k_d = 30.0 must exceed shield_rate/2 = 10"):
        make_task(weak.replace(shield=True))


@given(st.floats(1, 60), st.floats(1, 60))
def test_the_slack_that_a_refusal_asks_for_is_enough(first: float, second: float) -> None:
    config = TaskConfig(shield_friction=(first, second), shield_slack=0.0)
    with pytest.raises(ValueError, match="the shield refuses the baseline's gains") as refusal:
        make_task(config)
    asked = re.search(r"at least ([\d.]+),", str(refusal.value))
    assert asked is not None
    make_task(config.replace(shield_slack=float(asked[1])))
    with pytest.raises(ValueError, match="the shield refuses the baseline's gains"):
        make_task(config.replace(shield_slack=0.99 * float(asked[1])))


def test_without_a_shield_no_slack_is_asked_for() -> None:
    make_task(TaskConfig(shield_slack=0.0, shield=False))


def test_slack_is_asked_for_along_the_trajectory_and_not_at_home_alone() -> None:
    class Stretched(DecoupledArm):
        """Heavier the farther its first joint has turned."""

        def mass_and_bias(self, q: Array, dq: Array, payload: Array) -> tuple[Array, Array]:
            return self.inertia * (1 + q[0] ** 2), jnp.zeros_like(dq)

    config = TaskConfig(robot=Stretched(jnp.array([4.0, 1.0]), jnp.zeros(2)), shield_slack=0.0)
    asked, at_rest, turning = [], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.4, 0.0]]
    for trajectory in ("paper", spline([0, 5], at_rest), spline([0, 5], turning)):
        with pytest.raises(ValueError, match="admissible at home and along the trajectory") as refusal:
            make_task(config.replace(trajectory=trajectory))
        asked.append(float(re.findall(r"at least ([\d.]+),", str(refusal.value))[0]))
    # With one mass matrix for both, the slack is sum F_bar^2 / (K_d - alpha/2 M) / 4.
    at = {q: (33**2 / (30 - 5 * 4 * (1 + q**2)) + 20**2 / (30 - 5 * (1 + q**2))) / 4 for q in (0.0, 0.4)}
    assert asked[0] > asked[2] > asked[1]
    np.testing.assert_allclose(asked[1:], [at[0.0], at[0.4]], rtol=1e-3)
