"""What can be set of the task: arm, trajectory, control law, shield and evaluation."""

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from incrt.config.registry import FRICTIONS, ROBOTS, TRAJECTORIES, description, file_digests
from incrt.config.rules import (
    COUNT,
    FLAG,
    INDEX,
    JOINT_RANGES,
    JOINT_VALUES,
    NON_NEGATIVE,
    POSITIVE,
    RANGE,
    Configuration,
    documented,
    list_of,
    optional,
    per_joint,
    setting,
)

SUCCESS_RMSE = 0.10
"""A policy succeeds if its evaluation RMSE is below this many radians (paper, section 6)."""

TASK_PARTS = ("robot", "model", "friction", "trajectory")
"""The fields that hold a part, which may be of the user's own."""


@documented
@dataclass(frozen=True, eq=False)
class TaskConfig(Configuration):
    """The task: an arm whose friction has memory, the trajectory it is to follow, and the law that a policy tunes.

    The defaults are preset ``memory``; :func:`incrt.preset` builds the others. Equal configurations describe the same
    task: objects of the user's own are equal if their class and numbers are.
    """

    # --- the arm ---------------------------------------------------------------------------------------------
    robot: Any = setting("two_link", ROBOTS.rule, "The arm that is moved.")
    friction: Any = setting("stribeck", FRICTIONS.rule, "What its joints lose, and the memory that no sensor sees.")
    tau_z: float = setting(5.0, POSITIVE, "Memory horizon of the friction: how fast the hidden state z fades.", "s")
    dt: float = setting(0.01, POSITIVE, "Control interval.", "s")
    substeps: int = setting(2, COUNT, "Integration steps in one control interval.")
    inertia: tuple[float, ...] = setting(
        (1.2, 0.6),
        per_joint(POSITIVE),
        "Of robot two_link: inertia of each joint without payload.",
        "kg m^2",
        of="two_link",
    )
    payload_inertia: tuple[float, ...] = setting(
        (0.8, 0.4),
        per_joint(NON_NEGATIVE),
        "Of robot two_link: inertia that one kilogram of payload adds.",
        "m^2",
        of="two_link",
    )
    coulomb: tuple[float, ...] = setting(
        (12.42, 8.28), per_joint(NON_NEGATIVE), "F_c: dry friction of a joint that slides fast.", "N m", of="stribeck"
    )
    breakaway: tuple[float, ...] = setting(
        (18.63, 12.42),
        per_joint(NON_NEGATIVE),
        "F_s: torque below which a joint at rest stays at rest; at least F_c.",
        "N m",
        of="stribeck",
    )
    stribeck_velocity: float = setting(
        0.1, POSITIVE, "v_s: velocity scale on which dry friction falls from F_s to F_c.", "rad/s", of="stribeck"
    )
    viscous: tuple[float, ...] = setting(
        (3.105, 2.07), per_joint(NON_NEGATIVE), "sigma: viscous friction.", "N m s/rad", of="stribeck"
    )
    memory_gain: tuple[float, ...] = setting(
        (24.84, 20.7),
        per_joint(NON_NEGATIVE),
        "lambda_z: how strongly motion feeds the hidden state, dz/dt = -z/tau_z + lambda_z dq.",
        "N m/rad",
        of="stribeck",
    )

    # --- the episode -----------------------------------------------------------------------------------------
    horizon: int = setting(500, COUNT, "T: control steps in an episode.")
    window: int = setting(20, COUNT, "W: step-observations in a context.")
    trajectory: Any = setting("paper", TRAJECTORIES.rule, "The trajectory to follow; a .csv file is one too.")
    payload_range: tuple[float, ...] = setting(
        (0.0, 1.5), RANGE, "Lowest and highest payload drawn for an episode.", "kg"
    )
    payload_nominal: float = setting(0.75, NON_NEGATIVE, "The payload that the control law believes in.", "kg")
    payload_std: float = setting(
        0.05, NON_NEGATIVE, "Standard deviation of the payload estimate, drawn once an episode.", "kg"
    )
    initial_std: float = setting(
        0.01, NON_NEGATIVE, "Standard deviation of the joint positions around q_d(0) when an episode starts.", "rad"
    )
    reward_error: float = setting(1.0 / 0.13**2, NON_NEGATIVE, "Weight of |e|^2 in the reward.")
    reward_velocity: float = setting(0.01, NON_NEGATIVE, "Weight of |de|^2 in the reward.")
    noise_position: float = setting(0.0, NON_NEGATIVE, "Standard deviation of the measured joint positions.", "rad")
    noise_velocity: float = setting(0.0, NON_NEGATIVE, "Standard deviation of the measured joint velocities.", "rad/s")
    delay: int = setting(0, INDEX, "Control steps between computing a torque and applying it.")

    # --- the control law and its box P -----------------------------------------------------------------------
    model: Any = setting(
        None, optional(ROBOTS.rule), "The law's model of the arm, a robot like any other; None for the arm itself."
    )
    k_d_range: tuple[Any, ...] = setting((20.0, 40.0), JOINT_RANGES, "Lowest and highest K_d.", "N m s/rad")
    lam_range: tuple[Any, ...] = setting((4.0, 6.0), JOINT_RANGES, "Lowest and highest Lambda.", "1/s")
    eta_max: tuple[float, ...] = setting(
        (25.0, 20.0), per_joint(NON_NEGATIVE), "Largest feed-forward torque of each joint.", "N m"
    )
    tanh_velocity: float = setting(
        0.05, POSITIVE, "v0: velocity on which a friction model tanh(dq/v0), without stick, changes its sign.", "rad/s"
    )
    torque_limit: tuple[float, ...] | None = setting(
        None, optional(per_joint(POSITIVE)), "Largest torque of each joint; None for the robot's own.", "N m"
    )
    baseline_k_d: float | tuple[float, ...] = setting(
        30.0, JOINT_VALUES, "K_d of the computed-torque baseline.", "N m s/rad"
    )
    baseline_lam: float | tuple[float, ...] = setting(
        5.0, JOINT_VALUES, "Lambda of the computed-torque baseline.", "1/s"
    )

    # --- the shield ------------------------------------------------------------------------------------------
    shield: bool = setting(
        default=True, rule=FLAG, about="Whether gains are projected onto the admissible set before they are used."
    )
    shield_rate: float = setting(10.0, POSITIVE, "alpha: rate at which V must fall outside the ball.", "1/s")
    shield_friction: tuple[float, ...] = setting(
        (33.0, 20.0),
        per_joint(NON_NEGATIVE),
        "F_bar: bound on the torque that friction and an unknown payload exert on each joint.",
        "N m",
    )
    shield_slack: float = setting(30.0, NON_NEGATIVE, "epsilon: V must fall wherever V > epsilon/alpha.", "N m rad/s")

    # --- the evaluation --------------------------------------------------------------------------------------
    eval_payloads: tuple[float, ...] = setting(
        (0.0, 0.375, 0.75, 1.125, 1.5),
        list_of(NON_NEGATIVE),
        "Payloads to evaluate on; they may lie outside payload_range.",
        "kg",
    )
    eval_rollouts: int = setting(
        3, COUNT, "Rollouts for each payload; they differ in the initial position and in the payload estimate."
    )
    eval_seed: int = setting(0, INDEX, "Seed of those differences.")

    def check_relations(self) -> None:
        if self.dof == 0:
            raise ValueError("eta_max must have at least one entry, one a joint; got none")
        one_a_joint = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if self._has_one_a_joint(field)
        }
        wrong = {name: values for name, values in one_a_joint.items() if values is not None and len(values) != self.dof}
        if wrong:  # all of them at once: with another number of joints there are many
            got = ", ".join(f"{name} {values!r}" for name, values in wrong.items())
            raise ValueError(f"{', '.join(wrong)} must have {self.dof} entries, one a joint as eta_max; got {got}")
        for name in ("k_d_range", "lam_range", "baseline_k_d", "baseline_lam"):
            self.by_joint(name)
        self._check_payloads()
        if self.friction == "stribeck":
            for joint, (coulomb, breakaway) in enumerate(zip(self.coulomb, self.breakaway, strict=True)):
                if breakaway < coulomb:
                    where = f"{breakaway!r} < {coulomb!r} at joint {joint}"
                    raise ValueError(f"breakaway must be at least coulomb, got {where}")
        self._check_inside("payload_nominal", "payload_range", [(self.payload_nominal, self.payload_range)])
        for name, span in (("baseline_k_d", "k_d_range"), ("baseline_lam", "lam_range")):
            self._check_inside(name, span, list(zip(self.by_joint(name), self.by_joint(span), strict=True)))

    def _check_payloads(self) -> None:
        if not self.eval_payloads:
            raise ValueError("eval_payloads must hold at least one payload")
        if len(set(self.eval_payloads)) < len(self.eval_payloads):
            raise ValueError(f"eval_payloads must differ from each other, got {self.eval_payloads!r}")

    def _check_inside(self, name: str, span: str, pairs: list[tuple[Any, Any]]) -> None:
        for value, (low, high) in pairs:
            if not low <= value <= high:
                raise ValueError(f"{name} must lie in {span} = [{low}, {high}], got {value!r}")

    def _has_one_a_joint(self, field: dataclasses.Field[Any]) -> bool:
        """Whether a field must have one entry a joint: the numbers of a robot or friction that is not here need not."""
        of = field.metadata["of"]
        return field.metadata["rule"].one_a_joint and (of is None or of in (self.robot, self.model, self.friction))

    def by_joint(self, name: str) -> tuple[Any, ...]:
        """A field that may be given for all joints at once, one entry a joint."""
        value = getattr(self, name)
        is_one = not isinstance(value, tuple) or (name.endswith("range") and not isinstance(value[0], tuple))
        values = (value,) * self.dof if is_one else value
        if len(values) != self.dof:
            raise ValueError(f"{name} must be given once, or {self.dof} times, one a joint; got {value!r}")
        return values

    @property
    def dof(self) -> int:
        """n: number of joints."""
        return len(self.eta_max)

    @property
    def observation_dim(self) -> int:
        """d_c = 4n + 3: q, dq, q_d, dq_d, payload estimate, friction-regime estimate, phase."""
        return 4 * self.dof + 3

    @property
    def action_dim(self) -> int:
        """dim P: K_d, Lambda and eta of each joint."""
        return 3 * self.dof

    @property
    def memory_coverage(self) -> float:
        """W dt / tau_z: the fraction of the memory horizon that a context sees. The paper's lower bound is 1."""
        return self.window * self.dt / self.tau_z

    def files(self) -> dict[str, str]:
        """The files that its parts are made of, each with a digest of its content.

        Equal configurations whose files differ are not the same task: what is kept by configuration is kept by both.
        """
        return file_digests(getattr(self, name) for name in TASK_PARTS)

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it; an object of the user's own by its class and a digest of its numbers."""
        return dict(json.loads(self._text))

    @cached_property
    def _text(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json.dumps({name: description(value) if name in TASK_PARTS else value for name, value in fields.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskConfig) or self._text != other._text:
            return False
        # A class that was written anew, in a notebook for example, has the same name and does something else.
        return all(type(getattr(self, name)) is type(getattr(other, name)) for name in TASK_PARTS)

    def __hash__(self) -> int:
        return hash(self._text)
