"""How trainings are timed: in turns, so that a slow minute of the machine meets all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import NamedTuple


@dataclass(frozen=True)
class Training:
    """A training that has begun, compiled and warmed up: from now on every step is followed by an update."""

    train: Callable[[int], None]
    """Trains so many steps and waits for their end."""
    stride: int = 10
    """Steps come in multiples of it."""
    runs: int = 1
    """How many runs take each of these steps at a time."""


class Speed(NamedTuple):
    """Figures of some rounds: their median, the lowest and the highest."""

    median: float
    low: float
    high: float


def speed_of(figures: list[float]) -> Speed:
    """What is said of the figures of some rounds."""
    return Speed(median(figures), min(figures), max(figures))


def in_rounds(
    trainings: Mapping[str, Training], rounds: int, seconds: float, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    """Steps a second of each training, all its runs together, in each round.

    In a round each of them trains once, for about so many seconds and one stride at least. ``tell`` hears what is next.
    """
    steps = {}
    for name, each in trainings.items():
        tell(f"how many steps {name} takes in a round")
        rate = steps_per_second(each, each.stride)
        steps[name] = each.stride * max(1, round(seconds * rate / (each.runs * each.stride)))
    found: dict[str, list[float]] = {name: [] for name in trainings}
    for number in range(rounds):
        for name, each in trainings.items():
            tell(f"round {number + 1} of {rounds}, {name}")
            found[name].append(steps_per_second(each, steps[name]))
    return found


def steps_per_second(training: Training, steps: int) -> float:
    """Of all runs together."""
    begin = perf_counter()
    training.train(steps)
    return training.runs * steps / (perf_counter() - begin)
