r"""Scores of models on private records, as sums of bounded integers.

One record's loss lies in [0, c]: 0 or 1 for accuracy, a clipped logarithm or a clipped square. It
is rounded down to a multiple of c/2^24 and the integers are summed, so that one record moves the
sum by at most c, exactly. The loss of a record must depend on this record and the model alone:
predictions are made in blocks of one size, so that no sum inside a matrix product is arranged
differently when a record is added elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

BITS = 24  # a loss of c is 2**BITS units
_BLOCK = 4096

Vector = NDArray[np.float64]


def _wrong(model: Any, X: Any, y: NDArray[Any], limit: float, scale: float) -> Vector:
    return np.asarray(np.asarray(model.predict(X)) != y, dtype=np.float64)


def _surprise(model: Any, X: Any, y: NDArray[Any], limit: float, scale: float) -> Vector:
    chances = np.asarray(model.predict_proba(X))
    places = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    known = model.classes_[places] == y
    found = np.where(known, chances[np.arange(len(y)), places], 0.0)
    return -np.log(np.maximum(found, np.exp(-2.0 * limit)))


def _squares(model: Any, X: Any, y: NDArray[Any], limit: float, scale: float) -> Vector:
    rest = (np.asarray(model.predict(X)) - y) / scale
    return np.asarray(np.minimum(np.abs(rest), 1e3) ** 2, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What is measured, and how far one record can move its sum."""

    name: str  # scikit-learn's name of the score
    exact: Callable[..., Vector]  # the losses of records before they are clipped and rounded
    # c, the largest loss of one record: the sensitivity of the sum for both adjacencies
    limit: float
    # whether losses are in units of the target, whose location and scale must be known
    needs_target: bool = False

    def losses(self, model: Any, X: Any, y: NDArray[Any], scale: float) -> NDArray[np.int64]:
        """Return the loss of each record in units of c/2^24, smaller is better."""
        losses = np.empty(len(y))
        for start in range(0, len(y), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(y)))
            losses[rows] = self._of_block(model, X, y, rows, scale)
        return self.rounded(losses)

    def rounded(self, losses: Vector) -> NDArray[np.int64]:
        """Return losses in units of c/2^24, clipped and rounded down."""
        share = np.clip(np.nan_to_num(losses / self.limit, nan=1.0, posinf=1.0), 0.0, 1.0)
        return np.floor(np.ldexp(share, BITS)).astype(np.int64)

    def score(self, mean_loss: float, scale: float, variance: float) -> float:
        """Return the score that goes with a mean loss."""
        if self.name == "accuracy":
            return 1.0 - mean_loss
        if self.name == "r2":
            return 1.0 - mean_loss / variance
        return -mean_loss * (scale**2 if self.needs_target else 1.0)

    def _of_block(
        self, model: Any, X: Any, y: NDArray[Any], rows: NDArray[np.intp], scale: float
    ) -> Vector:
        """Return the losses of some rows; a record that cannot be scored has the largest."""
        # A block is filled up with a row of its own, whose further losses are dropped.
        filled = np.concatenate([rows, np.full(_BLOCK - rows.size, rows[0])])
        try:
            losses = self.exact(model, _safe_indexing(X, filled), y[filled], self.limit, scale)
            return losses[: rows.size]
        except MemoryError:
            raise
        except Exception:
            # Which record it was may not count for the others.
            if rows.size == 1:
                return np.full(1, self.limit)
        alone = [self._of_block(model, X, y, row, scale) for row in rows[:, np.newaxis]]
        return np.concatenate(alone)


SCORINGS = {
    "accuracy": Scoring("accuracy", _wrong, 1.0),
    "neg_log_loss": Scoring("neg_log_loss", _surprise, 4.0),
    "r2": Scoring("r2", _squares, 4.0, needs_target=True),
    "neg_mean_squared_error": Scoring("neg_mean_squared_error", _squares, 4.0, needs_target=True),
}


def choose_scoring(owner: str, scoring: str | None, estimators: Sequence[Any]) -> Scoring:
    """Return the scoring of that name; None is accuracy for classifiers and R² for regressors."""
    classifies = is_classifier(estimators[0])
    chosen = SCORINGS["accuracy" if classifies else "r2"] if scoring is None else SCORINGS[scoring]
    if chosen.needs_target == classifies:
        kind = "a classifier" if classifies else "a regressor"
        names = [name for name, s in SCORINGS.items() if s.needs_target != classifies]
        raise ValueError(
            f"The 'scoring' parameter of {owner} must be None or one of {names} for {kind}. "
            f"Got {scoring!r} instead."
        )
    method = "predict_proba" if chosen.name == "neg_log_loss" else "predict"
    for estimator in estimators:
        if not hasattr(estimator, method):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must have the method {method!r} for "
                f"scoring={chosen.name!r}. Got {type(estimator).__name__}, which lacks it."
            )
    return chosen
