"""Quantile regression along whole gradients, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import d2_pinball_score
from sklearn.utils._param_validation import Interval

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.kernels.losses import Loss, pinball
from skdpnoise.linear_model._model import LinearRegressor
from skdpnoise.linear_model._parameters import WholeGradientParameters


@register_private
@constructor_of_fields
class DPQuantileRegressor(WholeGradientParameters, LinearRegressor):
    r"""Linear model of a quantile of the target, protecting every record.

    .. math:: \min_w \frac{1}{n} \sum_i \ell_{q, h}\Bigl(\frac{x_i^\top w + b - y_i}{\sigma}\Bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns that are standardised, with σ the released scale of the target and the pinball loss
    of q, its kink smoothed over a width of h (:func:`skdpnoise.kernels.losses.pinball`), by descent
    along whole gradients. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    quantile : float, default=0.5
        q, between 0 and 1: the part of the targets that is below the model.
    smoothing : float, default=0.2
        h, a **public** number in units of the target's scale. Less is truer, and needs more passes.
    %(alpha)s
        It is 0, not 1 as in :class:`~sklearn.linear_model.QuantileRegressor`.

    Attributes
    ----------
    %(regressors: coef_, intercept_)s
    %(paragraphs: fit_by_whole_gradients)s

    See Also
    --------
    DPHuberRegressor : Means that far targets move little.

    Notes
    -----
    `score` is the part of the pinball loss that the model explains, as that of scikit-learn's
    :func:`~sklearn.metrics.d2_pinball_score` for this quantile.

    %(paragraphs: privacy_of_whole_gradients)s

    References
    ----------
    Koenker and Bassett, "Regression quantiles", Econometrica 46(1), 1978, equation 2.1. Fernandes,
    Guerre and Horta, "Smoothing quantile regressions", Journal of Business and Economic Statistics
    39(1), 2021, equation 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = X[:, 0] / 10 + rng.exponential(size=10_000)
    >>> model = DPQuantileRegressor(epsilon=1.0, quantile=0.8).fit(X, y)
    >>> bool(abs(np.mean(y < model.predict(X)) - 0.8) < 0.05)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "smoothing": [Interval(Real, 1e-3, 1e3, closed="both")],
    }

    _: KW_ONLY
    quantile: float = 0.5
    smoothing: float = 0.2

    def _minimised(self) -> Loss:
        return pinball(self.quantile, self.smoothing)

    def _metric(self, y: np.ndarray, predictions: np.ndarray, **weights: Any) -> float:
        return float(partial(d2_pinball_score, alpha=self.quantile)(y, predictions, **weights))
