"""Rounds, and what is said of them."""

import pytest

from incrt.peers import timing
from incrt.peers.timing import Training, in_rounds, speed_of, steps_per_second


class Clock:
    """A clock that only training moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.trained: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def training(self, name: str, seconds_a_step: float, stride: int, runs: int = 1) -> Training:
        def train(steps: int) -> None:
            self.trained.append((name, steps))
            self.now += steps * seconds_a_step

        return Training(train, stride, runs)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "perf_counter", made)
    return made


def test_median_and_spread() -> None:
    assert speed_of([5.0, 1.0, 2.0]) == (2.0, 1.0, 5.0)
    assert speed_of([4.0, 1.0]) == (2.5, 1.0, 4.0)


def test_steps_of_all_runs_count(clock: Clock) -> None:
    assert steps_per_second(clock.training("pair", 0.5, 10, runs=2), 10) == 4


def test_rounds_take_turns_and_about_the_time_that_is_given(clock: Clock) -> None:
    trainings = {
        "slow": clock.training("slow", 1.0, 10),
        "fast": clock.training("fast", 0.01, 10),
        "pair": clock.training("pair", 0.01, 50, runs=2),
    }
    said: list[str] = []
    found = in_rounds(trainings, rounds=2, seconds=2.0, tell=said.append)
    measured = clock.trained[3:]
    assert measured == [("slow", 10), ("fast", 200), ("pair", 200)] * 2
    assert found == {"slow": [pytest.approx(1)] * 2, "fast": [pytest.approx(100)] * 2, "pair": [pytest.approx(200)] * 2}
    assert said[-1] == "round 2 of 2, pair"
