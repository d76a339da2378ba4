"""Networks of any kind, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import BaseEstimator

from skdpnoise.base.register import register_private
from skdpnoise.neural_network._kinds import NetworkClassifier, NetworkRegressor
from skdpnoise.privacy import Adjacency

T = TypeVar("T")

_MODULE: dict[str, list[Any]] = {"module": [None, callable]}
_PREFIX = "module__"


class ModuleParameters(BaseEstimator):
    """Parameters of the module beside those of the estimator."""

    _declares: ClassVar[tuple[str, ...]] = ("module",)  # the user's code, and so its parameters

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
@dataclass(eq=False, repr=False)
class DPNeuralClassifier(ModuleParameters, NetworkClassifier):
    """Any network of torch for labels, protecting every record of the training data.

    It minimises the multinomial logistic loss by stochastic gradient descent, with gradients of
    single records that are clipped in groups of parameters, and noise that may differ between
    groups. It needs torch (``pip install 'skdpnoise[torch]'``).

    Parameters
    ----------
    %(networks: module)s
    %(estimators: epsilon, delta)s
    %(networks: noise, adjacency, clip_groups, clip, batch_size, max_iter, solver)s
    %(networks: learning_rate_init, momentum, alpha)s
    %(networks: classes)s
    %(estimators: feature_bounds)s
        Features are put into ±1 within finite ones. None leaves them as they are; without a
        module it buys locations and scales.
    %(networks: n_samples)s
    %(estimators: rows_per_group, ledger, random_state)s
    %(networks: device)s

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

    _parameter_constraints = NetworkClassifier._parameter_constraints | _MODULE

    module: Any = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    noise: str = "auto"
    adjacency: Adjacency = "add_remove"
    clip_groups: Any = "global"
    clip: Any = "auto"
    batch_size: Any = "auto"
    max_iter: int = 20
    solver: str = "sgd"
    learning_rate_init: float | str = "auto"
    momentum: float = 0.9
    alpha: float = 0.0
    classes: Any = None
    feature_bounds: Any = None
    n_samples: int | None = None
    rows_per_group: int = 1
    ledger: Any = None
    random_state: Any = None
    device: str = "cpu"


@register_private
@takes_module_parameters
@dataclass(eq=False, repr=False)
class DPNeuralRegressor(ModuleParameters, NetworkRegressor):
    """Any network of torch for numbers, protecting every record of the training data.

    It minimises the squared loss of a standardised target by stochastic gradient descent, with
    gradients of single records that are clipped in groups of parameters, and noise that may differ
    between groups. It needs torch (``pip install 'skdpnoise[torch]'``).

    Parameters
    ----------
    %(networks: module)s
    %(estimators: epsilon, delta)s
    %(networks: noise, adjacency, clip_groups, clip, batch_size, max_iter, solver)s
    %(networks: learning_rate_init, momentum, alpha)s
    %(estimators: feature_bounds)s
        Features are put into ±1 within finite ones. None leaves them as they are; without a
        module it buys locations and scales.
    %(estimators: target_bounds)s
    %(networks: n_samples)s
    %(estimators: rows_per_group, ledger, random_state)s
    %(networks: device)s

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

    _parameter_constraints = NetworkRegressor._parameter_constraints | _MODULE

    module: Any = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    noise: str = "auto"
    adjacency: Adjacency = "add_remove"
    clip_groups: Any = "global"
    clip: Any = "auto"
    batch_size: Any = "auto"
    max_iter: int = 20
    solver: str = "sgd"
    learning_rate_init: float | str = "auto"
    momentum: float = 0.9
    alpha: float = 0.0
    feature_bounds: Any = None
    target_bounds: Any = None
    n_samples: int | None = None
    rows_per_group: int = 1
    ledger: Any = None
    random_state: Any = None
    device: str = "cpu"
