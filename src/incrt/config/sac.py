"""What can be set of Soft Actor-Critic (the paper's appendix B)."""

from dataclasses import dataclass

from incrt.config.heads import EncoderConfig, RuntimeConfig
from incrt.config.rules import (
    ANY,
    COUNT,
    FRACTION,
    INDEX,
    NON_NEGATIVE,
    PART,
    POSITIVE,
    Configuration,
    check,
    check_flag,
    settle_scalars,
    whole,
)


@dataclass(frozen=True)
class SacConfig(Configuration):
    """Soft Actor-Critic with a learned temperature, and the penalty that keeps its actions admissible."""

    steps: int = 50_000
    """Environment steps of a run; from ``learning_starts`` on each is followed by one update."""
    buffer: int = 50_000
    """Transitions that the replay buffer holds; the oldest give way."""
    learning_starts: int = 100
    """Steps of random actions before the first update."""
    batch: int = 256
    """Transitions of one update."""
    learning_rate: float = 3e-4
    """Of actor, critic and temperature alike."""
    gamma: float = 0.99
    """Discount factor."""
    tau: float = 0.005
    """Part of the way that the target critic goes towards the critic at each update."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the layers between features and outputs, of actor and critic alike."""
    target_entropy: float | None = None
    """Entropy that the temperature holds; None stands for minus the number of actions."""
    penalty: bool = True
    """Whether the distance of the actor's actions to the admissible ones joins its loss, where there is a shield."""
    penalty_limit: float = 1e-3
    """Mean distance up to which the penalty's multiplier falls, and beyond which it rises."""
    penalty_rate: float = 1e-2
    """How fast the multiplier follows."""

    def __post_init__(self) -> None:
        settle_scalars(self, _SCALARS, _WHOLES)
        try:
            hidden = tuple(whole("hidden", width, COUNT) for width in self.hidden)
        except TypeError:
            raise ValueError(f"hidden must be a list of widths, got {self.hidden!r}") from None
        object.__setattr__(self, "hidden", hidden)
        if self.target_entropy is not None:
            object.__setattr__(self, "target_entropy", check("target_entropy", self.target_entropy, ANY))
        check_flag("penalty", self.penalty)


_SCALARS = {
    "learning_rate": POSITIVE,
    "gamma": FRACTION,
    "tau": PART,
    "penalty_limit": NON_NEGATIVE,
    "penalty_rate": NON_NEGATIVE,
}
_WHOLES = {"steps": COUNT, "buffer": COUNT, "learning_starts": INDEX, "batch": COUNT}


def check_together(window: int, encoder: EncoderConfig, runtime: RuntimeConfig, sac: SacConfig) -> None:
    """Refuse what is right in each configuration, but not in one run."""
    more, why = (runtime.tokens, "the tokens of the rank") if encoder.adapts else (2, "two transitions")
    if sac.buffer < window + more:
        needs = f"at least {window + more}, for a window of {window} and {why}"
        raise ValueError(f"buffer must be {needs}; got {sac.buffer}")
    if encoder.adapts:
        runtime.check_start(encoder.heads_at_start)
    if sac.steps <= sac.learning_starts:
        needs = f"more than learning_starts = {sac.learning_starts}, until when nothing is learned"
        raise ValueError(f"steps must be {needs}; got {sac.steps}")
