r"""Curves of predictions for private records, from one release of a histogram of their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from skdpnoise._utils.checks import check_count, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.metrics._asked import SEEN, Asked, How, ScoreResult, counted_by_bin, takes_how
from skdpnoise.metrics._records import Both, Vector, inner_edges, judged, scored
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import LossBudget, PrivacyGuarantee

_UNIT_BITS = 20  # of a record, which is divided between the ends of a bin


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class PrivateRocCurve(ScoreResult):
    """A released ROC curve, with what noise adds to it and what it cost: all of it public.

    Parameters
    ----------
    fpr, tpr : ndarray of shape (n_points,)
        Rates of negative and of positive records with a score of a threshold or more, from (0, 0)
        to (1, 1), neither of them falling.
    thresholds : ndarray of shape (n_points,)
        Falling from infinity to minus infinity; between them the public edges of the bins.
    fpr_standard_error, tpr_standard_error : ndarray of shape (n_points,)
        Of the noise.
    roc_auc, roc_auc_standard_error : float
        The area under the curve, as :func:`private_roc_auc_score` makes it of the same counts.
    %(scores: mechanism, adjacency, same_rows)s
    %(results: secure, guarantee)s

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=20_000)
    >>> chance = 1.0 / (1.0 + np.exp(-rng.normal(2.0 * y - 1.0)))
    >>> curve = private_roc_curve(y, chance, PrivacyGuarantee(1.0))
    >>> curve.fpr.shape, bool(abs(curve.roc_auc - 0.921) < 0.01)
    ((49,), True)
    """

    fpr: Vector
    tpr: Vector
    thresholds: Vector
    fpr_standard_error: Vector
    tpr_standard_error: Vector
    roc_auc: float
    roc_auc_standard_error: float

    def _found(self) -> str:
        area = f"area {self.roc_auc:.4f} ± {self.roc_auc_standard_error:.2g}"
        return f"ROC curve of {self.fpr.size} points, {area}"


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class PrivateCalibrationCurve(ScoreResult):
    """A released calibration curve, with what noise adds to it and what it cost: all of it public.

    Parameters
    ----------
    prob_true : ndarray of shape (n_bins,)
        Share of positive records in each bin; NaN where noise hides whether there are any records.
    prob_pred : ndarray of shape (n_bins,)
        Mean probability of the records in each bin; NaN there, too.
    standard_error : ndarray of shape (n_bins,)
        Of the noise in ``prob_true``.
    count : ndarray of shape (n_bins,)
        Noisy number of records in each bin, possibly negative.
    %(scores: mechanism, adjacency, same_rows)s
    %(results: secure, guarantee)s

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.random(20_000)
    >>> y = rng.random(20_000) < chance
    >>> curve = private_calibration_curve(y, chance, PrivacyGuarantee(1.0), n_bins=5)
    >>> bool(abs(curve.prob_true - curve.prob_pred).max() < 0.05)
    True
    """

    prob_true: Vector
    prob_pred: Vector
    standard_error: Vector
    count: Vector

    def _found(self) -> str:
        shown = int(np.isfinite(self.prob_true).sum())
        return f"calibration curve, {shown} of {self.count.size} bins"


@takes_how
def private_roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    pos_label: Any = 1,
    bins: ArrayLike | None = None,
    **how: Unpack[How],
) -> PrivateRocCurve:
    r"""Release the ROC curve: rates of positive over those of negative records, by threshold.

    .. math:: \widetilde{\mathrm{TPR}}_i = \sum_{j \ge i} \tilde p_j / \tilde P, \qquad
              \widetilde{\mathrm{FPR}}_i = \sum_{j \ge i} \tilde n_j / \tilde N

    from noisy numbers p of positive and n of other records in bins of the score; then each rate is
    cut off at 0 and 1 and made monotone by least squares. The true rates are monotone, so that this
    moves no rate further from its true value than the worst one is: isotonic regression is a
    contraction in the largest error.

    **Guarantee.** A record is one count in one of 2 × n_bins cells, which its own label and score
    and the public edges decide. Adding or removing it moves one count by one, replacing it moves
    two at most: sensitivities 1 and 2 in l1, 1 and :math:`\sqrt 2` in l2
    (:func:`~skdpnoise.sensitivity.histogram_counts`). All cells are one release; the rest is
    post-processing.

    Parameters
    ----------
    %(scores: y_true, y_score, guarantee, pos_label, bins)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows)s

    Returns
    -------
    PrivateRocCurve
        Its standard errors are those of the linearised rates, before they are made monotone; 1
        where noise hides how many records there are.
    %(asked: Raises)s
    %(dwork_roth: References)s
    Example 3.2. Yang
    and Barber, "Contraction and uniform convergence of isotonic regression", 2019, Theorem 1.

    Examples
    --------
    >>> y, chance = [0, 1] * 5000, [0.2, 0.8] * 5000
    >>> curve = private_roc_curve(y, chance, PrivacyGuarantee(1.0), bins=[0.25, 0.5, 0.75])
    >>> curve.tpr.round(1), curve.fpr.round(1)
    (array([0., 1., 1., 1., 1.]), array([0., 0., 0., 0., 1.]))
    >>> curve.thresholds
    array([ inf, 0.75, 0.5 , 0.25, -inf])
    """
    asked = Asked.how("private_roc_curve", guarantee, how)
    edges = inner_edges(asked.owner, bins)
    (noisy, made), (area, area_error) = counted_by_bin(asked, y_true, y_score, pos_label, edges)
    deviation = float(made.standard_deviation[0])
    (fpr, fpr_error), (tpr, tpr_error) = (_rates(one[::-1], deviation) for one in noisy)
    return asked.result(
        PrivateRocCurve,
        made,
        fpr=fpr,
        tpr=tpr,
        thresholds=np.concatenate([[np.inf], edges[::-1], [-np.inf]]),
        fpr_standard_error=fpr_error,
        tpr_standard_error=tpr_error,
        roc_auc=area,
        roc_auc_standard_error=area_error,
    )


@takes_how
def private_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    pos_label: Any = 1,
    n_bins: int = 10,
    **how: Unpack[How],
) -> PrivateCalibrationCurve:
    r"""Release how often records are positive, beside how probable that was said to be.

    Bins of probabilities are equally wide. A record with the probability :math:`(k + t)/m` of the
    k-th of m bins is divided between the ends of its bin: 1 - t at the lower one, t at the upper.
    From noisy sums a at the lower and b at the upper ends, of all records and of positive ones,

    .. math:: \text{prob\_true}_k = \frac{\tilde a_k^+ + \tilde b_k^+}{\tilde a_k + \tilde b_k},
              \qquad \text{prob\_pred}_k = \frac1m \Bigl(k
              + \frac{\tilde b_k}{\tilde a_k + \tilde b_k}\Bigr),

    cut off at the ends of [0, 1], and of the bin.

    **Guarantee.** A record is a vector v over the 4 × n_bins cells (label, bin, end), non-negative
    with sum 1, which depends on this record alone. Adding or removing it moves the sums by v:
    :math:`|v|_1 = 1, |v|_2 \le 1`. Replacing v by w moves them by :math:`|v - w|_1 \le 2` and
    :math:`|v - w|_2^2 \le |v|_2^2 + |w|_2^2 \le 2`, no cell by more than 1. These are the bounds of
    :func:`~skdpnoise.sensitivity.histogram_counts`, so that the mean probability costs nothing
    beside the counts. Shares are integers in units of :math:`2^{-20}`, whose sums are exact. All
    cells are one release; the rest is post-processing.

    Parameters
    ----------
    %(scores: y_true)s
    y_prob : array-like or RowSource of shape (n_records,)
        Probabilities that records are positive; cut off at 0 and 1.
    %(scores: guarantee, pos_label)s
    n_bins : int, default=10
        **Public** number of bins. (Bins with equally many records would be read from the data.)
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise)s
        Noises that live on the integers are refused.
    %(asked: same_rows)s

    Returns
    -------
    PrivateCalibrationCurve
        Its standard errors are those of the linearised shares. Bins with a noisy number of records
        below three of its standard deviations have NaN.
    %(asked: Raises)s
    %(dwork_roth: References)s
    Theorem 3.6 (l1) and Theorem A.1 (l2). DeGroot and Fienberg, "The comparison and evaluation of
    forecasters", 1983 (the curve).

    Examples
    --------
    >>> y, chance = [0, 1] * 4000 + [1, 0] * 1000, [0.3, 0.7] * 5000
    >>> curve = private_calibration_curve(y, chance, PrivacyGuarantee(1.0), n_bins=4)
    >>> curve.prob_pred.round(1), curve.prob_true.round(1)
    (array([nan, 0.3, 0.7, nan]), array([nan, 0.2, 0.8, nan]))
    """
    asked = Asked.how("private_calibration_curve", guarantee, how)
    m = check_count(asked.owner, "n_bins", n_bins)
    family = str(asked.noise).partition("_")[2]
    if family in noise_names() and get_noise(family).lattice:
        must = "name a noise on the real numbers, since records are divided between ends of bins"
        raise ValueError(complaint(asked.owner, "noise", must, repr(asked.noise)))
    records, wanted = scored(asked.owner, y_true, y_prob, "y_prob", pos_label)
    units = records.total(partial(_divided, wanted, m), "bins")
    sums = np.ldexp(units.astype(np.float64), -_UNIT_BITS)
    noisy, made = asked.sums(sums)
    deviation = float(made.standard_deviation[0])
    count, right, upper = noisy.sum(axis=(0, 2)), noisy[1].sum(axis=1), noisy[:, :, 1].sum(axis=0)
    size = np.where(count >= 2.0 * SEEN * deviation, count, np.nan)  # a sum of four cells
    prob_true = np.clip(right / size, 0.0, 1.0)
    prob_pred = (np.arange(m) + np.clip(upper / size, 0.0, 1.0)) / m
    error = np.hypot(1.0 - prob_true, prob_true) * np.sqrt(2.0) * deviation / size
    return asked.result(
        PrivateCalibrationCurve,
        made,
        prob_true=prob_true,
        prob_pred=prob_pred,
        standard_error=np.minimum(error, 1.0),
        count=count,
    )


def _rates(counts: Vector, deviation: float) -> tuple[Vector, Vector]:
    """Return the shares of records up to each bin, monotone, and their standard errors."""
    m, total = counts.size, float(counts.sum())
    size = max(total, 1.0)
    found = np.clip(np.concatenate([[0.0], np.cumsum(counts)]) / size, 0.0, 1.0)
    found[-1] = 1.0
    rates = np.asarray(isotonic_regression(found), dtype=np.float64)
    # Of S/(S + R), where S has i noisy counts and R the others.
    taken = np.arange(m + 1.0)
    error = np.sqrt((1.0 - rates) ** 2 * taken + rates**2 * (m - taken)) * deviation / size
    hidden = total < SEEN * np.sqrt(m) * deviation
    return rates, np.where(hidden, 1.0, np.minimum(error, 1.0))


def _divided(wanted: Any, n_bins: int, both: Both) -> NDArray[np.int64]:
    """Return the sums of records, divided between the ends of their bins, in units of 2^-20."""
    positive, chances = judged(wanted, both)
    chances = np.clip(chances, 0.0, 1.0)
    place = np.minimum(np.floor(chances * n_bins), n_bins - 1.0)
    whole = float(1 << _UNIT_BITS)
    upper = np.rint(np.clip(chances * n_bins - place, 0.0, 1.0) * whole)
    cell = 2 * (positive * n_bins + place.astype(np.intp))
    # Sums of integers: exact below 2^53, which are 2^33 records.
    sums = np.bincount(cell, whole - upper, 4 * n_bins) + np.bincount(cell + 1, upper, 4 * n_bins)
    return sums.astype(np.int64).reshape(2, n_bins, 2)
