r"""Scores of predictions for private records: sums and counts of bounded terms, one of each.

One record is one term, which public clips bound, or one cell of a table of counts. Noise that is
calibrated to that, and post-processing, make the score. The predictions must come from a model that
is public or private already. If it was fitted to the same records, both losses add up: a ledger
that is charged for the fit and for the score states that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.privacy.checks import check_array, check_real, complaint
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries import noisy_histogram, private_mean
from skdpnoise.queries.aggregates import PrivateEstimate
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.words import with_caveat

__all__ = [
    "PrivateScore",
    "private_accuracy_score",
    "private_balanced_accuracy_score",
    "private_confusion_matrix",
    "private_log_loss",
    "private_mean_absolute_error",
    "private_r2_score",
    "private_roc_auc_score",
    "private_root_mean_squared_error",
]

Vector = NDArray[np.float64]

_PLAIN = (str, bytes, int, float, bool)  # what labels and numbers are
_HUGE = 1e300
_LOG_LOSS = 4.0  # the largest loss of a record: a probability of 0.018
_N_BINS, _LOG_ODDS = 64, 6.0  # of scores: equally wide in log-odds, between ends
# How much errors of the mean square of errors, of the mean and of the mean square matter to R²,
# for targets in ±1 of which a model explains half.
_WEIGHTS = (1.0, 0.25, 0.25)


@dataclass(frozen=True, slots=True, eq=False)
class PrivateScore:
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
    mechanism : AdditiveMechanism
        What drew the noise.
    adjacency : {"replace_one", "add_remove"}
        Neighbouring relation of the scored records.
    same_rows : bool, default=False
        Whether the model was fitted to these records, as the caller says.
    secure : bool, default=True
        Whether the noise came from the operating system's cryptographic source.

    Examples
    --------
    >>> score = private_accuracy_score([1, 0] * 500, [1, 0] * 500, PrivacyGuarantee(1.0))
    >>> float(score) > 0.97, score > 0.97
    (True, True)
    """

    name: str
    value: Any
    standard_error: Any
    mechanism: AdditiveMechanism
    adjacency: Adjacency
    same_rows: bool = False
    secure: bool = True

    @property
    def privacy(self) -> PrivacyLoss:
        """What the score cost by itself."""
        return self.mechanism.privacy_loss()

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

    def __str__(self) -> str:
        if np.ndim(self.value):
            found = f"{self.name}: counts ± {float(np.max(self.standard_error)):.3g}"
        else:
            found = f"{self.name}: {float(self):.4f} ± {float(self.standard_error):.2g}"
        where = (
            "the model was fitted to the same records: what it cost comes on top"
            if self.same_rows
            else "of records that the model was not fitted to"
        )
        stated = f"{found} ({self.privacy}, {self.adjacency}; {where})"
        return with_caveat(stated, secure=self.secure)


@shared_texts
def private_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release the share of right predictions.

    **Guarantee.** A record is one bit; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee, adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.1.

    Examples
    --------
    >>> y = np.arange(1000) % 2
    >>> score = private_accuracy_score(y, y, PrivacyGuarantee(1.0), random_state=0)
    >>> round(float(score), 2), round(score.standard_error, 4)
    (1.0, 0.0014)
    """
    owner = "private_accuracy_score"
    truth, found = _pair(owner, y_true, y_pred)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    right = _equal(truth, found).astype(np.float64)
    estimate = asked.mean(right, 0.0, 1.0)
    return asked.score(float(estimate.value), estimate.standard_error, estimate.mechanism)


@shared_texts
def private_mean_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    target_bounds: tuple[float, float],
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release the mean absolute error.

    **Guarantee.** Targets and predictions are clipped to the bounds, so that one record's error
    lies between 0 and their width; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee)s
    %(scores: target_bounds)s
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.6.

    Examples
    --------
    >>> y = np.linspace(0.0, 10.0, 5000)
    >>> bounds = {"target_bounds": (0.0, 10.0)}
    >>> score = private_mean_absolute_error(y, y + 1.0, PrivacyGuarantee(1.0), **bounds)
    >>> abs(float(score) - 0.95) < 0.05
    True
    """
    owner = "private_mean_absolute_error"
    errors, half, _ = _errors(owner, y_true, y_pred, target_bounds)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    estimate = asked.mean(np.abs(errors), 0.0, 2.0 * half)
    return asked.score(float(estimate.value), estimate.standard_error, estimate.mechanism)


