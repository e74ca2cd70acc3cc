"""A controller of one's own: a PID that gives its own torque, beside an observer that feeds the law forward.

A controller is a record of arrays with ``start`` and ``act`` (incrt.controllers.base.Controller). What ``act`` returns
first is either Gains, which go through shield and law, or a torque. Run with ``python examples/own_controller.py``.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

import incrt
from incrt.arm.task import Params
from incrt.controllers.base import ControllerInput
from incrt.controllers.tuning import tune


class Pid(NamedTuple):
    """torque = P e + I integral(e) + D de, joint by joint; at the torque limit the integral stands still."""

    p: Array
    i: Array
    d: Array

    def start(self, params: Params, seen: ControllerInput) -> Array:
        """The integral of the error."""
        return jnp.zeros_like(seen.q)

    def act(self, params: Params, memory: Array, seen: ControllerInput) -> tuple[Array, Array]:
        """The torque, and the integral after this step."""
        e, de = seen.target.q - seen.q, seen.target.dq - seen.dq
        torque = self.p * e + self.i * memory + self.d * de
        grows = jnp.abs(torque) < params.law.torque_limit
        return torque, memory + jnp.where(grows, params.plant.dt * e, 0)


def make(params: Params, point: Array) -> Pid:
    """The PID at a point of [-1, 1]^3: stiffness, damping, speed of the integral; heavy joints get more."""
    mass = params.law.mass(jnp.zeros(2))
    stiff = 10.0 ** (2 + point[0])
    damping = 10.0 ** (1 + point[1] / 2)
    return Pid(p=mass * stiff, i=mass * stiff * 10.0 ** point[2], d=mass * damping)


def main(**changes: Any) -> None:
    """Tune the PID as the others are tuned, on the evaluation's error, and print them side by side."""
    task = incrt.preset("memory", task={"torque_limit": (60.0, 40.0), **changes}).task
    controllers: dict[str, Any] = {"PID": tune(task, make, dim=3)}
    controllers |= {name: incrt.reference_controller(name, task) for name in ("baseline", "observer")}
    for name, controller in controllers.items():
        metrics, _ = incrt.evaluate(task, controller)
        print(f"{name:10s} RMSE {metrics.rmse:.4f} rad, total variation of the torque {metrics.torque_tv:.0f} N m")


if __name__ == "__main__":
    main()
