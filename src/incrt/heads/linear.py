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
    """The inverse of a symmetric positive definite matrix, by the sweep operator (Gauss and Jordan's elimination)."""
    size = matrix.shape[-1]

    def sweep(k: jax.Array, a: jax.Array) -> jax.Array:
        pivot, row = a[k, k], a[k] / a[k, k]
        here = jnp.arange(size) == k
        swept = a - a[:, k, None] * row
        swept = jnp.where(here[:, None], row, jnp.where(here, row[:, None], swept))
        return jnp.where(here[:, None] & here, -1 / pivot, swept)

    swept: jax.Array = jax.lax.fori_loop(0, size, sweep, matrix)
    return -swept


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