@shared_texts
def private_root_mean_squared_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    target_bounds: tuple[float, float],
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release the root of the mean squared error.

    **Guarantee.** Targets and predictions are clipped to the bounds, so that one record's squared
    error lies between 0 and their width squared; see :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee)s
    %(scores: target_bounds)s
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore
        Its standard error is that of the mean square over twice the root.

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.6.

    Examples
    --------
    >>> y = np.linspace(0.0, 10.0, 5000)
    >>> bounds = {"target_bounds": (0.0, 10.0)}
    >>> score = private_root_mean_squared_error(y, y + 1.0, PrivacyGuarantee(1.0), **bounds)
    >>> abs(float(score) - 0.96) < 0.1
    True
    """
    owner = "private_root_mean_squared_error"
    errors, half, _ = _errors(owner, y_true, y_pred, target_bounds)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    estimate = asked.mean(errors**2, 0.0, (2.0 * half) ** 2)
    root = math.sqrt(max(float(estimate.value), 0.0))
    slope = 0.5 / max(root, math.sqrt(estimate.standard_error))
    return asked.score(root, slope * estimate.standard_error, estimate.mechanism)


@shared_texts
def private_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    target_bounds: tuple[float, float],
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    r"""Release R², the share of the target's variance that predictions explain.

    .. math:: 1 - \tilde e / (\tilde q - \tilde m^2)

    with the noisy means e of squared errors, m of targets and q of their squares, about the middle
    of the bounds.

    **Guarantee.** Targets and predictions are clipped to the bounds; the three means are one
    release (:func:`~skdpnoise.queries.private_mean`).

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee)s
    %(scores: target_bounds)s
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore
        Its standard error is that of the linearised ratio.

    Raises
    ------
    %(scores: ValueError)s

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
    owner = "private_r2_score"
    errors, half, centred = _errors(owner, y_true, y_pred, target_bounds)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    columns = np.column_stack([errors / half, centred / half, (centred / half) ** 2]) ** [2, 1, 1]
    low, high = [0.0, -1.0, 0.0], [4.0, 1.0, 1.0]
    estimate = asked.mean(columns, low, high, weights=_WEIGHTS)
    (error, mean, square), deviation = estimate.value, estimate.standard_error
    variance = max(square - mean**2, float(deviation[2]))  # never below what noise hides
    slopes = [1.0 / variance, 2.0 * mean * error / variance**2, error / variance**2]
    standard_error = float(np.linalg.norm(slopes * deviation))
    return asked.score(1.0 - error / variance, standard_error, estimate.mechanism)


