r"""Losses of one record, as the solvers know them.

A new loss is one record here, and one branch of `_slope` in `_kernels`, found by its code and the
type of its targets.

Inverse links of one row are the same bits in any block, on any machine. Vectorised exponentials may
differ in the last bit from the scalar ones that end a block, and from those of another processor.
Here everything is made of additions, multiplications, divisions and roundings, each of which IEEE
754 defines to the last bit, in an order that is written down:

.. math:: e^x = 2^k e^r, \qquad k = \mathrm{round}(x / \log 2), \quad |r| \le \tfrac12 \log 2

with the polynomial of degree 13 of Taylor's series for :math:`e^r`, to a few units in the last
place (Cody and Waite, "Software manual for the elementary functions", 1980, chapter 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

_LOG2_E = 1.4426950408889634
# log 2 in two parts: multiples of the first are exact up to 2**20.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_FARTHEST = 700.0  # so that no exponential over- or underflows


def exponential(x: Floats) -> Floats:
    """Return e^x, of arguments up to 700 in magnitude."""
    x = np.clip(x, -_FARTHEST, _FARTHEST)
    k = np.rint(x * _LOG2_E)
    r = x - k * _LOG2_HIGH
    r -= k * _LOG2_LOW
    series = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        series *= r
        series += coefficient
    return np.asarray(np.ldexp(series, k.astype(np.int32)))


def logistic_mean(scores: Floats) -> Floats:
    r"""Return :math:`1 / (1 + e^{-s})`."""
    small = exponential(-np.abs(scores))
    return np.asarray(np.where(scores < 0.0, small, 1.0) / (small + 1.0))


def softmax(scores: Floats) -> Floats:
    r"""Return :math:`e^{s_k} / \sum_l e^{s_l}` of every row; sums go from the first class on."""
    small = exponential(scores - scores.max(axis=1, keepdims=True))
    total = in_turn(small)
    return np.asarray(small / total[:, np.newaxis])


def exponential_mean(scores: Floats) -> Floats:
    """Return e^s, of arguments up to 40 in magnitude: larger ones count as ±40."""
    return exponential(np.clip(scores, -40.0, 40.0))


def in_turn(values: Floats) -> Floats:
    """Return the sum of every row, from the first column to the last."""
    total = values[:, 0].copy()
    for column in values.T[1:]:
        total += column
    return total


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
        any block.
    bend : callable or None, default=None
        Of losses without a canonical link: the slopes of such tables, from linear functions and
        targets. The kernels of coordinate descent do not know these losses.
    labels : bool, default=False
        True if targets are 0 or 1: linear functions matter by their order then, not by their size.
    quantile : float or None, default=None
        Of losses of a quantile, the share of the targets that are below it.

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
    mean: Callable[[Floats], Floats]
    start: Callable[[ArrayLike], tuple[Floats, NDArray[np.generic]]]
    looseness: float = 1.0
    tail: float = 1.0
    link: Callable[[Floats], Floats] = np.positive
    bend: Callable[[Floats, Floats], Floats] | None = None
    labels: bool = False
    quantile: float | None = None

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """Return the slopes of a table, the same bits of a row in any block.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
            Linear functions s.
        targets : ndarray of shape (n_rows, n_outputs)
            Targets t; of labels, 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        if self.bend is not None:
            return self.bend(scores, targets)
        return np.subtract(self.link(scores), targets)

    def slope(self, score: Floats, target: ArrayLike) -> Floats:
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


def _residuals(y: ArrayLike) -> tuple[Floats, NDArray[np.generic]]:
    """Return x.w - y at w = 0: the slope itself, so that the kernel need not read y."""
    return -np.asarray(y, dtype=np.float64), np.empty(0, dtype=np.int8)


def _margins(y: ArrayLike) -> tuple[Floats, NDArray[np.generic]]:
    """Return x.w at w = 0, and the labels as 0 and 1."""
    positive = np.asarray(y) > 0
    return np.zeros(positive.size), positive.view(np.int8)


def _rates(scores: Floats) -> Floats:
    """Return the exponentials, of arguments up to 40 in magnitude, as the kernels do."""
    return np.exp(np.clip(scores, -40.0, 40.0))


def _counts(y: ArrayLike) -> tuple[Floats, NDArray[np.generic]]:
    """Return x.w at w = 0, and the counts."""
    counts = np.ascontiguousarray(y, dtype=np.float64).view()
    counts.flags.writeable = False  # one compiled kernel, whatever y is
    return np.zeros(counts.size), counts


