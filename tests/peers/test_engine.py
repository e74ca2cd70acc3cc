"""The engine as it is timed: with its heads held, from its first check on, and for as many steps as it says."""

import pytest

from incrt.engine.population import Population
from incrt.engine.progress import Progress, Run
from incrt.peers import engine
from incrt.peers.engine import begin_engine, study_run, with_heads


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of small networks that check every ten steps and would grow at once."""

    def made(*args: float, **_: int) -> Run:
        run = study_run(int(args[0]), int(args[1]), args[2], 1000, k_max=2)
        sac = run.sac.replace(steps=int(args[3]), learning_starts=4, batch=4, buffer=100, hidden=(8,))
        heads = run.heads.replace(check_every=10, grace=10, delta_grow=1, tokens=20, share_batch=8)
        return Run(run.seed, run.environment, run.params, run.window, run.encoder.replace(d_k=2), heads, sac)

    monkeypatch.setattr(engine, "study_run", made)
    monkeypatch.setattr(engine, "_STRETCH", 10)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("heads", [1, 2])
def test_each_training_is_so_many_steps_with_heads_that_stay(heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[list[Progress]] = []
    init = Population.__init__

    def spied(population: Population, *args: object) -> None:
        init(population, *args)  # type: ignore[arg-type]
        trained.append(population.progress)

    monkeypatch.setattr(Population, "__init__", spied)
    training = begin_engine(4, 2, heads)
    assert (training.stride, training.runs) == (10, 2)
    for steps in (20, 10):
        training.train(steps)
        assert [each.step for each in trained[-1]] == [10 + steps] * 2
        assert [each.heads for each in trained[-1]] == [heads] * 2
        assert [len(each.ranks) for each in trained[-1]] == [1 + steps // 10] * 2  # a check each ten steps


def test_heads_are_those_of_the_study_but_for_their_number() -> None:
    run = study_run(0, 20, 5.0, 1000)
    held = with_heads(run, 8)
    assert (held.encoder.heads_at_start, held.encoder.k_max, held.heads.k_min) == (8, 8, 8)
    assert (held.sac, held.heads.check_every, held.params) == (run.sac, run.heads.check_every, run.params)
