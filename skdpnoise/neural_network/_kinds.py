"""Classifiers and regressors among networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.targets import one_against_rest, read_labels, read_numbers
from skdpnoise.neural_network._data import Scaling, Target
from skdpnoise.neural_network._network import PrivateNetwork

__all__ = ["NetworkClassifier", "NetworkRegressor"]


@constructor_of_fields
class NetworkClassifier(QuietScoreMixin, ClassifierMixin, PrivateNetwork):
    """A network with one output for each class, and the logistic loss."""

    _: KW_ONLY
    classes: Any = None
    classes_: NDArray[Any] = field(init=False)
    _parameter_constraints: ClassVar[Constraints] = {"classes": [None, "array-like"]}

    def _read_target(self, y: Any, n_rows: int) -> Target:
        labels = read_labels(type(self).__name__, y, n_rows)
        classes, ones = one_against_rest(self, labels)
        if len(ones) == 1:
            codes = (ones[0] > 0).astype(np.int64)
        else:
            codes = np.argmax(ones, axis=0).astype(np.int64)
        return Target(codes, len(classes), None, {"classes_": classes})

    def _tensor(self, torch: Any, target: Target, scaling: Scaling | None) -> Any:
        return torch.from_numpy(target.values)

    def _row_losses(self, torch: Any) -> Callable[..., Any]:
        def losses(outputs: Any, targets: Any) -> Any:
            return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

        return losses

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.asarray(softmax(self._outputs(X), axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        outputs = self._outputs(X)
        return np.asarray(outputs - logsumexp(outputs, axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = np.argmax(self._outputs(X), axis=1)
        return np.asarray(self.classes_[codes])


@constructor_of_fields
class NetworkRegressor(QuietScoreMixin, RegressorMixin, PrivateNetwork):
    """A network with one output, and the squared loss of a standardised target."""

    _: KW_ONLY
    target_bounds: Any = None
    _parameter_constraints: ClassVar[Constraints] = {
        "target_bounds": [None, tuple, list, np.ndarray]
    }

    def _read_target(self, y: Any, n_rows: int) -> Target:
        values = read_numbers(self, y, n_rows)
        bounds = as_bounds(self.target_bounds, 1, "target_bounds", self)
        return Target(values, 1, bounds, {})

    def _tensor(self, torch: Any, target: Target, scaling: Scaling | None) -> Any:
        values = target.values.astype(np.float32) if scaling is None else scaling(target.values)
        return torch.from_numpy(values)

    def _row_losses(self, torch: Any) -> Callable[..., Any]:
        def losses(outputs: Any, targets: Any) -> Any:
            return 0.5 * (outputs[..., 0] - targets) ** 2

        return losses

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the target.
        """
        outputs = self._outputs(X)[:, 0]
        scaling: Scaling = self._scalings[1]
        return scaling.back(outputs)
