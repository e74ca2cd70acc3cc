"""The shield against OSQP, against its own promise, and against finite differences."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import osqp
import pytest
from jax import Array
from scipy import sparse

from incrt.bench import Bench, Params, make_bench
from incrt.config import BenchConfig, preset
from incrt.control import Gains, features, tracking_error
from incrt.plant import PlantState
from incrt.shield import HalfSpace, Shield, admissible_set, distance, lyapunov, project, shielded

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
    bench, params = make_bench(preset("memory"))
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
        target = params.reference.at(time)
        q, dq = target.q - e, target.dq - de
        phi = features(bench.features, params.law, dq)
        return admissible_set(shield, params.law, target, q, dq, params.law.box.from_unit(point).lam, phi)

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


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-3, 1e6, 1e30])
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
    bench, params = make_bench(preset("memory", shield_slack=slack))

    def penalty(action: Array, e: Array, de: Array, time: Array) -> Array:
        target = params.reference.at(time)
        q, dq = target.q - e, target.dq - de
        phi = features(bench.features, params.law, dq)
        return shielded(params.shield, params.law, target, q, dq, params.law.box.from_unit(action), phi).distance

    keys = jax.random.split(jax.random.key(0), 4)
    actions = jax.random.uniform(keys[0], (5000, 6), minval=-1, maxval=1).at[:100].set(1.0).at[100:200].set(-1.0)
    e = 0.2 * jax.random.normal(keys[1], (5000, 2)).at[:300].set(0.0)
    de = 0.5 * jax.random.normal(keys[2], (5000, 2)).at[:150].set(0.0)
    times = 5 * jax.random.uniform(keys[3], (5000,))
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(penalty)))(actions, e, de, times)
    assert np.all(np.isfinite(gradients))
    assert np.all(np.asarray(gradients)[np.asarray(values) == 0] == 0)
    assert np.mean(np.asarray(values) > 0) > 0.05


def test_distance_has_a_gradient_everywhere() -> None:
    point = jnp.array([0.1, 0.2])
    assert np.array_equal(jax.grad(distance)(point, point), np.zeros(2))
    np.testing.assert_allclose(jax.grad(distance)(point, jnp.zeros(2)), point / jnp.linalg.norm(point), rtol=1e-6)


def bounded_friction(dt: float) -> tuple[Bench, Params]:
    """A bench whose friction stays inside F_bar whatever happens: dry friction only."""
    config = BenchConfig()
    bound, none = tuple(0.95 * x for x in config.shield_friction), (0.0, 0.0)
    return make_bench(config.replace(breakaway=bound, coulomb=bound, viscous=none, memory_gain=none, dt=dt, substeps=1))


def test_in_closed_loop_v_falls_as_promised_outside_the_ball() -> None:
    """Random gains, as bad as a box allows, pass the shield; each step V must obey dV/dt <= -alpha V + epsilon."""
    dt = 1e-3
    bench, params = bounded_friction(dt)
    law, shield = params.law, params.shield
    ball = shield.slack / shield.rate

    def episode(key: Array) -> tuple[Array, Array, Array]:
        start_key, gains_key = jax.random.split(key)
        _, state = bench.start(start_key, params, law.payload)
        far = PlantState(2 * jax.random.normal(start_key, (2,)), 3 * jax.random.normal(gains_key, (2,)), jnp.zeros(2))
        state = state._replace(plant=far, measured_q=far.q, measured_dq=far.dq)
        # The promise is for a fixed Lambda; K_d and eta may jump at every step, here between the ends of the box.
        fixed = jax.random.uniform(gains_key, (2,), minval=-1, maxval=1)

        def step(state: Any, key: Array) -> tuple[Any, tuple[Array, Array, Array]]:
            action = jnp.sign(jax.random.normal(key, (6,))).at[2:4].set(fixed)
            gains = law.box.from_unit(action)

            def v(state: Any) -> Array:
                error = tracking_error(bench.target(state, params), state.plant.q, state.plant.dq, gains.lam)
                return lyapunov(law, state.plant.q, error.s)

            after, outcome = bench.apply(key, state, gains, params)
            return after, (v(state), v(after), outcome.verdict.active)

        return jax.lax.scan(step, state, jax.random.split(gains_key, 1000))[1]

    before, after, active = map(np.asarray, jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(5), 200)))
    outside = before > float(ball)
    assert outside.mean() > 0.05
    assert active.mean() > 0.05
    promised = before + dt * (-float(shield.rate) * before + float(shield.slack))
    # Holding the torque for a step costs a term of second order in dt.
    assert np.all(after[outside] < before[outside])
    assert np.all(after[outside] <= (promised + 0.02 * before)[outside])


@pytest.mark.parametrize("name", ["memory", "paper"])
def test_baseline_gains_are_admissible_in_every_state(name: str) -> None:
    """So the admissible set is never empty: the smallest surplus over all s is that of a parabola in each |s_i|."""
    config = preset(name)
    mass = np.asarray(config.inertia) + config.payload_nominal * np.asarray(config.payload_inertia)
    effective = config.baseline_k_d - config.shield_rate * mass / 2
    assert np.all(effective > 0)
    assert np.sum(np.asarray(config.shield_friction) ** 2 / (4 * effective)) <= config.shield_slack


def test_admissible_gains_pass_to_the_last_bit() -> None:
    bench, params = make_bench(BenchConfig())
    gains = Gains(jnp.array([31.4159, 22.2]), jnp.array([4.123, 5.987]), jnp.array([[1.1, -0.7]]))
    target = params.reference.at(jnp.asarray(0.3))
    dq = target.dq - 0.01
    phi = features(bench.features, params.law, dq)
    verdict = shielded(params.shield, params.law, target, target.q - 0.02, dq, gains, phi)
    assert not verdict.active
    assert float(verdict.distance) == 0
    for proposed, passed in zip(gains, verdict.gains, strict=True):
        assert np.array_equal(proposed, passed)
