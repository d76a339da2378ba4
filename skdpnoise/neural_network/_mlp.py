"""Multilayer perceptrons, with differential privacy."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.neural_network._kinds import NetworkClassifier, NetworkRegressor
from skdpnoise.neural_network._modules import ACTIVATIONS


@constructor_of_fields
class LayerParameters:
    """Parameters of the layers beside those of all networks."""

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
    DPNeuralClassifier : Any other network.
    DPLogisticRegression : A linear model, which is better with few records.

    Notes
    -----
    **Privacy.** Neighbours differ in one record, or person, more or fewer. Released are, in this
    order and all charged for in ``privacy_``, under the labels in quotes:

    1. "number of records", which a person moves by 1; not with `n_samples`.
    2. Locations and scales of columns without bounds (those of
       :func:`~skdpnoise.queries.private_location_scale`).
    3. "gradients": in each step the sum over a Poisson sample of the people of their gradients,
       each clipped in its groups and rounded to integers within the bounds
       (:class:`skdpnoise.kernels.joint.parts.ClippedParts`), plus exact integer noise, divided by
       the chance to be sampled times the number of people. A person in the sample moves it by the
       bounds, and is in it by a coin from the secure source
       (:class:`skdpnoise.mechanisms.sampled.SampledMechanism`). A gradient of one person is a
       function of that person's rows alone, to the last bit. One that is not finite counts as 0.

    The scales of the noise are calibrated to what the rest leaves, exactly and rounded up
    (:func:`skdpnoise.privacy.poisson_sampled`). All steps are charged for before the first batch;
    how many there are, and what callbacks see, does not hang on the data. A network's first
    parameters, the shape of the network and labels are public. Batch norm in training is refused.

    References
    ----------
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Muthukrishnan
    and Kalyani, arXiv:2302.03511, Section VI-C (noise of groups). Zhu, Dong and Wang, AISTATS 2022,
    Theorem 11 (sampling).

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
    DPNeuralRegressor : Any other network.
    DPCoordinateDescentRegressor : A linear model, which is better with few records.

    Notes
    -----
    **Privacy.** Neighbours differ in one record, or person, more or fewer. Released are, in this
    order and all charged for in ``privacy_``, under the labels in quotes:

    1. "number of records", which a person moves by 1; not with `n_samples`.
    2. Locations and scales of columns without bounds (those of
       :func:`~skdpnoise.queries.private_location_scale`).
    3. Location and scale of the target, "target: ...", as in
       :class:`~skdpnoise.DPCoordinateDescentRegressor` without bounds.
    4. "gradients": in each step the sum over a Poisson sample of the people of their gradients,
       each clipped in its groups and rounded to integers within the bounds
       (:class:`skdpnoise.kernels.joint.parts.ClippedParts`), plus exact integer noise, divided by
       the chance to be sampled times the number of people. A person in the sample moves it by the
       bounds, and is in it by a coin from the secure source
       (:class:`skdpnoise.mechanisms.sampled.SampledMechanism`). A gradient of one person is a
       function of that person's rows alone, to the last bit. One that is not finite counts as 0.

    The scales of the noise are calibrated to what the rest leaves, exactly and rounded up
    (:func:`skdpnoise.privacy.poisson_sampled`). All steps are charged for before the first batch;
    how many there are, and what callbacks see, does not hang on the data. A network's first
    parameters, the shape of the network and labels are public. Batch norm in training is refused.

    References
    ----------
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Muthukrishnan
    and Kalyani, arXiv:2302.03511, Section VI-C (noise of groups). Zhu, Dong and Wang, AISTATS 2022,
    Theorem 11 (sampling).

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
