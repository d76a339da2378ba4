"""Ridge, lasso and elastic net with scikit-learn's penalties."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.linear_model._model import MOMENTS_OR_DESCENT, LinearRegressor
from skdpnoise.linear_model._parameters import MIX, LeastSquaresParameters
from skdpnoise.linear_model._penalties import elastic_net, lasso, ridge

__all__ = ["DPElasticNet", "DPLasso", "DPRidge"]


@constructor_of_fields
class _LeastSquares(LeastSquaresParameters, LinearRegressor):
    _solvers = MOMENTS_OR_DESCENT


@register_private
@constructor_of_fields
class DPLasso(_LeastSquares):
    r"""Least squares with a penalty on absolute coefficients, protecting every record.

    .. math:: \min_{w, b} \; \frac{1}{2n} |y - X w - b|_2^2 + \alpha |w|_1

    in the units of X and y, as :class:`~sklearn.linear_model.Lasso` has it, from one private
    release of second moments or by private descent. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(paragraphs: fit_of_least_squares)s

    See Also
    --------
    DPLassoPath : All penalties, of standardised columns, from one release.
    DPElasticNet, DPRidge : Other penalties.

    Notes
    -----
    %(paragraphs: privacy_of_least_squares)s

    References
    ----------
    Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical
    Society B 58(1), 1996, equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(10_000, 3))
    >>> y = X @ [3.0, -1.0, 0.0] + rng.normal(size=10_000)
    >>> model = DPLasso(epsilon=1.0, alpha=0.1, feature_bounds=(-1.0, 1.0)).fit(X, y)
    >>> bool(model.coef_[2] == 0.0 and np.abs(model.coef_ - [2.7, -0.7, 0.0]).max() < 0.15)
    True
    """

    _penalty = staticmethod(lasso)


@register_private
@constructor_of_fields
class DPRidge(_LeastSquares):
    r"""Least squares with a penalty on squared coefficients, protecting every record.

    .. math:: \min_{w, b} \; |y - X w - b|_2^2 + \alpha |w|_2^2

    in the units of X and y, as :class:`~sklearn.linear_model.Ridge` has it, from one private
    release of second moments or by private descent. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    alpha : float, default=1.0
        α, beside the **sum** over the records, of which a private number is released if it is not
        public. Columns in small units are penalised more: scale them, or use
        :class:`DPCoordinateDescentRegressor`, whose penalty is of standardised columns.

    Attributes
    ----------
    %(paragraphs: fit_of_least_squares)s

    See Also
    --------
    DPLasso, DPElasticNet : Penalties that leave columns out.
    DPCoordinateDescentRegressor : A penalty of standardised columns.

    Notes
    -----
    %(paragraphs: privacy_of_least_squares)s

    References
    ----------
    Hoerl and Kennard, "Ridge regression: biased estimation for nonorthogonal problems",
    Technometrics 12(1), 1970, equation 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(10_000, 3))
    >>> y = X @ [3.0, -1.0, 0.0] + rng.normal(size=10_000)
    >>> model = DPRidge(epsilon=1.0, alpha=1000.0, feature_bounds=(-1.0, 1.0)).fit(X, y)
    >>> bool(np.abs(model.coef_ - [2.3, -0.77, 0.0]).max() < 0.15)
    True
    """

    _penalty = staticmethod(ridge)


@register_private
@constructor_of_fields
class DPElasticNet(_LeastSquares):
    r"""Least squares with penalties on absolute and squared coefficients, protecting every record.

    .. math:: \min_{w, b} \; \frac{1}{2n} |y - X w - b|_2^2
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    in the units of X and y, as :class:`~sklearn.linear_model.ElasticNet` has it, from one private
    release of second moments or by private descent. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    %(DescentParameters: l1_ratio)s

    Attributes
    ----------
    %(paragraphs: fit_of_least_squares)s

    See Also
    --------
    DPLasso, DPRidge : Each of the penalties alone.
    DPCoordinateDescentRegressor : The same of standardised columns.

    Notes
    -----
    %(paragraphs: privacy_of_least_squares)s

    References
    ----------
    Zou and Hastie, "Regularization and variable selection via the elastic net", Journal of the
    Royal Statistical Society B 67(2), 2005, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(10_000, 3))
    >>> y = X @ [3.0, -1.0, 0.0] + rng.normal(size=10_000)
    >>> model = DPElasticNet(epsilon=1.0, alpha=0.1, feature_bounds=(-1.0, 1.0)).fit(X, y)
    >>> bool(np.abs(model.coef_ - [2.5, -0.7, 0.0]).max() < 0.15)
    True
    """

    _penalty = staticmethod(elastic_net)
    _parameter_constraints: ClassVar[Constraints] = {"l1_ratio": MIX}

    _: KW_ONLY
    l1_ratio: float = 0.5