@shared_texts
def private_log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    labels: ArrayLike,
    limit: float = _LOG_LOSS,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release the mean of minus the logarithm of the probability of the true label.

    **Guarantee.** One record's loss is clipped to between 0 and ``limit``; see
    :func:`~skdpnoise.queries.private_mean`.

    Parameters
    ----------
    %(scores: y_true)s
    y_prob : array-like of shape (n_records, n_labels)
        Probabilities, in the order of the labels.
    %(queries: guarantee)s
    %(scores: labels)s
    limit : float, default=4.0
        The largest loss of one record, **public**.
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.6.

    Examples
    --------
    >>> y = np.arange(2000) % 2
    >>> chances = np.column_stack([0.8 - 0.6 * y, 0.2 + 0.6 * y])
    >>> score = private_log_loss(y, chances, PrivacyGuarantee(1.0), labels=[0, 1])
    >>> bool(abs(float(score) + np.log(0.8)) < 0.05)
    True
    """
    owner = "private_log_loss"
    check_real(owner, "limit", limit)
    names = _labels(owner, labels)
    truth = _column(owner, "y_true", y_true)
    chances = _table(owner, "y_prob", y_prob, len(names))
    if chances.shape != (truth.size, len(names)):
        must = f"have shape (n_records, {len(names)}), with as many records as 'y_true'"
        raise ValueError(complaint(owner, "y_prob", must, f"shape {chances.shape}"))
    places = _places(truth, names)
    own = np.where(places < 0, 0.0, chances[np.arange(truth.size), places])
    losses = np.full(truth.size, float(limit))
    losses[own > 0.0] = -np.log(own[own > 0.0])
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    estimate = asked.mean(np.clip(losses, 0.0, limit), 0.0, limit)
    return asked.score(float(estimate.value), estimate.standard_error, estimate.mechanism)


@shared_texts
def private_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    labels: ArrayLike,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release how many records of each label are predicted as each.

    **Guarantee.** A record is in one cell at most; see :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee)s
    %(scores: labels)s
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore
        Its value has shape (n_labels, n_labels): rows are true labels, columns predictions. Counts
        are real numbers, possibly negative; unbiased.

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> y, found = np.arange(900) % 3, np.arange(900) % 2
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> score = private_confusion_matrix(y, found, guarantee, labels=[0, 1, 2], random_state=0)
    >>> score.value.shape, bool(abs(score.value[0, 0] - 150) < 12)
    ((3, 3), True)
    """
    owner = "private_confusion_matrix"
    names = _labels(owner, labels)
    truth, found = (_places(one, names) for one in _pair(owner, y_true, y_pred))
    counts = _counted(truth, found, len(names), len(names))
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    noisy, made = asked.counts(counts)
    return asked.score(noisy, float(made.standard_deviation[0]), made)


@shared_texts
def private_balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    labels: ArrayLike,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    """Release the mean over the labels of the share of right predictions of each.

    **Guarantee.** Right and wrong predictions of each label are counted: a record is in one cell at
    most; see :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true, y_pred)s
    %(queries: guarantee)s
    %(scores: labels)s
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore
        Its standard error is that of the linearised shares.

    Raises
    ------
    %(scores: ValueError)s

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2.

    Examples
    --------
    >>> y, found = np.arange(6000) % 3, np.arange(6000) % 2
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> score = private_balanced_accuracy_score(y, found, guarantee, labels=[0, 1, 2])
    >>> abs(float(score) - 1 / 3) < 0.02
    True
    """
    owner = "private_balanced_accuracy_score"
    names = _labels(owner, labels)
    truth, found = _pair(owner, y_true, y_pred)
    right = _equal(truth, found).astype(np.intp)
    counts = _counted(_places(truth, names), right, len(names), 2)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    noisy, made = asked.counts(counts)
    positive = np.maximum(noisy, 0.0)
    sizes = np.maximum(positive.sum(axis=1), 1.0)
    share = positive / sizes[:, np.newaxis]
    standard_error = float(np.linalg.norm(share / sizes[:, np.newaxis]) / len(names))
    standard_error *= float(made.standard_deviation[0])
    return asked.score(float(share[:, 1].mean()), standard_error, made)


