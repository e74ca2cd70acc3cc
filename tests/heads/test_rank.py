"""Effective rank against its definition by singular value decomposition."""

import numpy as np
import pytest

from incrt.heads.rank import effective_rank, singular_values

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def by_svd(tokens: Floats, alpha: float) -> int:
    """Eq. (18), literally: the least k whose k largest singular values make up the part alpha of all."""
    sigma = np.linalg.svd(tokens - tokens.mean(0), compute_uv=False)
    return next(k for k in range(1, len(sigma) + 1) if sigma[:k].sum() >= alpha * sigma.sum() - 1e-9 * sigma.sum())


def matrix(seed: int) -> Floats:
    """Tall and wide, full and deficient rank, flat and falling spectra, any offset."""
    random = np.random.default_rng(seed)
    count, width = random.integers(2, 80, 2)
    rank = random.integers(1, min(count, width) + 1)
    falling = np.exp(-random.choice([0.0, 0.1, 1.0]) * np.arange(rank))
    return np.asarray(random.normal(size=(count, rank)) * falling @ random.normal(size=(rank, width)) + random.normal())


@pytest.mark.parametrize("alpha", [0.5, 0.95, 0.999])
def test_rank_is_the_definition_on_two_hundred_matrices(alpha: float) -> None:
    for seed in range(200):
        tokens = matrix(seed)
        assert effective_rank(tokens, alpha=alpha) == by_svd(tokens, alpha), seed


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, -3.7])
def test_constant_tokens_have_rank_one(value: float) -> None:
    assert effective_rank(np.full((1000, 30), value)) == 1
    assert effective_rank(np.full((1000, 30), np.float32(value))) == 1


def test_a_constant_column_does_not_count() -> None:
    spread = matrix(7)
    with_constant = np.concatenate([spread, np.full((len(spread), 40), 0.1)], axis=1)
    assert effective_rank(with_constant) == effective_rank(spread)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_the_tokens_does_not_matter(scale: float) -> None:
    assert effective_rank(scale * matrix(3)) == effective_rank(matrix(3))


def test_one_direction_has_rank_one() -> None:
    line = np.outer(np.linspace(-1, 1, 100), np.arange(1.0, 12.0)) + 5
    assert effective_rank(line) == 1


def test_equal_directions_are_counted() -> None:
    """A centred orthogonal design: all singular values equal, so that 0.95 of twenty is nineteen exactly."""
    rows, _ = np.linalg.qr(np.concatenate([np.ones((64, 1)), np.random.default_rng(0).normal(size=(64, 20))], axis=1))
    tokens = rows[:, 1:]
    assert effective_rank(tokens) == 19


@pytest.mark.parametrize(("count", "width"), [(400, 100), (100, 400), (1000, 220)])
def test_a_tie_is_a_tie_in_a_wide_null_space_too(count: int, width: int) -> None:
    """Twenty equal directions and nothing else: the roots of what rounding leaves of the rest must not add up."""
    random = np.random.default_rng(1)
    rows, _ = np.linalg.qr(np.concatenate([np.ones((count, 1)), random.normal(size=(count, 20))], axis=1))
    columns, _ = np.linalg.qr(random.normal(size=(width, 20)))
    tokens = rows[:, 1:] @ columns.T
    assert effective_rank(tokens) == by_svd(tokens, 0.95) == 19


def test_singular_values_are_those_of_the_svd() -> None:
    for tokens in (matrix(0), matrix(1), matrix(2)):
        expected = np.linalg.svd(tokens - tokens.mean(0), compute_uv=False)
        np.testing.assert_allclose(singular_values(tokens), expected, atol=1e-6 * expected[0])


def test_single_precision_would_give_another_rank() -> None:
    """Why double: the noise of the small singular values of a Gram matrix in single precision."""
    random = np.random.default_rng(0)
    tokens = random.normal(size=(1000, 220)) * np.exp(-0.15 * np.arange(220)) @ random.normal(size=(220, 220))
    centred = (tokens - tokens.mean(0)).astype(np.float32)
    sigma = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred)[::-1], 0))
    single = 1 + np.sum(np.cumsum(sigma) < 0.99 * sigma.sum())
    assert effective_rank(tokens, alpha=0.99) == by_svd(tokens, 0.99) != single


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_its_place(bad: float) -> None:
    tokens = matrix(1)
    tokens[1, 2] = bad
    with pytest.raises(ValueError, match=rf"tokens must be finite, got {bad} in token 1 at 2"):
        effective_rank(tokens)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": np.zeros((3, 4, 5))}, r"tokens must have shape \(N, W d_c\), got \(3, 4, 5\)"),
        ({"tokens": np.zeros((0, 5))}, "tokens must have shape"),
        ({"tokens": np.zeros((3, 4)), "alpha": 1.0}, "alpha must be a number > 0 and < 1, got 1.0"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        effective_rank(**arguments)  # type: ignore[arg-type]
