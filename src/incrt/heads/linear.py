"""Linear algebra by products and sums alone.

XLA's CPU client hands factorisations to LAPACK from its own threads. With two of those, programs that ask for several
wait for each other for ever, and a GPU takes a second for a few hundred singular values. What is needed here is small.
"""

import jax
import jax.numpy as jnp

_SQUARINGS = 20
"""The estimate of a spectral norm is then too large by a factor of at most n^(1 / 2^21)."""
_TINY = 1e-30
"""Keeps logarithms and quotients finite."""


def inverse(matrix: jax.Array) -> jax.Array:
    """The inverse of a symmetric positive definite matrix, by Cholesky's factors.

    Elimination without them (the sweep operator) loses ten times as many digits where the matrix is nearly singular, as
    it is where heads read fewer things than they have dimensions.
    """
    size = matrix.shape[-1]
    places = jnp.arange(size)

    def factor(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, lower = state
        column = jnp.where(places >= k, left[:, k] / jnp.sqrt(left[k, k]), 0)
        return left - column[:, None] * column, lower.at[:, k].set(column)

    def solve(k: jax.Array, found: jax.Array) -> jax.Array:
        row = (jnp.where(places == k, 1.0, 0.0) - jnp.where(places < k, lower[k], 0) @ found) / lower[k, k]
        return found.at[k].set(row)

    with jax.default_matmul_precision("highest"):
        _, lower = jax.lax.fori_loop(0, size, factor, (matrix, jnp.zeros_like(matrix)))
        inverted: jax.Array = jax.lax.fori_loop(0, size, solve, jnp.zeros_like(matrix))
        return inverted.T @ inverted


def spectral_norm(matrix: jax.Array) -> jax.Array:
    """The largest singular value of matrices (..., m, n), from above: (sum of sigma^2p)^(1/2p) with a very large p."""
    rows, columns = matrix.shape[-2:]
    # Squares of very small entries would vanish, those of very large ones would be infinite.
    largest = jnp.max(jnp.abs(matrix), axis=(-2, -1), keepdims=True)
    matrix = matrix / jnp.where(largest > 0, largest, 1)
    flipped = jnp.swapaxes(matrix, -1, -2)
    gram = matrix @ flipped if rows < columns else flipped @ matrix

    def norm(a: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum(a * a, axis=(-2, -1), keepdims=True))

    def square(_: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        power, log, weight = state
        power = power @ power
        size = norm(power)
        return power / jnp.maximum(size, _TINY), log + weight * jnp.log(jnp.maximum(size, _TINY)), weight / 2

    size = norm(gram)
    start = (gram / jnp.maximum(size, _TINY), jnp.log(jnp.maximum(size, _TINY)), jnp.asarray(0.5, gram.dtype))
    _, log, _ = jax.lax.fori_loop(0, _SQUARINGS, square, start)
    # Written so that NaN stays NaN.
    found: jax.Array = jnp.where(largest == 0, 0, largest * jnp.exp(0.5 * log))[..., 0, 0]
    return found
