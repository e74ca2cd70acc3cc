"""The examples, shortened: what a newcomer runs first must work."""

import contextlib
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_path import load
from gymnax.environments.classic_control.pendulum import Pendulum

from incrt.config import EncoderConfig, HeadsConfig
from incrt.engine import Checkpoint, Progress, Run, deterministic_returns, policy_of
from incrt.engine.environment import dimensions
from incrt.engine.progress import Failure, first_progress
from incrt.report.outcomes import Outcome, from_csv
from incrt.report.selection import representative

STEPS = 1500


example = load("examples/pendulum.py")
params = example.PENDULUM.default_params


def shortened(run: Run) -> Run:
    """The same with small networks, and checks so frequent that a head is due at half time."""
    return dataclasses.replace(
        run,
        encoder=EncoderConfig(k_max=2, d_k=8),
        heads=HeadsConfig(check_every=250),
        sac=run.sac.replace(batch=32, hidden=(16,)),
    )


@pytest.fixture(scope="module")
def trained() -> tuple[Checkpoint, list[str]]:
    """How a short run ended, and the lines that were printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        (saved,) = example.train([shortened(example.make_run(0, STEPS))])
    return saved, printed.getvalue().splitlines()


# --- the pendulum's velocity is hidden ---------------------------------------------------------------------------


def test_an_observation_is_cosine_and_sine_of_the_angle_and_nothing_else() -> None:
    reset_key, step_key = jax.random.split(jax.random.key(0))
    observation, state = example.PENDULUM.reset_env(reset_key, params)
    for _ in range(3):
        np.testing.assert_allclose(observation, [np.cos(state.theta), np.sin(state.theta)], rtol=1e-6, atol=1e-7)
        assert example.PENDULUM.observation_space(params).contains(observation)
        observation, state, *_ = example.PENDULUM.step_env(step_key, state, jnp.array([1.5]), params)
    assert example.PENDULUM.observation_space(params).shape == observation.shape == (2,)
    assert dimensions(example.PENDULUM, params) == (2, 1)


def test_states_that_differ_in_velocity_alone_look_the_same() -> None:
    _, state = example.PENDULUM.reset_env(jax.random.key(1), params)
    faster = state.replace(theta_dot=state.theta_dot + 3)
    np.testing.assert_array_equal(example.PENDULUM.get_obs(state), example.PENDULUM.get_obs(faster))


def test_the_pendulum_moves_as_gymnaxs_does() -> None:
    reset_key, step_key = jax.random.split(jax.random.key(2))
    whole = Pendulum()
    states = [example.PENDULUM.reset_env(reset_key, params)[1], whole.reset_env(reset_key, params)[1]]
    for torque in (2.0, -0.5, 1.0):
        found = [
            environment.step_env(step_key, state, jnp.array([torque]), params)
            for environment, state in zip((example.PENDULUM, whole), states, strict=True)
        ]
        states = [state for _, state, *_ in found]
        ours, theirs = ((state, reward, terminated) for _, state, reward, terminated, _ in found)
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_seeds_share_a_program() -> None:
    first, second = (example.make_run(seed, 20_000).program() for seed in (0, 1))
    assert first == second
    assert hash(first) == hash(second)


# --- training ------------------------------------------------------------------------------------------------------


def test_a_short_training_is_sound_to_its_end(trained: tuple[Checkpoint, list[str]]) -> None:
    saved, printed = trained
    assert saved.progress.failure is None
    assert saved.progress.step == STEPS
    assert [int(line.split()[3]) for line in printed] == list(range(250, STEPS + 1, 250))


def test_a_head_grows_and_its_certificate_holds(trained: tuple[Checkpoint, list[str]]) -> None:
    saved, printed = trained
    (certificate,) = saved.progress.certificates
    assert (certificate.step, certificate.jump, certificate.holds) == (750, 0.0, True)
    assert saved.progress.heads == 2
    assert [line.partition("K = ")[2][0] for line in printed] == ["1", "1", "2", "2", "2", "2"]
    assert "grow: rank" in printed[2]
    assert printed[2].endswith("jump 0")


def test_the_return_of_an_episode_is_that_of_a_plain_loop(trained: tuple[Checkpoint, list[str]]) -> None:
    run, state = trained[0].progress.run, trained[0].state
    policy = policy_of(run, state)
    returns = deterministic_returns(run, policy, 3, jax.random.key(5))
    act = jax.jit(policy.predict)
    step = jax.jit(example.PENDULUM.step_env)
    observation, now = example.PENDULUM.reset_env(
        jax.random.split(jax.random.split(jax.random.key(5), 3)[1])[0], params
    )
    window, total = [observation] * run.window, 0.0
    for _ in range(200):
        observation, now, reward, _, _ = step(jax.random.key(0), now, 2 * act(jnp.stack(window)), params)
        window, total = [*window[1:], observation], total + float(reward)
    assert float(returns[1]) == pytest.approx(total, rel=1e-3)
    assert float(deterministic_returns(run, policy, 3, jax.random.key(5), longest=1)[1]) > float(returns[1])


@pytest.mark.parametrize(
    ("returns", "failed", "verdicts", "status"),
    [
        ((-150.0, -100.0, -1500.0), (), ("reached", "reached", "not reached"), 0),
        ((-251.0, -100.0, -1500.0), (), ("not reached", "reached", "not reached"), 1),
        ((-150.0, -100.0, -1500.0), (1,), ("reached", "not reached", "not reached"), 1),
    ],
)
def test_two_seeds_must_reach_the_goal_and_a_run_that_failed_does_not_count(
    returns: Sequence[float],
    failed: Sequence[int],
    verdicts: Sequence[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def train(runs: Sequence[Run]) -> list[tuple[Progress, None]]:
        progress = [first_progress(run) for run in runs]
        for i in failed:
            progress[i].failure = Failure(12_000, "the critic's loss")
        return [(each, None) for each in progress]

    monkeypatch.setattr(example, "train", train)
    monkeypatch.setattr(example, "policy_of", lambda *_: None)
    monkeypatch.setattr(example, "deterministic_returns", lambda run, *_: jnp.full(example.EPISODES, returns[run.seed]))
    assert example.main() == status
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition("goal -250 ")[2] for line in printed] == list(verdicts)


# --- trained policies ------------------------------------------------------------------------------------------------


def test_a_policy_of_the_results_does_what_its_row_says() -> None:
    """The row was measured on a GPU."""
    text = (Path(__file__).parents[2] / "results" / "runs.csv").read_text()
    regime = [
        each for each in from_csv(text, Outcome) if (each.study, each.preset, each.tau_z) == ("main", "memory", 5.0)
    ]
    run = representative(regime)
    assert run is not None
    found = load("examples/trained_policies.py").compare(5.0, 20, "paper")
    assert found["learned"] == pytest.approx(run.delta_pct, abs=0.05)
    assert found["observer"] < found["learned"] < found["feedforward"] < found["best_constant"] < 0
    elsewhere = load("examples/trained_policies.py").compare(5.0, 20, "fast")
    assert elsewhere["observer"] < elsewhere["feedforward"] < elsewhere["best_constant"] < elsewhere["learned"]
