"""Drawing of the arm, of where it should be, and of its error."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_TAPER = 0.8
"""Each link is drawn this much shorter than the one before; the plant itself knows only inertias."""


class ArmDrawing:
    """One picture, redrawn at every frame: the arm and where it should be, and the error so far."""

    def __init__(self, joints: int, horizon: int, dt: float) -> None:
        self._figure = Figure(figsize=(8, 4), dpi=80, layout="constrained")
        self._canvas = FigureCanvasAgg(self._figure)
        self._dt = dt
        arm, error = self._figure.subplots(1, 2)
        self._links = _TAPER ** np.arange(joints)
        reach = 1.1 * self._links.sum()
        arm.set(
            xlim=(-0.3, reach), ylim=(-reach / 1.6, reach / 1.6), aspect="equal", title="arm and where it should be"
        )
        arm.set_axis_off()
        self._ghost = arm.plot([], [], "o-", color="0.75", linewidth=8, solid_capstyle="round")[0]
        self._arm = arm.plot([], [], "o-", color="tab:blue", linewidth=4, solid_capstyle="round")[0]
        error.set(
            xlim=(0, horizon * dt), ylim=(-0.2, 0.2), xlabel="time [s]", ylabel="error [rad]", title="tracking error"
        )
        error.axhline(0, color="0.8", linewidth=1)
        self._axes = error
        self._errors = [error.plot([], [], label=f"joint {joint + 1}")[0] for joint in range(joints)]
        error.legend(loc="upper right")

    def frame(self, q: npt.NDArray[Any], q_d: npt.NDArray[Any], errors: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """The picture at positions q, with the trajectory at q_d and the errors so far, shape (steps, joints); RGB."""
        self._arm.set_data(*self._points(q))
        self._ghost.set_data(*self._points(q_d))
        times = self._dt * np.arange(1, len(errors) + 1)
        for line, values in zip(self._errors, errors.T, strict=True):
            line.set_data(times, values)
        if errors.size and (largest := np.abs(errors).max()) > self._axes.get_ylim()[1]:
            self._axes.set_ylim(-1.2 * largest, 1.2 * largest)
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def _points(self, q: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The ends of the links, from the base to the tip."""
        angles = np.cumsum(q)
        x = np.concatenate([[0.0], np.cumsum(self._links * np.cos(angles))])
        y = np.concatenate([[0.0], np.cumsum(self._links * np.sin(angles))])
        return x, y
