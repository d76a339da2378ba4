"""Methods that a fitted search hands on to its winner, as scikit-learn's searches do."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.checks import check_collected
from skdpnoise._utils.redaction import without_values
from skdpnoise.base.private_fit import check_unpaid_arguments
from skdpnoise.data.columns import read_features
from skdpnoise.data.fitted_kinds import parts_as_fitted, read_as_fitted
from skdpnoise.data.rows import RowSource, as_sources, is_spread
from skdpnoise.model_selection._data import without_seeds

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


def _handed_on(method: str) -> Any:
    """Return a method that the winner runs, where the estimator has it."""

    def run(self: Delegation, X: Any) -> Any:
        check_is_fitted(self)
        if is_spread(X):
            (source,) = as_sources(X=X).values()
            known = parts_as_fitted(self, source)
            return _over_parts(self.best_estimator_, method, known)
        return getattr(self.best_estimator_, method)(read_as_fitted(self, X))

    run.__name__, run.__doc__ = method, _METHOD.format(method)
    return _offers(method)(run)


def _over_parts(model: Any, method: str, source: RowSource) -> RowSource:
    """Return what the winner says of rows in parts, when they are read."""
    n_classes = len(getattr(model, "classes_", ()))
    wide = method in ("predict_proba", "predict_log_proba") or n_classes > 2
    tail = () if method == "predict" or not wide else (n_classes,)
    return source.map(partial(_said, without_seeds(model), method), *tail)


def _said(model: Any, method: str, rows: Any) -> Any:
    return getattr(model, method)(read_features(type(model).__name__, rows))


class Delegation:
    """Methods of the winner; each exists where the estimator has it."""

    best_estimator_: Any
    estimator: Any
    scoring: str | None

    predict = _handed_on("predict")
    predict_proba = _handed_on("predict_proba")
    predict_log_proba = _handed_on("predict_log_proba")
    decision_function = _handed_on("decision_function")

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
        if is_spread(X):
            raise TypeError(
                f"{owner}.score needs all rows in memory. For rows in parts give predict(X), which "
                "takes them, to a private score of skdpnoise.metrics."
            )
        check_collected(owner, "y", y)
        X, scorer = read_as_fitted(self, X), check_scoring(model, scoring=self.scoring)
        return without_values(
            lambda: float(scorer(model, X, y)),
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
