"""Effective rank of recent contexts: the signal by which the paper's rule asks for growth (section 5.1).

Singular values are the roots of the eigenvalues of the Gram matrix, which takes a third of the time of an SVD. Squaring
loses half the digits, so this is done in double precision: in single precision the noise of hundreds of small singular
values moves the rank.
"""

import numpy as np
import numpy.typing as npt

from incrt.config.rules import FRACTION

Floats = npt.NDArray[np.float64]

_TIE = 1e-9
"""Relative slack at the energy threshold, so that rounding does not decide a tie."""


def effective_rank(tokens: npt.ArrayLike, alpha: float = 0.95) -> float:
    """The rank of B_t: ``tokens`` are the latest N contexts, flattened, shape (N, W d_c).

    A token that is not finite is refused by its place.
    """
    FRACTION("alpha", alpha)
    values = np.asarray(tokens, np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"tokens must have shape (N, W d_c), got {values.shape}")
    if not np.all(np.isfinite(values)):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"tokens must be finite, got {values[row, column]} in token {row} at {column}")
    return float(energy_rank(singular_values(values), alpha))


def singular_values(tokens: Floats) -> Floats:
    """Singular values of the tokens centred by column, largest first."""
    count, width = tokens.shape
    shifted = tokens - tokens[0]  # so that a constant column is zero exactly, and not what rounding leaves of it
    centred = shifted - np.mean(shifted, axis=0)
    size = np.max(np.abs(centred))
    centred = centred / np.where(size == 0, 1, size)  # so that squares neither overflow nor vanish
    gram = centred @ centred.T if count < width else centred.T @ centred
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    # What rounding leaves of a zero eigenvalue would count by its root, and there may be hundreds.
    rounding = max(count, width) * np.finfo(np.float64).eps * eigenvalues[0]
    return np.asarray(size * np.sqrt(np.where(eigenvalues <= rounding, 0, eigenvalues)))


def energy_rank(sigma: Floats, alpha: float) -> int:
    """How many singular values make up the fraction alpha of their sum, eq. (18)."""
    reached = np.cumsum(sigma) >= alpha * (1 - _TIE) * np.sum(sigma)
    return int(1 + np.sum(~reached))
