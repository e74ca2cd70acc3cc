"""Phase 1 by training: Bayesian search over the head count and the window, for any function that trains."""

import itertools
import json
import logging
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from incrt.config.rules import COUNT, INDEX, numbers, whole

_log = logging.getLogger(__name__)

Train: TypeAlias = Callable[[int, int], float]
"""Trains with K heads and windows of W steps and says how badly that went, by its evaluation RMSE for example."""

_START = '{"k": '
"""How every line of a journal begins."""

Pair: TypeAlias = tuple[int, int]
"""(K, W)."""


@dataclass(frozen=True)
class Found:
    """What the search found."""

    k: int
    window: int
    value: float
    tried: dict[Pair, float]
    """Every (K, W) that was trained, with its value; infinite where the training gave no number."""


def search(
    train: Train,
    k_max: int = 8,
    windows: Sequence[int] = (10, 20, 50),
    trials: int = 12,
    seed: int = 0,
    journal: Path | str | None = None,
) -> Found:
    """Search over K = 1 ... k_max and the windows with Optuna, for the smallest value; no pair is trained twice.

    :param trials: how many pairs to train at most
    :param journal: a file in which every finished training is kept; a search that was interrupted goes on from it, and
        trains what it was training then only if the sampler proposes it again
    """
    optuna = _optuna()
    k_max, trials, seed = whole("k_max", k_max, COUNT), whole("trials", trials, COUNT), whole("seed", seed, INDEX)
    widths = sorted({whole("windows", window, COUNT) for window in numbers("windows", windows)})
    pairs = list(itertools.product(range(1, k_max + 1), widths))
    if not pairs:
        raise ValueError("windows must hold at least one window")
    kept = Journal(None if journal is None else Path(journal))
    tried = {pair: value for pair, value in kept.read().items() if pair in pairs}
    # With the same seed a search that goes on would propose what it proposed before.
    sampler = optuna.samplers.TPESampler(n_startup_trials=max(3, trials // 4), seed=seed + len(tried))
    chance = random.Random(seed + len(tried))  # noqa: S311  # nothing secret
    space = {
        "k": optuna.distributions.IntDistribution(1, k_max),
        "window": optuna.distributions.CategoricalDistribution(widths),
    }
    study = optuna.create_study(sampler=sampler)
    for (k, window), value in tried.items():
        known = {"k": k, "window": window}
        study.add_trial(optuna.trial.create_trial(params=known, distributions=space, value=value))
    while len(tried) < min(trials, len(pairs)):
        trial = study.ask(space)
        pair = trial.params["k"], trial.params["window"]
        if pair in tried:  # the sampler cannot be told not to: try one that is new
            k, window = chance.choice([other for other in pairs if other not in tried])
            study.enqueue_trial({"k": k, "window": window})
        else:
            value = float(train(*pair))
            tried[pair] = value if math.isfinite(value) else math.inf
            kept.add(pair, tried[pair])
            _log.info("K = %d, W = %d: %g (%d of %d)", *pair, value, len(tried), min(trials, len(pairs)))
        study.tell(trial, tried[pair])
    k, window = min(tried, key=lambda pair: tried[pair])
    if math.isinf(tried[k, window]):
        raise ValueError(f"none of {len(tried)} trainings gave a finite value")
    return Found(k, window, tried[k, window], tried)


class Journal:
    """Finished trainings, one JSON object a line. A last line that a crash cut short is dropped, others are refused."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def read(self) -> dict[Pair, float]:
        """All trainings in the file; it need not exist yet."""
        if self.path is None:
            return {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            text = self.path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"journal {self.path} cannot be used: {error}") from error
        *lines, cut = text.split("\n")
        found = dict(self._entry(number, line) for number, line in enumerate(lines, start=1))
        if cut:
            if not cut.startswith(_START[: len(cut)]):
                raise self._refusal(len(lines) + 1, cut)
            self.path.write_text("".join(f"{line}\n" for line in lines))
        return found

    def add(self, pair: Pair, value: float) -> None:
        """Keep one training; it is on the disk when this returns."""
        if self.path is None:
            return
        line = json.dumps({"k": pair[0], "window": pair[1], "value": value if math.isfinite(value) else None})
        with self.path.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _entry(self, number: int, line: str) -> tuple[Pair, float]:
        try:
            entry = json.loads(line)
            pair = whole("k", entry["k"], COUNT), whole("window", entry["window"], COUNT)
            return pair, math.inf if entry["value"] is None else float(entry["value"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal(number, line) from error

    def _refusal(self, number: int, line: str) -> ValueError:
        return ValueError(f"journal {self.path} is not one of this search: line {number} is {line!r}")


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ValueError("the search needs Optuna: pip install incrt[search]") from error
    return optuna
