"""Linear algebra without LAPACK, held against NumPy's."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrt.heads.linear import inverse, spectral_norm

EPS = float(np.finfo(np.float32).eps)
invert, norm = jax.jit(inverse), jax.jit(spectral_norm)


def matrix_of(seed: int, rows: int, columns: int, singular: np.ndarray) -> Any:
    """A random matrix with these singular values."""
    random = np.random.default_rng(seed)
    left, right = (np.linalg.qr(random.normal(size=(n, n)))[0] for n in (rows, columns))
    least = min(rows, columns)
    return left[:, :least] @ np.diag(singular[:least]) @ right[:, :least].T


@given(
    seed=st.integers(0, 1000),
    size=st.sampled_from([1, 2, 3, 7, 24]),
    condition=st.sampled_from([1.0, 10.0, 1e4]),
    scale=st.sampled_from([1e-6, 1.0, 1e5]),
)
def test_the_inverse_is_numpys(seed: int, size: int, condition: float, scale: float) -> None:
    values = scale * np.geomspace(1, 1 / condition, size)
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    matrix = (basis * values) @ basis.T
    single = matrix.astype(np.float32)
    found, expected = np.asarray(invert(single)), np.linalg.inv(single.astype(np.float64))
    assert np.linalg.norm(found - expected) <= 10 * size * condition * EPS * np.linalg.norm(expected)


def test_the_inverse_in_double_precision_is_that_much_closer() -> None:
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    matrix = (basis * np.geomspace(1, 1e-4, 12)) @ basis.T
    with jax.enable_x64(True):
        np.testing.assert_allclose(inverse(jnp.asarray(matrix)), np.linalg.inv(matrix), rtol=1e-9, atol=1e-7)


def test_many_matrices_are_inverted_by_a_vmap() -> None:
    random = np.random.default_rng(0).normal(size=(5, 6, 6))
    matrices = (random @ np.swapaxes(random, 1, 2) + np.eye(6)).astype(np.float32)
    np.testing.assert_allclose(jax.vmap(inverse)(jnp.asarray(matrices)), np.linalg.inv(matrices), rtol=1e-3, atol=1e-5)


@given(
    seed=st.integers(0, 1000),
    shape=st.sampled_from([(1, 1), (1, 5), (3, 2), (6, 16), (64, 6), (24, 24)]),
    spread=st.sampled_from([1.0, 1.0 + 1e-6, 2.0, 1e6]),
    scale=st.sampled_from([1e-12, 1e-4, 1.0, 1e8, 1e15]),
)
def test_the_spectral_norm_is_numpys_and_not_below_it(
    seed: int, shape: tuple[int, int], spread: float, scale: float
) -> None:
    """Also where all singular values are equal, or nearly so, and far from one."""
    singular = scale * np.geomspace(1, 1 / spread, min(shape)) if min(shape) > 1 else np.array([scale])
    matrix = matrix_of(seed, *shape, singular).astype(np.float32)
    found, expected = float(norm(matrix)), float(np.linalg.norm(matrix.astype(np.float64), 2))
    assert expected * (1 - 50 * EPS) <= found <= expected * (1 + 50 * EPS)


def test_the_spectral_norm_of_zeros_is_zero_and_of_nan_it_is_nan() -> None:
    found = spectral_norm(jnp.stack([jnp.zeros((3, 2)), jnp.full((3, 2), jnp.nan), jnp.ones((3, 2))]))
    np.testing.assert_allclose(found, [0.0, np.nan, np.sqrt(6)], rtol=1e-6)


@pytest.mark.parametrize("shape", [(7, 4, 9), (2, 3, 5, 5)])
def test_spectral_norms_of_many_matrices_at_once(shape: tuple[int, ...]) -> None:
    matrices = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    expected = np.linalg.norm(matrices, 2, axis=(-2, -1))
    np.testing.assert_allclose(spectral_norm(jnp.asarray(matrices)), expected, rtol=1e-5)
