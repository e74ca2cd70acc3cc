"""The shield: which gains are admissible at a state, and the nearest ones that are.

With V = 1/2 s' M_hat s and s = de + Lambda e, a constant M_hat and a constant Lambda, the law gives

    dV/dt = -sum s_i^2 K_d,i - s' eta + s' d,    d = F + (M - M_hat) ddq,

where d is the torque of friction and of the payload that the law does not know. For every |d_i| <= F_bar_i,
dV/dt <= -alpha V + epsilon follows from

    sum s_i^2 K_d,i + s' eta >= alpha V + sum |s_i| F_bar_i - epsilon.

Once Lambda is fixed this is affine in (K_d, eta): the admissible set is a half-space cut with the box. Outside the ball
V <= epsilon/alpha, V falls. Distances are measured in the unit cube [-1, 1]^dim that spans the box, because K_d and eta
have different units.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from incrt.arm.law import Gains, Law, tracking_error
from incrt.arm.plant import mass_times
from incrt.arm.trajectories import Target
from incrt.config import TaskConfig
from incrt.config.registry import as_array

_NEGLIGIBLE = 1e-9
"""Entries of the normal smaller than this fraction of its largest one do not help to reach the half-space."""
_VANISHING = 1e-18
"""A normal smaller than this has no direction; squares of smaller numbers underflow in single precision."""


class Shield(NamedTuple):
    """alpha, F_bar and epsilon of the admissibility condition."""

    rate: Array
    friction: Array
    slack: Array


class HalfSpace(NamedTuple):
    """{x : normal . x >= offset} in the unit cube of the box."""

    normal: Array
    offset: Array


class ShieldResult(NamedTuple):
    """What the shield made of the proposed gains."""

    gains: Gains
    distance: Array
    """Distance in the unit cube from the proposed to the admissible gains."""
    active: Array
    """Whether the proposed gains were changed."""
    feasible: Array
    """False where no gains of the box are admissible; then they are the least violating ones."""


def lyapunov(law: Law, q: Array, s: Array) -> Array:
    """V = 1/2 s' M_hat s."""
    return 0.5 * jnp.sum(s * mass_times(law.mass(q), s))


def admissible_set(shield: Shield, law: Law, target: Target, q: Array, dq: Array, lam: Array) -> HalfSpace:
    """The gains admissible at this state for the given Lambda."""
    s = tracking_error(target, q, dq, lam).s
    needed = shield.rate * lyapunov(law, q, s) + jnp.sum(jnp.abs(s) * shield.friction) - shield.slack
    normal = Gains(k_d=s**2, lam=jnp.zeros_like(s), eta=jnp.broadcast_to(s, law.box.lower.eta.shape))
    # In the unit cube, gains = middle + half_width * x.
    box = law.box
    middle = jax.tree.map(lambda low, high: (low + high) / 2, box.lower, box.upper)
    half_width = jax.tree.map(lambda low, high: (high - low) / 2, box.lower, box.upper)
    at_middle = jax.tree.reduce(jnp.add, jax.tree.map(lambda a, m: jnp.sum(a * m), normal, middle))
    scaled = jax.tree.leaves(jax.tree.map(lambda a, w: (a * w).ravel(), normal, half_width))
    return HalfSpace(jnp.concatenate(scaled), needed - at_middle)


def shielded(shield: Shield, law: Law, target: Target, q: Array, dq: Array, gains: Gains) -> ShieldResult:
    """The admissible gains nearest to the proposed ones."""
    half_space = admissible_set(shield, law, target, q, dq, gains.lam)
    proposed = law.box.to_unit(gains)
    point, feasible = project(proposed, half_space)
    active = jnp.any(point != proposed)
    # Gains that are admissible pass through untouched, to the last bit.
    chosen = jax.tree.map(lambda old, new: jnp.where(active, new, old), gains, law.box.clip(law.box.from_unit(point)))
    return ShieldResult(chosen, distance(point, proposed), active, feasible)


def distance(a: Array, b: Array) -> Array:
    """Euclidean distance, with gradient zero where the points coincide."""
    squared = jnp.sum((a - b) ** 2)
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)


