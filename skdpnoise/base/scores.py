"""Scores of fitted models: their errors show no value of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score

from skdpnoise.data.redaction import without_values
from skdpnoise.data.tables import check_container
from skdpnoise.data.targets import read_labels


class QuietScoreMixin(BaseEstimator):
    """Stands before scikit-learn's mixin of classifiers or regressors, whose errors quote y."""

    predict: Callable[[Any], Any]
    _metric: ClassVar[Callable[..., Any] | None] = None  # where it is not the usual one

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # At epsilon=1 a few dozen records are protected so well that no model can learn from them.
        (tags.regressor_tags or tags.classifier_tags).poor_score = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean accuracy of predicted labels, or R² of a predicted target (D² of counts).

        The score of private records is a statistic of them without noise, and is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            True labels, or the true target.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records in the score.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        owner = f"{type(self).__name__}.score"
        if is_classifier(self):
            y = read_labels(owner, y, len(predicted))
        y = check_container(owner, "y", y)
        metric = self._metric or (accuracy_score if is_classifier(self) else r2_score)
        with without_values(
            f"{owner} cannot compare y with the {len(predicted)} predictions: give one label, or "
            "number, for each row of X, of the kind that was fitted, and weights that are finite "
            "numbers. D² needs counts that are not all alike."
        ):
            return float(metric(y, predicted, sample_weight=sample_weight))
