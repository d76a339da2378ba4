"""Multilayer perceptrons and networks of any kind: classifiers and regressors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, field, replace
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.schema import Schema
from skdpnoise.data.targets import known_classes
from skdpnoise.neural_network._data import Scaling
from skdpnoise.neural_network._modules import ACTIVATIONS
from skdpnoise.neural_network._network import PrivateNetwork

T = TypeVar("T")

_PREFIX = "module__"


@constructor_of_fields
class NetworkClassifier(QuietScoreMixin, ClassifierMixin, PrivateNetwork):
    _: KW_ONLY
    classes: Any = None
    classes_: NDArray[Any] = field(init=False)
    calibration_: NDArray[np.float64] = field(init=False)
    _target_dtype: ClassVar[str] = "int64"
    _parameter_constraints: ClassVar[Constraints] = {"classes": [None, "array-like"]}

    def _of_outputs(self, schema: Schema) -> Schema:
        classes = known_classes(self, np.asarray(schema.classes))
        return replace(schema, classes=classes, n_outputs=len(classes))

    def _targets(
        self, schema: Schema, scaling: Scaling | None, y: NDArray[Any]
    ) -> NDArray[np.int64]:
        codes = np.searchsorted(np.asarray(schema.classes), y)  # all labels are among the classes
        return np.asarray(codes, dtype=np.int64)

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
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the logarithm of the probability of each class: see :meth:`predict_proba`."""
        scores = self._scores(X)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

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
        codes = np.argmax(self._scores(X), axis=1)
        return np.asarray(self.classes_[codes])

    def _scores(self, X: Any) -> NDArray[np.float64]:
        outputs = self._outputs(X)
        slope, intercept = self.calibration_
        outputs *= slope
        outputs[:, -1] += intercept
        return outputs


@constructor_of_fields
class NetworkRegressor(QuietScoreMixin, RegressorMixin, PrivateNetwork):
    _: KW_ONLY
    target_bounds: Any = None
    _target_dtype: ClassVar[str] = "float32"
    _parameter_constraints: ClassVar[Constraints] = {
        "target_bounds": [None, tuple, list, np.ndarray]
    }

    def _of_outputs(self, schema: Schema) -> Schema:
        bounds = as_bounds(self.target_bounds, 1, "target_bounds", self)
        return replace(schema, target_bounds=bounds)

    def _targets(
        self, schema: Schema, scaling: Scaling | None, y: NDArray[Any]
    ) -> NDArray[np.float32]:
        return y.astype(np.float32) if scaling is None else scaling(y)

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


@constructor_of_fields
class LayerParameters:
    _parameter_constraints: ClassVar[Constraints] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
    }

    hidden_layer_sizes: Any = (100,)
    activation: str = "tanh"


@register_private
@constructor_of_fields
class DPMLPClassifier(LayerParameters, NetworkClassifier):
    """Multilayer perceptron for labels, protecting every record of the training data.

    It minimises the multinomial logistic loss
    %(paragraphs: gradients_of_people)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_, calibration_, classes_, allocation_)s
    %(paragraphs: attributes_of_trainings)s

    See Also
    --------
    DPNeuralClassifier : Any other network.
    DPLogisticRegression : A linear model, which is better with few records.

    %(paragraphs: stages_of_networks)s
    %(networks: References)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.neural_network import DPMLPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = DPMLPClassifier(hidden_layer_sizes=16, epsilon=3.0).fit(X, y)
    >>> model.n_steps_, round(model.sampling_rate_, 2)
    (200, 0.1)
    """


@register_private
@constructor_of_fields
class DPMLPRegressor(LayerParameters, NetworkRegressor):
    """Multilayer perceptron for numbers, protecting every record of the training data.

    It minimises the squared loss of a standardised target
    %(paragraphs: gradients_of_people)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_, allocation_)s
    %(paragraphs: attributes_of_trainings)s

    See Also
    --------
    DPNeuralRegressor : Any other network.
    DPCoordinateDescentRegressor : A linear model, which is better with few records.

    %(paragraphs: stages_of_networks)s
    %(networks: References)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.neural_network import DPMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> y = np.abs(X[:, 0])
    >>> model = DPMLPRegressor(hidden_layer_sizes=16, epsilon=3.0).fit(X, y)
    >>> model.n_steps_, round(model.sampling_rate_, 2)
    (200, 0.1)
    """


@constructor_of_fields
class ModuleParameters(BaseEstimator):
    module: Any = None
    _parameter_constraints: ClassVar[Constraints] = {"module": [None, callable]}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        own = {name: one for name, one in vars(self).items() if name.startswith(_PREFIX)}
        params: dict[str, Any] = super().get_params(deep=False)
        return params | own

    def set_params(self, **params: Any) -> Self:
        for name in [name for name in params if name.startswith(_PREFIX)]:
            setattr(self, name, params.pop(name))
        super().set_params(**params)
        return self


def takes_module_parameters(cls: type[T]) -> type[T]:
    plain: Any = cls.__init__

    @wraps(plain)
    def init(self: Any, *args: Any, **params: Any) -> None:
        own = {name: params.pop(name) for name in list(params) if name.startswith(_PREFIX)}
        plain(self, *args, **params)
        vars(self).update(own)

    setattr(cls, "__init__", init)  # noqa: B010
    return cls


@register_private
@takes_module_parameters
@constructor_of_fields
class DPNeuralClassifier(ModuleParameters, NetworkClassifier):
    """Any network of torch for labels, protecting every record of the training data.

    It minimises the multinomial logistic loss
    %(paragraphs: gradients_of_people)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_, calibration_, classes_, allocation_)s
    %(paragraphs: attributes_of_trainings)s

    See Also
    --------
    DPMLPClassifier : A multilayer perceptron.
    DPLogisticRegression : A linear model, which is better with few records.

    %(paragraphs: any_network)s
    %(networks: References)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.neural_network import DPNeuralClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> def network(width):
    ...     from torch import nn
    ...     return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
    >>> model = DPNeuralClassifier(module=network, module__width=16, epsilon=3.0)
    >>> model = model.fit(X, y)
    >>> model.n_steps_, round(model.sampling_rate_, 2)
    (200, 0.1)
    """


@register_private
@takes_module_parameters
@constructor_of_fields
class DPNeuralRegressor(ModuleParameters, NetworkRegressor):
    """Any network of torch for numbers, protecting every record of the training data.

    It minimises the squared loss of a standardised target
    %(paragraphs: gradients_of_people)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_, allocation_)s
    %(paragraphs: attributes_of_trainings)s

    See Also
    --------
    DPMLPRegressor : A multilayer perceptron.
    DPCoordinateDescentRegressor : A linear model, which is better with few records.

    %(paragraphs: any_network)s
    %(networks: References)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.neural_network import DPNeuralRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> y = np.abs(X[:, 0])
    >>> def network(width):
    ...     from torch import nn
    ...     return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
    >>> model = DPNeuralRegressor(module=network, module__width=16, epsilon=3.0)
    >>> model = model.fit(X, y)
    >>> model.n_steps_, round(model.sampling_rate_, 2)
    (200, 0.1)
    """
