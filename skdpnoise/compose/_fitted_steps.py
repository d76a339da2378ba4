"""A pipeline whose fitted steps are copies: what it hands on to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpnoise.base.partitioned import answered
from skdpnoise.compose.whole import WholeMixin
from skdpnoise.data.columns import read_features
from skdpnoise.data.fitted_kinds import read_as_fitted
from skdpnoise.planning.mixin import PlanMixin


def offers(name: str) -> Callable[[Any], bool]:
    """Return whether scikit-learn's pipeline of the same steps would have a method."""
    return lambda pipeline: hasattr(pipeline._ordinary(), name)


def _delegated(name: str) -> Any:
    """Return a method of Pipeline that the fitted steps run, where they offer it."""
    method: Callable[..., Any] = getattr(Pipeline, name)

    @wraps(method)
    def run(self: FittedSteps, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        owner = type(self).__name__
        reads = partial(read_as_fitted, self)
        if name in ("inverse_transform", "get_feature_names_out"):
            reads = partial(read_features, owner)
        args = (*map(reads, args[:1]), *args[1:])
        kwargs |= {"X": reads(kwargs["X"])} if "X" in kwargs else {}
        return answered(owner, self._ordinary(), name, *args, **kwargs)

    return available_if(offers(name))(run)


class FittedSteps(WholeMixin, PlanMixin, Pipeline):
    """A pipeline that keeps fitted copies in `steps_`, and uses those wherever it has them."""

    memory = None  # what Pipeline's own code looks for
    transform_input = None
    steps_: list[tuple[str, Any]]

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")
    score_samples = _delegated("score_samples")
    score = _delegated("score")
    transform = _delegated("transform")
    inverse_transform = _delegated("inverse_transform")
    get_feature_names_out = _delegated("get_feature_names_out")

    def set_output(self, *, transform: str | None = None) -> Any:
        """Set what transformers return, as in scikit-learn.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None changes nothing.

        Returns
        -------
        self : object
        """
        for steps in (self.steps, getattr(self, "steps_", [])):
            Pipeline(steps).set_output(transform=transform)
        return self

    @property
    def named_steps(self) -> Bunch:
        """Steps by name: fitted copies after a fit, else those of `steps`."""
        return Bunch(**dict(self._current))

    @property
    def classes_(self) -> Any:
        """Labels of the last step, for classifiers."""
        return self._ordinary().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features of the first step."""
        return int(self._ordinary().n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features of the first step, where X has them."""
        return self._ordinary().feature_names_in_

    def get_metadata_routing(self) -> Any:
        """Return what this estimator asks for itself; steps get groups from its fit.

        Returns
        -------
        MetadataRequest
        """
        return BaseEstimator.get_metadata_routing(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "steps_")

    @property
    def _current(self) -> list[tuple[str, Any]]:
        return self.steps_ if hasattr(self, "steps_") else self.steps

    @property
    def _final_estimator(self) -> Any:
        return self._ordinary()._final_estimator

    def _ordinary(self) -> Pipeline:
        """Return a pipeline of scikit-learn with the same steps, fitted if this is."""
        return Pipeline(self._current)
