"""What a fitted search hands on to its winner, as scikit-learn's searches do."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpnoise.compose.columns import read_features

__all__ = ["Delegation"]


def _offers(method: str) -> Any:
    def check(search: Any) -> bool:
        fitted = hasattr(search, "best_estimator_")
        getattr(search.best_estimator_ if fitted else search.estimator, method)
        return True

    return available_if(check)


class Delegation:
    """Methods of the winner; each exists where the estimator has it."""

    best_estimator_: Any
    estimator: Any
    scoring: str | None

    @_offers("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._winner.predict(self._read(X))

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._winner.predict_proba(self._read(X))

    @_offers("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities with the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._winner.predict_log_proba(self._read(X))

    @_offers("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the winner.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._winner.decision_function(self._read(X))

    @_offers("score")
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the winner on other records, without noise.

        On private records that is a new statistic of them, which the guarantee does not cover.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        float
            By `scoring`, or the winner's own score.
        """
        model, X = self._winner, self._read(X)
        if self.scoring is None:
            return float(model.score(X, y))
        return float(get_scorer(self.scoring)(model, X, y))

    @property
    def classes_(self) -> Any:
        """Labels of the winner, for classifiers."""
        return self._winner.classes_

    @property
    def _winner(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _read(self, X: Any) -> Any:
        """Return new features with the types of columns that the winner was fitted to."""
        return read_features(type(self).__name__, X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")
