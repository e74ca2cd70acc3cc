"""Effective rank of recent contexts: the signal that asks for growth (paper, section 5.1), and three others beside it.

One text for NumPy and JAX (``xp``), for one run. Singular values are the roots of the eigenvalues of the Gram matrix,
which takes a third of the time of an SVD. Squaring loses half the digits, so this is done in double precision: in
single precision the noise of hundreds of small singular values moves the rank.
"""

from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np
import numpy.typing as npt

from incrt.config import RANKS
from incrt.config.rules import FRACTION, check, check_name
from incrt.layers import Array

_TIE = 1e-9
"""Relative slack at the energy threshold, so that rounding does not decide a tie."""


def effective_rank(tokens: npt.ArrayLike, kind: str = "energy", alpha: float = 0.95) -> float:
    """The rank of B_t: ``tokens`` are the latest N contexts, flattened, shape (N, W d_c).

    A token that is not finite is refused by its place.
    """
    check_name("rank", kind, RANKS)
    check("alpha", alpha, FRACTION)
    values = np.asarray(tokens, np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"tokens must have shape (N, W d_c), got {values.shape}")
    if not np.all(np.isfinite(values)):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"tokens must be finite, got {values[row, column]} in token {row} at {column}")
    return float(rank_of(values, kind, alpha, np))


def rank_of(tokens: Array, kind: str, alpha: float, xp: ModuleType) -> Array:
    """The same for arrays of ``xp``; in JAX many runs are a ``vmap``, and what is not finite gives NaN."""
    check_name("rank", kind, RANKS)
    if tokens.dtype != np.float64:
        raise ValueError(f"tokens must be float64 (in JAX under jax.enable_x64), got {tokens.dtype}")
    sigma = singular_values(tokens, xp)
    return energy_rank(sigma, alpha, xp) if kind == "energy" else _OTHER_RANKS[kind](sigma, xp)


def singular_values(tokens: Array, xp: ModuleType) -> Array:
    """Singular values of the tokens centred by column, largest first."""
    count, width = tokens.shape
    shifted = tokens - tokens[0]  # so that a constant column is zero exactly, and not what rounding leaves of it
    centred = shifted - xp.mean(shifted, axis=0)
    size = xp.max(xp.abs(centred))
    centred = centred / xp.where(size == 0, 1, size)  # so that squares neither overflow nor vanish
    gram = centred @ centred.T if count < width else centred.T @ centred
    eigenvalues = xp.linalg.eigvalsh(gram)[::-1]
    # What rounding leaves of a zero eigenvalue would count by its root, and there may be hundreds.
    rounding = max(count, width) * np.finfo(np.float64).eps * eigenvalues[0]
    return size * xp.sqrt(xp.where(eigenvalues <= rounding, 0, eigenvalues))


def energy_rank(sigma: Array, alpha: float, xp: ModuleType) -> Array:
    """The paper's: how many singular values make up the part alpha of their sum, eq. (18)."""
    total = xp.sum(sigma)
    reached = xp.cumsum(sigma) >= alpha * (1 - _TIE) * total
    return xp.where(xp.isfinite(total), 1.0 + xp.sum(~reached), xp.nan)


def entropy_rank(sigma: Array, xp: ModuleType) -> Array:
    """Roy and Vetterli's: the exponential of the entropy of the normalised singular values."""
    part = _part(sigma, 1, xp)
    return xp.exp(-xp.sum(part * xp.log(xp.where(part > 0, part, 1))))


def stable_rank(sigma: Array, xp: ModuleType) -> Array:
    """Squared Frobenius norm over squared spectral norm."""
    part = _part(sigma, 2, xp)
    return 1 / part[0]


def participation_ratio(sigma: Array, xp: ModuleType) -> Array:
    """(sum of eigenvalues)^2 over the sum of their squares: in how many directions the variance lies."""
    part = _part(sigma, 2, xp)
    return 1 / xp.sum(part**2)


def _part(sigma: Array, power: int, xp: ModuleType) -> Array:
    """Powers of the values over their sum; where all are zero, all of it is in the first, so that every rank is 1."""
    first = xp.where(xp.arange(len(sigma)) == 0, 1.0, 0.0)
    powers = xp.where(sigma[0] == 0, first, sigma / xp.where(sigma[0] == 0, 1, sigma[0])) ** power
    return powers / xp.sum(powers)


_OTHER_RANKS: Mapping[str, Callable[[Array, ModuleType], Array]] = {
    "entropy": entropy_rank,
    "stable": stable_rank,
    "participation": participation_ratio,
}
