"""Statistical tests with a known false alarm, for integer draws of rounded noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

# A correct program fails one statistical test in a thousand million.
FALSE_ALARM = 1e-9


def chi_square_pvalue(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Return Pearson's p-value of observed counts; all expected counts must be at least 100."""
    counts = np.asarray(counts, dtype=float)
    expected = counts.sum() * np.asarray(probabilities, dtype=float)
    assert counts.shape == expected.shape
    assert abs(expected.sum() - counts.sum()) <= 1e-6 * counts.sum(), "probabilities sum to one"
    assert expected.min() >= 100, "the approximation by chi-square needs more draws or fewer bins"
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, counts.size - 1))


def uniform_pvalue(values: ArrayLike, n_values: int) -> float:
    """Return the p-value of integers being uniform on 0, ..., n_values - 1."""
    counts = np.bincount(np.asarray(values), minlength=n_values)
    return chi_square_pvalue(counts, np.full(n_values, 1.0 / n_values))


def binned_pvalue(draws, noise, bits, *, scale=1.0, n_bins=48) -> float:
    """Return the p-value of draws being round(2**bits * scale * Z), by exact bin probabilities."""
    unit = scale * 2.0**bits
    quantiles = np.arange(1, n_bins) / n_bins
    edges = np.unique(np.ceil(unit * noise.isf(quantiles)))  # bins are edge <= draw < next edge
    above = noise.sf((edges - 0.5) / unit)
    probabilities = -np.diff(np.concatenate([[1.0], above, [0.0]]))
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=edges.size + 1)
    return chi_square_pvalue(counts, probabilities)


def distance_pvalue(draws, noise, bits, *, scale=1.0) -> float:
    """Return a bound on the p-value by the largest distance of distribution functions.

    The inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant,
    P(distance > d) <= 2 exp(-2 n d**2), holds for every n and every distribution.
    """
    values, counts = np.unique(draws, return_counts=True)
    empirical = np.cumsum(counts) / counts.sum()
    exact = 1.0 - noise.sf((values + 0.5) / (scale * 2.0**bits))
    below = 1.0 - noise.sf((values - 0.5) / (scale * 2.0**bits))
    distance = max(
        np.abs(empirical - exact).max(),
        np.abs(np.concatenate([[0.0], empirical[:-1]]) - below).max(),
    )
    return float(min(1.0, 2.0 * np.exp(-2.0 * counts.sum() * distance**2)))


def fit_pvalue(draws, noise, bits, *, scale=1.0) -> float:
    """Return the p-value of draws being round(2**bits * scale * Z): both tests, halved between."""
    draws = np.asarray(draws).ravel()
    binned = binned_pvalue(draws, noise, bits, scale=scale)
    return min(1.0, 2.0 * min(binned, distance_pvalue(draws, noise, bits, scale=scale)))


def hockey_stick(logpdf, shift: float, epsilon: float, reach: float, kinks=()) -> float:
    r"""Return the integral of max(0, f(z) - e^epsilon f(z - shift)) over abs(z) <= reach.

    This is the smallest delta of noise of unit scale on a query that moves by `shift`. Gauss's
    rule on short panels that end at every kink of the integrand; `kinks` are those of the density.
    """
    kinks = np.concatenate([[0.0], np.asarray(kinks, dtype=float)])
    kinks = np.concatenate([kinks, -kinks])

    def excess(z: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(logpdf(z) - logpdf(z - shift) - epsilon, nan=-1.0)

    ends = np.linspace(-reach, reach, 2001)
    ends = np.union1d(ends, np.concatenate([kinks, kinks + shift]))
    signs = np.sign(excess(ends))
    (changed,) = np.nonzero(signs[:-1] * signs[1:] < 0)
    low, high = ends[changed], ends[changed + 1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = np.sign(excess(middle)) == signs[changed]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = np.union1d(ends, low)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(ends)[:, None]
    z = ends[:-1, None] + half * (1.0 + nodes)
    loss = excess(z)
    values = np.where(loss > 0.0, np.exp(logpdf(z)) * -np.expm1(-np.abs(loss)), 0.0)
    return float((half * weights * values).sum())
