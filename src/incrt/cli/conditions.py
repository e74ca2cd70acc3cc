"""What controllers can be tested on beside what they were tuned or trained for."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Options that change the test."""

    payloads: tuple[float, ...] | None = None
    """Payloads to test on [kg]; they may lie outside the range of the preset."""
    reference: str | None = None
    """Name of the trajectory to follow."""
    noise_position: float | None = None
    """Standard deviation of the measured positions [rad]."""
    noise_velocity: float | None = None
    """Standard deviation of the measured velocities [rad/s]."""
    delay: int | None = None
    """Control steps between computing a torque and applying it."""

    @property
    def conditions(self) -> dict[str, Any]:
        """The fields of the bench that are to change."""
        options = {
            "eval_payloads": self.payloads,
            "reference": self.reference,
            "noise_position": self.noise_position,
            "noise_velocity": self.noise_velocity,
            "delay": self.delay,
        }
        return {name: value for name, value in options.items() if value is not None}
