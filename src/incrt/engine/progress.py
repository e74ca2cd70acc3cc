"""What is to be trained, and what the host knows of it while it trains."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from incrt.config import EncoderConfig, HeadsConfig, SacConfig, check_together
from incrt.config.rules import COUNT, INDEX
from incrt.engine.environment import Environment, dimensions
from incrt.engine.step import Program, Record, RunState
from incrt.engine.update import Algorithm, Losses
from incrt.heads.certificates import Certificate
from incrt.heads.check import Check, HeadsState, first_heads
from incrt.heads.encoders import Encoder, make_encoder
from incrt.heads.triggers import Trigger, make_trigger


@dataclass(frozen=True)
class Run:
    """What is to be trained."""

    seed: int
    environment: Environment
    params: Any
    """The environment's numbers; runs that differ in nothing else share a program."""
    window: int
    """W: observations in a context."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    heads: HeadsConfig = field(default_factory=HeadsConfig)
    sac: SacConfig = field(default_factory=SacConfig)
    trigger: Trigger = field(init=False, repr=False, compare=False)
    """What decides at its checks, made of ``heads``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", INDEX("seed", self.seed))
        object.__setattr__(self, "window", COUNT("window", self.window))
        check_together(self.window, self.encoder, self.heads, self.sac)
        object.__setattr__(self, "trigger", make_trigger(self.heads))

    def own_encoder(self) -> Encoder:
        """The encoder as it is configured."""
        return make_encoder(self.encoder, self.window, dimensions(self.environment, self.params)[0])

    def program(self) -> Program:
        """What shapes its compiled program."""
        observed, actions = dimensions(self.environment, self.params)
        # With how many heads a run begins, and whether they come and go, makes no difference to its program.
        encoder = make_encoder(self.encoder.shape, self.window, observed)
        # How long a run is, and how often it is evaluated, makes no difference to its program.
        return Program(Algorithm(encoder, self.sac.replace(steps=1, evaluations=0), actions), self.environment)


class Failure(NamedTuple):
    """Where a run ended that could not go on."""

    step: int
    cause: str


@dataclass
class Progress:
    """What the host knows of a run."""

    run: Run
    step: int = 0
    heads_state: HeadsState | None = None
    """None for an encoder whose heads do not change."""
    ranks: list[float] = field(default_factory=list)
    """Of all checks that measured one."""
    certificates: list[Certificate] = field(default_factory=list)
    failure: Failure | None = None
    refused: ValueError | None = None
    """Why a check has ended the run, such as nonsense that its trigger answered; it can go on once that is mended."""

    @property
    def heads(self) -> int:
        """K: active heads; 0 for an encoder that has none."""
        if self.heads_state is not None:
            return self.heads_state.k
        return self.run.encoder.heads_at_start if self.run.encoder.encoder == "static" else 0

    @property
    def finished(self) -> bool:
        return self.failure is not None or self.step >= self.run.sac.steps

    @property
    def is_going_on(self) -> bool:
        """Whether nothing has ended it before its time."""
        return self.failure is None and self.refused is None

    def note(self, check: Check, heads_state: HeadsState) -> None:
        """Keep what a check left behind."""
        self.heads_state = heads_state
        if check.rank is not None:
            self.ranks.append(check.rank)
        if check.certificate is not None:
            self.certificates.append(check.certificate)

    def copy(self) -> "Progress":
        """The same at this moment."""
        return dataclasses.replace(self, ranks=list(self.ranks), certificates=list(self.certificates))


class Checkpoint(NamedTuple):
    """All that it takes to go on with a run."""

    progress: Progress
    state: RunState


def first_progress(run: Run) -> Progress:
    """A run before its first step."""
    mask = np.asarray(run.own_encoder().first_mask).tolist()
    heads_state = first_heads(run.heads, mask) if run.encoder.adapts else None
    return Progress(run, heads_state=heads_state)


class Metrics(NamedTuple):
    """A stretch of one run: means over its steps or updates, None where there was none."""

    step: int
    episode_return: float | None
    """Of the episodes that ended."""
    reward: float | None
    critic_loss: float | None
    actor_loss: float | None
    temperature: float | None
    entropy: float | None
    q: float | None
    distance: float | None
    multiplier: float | None
    steps_per_s: float
    """Of this run, as the clock on the wall has it."""
    evaluation: float | None = None
    """Mean return of the deterministic policy at the end of the stretch, where it is asked for."""

    def signals(self) -> dict[str, Any]:
        """What of them a trigger is shown."""
        losses = {name: value for name in Losses._fields if (value := getattr(self, name)) is not None}
        return {"losses": losses, "returns": self.episode_return, "reward": self.reward}


def summarise(step: int, record: Record, steps_per_s: float) -> Metrics:
    """The figures of the steps up to ``step``, from what each of them measured."""
    updates = np.asarray(record.learning, bool)
    totals = np.asarray(record.total)[np.isfinite(record.total)]
    losses = {name: _mean(np.asarray(rows)[updates]) for name, rows in record.losses._asdict().items()}
    return Metrics(step, _mean(totals), _mean(record.reward), **losses, steps_per_s=steps_per_s)


def _mean(values: Any) -> float | None:
    return float(np.mean(values, dtype=np.float64)) if len(values) else None


class Report(NamedTuple):
    """News of one run: the stretch that it trained, and the check at its end if there was one."""

    number: int
    """Of the run, in the population."""
    metrics: Metrics
    check: Check | None
