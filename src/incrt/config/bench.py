"""What can be set of the bench."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from incrt.config.rules import (
    COUNT,
    INDEX,
    LARGEST,
    NON_NEGATIVE,
    POSITIVE,
    Configuration,
    check,
    check_flag,
    check_name,
    numbers,
    settle_scalars,
)

FEATURES = ("identity", "tanh_viscous")
"""Names of the feed-forward feature matrix Phi: ``identity``, or tanh(dq/v0) and dq side by side."""

# Each joint's reference is a sum of sines (amplitude [rad], angular frequency [rad/s], phase [rad]).
REFERENCES: Mapping[str, tuple[tuple[tuple[float, float, float], ...], ...]] = {
    # The paper's q_d(t) = (0.5 sin t, 0.3 sin 1.5 t); the others are for tests outside training.
    "paper": (((0.5, 1.0, 0.0),), ((0.3, 1.5, 0.0),)),
    "slow": (((0.5, 0.5, 0.0),), ((0.3, 0.75, 0.0),)),
    "fast": (((0.5, 2.0, 0.0),), ((0.3, 3.0, 0.0),)),
    "shifted": (((0.5, 1.0, math.pi / 2),), ((0.3, 1.5, math.pi / 2),)),
    "two_tone": (((0.35, 1.0, 0.0), (0.15, 2.7, 0.0)), ((0.2, 1.5, 0.0), (0.1, 4.1, 0.0))),
}

SUCCESS_RMSE = 0.10
"""A policy succeeds if its evaluation RMSE is below this many radians (paper, section 6)."""


@dataclass(frozen=True)
class BenchConfig(Configuration):
    """The bench: plant, control law, shield, task and evaluation.

    The defaults are preset ``memory``; :func:`incrt.config.preset` builds the others. A field that holds a tuple has
    one entry per joint, unless its text says otherwise.
    """

    # --- the plant -------------------------------------------------------------------------------------------
    tau_z: float = 5.0
    """Memory horizon of the friction [s]: how fast the hidden state z fades."""
    dt: float = 0.01
    """Control interval [s]."""
    substeps: int = 2
    """Integration steps in one control interval."""
    inertia: tuple[float, ...] = (1.2, 0.6)
    """Inertia of each joint without payload [kg m^2]."""
    payload_inertia: tuple[float, ...] = (0.8, 0.4)
    """Inertia that one kilogram of payload adds to each joint [m^2]."""
    coulomb: tuple[float, ...] = (12.42, 8.28)
    """F_c: dry friction of a joint that slides fast [N m]."""
    breakaway: tuple[float, ...] = (18.63, 12.42)
    """F_s: torque below which a joint at rest stays at rest [N m]; at least F_c."""
    stribeck_velocity: float = 0.1
    """v_s: velocity scale on which dry friction falls from F_s to F_c [rad/s]."""
    viscous: tuple[float, ...] = (3.105, 2.07)
    """sigma: viscous friction [N m s/rad]."""
    memory_gain: tuple[float, ...] = (24.84, 20.7)
    """lambda_z: how strongly motion feeds the hidden state, dz/dt = -z/tau_z + lambda_z dq [N m/rad]."""

    # --- the task --------------------------------------------------------------------------------------------
    horizon: int = 500
    """T: control steps in an episode."""
    window: int = 20
    """W: step-observations in a context."""
    reference: str = "paper"
    """Name of the trajectory to follow, one of REFERENCES."""
    payload_range: tuple[float, float] = (0.0, 1.5)
    """Lowest and highest payload drawn for an episode [kg]."""
    payload_nominal: float = 0.75
    """The payload that the control law believes in [kg]."""
    payload_std: float = 0.05
    """Standard deviation of the payload estimate, drawn once an episode [kg]."""
    initial_std: float = 0.01
    """Standard deviation of the joint positions around q_d(0) at the start of an episode [rad]."""
    reward_error: float = 1.0 / 0.13**2
    """Weight of |e|^2 in the reward."""
    reward_velocity: float = 0.01
    """Weight of |de|^2 in the reward."""
    noise_position: float = 0.0
    """Standard deviation of the measured joint positions [rad]."""
    noise_velocity: float = 0.0
    """Standard deviation of the measured joint velocities [rad/s]."""
    delay: int = 0
    """Control steps between computing a torque and applying it."""

    # --- the control law and its box P ---------------------------------------------------------------------------
    k_d_range: tuple[float, float] = (20.0, 40.0)
    """Lowest and highest K_d, the same for every joint [N m s/rad]."""
    lam_range: tuple[float, float] = (4.0, 6.0)
    """Lowest and highest Lambda, the same for every joint [1/s]."""
    eta_max: tuple[float, ...] = (25.0, 20.0)
    """Largest feed-forward weight of each joint, for each of its features."""
    features: str = "identity"
    """Name of the feature matrix Phi, one of FEATURES."""
    tanh_velocity: float = 0.05
    """v0 in the feature tanh(dq/v0) [rad/s]."""
    torque_limit: tuple[float, ...] | None = None
    """Largest torque of each joint [N m]; None for no limit."""
    baseline_k_d: float = 30.0
    """K_d of the computed-torque baseline."""
    baseline_lam: float = 5.0
    """Lambda of the computed-torque baseline."""

    # --- the shield ----------------------------------------------------------------------------------------------
    shield: bool = True
    """Whether gains are projected onto the admissible set before they are used."""
    shield_rate: float = 10.0
    """alpha: rate at which V must fall outside the ball [1/s]."""
    shield_friction: tuple[float, ...] = (33.0, 20.0)
    """F_bar: bound on the torque that friction and an unknown payload exert on each joint [N m]."""
    shield_slack: float = 30.0
    """epsilon: V must fall wherever V > epsilon/alpha [N m rad/s]."""

    # --- the evaluation ------------------------------------------------------------------------------------------
    eval_payloads: tuple[float, ...] = (0.0, 0.375, 0.75, 1.125, 1.5)
    """Payloads to evaluate on [kg]; they may lie outside payload_range."""
    eval_rollouts: int = 3
    """Rollouts for each payload; they differ in the initial position and in the payload estimate."""
    eval_seed: int = 0
    """Seed of those differences."""

    def __post_init__(self) -> None:
        settle_scalars(self, _SCALARS, _WHOLE)
        _settle_lists(self)
        _check_payloads(self)
        check_name("features", self.features, FEATURES)
        check_name("reference", self.reference, tuple(REFERENCES))
        check_flag("shield", self.shield)
        _check_relations(self)

    @property
    def dof(self) -> int:
        """n: number of joints."""
        return len(self.inertia)

    @property
    def observation_dim(self) -> int:
        """d_c = 4n + 3: q, dq, q_d, dq_d, payload estimate, friction-regime estimate, phase."""
        return 4 * self.dof + 3

    @property
    def feature_blocks(self) -> int:
        """Features of each joint in Phi."""
        return 1 if self.features == "identity" else 2

    @property
    def action_dim(self) -> int:
        """dim P: K_d and Lambda of each joint, and eta of each joint and feature."""
        return (2 + self.feature_blocks) * self.dof

    @property
    def memory_coverage(self) -> float:
        """W dt / tau_z: the part of the memory horizon that a context sees. The paper's lower bound is 1."""
        return self.window * self.dt / self.tau_z


