"""Losses of one record, as the solvers know them.

A new loss is one record here, and one branch of `_slope` in `_kernels`, found by its code and the
type of its targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from skdpnoise.solvers.links import exponential_mean, logistic_mean

__all__ = ["LOGISTIC", "LOSSES", "POISSON", "SQUARED", "Loss"]


@dataclass(frozen=True, slots=True)
class Loss:
    r"""A loss :math:`\ell(s, t)` of the linear function s and the target t of one record.

    The slope is that of a generalised linear model with its canonical link,

    .. math:: \frac{\partial \ell}{\partial s} = \mu(s) - t,

    where μ, the inverse of the link, gives the mean of the target.

    Parameters
    ----------
    name : str
        Its key in ``LOSSES``.
    code : int
        Number of its branch in the compiled kernels.
    curvature : float
        An upper bound M on the derivative of μ; a step has the length 1/M.
    mean : callable
        μ, from an array of linear functions to the means of the target.
    start : callable
        From y to a pair of arrays: the score of each record at coefficients 0, and the targets, or
        an empty array if the score already contains them.
    looseness : float, default=1.0
        Factor by which steps are longer where there is little noise, since the curvature is a loose
        bound.
    tail : float, default=1.0
        Factor by which the automatic clip is larger than that of least squares, for losses whose
        slopes have long tails.
    link : callable, default=numpy.positive
        μ for tables of shape (n_rows, n_outputs), by operations that give a row the same bits in
        any block (:mod:`skdpnoise.solvers.links`).

    Examples
    --------
    >>> SQUARED.slope(np.array([1.0, 2.0]), 2.0)
    array([-1.,  0.])
    >>> LOGISTIC.mean(np.array([0.0]))
    array([0.5])
    """

    name: str
    code: int
    curvature: float
    mean: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    start: Callable[[ArrayLike], tuple[NDArray[np.float64], NDArray[np.generic]]]
    looseness: float = 1.0
    tail: float = 1.0
    link: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.positive

    def slope(self, score: NDArray[np.float64], target: ArrayLike) -> NDArray[np.float64]:
        """Return the derivative of the loss in the linear function.

        Parameters
        ----------
        score : ndarray
            Linear functions s.
        target : array-like
            Targets t; of labels, 0 and 1.

        Returns
        -------
        ndarray
        """
        return np.subtract(self.mean(score), target, dtype=np.float64)


def _residuals(y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Return x.w - y at w = 0: the slope itself, so that the kernel need not read y."""
    return -np.asarray(y, dtype=np.float64), np.empty(0, dtype=np.int8)


def _margins(y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Return x.w at w = 0, and the labels as 0 and 1."""
    positive = np.asarray(y) > 0
    return np.zeros(positive.size), positive.view(np.int8)


def _rates(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exponentials, of arguments up to 40 in magnitude, as the kernels do."""
    return np.exp(np.clip(scores, -40.0, 40.0))


def _counts(y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Return x.w at w = 0, and the counts."""
    counts = np.ascontiguousarray(y, dtype=np.float64).view()
    counts.flags.writeable = False  # one compiled kernel, whatever y is
    return np.zeros(counts.size), counts


SQUARED = Loss("squared", 0, 1.0, np.positive, _residuals)
r"""Least squares, :math:`\ell(s, t) = \frac12 (s - t)^2`."""

# 1/4 is a loose bound on the curvature.
LOGISTIC = Loss("logistic", 1, 0.25, expit, _margins, looseness=1.5, link=logistic_mean)
r"""Logistic loss, :math:`\ell(s, t) = \log(1 + e^s) - ts`, of labels: 1 if positive, else 0."""

# No bound holds for all records: where t has mean 1, the mean of e^s is near 1, and somewhat more
# with the square of a feature before it. Clipped slopes move coefficients by bounded steps anyway.
POISSON = Loss("poisson", 2, 2.5, _rates, _counts, tail=16.0, link=exponential_mean)
r"""Poisson loss, :math:`\ell(s, t) = e^s - ts`, of counts in units of their mean.

Linear functions beyond ±40 count as ±40, so that no exponential overflows.
"""

LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, POISSON)}
"""All losses of one output, by name."""
