"""The paper's own figures, as printed. Delta% in per cent of the baseline's RMSE."""

from dataclasses import dataclass

REGIMES = (1.0, 2.0, 5.0)
SEEDS_A_REGIME = 10
SWEPT_AT = 2.0
"""tau_z of Tables 2 and 3."""
STEPS = 50_000
"""Of every run."""
MINUTES_A_RUN = (20, 27)
"""On an A100, at least and at most: section 6 and the appendix."""
STATIC = "static K=7"
"""The one head count that the paper names for INCRT-1L, at tau_z = 2."""
BETA = 3
"""How many times the output of another head the largest is, at convergence, at most: appendix A."""


@dataclass(frozen=True)
class Printed:
    """What the paper prints of one cell; None where it prints nothing."""

    mean: float
    n: int
    half_width: float | None = None
    """Of the 95 % Student interval."""
    std: float | None = None
    failures: int | None = None
    schedule: float | None = None
    """Steps until the last head has grown, in thousands."""


CELLS = {
    ("static", "static", 1.0): Printed(-40.0, 10, failures=0),
    ("static", "static", 2.0): Printed(-35.0, 10, failures=0),
    ("static", "static", 5.0): Printed(5.0, 10, failures=4),
    ("main", "runtime", 1.0): Printed(-45.82, 10, 7.09, 9.91, failures=0),
    ("main", "runtime", 2.0): Printed(-50.85, 10, 8.38, 11.71, failures=0),
    ("main", "runtime", 5.0): Printed(-54.15, 10, 5.43, 7.59, failures=0),
    ("k_max", "K_max 2", 2.0): Printed(-57.21, 5, 8.64, 6.96),
    ("k_max", "K_max 4", 2.0): Printed(-48.97, 5, 9.81, 7.90),
    ("k_max", "K_max 8", 2.0): Printed(-50.84, 10, 8.38, 11.71),
    ("k_max", "K_max 16", 2.0): Printed(-43.82, 5, 12.78, 10.30),
    ("grace", "grace 1000", 2.0): Printed(-41.16, 5, 24.45, 19.69, failures=1, schedule=13.5),
    ("grace", "grace 2000", 2.0): Printed(-51.66, 5, 15.01, 12.09, failures=0, schedule=19.5),
    ("grace", "grace 5000", 2.0): Printed(-36.61, 5, 38.31, 30.85, failures=1, schedule=37.5),
}
"""By study, variant and tau_z."""
DIFFERENCES = {1.0: -5.8, 2.0: -15.8, 5.0: -59.1}
"""Runtime less static, in points, by tau_z: the last column of Table 1."""
GROWTHS = (1500, 4500, 7500, 10500, 13500, 16500, 19500)
"""Steps at which a head grows by its rules, in every regime."""
SATURATED_AT = GROWTHS[-1]
"""Step by which K = K_max. The text says "around 19 000"."""


def ratio(mean: float, other: float) -> float:
    """Of two RMSEs, from their Delta%."""
    return (100 + mean) / (100 + other)


def printed(study: str, variant: str, tau_z: float) -> Printed | None:
    """What the paper prints of a variant of a study; all variants with a fixed number of heads stand for INCRT-1L."""
    return CELLS.get((study, "static" if variant.startswith("static") else variant, tau_z))
