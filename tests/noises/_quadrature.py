"""Expectations under a noise by Gauss's rule."""

from __future__ import annotations

import numpy as np


def expectation(noise, function, ends=()) -> float:
    """Integrate function(abs(z)) f(z) over all z; panels end at the given kinks too."""
    far = float(noise.isf(1e-40))
    ends = np.asarray(ends, dtype=float)
    ends = np.concatenate(
        [np.geomspace(1e-12 * far, far, 1500), np.linspace(0.0, far, 1500), ends[ends < far]]
    )
    nodes, weights = np.polynomial.legendre.leggauss(10)
    ends = np.unique(ends)
    half = 0.5 * np.diff(ends)[:, None]
    z = ends[:-1, None] + half * (1.0 + nodes)
    return float(2.0 * (half * weights * function(z) * np.exp(noise.logpdf(z))).sum())