SQUARED = Loss("squared", 0, 1.0, np.positive, _residuals)
r"""Least squares, :math:`\ell(s, t) = \frac12 (s - t)^2`."""

# 1/4 is a loose bound on the curvature.
LOGISTIC = Loss(
    "logistic", 1, 0.25, expit, _margins, looseness=1.5, link=logistic_mean, labels=True
)
r"""Logistic loss, :math:`\ell(s, t) = \log(1 + e^s) - ts`, of labels: 1 if positive, else 0."""

# No bound holds for all records: where t has mean 1, the mean of e^s is near 1, and somewhat more
# with the square of a feature before it. Clipped slopes move coefficients by bounded steps anyway.
POISSON = Loss("poisson", 2, 2.5, _rates, _counts, tail=16.0, link=exponential_mean)
r"""Poisson loss, :math:`\ell(s, t) = e^s - ts`, of counts in units of their mean.

Linear functions beyond ±40 count as ±40, so that no exponential overflows.
"""

_NO_KERNEL = -1  # code of losses that only whole gradients know


def huber(threshold: float) -> Loss:
    r"""Return Huber's loss, quadratic in the residual up to a threshold, and then linear.

    .. math:: \ell(s, t) = \begin{cases} r^2/2 & |r| \le k \\ k |r| - k^2/2 & |r| > k \end{cases}

    Parameters
    ----------
    threshold : float
        k; r = s - t.

    Returns
    -------
    Loss

    Examples
    --------
    >>> huber(1.0).slopes(np.array([[0.5], [3.0]]), np.zeros((2, 1)))
    array([[0.5],
           [1. ]])
    """

    def bend(scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets, -threshold, threshold)

    return Loss("huber", _NO_KERNEL, 1.0, np.positive, _residuals, bend=bend)


def pinball(quantile: float, smoothing: float) -> Loss:
    r"""Return the pinball loss, its kink smoothed by a uniform distribution of width h.

    .. math:: \frac{\partial \ell}{\partial s}
              = \mathrm{clip}\Bigl(\frac{s - t}{h} + \frac12, 0, 1\Bigr) - q

    Parameters
    ----------
    quantile : float
        q, between 0 and 1.
    smoothing : float
        h, positive.

    Returns
    -------
    Loss

    References
    ----------
    Fernandes, Guerre and Horta, "Smoothing quantile regressions", Journal of Business and Economic
    Statistics 39(1), 2021, equation 2.4.

    Examples
    --------
    >>> pinball(0.9, 0.5).slopes(np.array([[-3.0], [0.0], [3.0]]), np.zeros((3, 1))).round(2)
    array([[-0.9],
           [-0.4],
           [ 0.1]])
    """

    def bend(scores: Floats, targets: Floats) -> Floats:
        return np.clip((scores - targets) / smoothing + 0.5, 0.0, 1.0) - quantile

    bound = 1.0 / smoothing
    return Loss("pinball", _NO_KERNEL, bound, np.positive, _residuals, bend=bend, quantile=quantile)


def hinge(smoothing: float) -> Loss:
    r"""Return the hinge loss of labels t of 0 and 1, its kink smoothed over a margin of h.

    .. math:: \frac{\partial \ell}{\partial s}
              = -y \, \mathrm{clip}\Bigl(\frac{1 - y s}{h}, 0, 1\Bigr), \qquad y = 2t - 1

    Parameters
    ----------
    smoothing : float
        h, positive.

    Returns
    -------
    Loss

    References
    ----------
    Rennie and Srebro, "Loss functions for preference levels: regression with discrete ordered
    labels", IJCAI workshop on preference handling, 2005, section 2 (the smooth hinge).

    Examples
    --------
    >>> hinge(1.0).slopes(np.array([[-1.0], [0.5], [2.0]]), np.ones((3, 1)))
    array([[-1. ],
           [-0.5],
           [-0. ]])
    """

    def bend(scores: Floats, targets: Floats) -> Floats:
        sign = 2.0 * targets - 1.0
        return np.clip((1.0 - sign * scores) / smoothing, 0.0, 1.0) * -sign

    bound = 1.0 / smoothing
    return Loss("hinge", _NO_KERNEL, bound, np.positive, _margins, bend=bend, labels=True)


LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, POISSON)}
"""All losses of one output, by name."""
