r"""Scores of models on private records, as sums of integers that one record moves by little.

One record's loss lies in [0, c]: 0 or 1 for accuracy, a clipped logarithm, distance or square. It
is rounded down to a multiple of c/2^24 and the integers are summed, so that one record moves the
sum by at most c, exactly. The loss of a record must depend on this record and the model alone:
predictions are made in blocks of one size, so that no sum inside a matrix product is arranged
differently when a record is added elsewhere.

**Balanced accuracy** is a mean over labels, whose numbers of records are private. Shares q of the
K labels are estimated from other records, or are public. An error on label k weighs 1/q_k, in units
of the largest weight, so that a record's loss is in [0, 1] as ever; the mean loss over K min(q) is
the mean over labels of the share of errors, but for how far q is from the shares of these records.

**The area under the ROC curve** is no sum over records, but one over pairs. Among a *public* number
n of records a positive and a negative one make a pair, whose loss is 1 if the negative one has the
higher score, 1/2 if both have the same, and 0 else; all other pairs have none. One record is in n -
1 pairs, and what a pair loses depends on its two records and the model alone, so that replacing a
record moves the sum of all pairs by at most n - 1. In units in which this is 2^24, the sum is an
integer, and one record moves it by at most 2^24, exactly. (Given the other records, this is sharp:
a positive record with the highest score replaced by a negative one with a higher score yet, or the
reverse.) Adding a record moves it by as many pairs as there are records, which is private under
"add_remove": no public bound is known to us, and the area is refused there. Over q (1 - q), q the
share of positive records, the mean loss is the share of pairs in the wrong order.

References
----------
McSherry, "Privacy integrated queries", SIGMOD 2009, Theorem 4 (parallel composition: shares of
labels come from other records). Mann and Whitney, 1947 (the area as a count of pairs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from skdpnoise._utils.checks import complaint

BITS = 24  # a loss of c is 2**BITS units
NARROW = BITS - 4  # differences between candidates are held within ±2**NARROW
MOST = 1 << 20  # records whose pairs are counted, the first ones: a pair is a unit at least
_BLOCK = 4096

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LabelShares:
    """Public or released shares of labels, none of them 0."""

    # classes: all labels, sorted; shares: of the same shape, with sum 1
    classes: NDArray[Any]
    shares: Vector

    def weights(self, y: NDArray[Any]) -> Vector:
        """Return what an error on each record weighs, of the largest weight; of others 1."""
        places = np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)
        known = self.classes[places] == y
        return np.where(known, self.shares.min() / self.shares[places], 1.0)


def sums_of(losses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return sums of losses by models, and of their differences to the mean model, held within."""
    # (n_models, n_records) in units of c/2^24; differences within ±2^NARROW. A difference is a
    # function of what all models lose at one record, and sums of integers below 2^53 are exact.
    differences = losses - losses.mean(axis=0).astype(np.int64)
    held = np.clip(differences, -(1 << NARROW), 1 << NARROW)
    return np.stack([losses.sum(axis=1), held.sum(axis=1)])


def _wrong(model: Any, X: Any, y: NDArray[Any], limit: float, units: Any) -> Vector:
    return np.asarray(np.asarray(model.predict(X)) != y, dtype=np.float64)


def _weighted(model: Any, X: Any, y: NDArray[Any], limit: float, units: LabelShares) -> Vector:
    return units.weights(y) * _wrong(model, X, y, limit, units)


def _surprise(model: Any, X: Any, y: NDArray[Any], limit: float, units: Any) -> Vector:
    chances = np.asarray(model.predict_proba(X))
    places = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    known = model.classes_[places] == y
    found = np.where(known, chances[np.arange(len(y)), places], 0.0)
    return -np.log(np.maximum(found, np.exp(-2.0 * limit)))


def _distances(model: Any, X: Any, y: NDArray[Any], limit: float, units: float) -> Vector:
    rest = (np.asarray(model.predict(X)) - y) / units
    return np.asarray(np.minimum(np.abs(rest), 1e3), dtype=np.float64)


def _squares(model: Any, X: Any, y: NDArray[Any], limit: float, units: float) -> Vector:
    return _distances(model, X, y, limit, units) ** 2


