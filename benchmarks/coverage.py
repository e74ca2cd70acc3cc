"""How often the 95 % intervals of a report contain the truth, by simulation

Samples of n from a truth that is known, one thousand of each kind; an interval that cannot be given contains nothing.
Student's interval is of the mean, the BCa bootstrap's of the interquartile mean, Welch's of the difference between two
samples of n of which the second is twice as wide. Wilson's is of a rate.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
from scipy import stats

from incrt.report.statistics import compare, rate, summarise

SIZES = (5, 10, 30, 100)
REPEATS = 1000
TRUTHS = {"normal": stats.norm(), "skewed (exponential)": stats.expon(), "heavy-tailed (t, 3 df)": stats.t(3)}
RATES = (0.05, 0.2, 0.5)


def contains(low: float | None, high: float | None, truth: float) -> bool:
    """Whether there is an interval and it contains the truth."""
    return low is not None and high is not None and low <= truth <= high


def of_samples(name: str, n: int) -> tuple[float, float, float]:
    """Coverage of Student's, the BCa bootstrap's and Welch's interval."""
    truth, random = TRUTHS[name], np.random.default_rng(n)
    mean = truth.mean()
    iqm = truth.expect(lb=truth.ppf(0.25), ub=truth.ppf(0.75), conditional=True)
    hits = np.zeros(3)
    for _ in range(REPEATS):
        sample, other = truth.rvs(n, random_state=random), 2 * truth.rvs(n, random_state=random)
        summary, comparison = summarise(sample), compare(sample, other)
        hits += (
            contains(summary.t_low, summary.t_high, mean),
            contains(summary.iqm_low, summary.iqm_high, iqm),
            contains(comparison.low, comparison.high, -mean),
        )
    student, bca, welch = hits / REPEATS
    return student, bca, welch


def of_rates(truth: float, n: int) -> float:
    """Coverage of Wilson's interval."""
    counts = np.random.default_rng(n).binomial(n, truth, REPEATS)
    return float(np.mean([contains(found.low, found.high, truth) for found in (rate(int(k), n) for k in counts)]))


def main() -> None:
    """Print two tables."""
    cells = list(product(TRUTHS, SIZES))
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(of_samples, *zip(*cells, strict=True)))
    print(f"coverage of 95 % intervals in per cent, {REPEATS} samples each (standard error 0.7 at 95)")
    print(f"{'truth':24} {'n':>4} {'Student':>8} {'BCa, IQM':>9} {'Welch':>7}")
    for (name, n), (student, bca, welch) in zip(cells, found, strict=True):
        print(f"{name:24} {n:4} {100 * student:8.1f} {100 * bca:9.1f} {100 * welch:7.1f}")
    print(f"{'rate':24} {'n':>4} {'Wilson':>8}")
    for truth, n in product(RATES, SIZES):
        print(f"{truth:<24} {n:4} {100 * of_rates(truth, n):8.1f}")


if __name__ == "__main__":
    main()