def project(point: Array, half_space: HalfSpace) -> tuple[Array, Array]:
    """Nearest point of the unit cube cut with a half-space, and whether there is one.

    The answer is clip(point + mu a, -1, 1), where mu >= 0 is the root of a rising piecewise linear function whose kinks
    are known. Without one, the vertex that misses the half-space least is returned.
    """
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(half_space.normal)))
    scale = jnp.where(largest > _VANISHING, largest, 1)
    a, b = half_space.normal / scale, half_space.offset / scale
    usable = (largest > _VANISHING) & (jnp.abs(a) > _NEGLIGIBLE)
    a = jnp.where(usable, a, 0)
    feasible = jnp.sum(jnp.abs(a)) >= b

    def moved(mu: Array) -> Array:
        return jnp.clip(point + mu[..., None] * a, -1, 1)

    # Where each coordinate reaches either side of the cube. The root lies between the last of these kinks that is short
    # of the half-space and the first that is not; no gradient is needed to know which two.
    divisor = jnp.where(usable, a, 1)
    kinks = jnp.concatenate([(-1 - point) / divisor, (1 - point) / divisor])
    kinks = jax.lax.stop_gradient(jnp.where(jnp.tile(usable, 2), jnp.maximum(kinks, 0), 0))
    short = jnp.sum(moved(kinks) * a, -1) < b
    before = jnp.max(jnp.where(short, kinks, 0))
    after = jnp.min(jnp.where(short, jnp.inf, kinks))
    after = jnp.where(jnp.isfinite(after), after, before)
    between = (before + after) / 2

    # There the free coordinates are known, and the root is the ratio of two sums.
    free = usable & (jnp.abs(point + between * a) < 1)
    free_a = jnp.where(free, a, 0)
    missing = b - jnp.sum(jnp.where(free, a * point, a * moved(between)))
    slope = jnp.sum(free_a**2)
    mu = jnp.where(slope > 0, missing / jnp.where(slope > 0, slope, 1), after)
    vertex = jnp.where(usable, jnp.sign(a), jnp.clip(point, -1, 1))

    # What misses the half-space by no more than rounding is left alone; so a projected point stays where it is.
    inside = jnp.clip(point, -1, 1)
    rounding = 2 * np.finfo(a.dtype).eps * jnp.sum(jnp.abs(a))
    onto = jnp.where(feasible, moved(jnp.maximum(mu, 0)), vertex)
    return jnp.where(jnp.sum(a * inside) >= b - rounding, inside, onto), feasible


def slack_needed(shield: Shield, law: Law, postures: Array, k_d: npt.ArrayLike) -> float:
    """The smallest epsilon with which K_d and eta = 0 are admissible at every velocity and error in these postures.

    In one posture that is the largest value of sum |s_i| F_bar_i - s' A s, with A = K_d - alpha/2 M_hat: infinite
    unless A is positive definite, else 1/4 b' A^-1 b for the worst choice of signs in b_i = +-F_bar_i.
    """
    mass = np.asarray(_masses(law, postures), float)
    whole = mass if mass.ndim == 3 else mass[:, :, None] * np.eye(mass.shape[-1])
    a = np.diag(np.asarray(k_d, float)) - float(shield.rate) / 2 * whole
    if np.linalg.eigvalsh(a).min() <= 0:
        return math.inf
    inverse, bound = np.linalg.inv(a), np.asarray(shield.friction, float)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(bound) - 1))).reshape(-1, len(bound) - 1)
    corners = bound * np.concatenate([np.ones((len(signs), 1)), signs], axis=1)  # b and -b give the same
    return float(np.max(np.einsum("ci,pij,cj->pc", corners, inverse, corners)) / 4)


@jax.jit
def _masses(law: Law, postures: Array) -> Array:
    """M_hat in each of these postures."""
    return jax.vmap(law.mass)(postures)


def _above(number: float) -> str:
    """The number with four digits, not rounded down: what a message asks for must do."""
    digits = 3 - math.floor(math.log10(number))
    return f"{math.ceil(number * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def make_shield(config: TaskConfig, law: Law, postures: Array, dtype: Any = jnp.float32) -> Shield:
    """The shield with the numbers of a configuration; one that refuses the baseline's gains is refused.

    ``postures`` of shape (postures, n) are those in which it is looked at: the mass matrix may differ between them.
    """
    shield = Shield(
        rate=as_array(config.shield_rate, dtype),
        friction=as_array(config.shield_friction, dtype),
        slack=as_array(config.shield_slack, dtype),
    )
    if config.shield:
        needed = slack_needed(shield, law, postures, np.asarray(config.by_joint("baseline_k_d"), dtype))
        if math.isinf(needed):
            raise ValueError(
                f"the shield refuses the baseline's gains whatever its slack: baseline_k_d = {config.baseline_k_d} "
                f"must exceed shield_rate/2 = {config.shield_rate / 2:g} 1/s times the law's mass matrix, at home and "
                "along the trajectory"
            )
        if needed > config.shield_slack:
            raise ValueError(
                f"the shield refuses the baseline's gains: shield_slack must be at least {_above(needed)}, so that "
                f"they are admissible at home and along the trajectory; got {config.shield_slack:g}"
            )
    return shield