@shared_texts
def private_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    pos_label: Any = 1,
    bins: ArrayLike | None = None,
    adjacency: Adjacency | None = None,
    noise: str = "auto",
    same_rows: bool = False,
    random_state: Any = None,
    ledger: Any = None,
) -> PrivateScore:
    r"""Release the area under the ROC curve: how often a positive record has the higher score.

    .. math:: \frac{1}{\tilde P \tilde N}
              \sum_i \tilde p_i \Bigl(\sum_{j < i} \tilde n_j + \tfrac12 \tilde n_i\Bigr)

    from noisy numbers p of positive and n of other records in bins of the score.

    **Guarantee.** A record is in one cell of 2 × n_bins; see
    :func:`~skdpnoise.queries.noisy_histogram`.

    Parameters
    ----------
    %(scores: y_true)s
    y_score : array-like of shape (n_records,)
        Scores, the higher the more likely positive: probabilities, unless bins are given.
    %(queries: guarantee)s
    pos_label : object, default=1
        The label of positive records; all others are negative.
    bins : array-like of shape (n_bins - 1,) or None, default=None
        **Public** increasing edges between bins; None has 64 bins of probabilities, equally wide in
        log-odds from -6 to 6. Records of one bin count as ties.
    %(queries: adjacency, noise)s
    %(scores: same_rows)s
    %(queries: random_state, ledger)s

    Returns
    -------
    PrivateScore
        Its standard error is that of the linearised sum.

    Raises
    ------
    %(scores: ValueError)s

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
    owner = "private_roc_auc_score"
    edges = _edges(owner, bins)
    positive, scores = _judged(owner, y_true, y_score, pos_label)
    places = np.searchsorted(edges, scores, side="right")
    counts = _counted(positive.astype(np.intp), places, 2, edges.size + 1)
    asked = _Asked(
        owner, guarantee, adjacency, noise, same_rows, random_words(random_state), ledger
    )
    (others, wanted), made = asked.counts(counts)
    n_others, n_wanted = max(others.sum(), 1.0), max(wanted.sum(), 1.0)
    below = (np.cumsum(others) - 0.5 * others) / n_others
    above = (wanted.sum() - np.cumsum(wanted) + 0.5 * wanted) / n_wanted
    area = float(np.clip(wanted @ below / n_wanted, 0.0, 1.0))
    slopes = np.concatenate([(below - area) / n_wanted, (above - area) / n_others])
    standard_error = min(float(np.linalg.norm(slopes) * made.standard_deviation[0]), 1.0)
    return asked.score(area, standard_error, made)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a score is asked for beside its data."""

    owner: str
    guarantee: PrivacyGuarantee | LossBudget
    adjacency: Adjacency | None
    noise: str
    same_rows: bool
    rng: RandomWords
    ledger: Any

    @property
    def relation(self) -> Adjacency:
        """The neighbouring relation."""
        return checked_relation(self.owner, self.adjacency, self.guarantee)

    @property
    def _terms(self) -> dict[str, Any]:
        known = {"adjacency": self.relation, "noise": self.noise}
        return known | {"random_state": self.rng, "ledger": self.ledger}

    def mean(self, values: Vector, low: Any, high: Any, **weights: Any) -> PrivateEstimate:
        """Return the noisy mean of values between two ends."""
        return private_mean(values, low, high, self.guarantee, **self._terms, **weights)

    def counts(self, counts: NDArray[np.int64]) -> tuple[Vector, AdditiveMechanism]:
        """Return noisy counts of cells, of which one record is in one."""
        noisy, made = noisy_histogram(counts.reshape(-1), self.guarantee, **self._terms)
        return noisy.reshape(counts.shape), made

    def score(self, value: Any, error: Any, made: AdditiveMechanism) -> PrivateScore:
        """Return the record of a score."""
        name = self.owner.removeprefix("private_").removesuffix("_score")
        facts = self.relation, bool(self.same_rows), self.rng.secure
        return PrivateScore(name, value, error, made, *facts)


def _counted(
    rows: NDArray[np.intp], columns: NDArray[np.intp], n_rows: int, n_columns: int
) -> NDArray[np.int64]:
    """Return how many records are in each cell; negative places are none."""
    there = (rows >= 0) & (columns >= 0)
    flat = rows[there] * n_columns + columns[there]
    return np.bincount(flat, minlength=n_rows * n_columns).reshape(n_rows, n_columns)