def _chances(model: Any, X: Any, y: NDArray[Any], limit: float, units: LabelShares) -> Vector:
    return np.asarray(np.asarray(model.predict_proba(X))[:, 1], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A score as a sum over records, and how far one record can move it."""

    name: str  # scikit-learn's name of the score
    exact: Callable[..., Vector]  # the losses of records before they are clipped and rounded
    # c, the largest loss of one record: the sensitivity of the sum for both adjacencies
    limit: float
    # whether losses are in units of the target, whose location and scale must be known
    needs_target: bool = False
    needs_shares: bool = False  # whether shares of the labels must be known
    by_pairs: bool = False  # whether `exact` gives scores, of which pairs are compared

    def losses(self, model: Any, X: Any, y: NDArray[Any], units: Any) -> NDArray[np.int64]:
        """Return the loss of each record in units of c/2^24, smaller is better."""
        # Units are the scale of the target, or the shares of the labels, or of no account.
        return self.rounded(self.by_record(model, X, y, units))

    def by_record(self, model: Any, X: Any, y: NDArray[Any], units: Any) -> Vector:
        """Return the losses of records before they are rounded, or scores, of which come pairs."""
        losses = np.empty(len(y))
        for start in range(0, len(y), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(y)))
            losses[rows] = self._of_block(model, X, y, rows, units)
        return losses

    def rounded(self, losses: Vector) -> NDArray[np.int64]:
        """Return losses in units of c/2^24, clipped and rounded down."""
        share = np.clip(np.nan_to_num(losses / self.limit, nan=1.0, posinf=1.0), 0.0, 1.0)
        return np.floor(np.ldexp(share, BITS)).astype(np.int64)

    def score(self, mean_loss: float, scale: float, whole: float) -> float:
        """Return the score that goes with a mean loss; `whole` is a mean loss of score 0."""
        if self.needs_shares:
            return max(1.0 - mean_loss / whole, 0.0)
        if self.name in ("accuracy", "r2"):
            return 1.0 - mean_loss / whole
        if self.name == "neg_root_mean_squared_error":
            return -scale * float(np.sqrt(mean_loss))
        return -mean_loss * scale ** {"neg_mean_squared_error": 2}.get(self.name, 1)

    def _of_block(
        self, model: Any, X: Any, y: NDArray[Any], rows: NDArray[np.intp], units: Any
    ) -> Vector:
        """Return the losses of some rows; a record that cannot be scored has the largest."""
        # A block is filled up with a row of its own, whose further losses are dropped.
        filled = np.concatenate([rows, np.full(_BLOCK - rows.size, rows[0])])
        try:
            losses = self.exact(model, _safe_indexing(X, filled), y[filled], self.limit, units)
            return losses[: rows.size]
        except MemoryError:
            raise
        except Exception:
            # Which record it was may not count for the others.
            if rows.size == 1:
                return np.full(1, np.nan)
        alone = [self._of_block(model, X, y, row, units) for row in rows[:, np.newaxis]]
        return np.concatenate(alone)


def pair_losses(scores: Vector, positive: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return what the pairs of each positive record lose; replacing one moves the sum by 2^24."""
    # A record that cannot be scored loses all its pairs.
    n = min(scores.size, MOST)
    unit = (1 << BITS) // (2 * max(n - 1, 1))  # half a pair
    scores, wanted = scores[:n], positive[:n]
    own = np.where(np.isnan(scores), np.where(wanted, -np.inf, np.inf), scores)
    others = np.sort(own[~wanted])
    mine = own[wanted]
    below, upto = (np.searchsorted(others, mine, side) for side in ("left", "right"))
    halves = 2 * others.size - below - upto
    # Two records without scores, or with infinite ones of the wrong sign, are no tie.
    halves[mine == -np.inf] = 2 * others.size
    losses = np.zeros(positive.size, dtype=np.int64)
    losses[:n][wanted] = halves * unit
    return losses


def pair_share(positive: float, n_records: int) -> float:
    """Return the mean loss, as `pair_losses` counts, of a model that gets all pairs wrong."""
    n = min(n_records, MOST)
    unit = (1 << BITS) // (2 * max(n - 1, 1))
    pairs = positive * (1.0 - positive) * n**2
    return pairs * 2.0 * unit / (1 << BITS) / max(n_records, 1)


SCORINGS = {
    scoring.name: scoring
    for scoring in (
        Scoring("accuracy", _wrong, 1.0),
        Scoring("balanced_accuracy", _weighted, 1.0, needs_shares=True),
        Scoring("roc_auc", _chances, 1.0, needs_shares=True, by_pairs=True),
        Scoring("neg_log_loss", _surprise, 4.0),
        Scoring("r2", _squares, 4.0, needs_target=True),
        Scoring("neg_mean_squared_error", _squares, 4.0, needs_target=True),
        Scoring("neg_root_mean_squared_error", _squares, 4.0, needs_target=True),
        Scoring("neg_mean_absolute_error", _distances, 2.0, needs_target=True),
    )
}


def choose_scoring(owner: str, scoring: str | None, estimators: Sequence[Any]) -> Scoring:
    """Return the scoring of that name; None is accuracy for classifiers and R² for regressors."""
    classifies = is_classifier(estimators[0])
    chosen = SCORINGS["accuracy" if classifies else "r2"] if scoring is None else SCORINGS[scoring]
    if chosen.needs_target == classifies:
        kind = "a classifier" if classifies else "a regressor"
        names = [name for name, s in SCORINGS.items() if s.needs_target != classifies]
        must = f"be None or one of {names} for {kind}"
        raise ValueError(complaint(owner, "scoring", must, repr(scoring)))
    method = "predict_proba" if chosen.name in ("neg_log_loss", "roc_auc") else "predict"
    for estimator in estimators:
        if not hasattr(estimator, method):
            must = f"have the method {method!r} for scoring={chosen.name!r}"
            raise ValueError(complaint(owner, "estimator", must, type(estimator).__name__))
    return chosen


def check_pairs(owner: str, scoring: Scoring, n_labels: int, adjacency: str) -> None:
    """Refuse a score by pairs unless it has two labels and a public number of records."""
    if not scoring.by_pairs:
        return
    if adjacency != "replace_one":
        raise ValueError(
            f"scoring={scoring.name!r} of {owner} needs adjacency='replace_one': one record is in "
            "as many pairs as there are others, whose number is private under "
            f"{adjacency!r}. Use 'neg_log_loss' or 'balanced_accuracy', and private_roc_auc_score "
            "for the model that is chosen."
        )
    if n_labels != 2:
        raise ValueError(
            f"scoring={scoring.name!r} of {owner} needs two labels. Got {n_labels}. Use "
            "'neg_log_loss' or 'balanced_accuracy'."
        )
