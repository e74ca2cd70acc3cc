"""What a controller is: it chooses gains inside the box P, or a torque of its own."""

from typing import Any, NamedTuple, Protocol

from jax import Array

from incrt.arm.law import Gains
from incrt.arm.task import Params, State
from incrt.arm.trajectories import Target


class ControllerInput(NamedTuple):
    """What a controller is shown at a control step."""

    observation: Array
    q: Array
    dq: Array
    payload_estimate: Array
    target: Target
    torque: Array
    """The torque applied during the step before."""
    truth: State
    """The whole state, z and payload included. Only the clairvoyant may look."""


class Controller(Protocol):
    """A record of numbers with two functions, so that a batch of controllers is one more ``vmap``.

    A controller is a pytree of arrays, such as a NamedTuple, and so is whatever it remembers between two steps.
    """

    def start(self, params: Params, seen: ControllerInput) -> Any:
        """The memory at the start of an episode."""

    def act(self, params: Params, memory: Any, seen: ControllerInput) -> tuple[Gains | Array, Any]:
        """The gains for this step, or its torque [N m] of shape (n,), and the memory for the next.

        Gains go through shield and law, as a policy's do; a torque goes to the joints, within their limits.
        """
