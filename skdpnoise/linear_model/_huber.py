"""Huber regression along whole gradients, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.kernels.losses import Loss, huber
from skdpnoise.linear_model._model import LinearRegressor
from skdpnoise.linear_model._parameters import WholeGradientParameters


@register_private
@constructor_of_fields
class DPHuberRegressor(WholeGradientParameters, LinearRegressor):
    r"""Linear regression that far targets move little, protecting every record.

    .. math:: \min_w \frac{1}{n} \sum_i h_k\Bigl(\frac{x_i^\top w + b - y_i}{\sigma}\Bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr), \qquad
              h_k(r) = \begin{cases} r^2 / 2 & |r| \le k \\ k |r| - k^2 / 2 & |r| > k \end{cases}

    over columns that are standardised, with σ the released scale of the target, by descent along
    whole gradients. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    threshold : float, default=1.35
        k, in units of the target's scale: where the loss becomes linear. It is `epsilon` of
        :class:`~sklearn.linear_model.HuberRegressor`, whose scale is that of the residuals and not
        of the target.
    clip : float or "auto", default="auto"
        Bound on the norm of one record's gradient, of standardised columns and target.

    Attributes
    ----------
    %(regressors: coef_, intercept_)s
    %(paragraphs: fit_by_whole_gradients)s

    See Also
    --------
    DPCoordinateDescentRegressor : Least squares.
    DPQuantileRegressor : Medians and other quantiles.

    Notes
    -----
    %(paragraphs: privacy_of_whole_gradients)s

    References
    ----------
    Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35, 1964,
    section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPHuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = X[:, 0] / 10 + rng.standard_t(2, size=10_000)
    >>> model = DPHuberRegressor(epsilon=1.0).fit(X, y)
    >>> bool(abs(model.coef_[0] - 0.1) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "threshold": [Interval(Real, 1e-3, 1e3, closed="both")]
    }

    _: KW_ONLY
    threshold: float = 1.35

    def _minimised(self) -> Loss:
        return huber(self.threshold)
