"""What can be set of Soft Actor-Critic (the paper's appendix B)."""

from dataclasses import dataclass

from incrt.config.rules import (
    ANY,
    COUNT,
    FLAG,
    FRACTION,
    INDEX,
    NON_NEGATIVE,
    POSITIVE,
    UP_TO_ONE,
    Configuration,
    documented,
    list_of,
    optional,
    setting,
)


@documented
@dataclass(frozen=True)
class SacConfig(Configuration):
    """Soft Actor-Critic with a learned temperature, and the penalty that keeps its actions admissible."""

    steps: int = setting(
        50_000, COUNT, "Environment steps of a run; from learning_starts on each is followed by one update."
    )
    buffer: int = setting(50_000, COUNT, "Transitions that the replay buffer holds; the oldest give way.")
    learning_starts: int = setting(100, INDEX, "Steps of random actions before the first update.")
    batch: int = setting(256, COUNT, "Transitions of one update.")
    learning_rate: float = setting(3e-4, POSITIVE, "Of actor, critic and temperature alike.")
    gamma: float = setting(0.99, FRACTION, "Discount factor.")
    tau: float = setting(
        0.005, UP_TO_ONE, "Fraction of the way that the target critic goes towards the critic at each update."
    )
    hidden: tuple[int, ...] = setting(
        (64, 64), list_of(COUNT), "Widths of the layers between features and outputs, of actor and critic alike."
    )
    target_entropy: float | None = setting(
        None, optional(ANY), "Entropy that the temperature holds; None stands for minus the number of actions."
    )
    evaluations: int = setting(
        0,
        INDEX,
        "Episodes of the deterministic policy at each check; their mean return stands in metrics.jsonl.",
        later=True,
    )
    penalty: bool = setting(
        default=True,
        rule=FLAG,
        about="Whether the distance of the actor's actions to the admissible ones joins its loss, under a shield.",
    )
    penalty_limit: float = setting(
        1e-3, NON_NEGATIVE, "Mean distance up to which the penalty's multiplier falls, and beyond which it rises."
    )
    penalty_rate: float = setting(1e-2, NON_NEGATIVE, "How fast the multiplier follows.")
