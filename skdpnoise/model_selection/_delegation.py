"""Methods that a fitted search hands on to its winner, as scikit-learn's searches do."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpnoise.base.partitioned import answered
from skdpnoise.base.private_fit import check_unpaid_arguments
from skdpnoise.data.fitted_kinds import read_as_fitted
from skdpnoise.data.redaction import check_collected, without_values
from skdpnoise.data.sources import by_storage

_METHOD = """Return what `{0}` of the winner says of these records.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)

        Returns
        -------
        ndarray or RowSource of shape (n_samples,) or (n_samples, n_classes)
        """


def _offers(method: str) -> Any:
    def check(search: Any) -> bool:
        fitted = hasattr(search, "best_estimator_")
        getattr(search.best_estimator_ if fitted else search.estimator, method)
        return True

    return available_if(check)


def _delegated(method: str) -> Any:
    """Return a method that the winner runs, where the estimator has it."""

    def run(self: Delegation, X: Any) -> Any:
        check_is_fitted(self)
        X = read_as_fitted(self, X)
        return answered(type(self).__name__, self.best_estimator_, method, X)

    run.__name__, run.__doc__ = method, _METHOD.format(method)
    return _offers(method)(run)


class Delegation:
    """Methods of the winner; each exists where the estimator has it."""

    best_estimator_: Any
    estimator: Any
    scoring: str | None

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")

    @_offers("score")
    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """Return the score of the winner, without noise: of private records, not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : None
            For scikit-learn's conventions; weights are refused.

        Returns
        -------
        float
            By `scoring`, or the winner's own score.
        """
        check_is_fitted(self)
        check_unpaid_arguments(self, {"sample_weight": sample_weight}, "score")
        owner, model = type(self).__name__, self.best_estimator_
        X = read_as_fitted(self, X)
        found: float = by_storage(
            X,
            lambda X: self._score(owner, X, y),
            lambda rows: answered(owner, model, "score", rows),  # which refuses them
        )
        return found

    def _score(self, owner: str, X: Any, y: Any) -> float:
        check_collected(owner, "y", y)
        scorer = check_scoring(self.best_estimator_, scoring=self.scoring)
        return without_values(
            lambda: float(scorer(self.best_estimator_, X, y)),
            f"{owner}.score cannot compare y with the predictions for X: give the columns that "
            "were fitted to, and one finite number, or label of the kind that was fitted, for each "
            "row of X.",
        )

    @property
    def classes_(self) -> Any:
        """Labels of the winner, for classifiers."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")
