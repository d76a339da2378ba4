"""Networks of any kind, with differential privacy."""

from __future__ import annotations

from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.neural_network._kinds import NetworkClassifier, NetworkRegressor

T = TypeVar("T")

_PREFIX = "module__"


@constructor_of_fields
class ModuleParameters(BaseEstimator):
    """Parameters of the module beside those of the estimator."""

    module: Any = None
    _parameter_constraints: ClassVar[Constraints] = {"module": [None, callable]}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of the module too.

        Parameters
        ----------
        deep : bool, default=True
            Makes no difference here.

        Returns
        -------
        dict
        """
        own = {name: one for name, one in vars(self).items() if name.startswith(_PREFIX)}
        params: dict[str, Any] = super().get_params(deep=False)
        return params | own

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the module too.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : object
        """
        for name in [name for name in params if name.startswith(_PREFIX)]:
            setattr(self, name, params.pop(name))
        super().set_params(**params)
        return self


def takes_module_parameters(cls: type[T]) -> type[T]:
    """Let a constructor take parameters of the module."""
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

    It minimises the multinomial logistic loss by stochastic gradient descent, with gradients of
    single records that are clipped in groups of parameters, and noise that may differ between
    groups. It needs torch (``pip install 'skdpnoise[torch]'``).

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_)s
    classes_ : ndarray of shape (n_classes,)
        The labels.
    %(networks: allocation_)s
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Batches.
    %(networks: sampling_rate_)s
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPMLPClassifier : A multilayer perceptron.
    DPLogisticRegression : A linear model, which is better with few records.

    Notes
    -----
    **Privacy.** Released and charged for is what :class:`DPMLPClassifier` releases, in its order;
    locations and scales of columns only without a module. The first parameters of the network, its
    shape, its frozen parameters and labels are public. Batch norm in training is refused.

    References
    ----------
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Muthukrishnan
    and Kalyani, arXiv:2302.03511, Section VI-C (noise of groups). Zhu, Dong and Wang, AISTATS 2022,
    Theorem 11 (sampling).

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

    It minimises the squared loss of a standardised target by stochastic gradient descent, with
    gradients of single records that are clipped in groups of parameters, and noise that may differ
    between groups. It needs torch (``pip install 'skdpnoise[torch]'``).

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(networks: module_)s
    %(networks: allocation_)s
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Batches.
    %(networks: sampling_rate_)s
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPMLPRegressor : A multilayer perceptron.
    DPCoordinateDescentRegressor : A linear model, which is better with few records.

    Notes
    -----
    **Privacy.** Released and charged for is what :class:`DPMLPRegressor` releases, in its order;
    locations and scales of columns only without a module. The first parameters of the network, its
    shape, its frozen parameters and labels are public. Batch norm in training is refused.

    References
    ----------
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Muthukrishnan
    and Kalyani, arXiv:2302.03511, Section VI-C (noise of groups). Zhu, Dong and Wang, AISTATS 2022,
    Theorem 11 (sampling).

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