def _read(value: Any) -> Any:
    """Return a label or number of a record as a plain one; NaN of anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if type(plain) in _PLAIN else math.nan


def _column(owner: str, name: str, values: ArrayLike) -> NDArray[Any]:
    """Return one entry for each record; no entry decides how the others are read."""
    if isinstance(values, list | tuple):
        array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            array[place] = _read(value)
        return array
    array = np.asarray(values)
    if array.ndim != 1:
        must = "be one-dimensional, with one entry for each record"
        raise ValueError(complaint(owner, name, must, f"shape {array.shape}"))
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a warning would tell of a single record
            return array.astype(np.float64)
    return _column(owner, name, array.tolist())


def _floats(values: NDArray[Any], otherwise: float) -> Vector:
    """Return numbers; what is none becomes another one, and no error shows it."""
    if values.dtype.kind == "O":
        # Integers of any size are compared exactly; what is beyond becomes the largest.
        known = (v if isinstance(v, int | float) else math.nan for v in values.tolist())
        values = np.array([float(min(max(v, -_HUGE), _HUGE)) for v in known], dtype=np.float64)
    return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=otherwise)


def _table(owner: str, name: str, values: ArrayLike, n_columns: int) -> Vector:
    """Return a row of numbers for each record; zeros for a record that has none."""
    listed = isinstance(values, list | tuple)
    array = None if listed else np.asarray(values)
    if array is not None and array.ndim == 2 and array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return np.nan_to_num(array.astype(np.float64))
    if array is not None and (array.ndim != 2 or array.dtype.kind != "O"):
        must = "hold numbers, a row for each record"
        raise TypeError(complaint(owner, name, must, f"dtype {array.dtype}, shape {array.shape}"))
    rows = values if array is None else array.tolist()
    found = np.zeros((len(rows), n_columns))
    for place, row in enumerate(one.tolist() if type(one) is np.ndarray else one for one in rows):
        if isinstance(row, list | tuple) and len(row) == n_columns:
            found[place] = _floats(_column(owner, name, list(row)), 0.0)
    return found


def _pair(
    owner: str, first: ArrayLike, second: ArrayLike, name: str = "y_pred"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two columns of one length."""
    truth, found = _column(owner, "y_true", first), _column(owner, name, second)
    if truth.size != found.size:
        must = "have as many entries as 'y_true'"
        raise ValueError(complaint(owner, name, must, f"{found.size} and {truth.size}"))
    return truth, found


def _judged(
    owner: str, y_true: ArrayLike, y_score: ArrayLike, pos_label: Any
) -> tuple[NDArray[np.bool_], Vector]:
    """Return whether each record is positive, and its score."""
    wanted = _read(pos_label)
    if wanted != wanted:
        must = "be the label of positive records: text, a number or a truth value"
        raise ValueError(complaint(owner, "pos_label", must, type(pos_label).__name__))
    truth, scores = _pair(owner, y_true, y_score, "y_score")
    return _places(truth, [wanted]) == 0, _floats(scores, 0.0)


def _edges(owner: str, bins: ArrayLike | None) -> Vector:
    """Return public edges between bins of scores."""
    if bins is None:
        return 1.0 / (1.0 + np.exp(-np.linspace(-_LOG_ODDS, _LOG_ODDS, _N_BINS - 1)))
    edges = check_array(owner, "bins", bins, np.shape(bins) or (1,))
    if edges.ndim != 1 or edges.size < 1 or not (np.diff(edges) > 0.0).all():
        must = "be a vector of increasing edges between bins"
        raise ValueError(complaint(owner, "bins", must, f"shape {edges.shape}"))
    return edges


def _equal(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether entries are equal, each pair by itself."""
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return np.array([bool(one == other) for one, other in pairs], dtype=np.bool_)


def _labels(owner: str, labels: ArrayLike) -> list[Any]:
    """Return public labels, each once."""
    listed = isinstance(labels, list | tuple) or np.ndim(labels) == 1
    names = _column(owner, "labels", labels).tolist() if listed else []
    if len(names) < 2 or len(set(names)) < len(names) or any(name != name for name in names):
        must = "be a vector of at least two different labels, which are public"
        raise ValueError(complaint(owner, "labels", must, type(labels).__name__))
    return names


def _places(values: NDArray[Any], names: Sequence[Any]) -> NDArray[np.intp]:
    """Return the place of each value among the labels; -1 of what is none of them."""
    known = {name: place for place, name in enumerate(names)}
    return np.array([known.get(value, -1) for value in values.tolist()], dtype=np.intp)


def _errors(
    owner: str, y_true: ArrayLike, y_pred: ArrayLike, bounds: tuple[float, float]
) -> tuple[Vector, float, Vector]:
    """Return the errors within bounds, half their width, and the targets about their middle."""
    low, high = check_array(owner, "target_bounds", bounds, (2,))
    if not low < high:
        must = "be a pair of public numbers, low < high"
        raise ValueError(complaint(owner, "target_bounds", must, f"{bounds!r}"))
    truth, found = (
        # What is no number counts as the lower bound.
        np.clip(_floats(one, low), low, high)
        for one in _pair(owner, y_true, y_pred)
    )
    middle = 0.5 * low + 0.5 * high
    return truth - found, float(0.5 * high - 0.5 * low), truth - middle