_SCALARS = {
    "tau_z": POSITIVE,
    "dt": POSITIVE,
    "stribeck_velocity": POSITIVE,
    "payload_nominal": NON_NEGATIVE,
    "payload_std": NON_NEGATIVE,
    "initial_std": NON_NEGATIVE,
    "reward_error": NON_NEGATIVE,
    "reward_velocity": NON_NEGATIVE,
    "noise_position": NON_NEGATIVE,
    "noise_velocity": NON_NEGATIVE,
    "tanh_velocity": POSITIVE,
    "baseline_k_d": POSITIVE,
    "baseline_lam": POSITIVE,
    "shield_rate": POSITIVE,
    "shield_slack": NON_NEGATIVE,
}
_WHOLE = {
    "substeps": COUNT,
    "horizon": COUNT,
    "window": COUNT,
    "eval_rollouts": COUNT,
    "delay": INDEX,
    "eval_seed": INDEX,
}
_PER_JOINT = {
    "inertia": POSITIVE,
    "payload_inertia": NON_NEGATIVE,
    "coulomb": NON_NEGATIVE,
    "breakaway": NON_NEGATIVE,
    "viscous": NON_NEGATIVE,
    "memory_gain": NON_NEGATIVE,
    "eta_max": NON_NEGATIVE,
    "torque_limit": POSITIVE,
    "shield_friction": NON_NEGATIVE,
}
_RANGES = ("payload_range", "k_d_range", "lam_range")


def _settle_lists(config: BenchConfig) -> None:
    """Turn lists into tuples of Python numbers, and check each against its rule."""
    for name in (*_PER_JOINT, *_RANGES, "eval_payloads"):
        if name != "torque_limit" or config.torque_limit is not None:
            object.__setattr__(config, name, numbers(name, getattr(config, name)))
    for name, rule in _PER_JOINT.items():
        values = getattr(config, name)
        if values is None:  # no torque limit
            continue
        if len(values) != max(config.dof, 1):
            raise ValueError(f"{name} must have {max(config.dof, 1)} entries, one per joint; got {values!r}")
        for value in values:
            check(name, value, rule)
    for name in _RANGES:
        values = getattr(config, name)
        if len(values) != 2 or not (0 <= values[0] <= values[1] <= LARGEST):
            raise ValueError(f"{name} must be (min, max) with 0 <= min <= max <= {LARGEST:g}, got {values!r}")


def _check_payloads(config: BenchConfig) -> None:
    """Refuse payloads that cannot be evaluated."""
    if not config.eval_payloads:
        raise ValueError("eval_payloads must hold at least one payload")
    if len(set(config.eval_payloads)) < len(config.eval_payloads):
        raise ValueError(f"eval_payloads must differ from each other, got {config.eval_payloads!r}")
    for value in config.eval_payloads:
        check("eval_payloads", value, NON_NEGATIVE)


def _check_relations(config: BenchConfig) -> None:
    """Refuse fields that contradict each other."""
    for joint, (coulomb, breakaway) in enumerate(zip(config.coulomb, config.breakaway, strict=True)):
        if breakaway < coulomb:
            raise ValueError(f"breakaway must be at least coulomb, got {breakaway!r} < {coulomb!r} at joint {joint}")
    inside = {"payload_nominal": "payload_range", "baseline_k_d": "k_d_range", "baseline_lam": "lam_range"}
    for name, span in inside.items():
        low, high = getattr(config, span)
        if not low <= getattr(config, name) <= high:
            raise ValueError(f"{name} must lie in {span} = [{low}, {high}], got {getattr(config, name)!r}")
