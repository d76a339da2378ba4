r"""Scores of predictions for private records: sums and counts of bounded terms, one of each.

The predictions must come from a model that is public or private already. If it was fitted to the
same records, both losses add up: a ledger that is charged for both states that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_real
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.metrics._asked import SEEN, Asked, How, ScoreResult, counted_by_bin, takes_how
from skdpnoise.metrics._records import (
    Both,
    TargetBounds,
    Vector,
    are_equal,
    chance_table,
    inner_edges,
    label_list,
    places_of,
    two_columns,
)
from skdpnoise.privacy import LossBudget, PrivacyGuarantee

_NUMBERS = (NUMBER, NUMBER)  # what is true, and what is said of it
_LOG_LOSS = 4.0  # the largest loss of a record: a probability of 0.018
# How much errors of the mean square of errors, of the mean and of the mean square matter to R²,
# for targets in ±1 of which a model explains half.
_WEIGHTS = (1.0, 0.25, 0.25)


@shared_texts
@dataclass(frozen=True, slots=True, eq=False)
class PrivateScore(ScoreResult):
    """A released score, with what noise adds to it and what it cost: all of it public.

    It is used as a number: ``float(score)``, ``score >= 0.8``, ``f"{score:.3f}"``.

    Parameters
    ----------
    name : str
        scikit-learn's name of the score.
    value : float or ndarray
        The score; of a confusion matrix all counts.
    standard_error : float or ndarray
        Of the noise. What sampling adds, and what clips take away, is not in it.
    %(scores: mechanism, adjacency, same_rows)s
    %(results: secure, guarantee)s

    Examples
    --------
    >>> score = private_accuracy_score([1, 0] * 500, [1, 0] * 500, PrivacyGuarantee(1.0))
    >>> float(score) > 0.97, score > 0.97
    (True, True)
    """

    name: str
    value: Any
    standard_error: Any

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def _found(self) -> str:
        if np.ndim(self.value):
            return f"{self.name}: counts ± {float(np.max(self.standard_error)):.3g}"
        return f"{self.name}: {float(self):.4f} ± {float(self.standard_error):.2g}"


@takes_how
def private_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    **how: Unpack[How],
) -> PrivateScore:
    """Release the share of right predictions.

    **Guarantee.** A record is one bit; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns, Raises)s
    %(dwork_roth: References)s
    Example 3.1.

    Examples
    --------
    >>> y = np.arange(1000) % 2
    >>> score = private_accuracy_score(y, y, PrivacyGuarantee(1.0), random_state=0)
    >>> round(float(score), 2), round(score.standard_error, 4)
    (1.0, 0.0014)
    """
    asked = Asked.how("private_accuracy_score", guarantee, how)
    return _mean(asked, two_columns(asked.owner, y_true, y_pred).map(_right), 1.0)


@takes_how
def private_mean_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    target_bounds: tuple[float, float],
    **how: Unpack[How],
) -> PrivateScore:
    """Release the mean absolute error.

    **Guarantee.** Targets and predictions are clipped to the bounds, so that one record's error
    lies between 0 and their width; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee, target_bounds)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns, Raises)s
    %(dwork_roth: References)s
    Theorem 3.6.

    Examples
    --------
    >>> y = np.linspace(0.0, 10.0, 5000)
    >>> bounds = {"target_bounds": (0.0, 10.0)}
    >>> score = private_mean_absolute_error(y, y + 1.0, PrivacyGuarantee(1.0), **bounds)
    >>> abs(float(score) - 0.95) < 0.05
    True
    """
    asked = Asked.how("private_mean_absolute_error", guarantee, how)
    clip = TargetBounds.within(asked.owner, target_bounds)
    errors = two_columns(asked.owner, y_true, y_pred, kinds=_NUMBERS).map(clip.distances)
    return _mean(asked, errors, 2.0 * clip.half)


@takes_how
def private_root_mean_squared_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    target_bounds: tuple[float, float],
    **how: Unpack[How],
) -> PrivateScore:
    """Release the root of the mean squared error.

    **Guarantee.** Targets and predictions are clipped to the bounds, so that one record's squared
    error lies between 0 and their width squared; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee, target_bounds)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns)s
        Its standard error is that of the mean square over twice the root.
    %(asked: Raises)s
    %(dwork_roth: References)s
    Theorem 3.6.

    Examples
    --------
    >>> y = np.linspace(0.0, 10.0, 5000)
    >>> bounds = {"target_bounds": (0.0, 10.0)}
    >>> score = private_root_mean_squared_error(y, y + 1.0, PrivacyGuarantee(1.0), **bounds)
    >>> abs(float(score) - 0.96) < 0.1
    True
    """
    asked = Asked.how("private_root_mean_squared_error", guarantee, how)
    clip = TargetBounds.within(asked.owner, target_bounds)
    squares = two_columns(asked.owner, y_true, y_pred, kinds=_NUMBERS).map(clip.squares)
    estimate = asked.mean(squares, 0.0, (2.0 * clip.half) ** 2)
    root = math.sqrt(max(float(estimate.value), 0.0))
    slope = 0.5 / max(root, math.sqrt(estimate.standard_error))
    return _score(asked, root, slope * estimate.standard_error, estimate.mechanism)


@takes_how
def private_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    target_bounds: tuple[float, float],
    **how: Unpack[How],
) -> PrivateScore:
    r"""Release R², the share of the target's variance that predictions explain.

    .. math:: 1 - \tilde e / (\tilde q - \tilde m^2)

    with noisy means e of squared errors, m of targets less the middle of bounds, q of its square.

    **Guarantee.** Targets and predictions are clipped to the bounds; the three means are one
    release (:func:`~skdpnoise.queries.private_mean`).

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee, target_bounds)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns)s
        Its standard error is that of the linearised ratio.
    %(asked: Raises)s

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5 (noise of the three means).

    Examples
    --------
    >>> y = np.linspace(0.0, 10.0, 20_000)
    >>> bounds = {"target_bounds": (0.0, 10.0)}
    >>> score = private_r2_score(y, 0.5 * y + 2.5, PrivacyGuarantee(1.0), **bounds)
    >>> abs(float(score) - 0.75) < 0.05
    True
    """
    asked = Asked.how("private_r2_score", guarantee, how)
    clip = TargetBounds.within(asked.owner, target_bounds)
    columns = two_columns(asked.owner, y_true, y_pred, kinds=_NUMBERS).map(clip.of_variance, 3)
    estimate = asked.mean(columns, [0.0, -1.0, 0.0], [4.0, 1.0, 1.0], weights=_WEIGHTS)
    (error, mean, square), deviation = estimate.value, estimate.standard_error
    variance = max(square - mean**2, float(deviation[2]))  # never below what noise hides
    slopes = [1.0 / variance, 2.0 * mean * error / variance**2, error / variance**2]
    standard_error = float(np.linalg.norm(slopes * deviation))
    return _score(asked, 1.0 - error / variance, standard_error, estimate.mechanism)


@takes_how
def private_log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    labels: ArrayLike,
    limit: float = _LOG_LOSS,
    **how: Unpack[How],
) -> PrivateScore:
    """Release the mean of minus the logarithm of the probability of the true label.

    **Guarantee.** One record's loss is clipped to between 0 and ``limit``; see
    :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true)s
    y_prob : array-like or RowSource of shape (n_records, n_labels)
        Probabilities, in the order of the labels.
    %(scores: guarantee, labels)s
    limit : float, default=4.0
        The largest loss of one record, **public**.
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns, Raises)s
    %(dwork_roth: References)s
    Theorem 3.6.

    Examples
    --------
    >>> y = np.arange(2000) % 2
    >>> chances = np.column_stack([0.8 - 0.6 * y, 0.2 + 0.6 * y])
    >>> score = private_log_loss(y, chances, PrivacyGuarantee(1.0), labels=[0, 1])
    >>> bool(abs(float(score) + np.log(0.8)) < 0.05)
    True
    """
    asked = Asked.how("private_log_loss", guarantee, how)
    check_real(asked.owner, "limit", limit)
    names = label_list(asked.owner, labels)
    read, kinds = partial(chance_table, len(names)), (kind_of_labels(names), NUMBER)
    records = two_columns(asked.owner, y_true, y_prob, "y_prob", read=read, kinds=kinds)
    return _mean(asked, records.map(partial(_log_losses, names, float(limit))), limit)


@takes_how
def private_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    labels: ArrayLike,
    **how: Unpack[How],
) -> PrivateScore:
    """Release how many records of each label are predicted as each.

    **Guarantee.** A record is in one cell at most; see :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee, labels)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns)s
        Its value has shape (n_labels, n_labels): rows are true labels, columns predictions. Counts
        are real numbers, possibly negative; unbiased.
    %(asked: Raises)s
    %(dwork_roth: References)s
    Example 3.2.

    Examples
    --------
    >>> y, found = np.arange(900) % 3, np.arange(900) % 2
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> score = private_confusion_matrix(y, found, guarantee, labels=[0, 1, 2], random_state=0)
    >>> score.value.shape, bool(abs(score.value[0, 0] - 150) < 12)
    ((3, 3), True)
    """
    asked = Asked.how("private_confusion_matrix", guarantee, how)
    names = label_list(asked.owner, labels)
    records = two_columns(asked.owner, y_true, y_pred, kinds=(kind_of_labels(names),) * 2)
    noisy, made = asked.counts(records, partial(_confusions, names), (len(names), len(names)))
    return _score(asked, noisy, float(made.standard_deviation[0]), made)


@takes_how
def private_balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    labels: ArrayLike,
    **how: Unpack[How],
) -> PrivateScore:
    """Release the mean over the labels of the share of right predictions of each.

    **Guarantee.** Right and wrong predictions of each label are counted: a record is in one cell at
    most; see :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true, y_pred, guarantee, labels)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns)s
        Its standard error is that of the linearised shares; 1 where noise hides a label's records.
    %(asked: Raises)s
    %(dwork_roth: References)s
    Example 3.2.

    Examples
    --------
    >>> y, found = np.arange(6000) % 3, np.arange(6000) % 2
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> score = private_balanced_accuracy_score(y, found, guarantee, labels=[0, 1, 2])
    >>> abs(float(score) - 1 / 3) < 0.02
    True
    """
    asked = Asked.how("private_balanced_accuracy_score", guarantee, how)
    names = label_list(asked.owner, labels)
    records = two_columns(asked.owner, y_true, y_pred, kinds=(kind_of_labels(names),) * 2)
    noisy, made = asked.counts(records, partial(_right_by_label, names), (len(names), 2))
    positive = np.maximum(noisy, 0.0)
    sizes = np.maximum(positive.sum(axis=1), 1.0)
    share = positive / sizes[:, np.newaxis]
    standard_error = float(np.linalg.norm(share / sizes[:, np.newaxis]) / len(names))
    deviation = float(made.standard_deviation[0])
    hidden = bool((sizes < SEEN * math.sqrt(2.0) * deviation).any())
    standard_error = 1.0 if hidden else min(standard_error * deviation, 1.0)
    return _score(asked, float(share[:, 1].mean()), standard_error, made)


@takes_how
def private_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    pos_label: Any = 1,
    bins: ArrayLike | None = None,
    **how: Unpack[How],
) -> PrivateScore:
    r"""Release the area under the ROC curve: how often a positive record has the higher score.

    .. math:: \frac{1}{\tilde P \tilde N}
              \sum_i \tilde p_i \Bigl(\sum_{j < i} \tilde n_j + \tfrac12 \tilde n_i\Bigr)

    from noisy numbers p of positive and n of other records in bins of the score. Under
    "replace_one" the number of all records is public; what noise adds to it is taken out equally.

    **Guarantee.** A record is in one cell of 2 × n_bins; see
    :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true, y_score, guarantee, pos_label, bins)s
    %(asked: epsilon, delta, adjacency, random_state, ledger, noise, same_rows, Returns)s
        Its standard error is that of the linearised sum; 1 where noise hides a label's records.
    %(asked: Raises)s

    References
    ----------
    Mann and Whitney, 1947 (the area as a count of pairs). Dwork and Roth, "The Algorithmic
    Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=20_000)
    >>> chance = 1.0 / (1.0 + np.exp(-rng.normal(2.0 * y - 1.0)))
    >>> score = private_roc_auc_score(y, chance, PrivacyGuarantee(1.0))
    >>> abs(float(score) - 0.921) < 0.01
    True
    """
    asked = Asked.how("private_roc_auc_score", guarantee, how)
    edges = inner_edges(asked.owner, bins)
    (_, made), area = counted_by_bin(asked, y_true, y_score, pos_label, edges)
    return _score(asked, *area, made)


def _right(both: Both) -> Vector:
    return are_equal(*both).astype(np.float64)


def _log_losses(names: list[Any], limit: float, both: Both) -> Vector:
    """Return minus the logarithm of the probability of each true label, clipped."""
    truth, chances = both
    places = places_of(truth, names)
    own = np.where(places < 0, 0.0, chances[np.arange(truth.size), places])
    losses = np.full(truth.size, limit)
    losses[own > 0.0] = -np.log(own[own > 0.0])
    return np.asarray(np.clip(losses, 0.0, limit))


def _confusions(names: list[Any], both: Both) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    truth, found = (places_of(one, names) for one in both)
    return truth, found


def _right_by_label(names: list[Any], both: Both) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the place of each true label, and whether the prediction is right, 1 or 0."""
    return places_of(both[0], names), are_equal(*both).astype(np.intp)


def _mean(asked: Asked, losses: Any, most: float) -> PrivateScore:
    estimate = asked.mean(losses, 0.0, most)
    return _score(asked, float(estimate.value), estimate.standard_error, estimate.mechanism)


def _score(asked: Asked, value: Any, error: Any, made: AdditiveMechanism) -> PrivateScore:
    name = asked.owner.removeprefix("private_").removesuffix("_score")
    return asked.result(PrivateScore, made, name=name, value=value, standard_error=error)
