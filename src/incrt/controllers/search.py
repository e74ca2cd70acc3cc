"""A small deterministic optimiser for functions that are cheap in batches and not smooth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

Floats: TypeAlias = npt.NDArray[np.float64]

_SAMPLES = 64
_DESCENTS = 3
_FIRST_STEP = 0.25
_LAST_STEP = 1e-3


@dataclass(frozen=True)
class Minimum:
    """Where the search ended."""

    point: tuple[float, ...]
    value: float


def minimise(objective: Callable[[Array], Array], dim: int) -> Minimum:
    """Minimise over the cube [-1, 1]^dim.

    ``objective`` takes a batch of points, shape (batch, dim), and is always called with the same batch size. From the
    centre, and from the best points of an even sample of the cube, compass search goes down: try a step along each axis
    both ways, move to the best, halve the step when none is better. No gradient is needed, so stick and saturation do
    no harm.
    """
    axes = np.concatenate([np.eye(dim), -np.eye(dim)])

    def values(points: Floats) -> Floats:
        found = np.asarray(objective(jnp.asarray(points)), float)
        return np.where(np.isfinite(found), found, np.inf)

    def descend(point: Floats) -> Minimum:
        best, step = np.inf, _FIRST_STEP
        while step >= _LAST_STEP:
            nearby = np.clip(point + step * axes, -1, 1)
            found = values(nearby)
            if found.min() < best:
                best, point = found.min(), nearby[found.argmin()]
            else:
                step /= 2
        return Minimum(tuple(float(x) for x in point), float(best))

    sample = even_sample(-(-_SAMPLES // (2 * dim)), 2 * dim, dim)
    promising = np.argsort(np.concatenate([values(batch) for batch in sample]), kind="stable")[:_DESCENTS]
    found = [descend(point) for point in (np.zeros(dim), *sample.reshape(-1, dim)[promising])]
    return min(found, key=lambda minimum: minimum.value)


def even_sample(batches: int, size: int, dim: int) -> Floats:
    """Points spread evenly over [-1, 1]^dim: the additive recurrence of the generalised golden ratio."""
    ratio = 2.0
    for _ in range(64):  # converges to the root of x^(dim+1) = x + 1
        ratio = (1 + ratio) ** (1 / (dim + 1))
    stride = ratio ** -np.arange(1.0, dim + 1)
    points = 2 * np.mod(0.5 + np.outer(np.arange(batches * size), stride), 1) - 1
    return points.reshape(batches, size, dim)
