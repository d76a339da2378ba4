"""The lasso with scikit-learn's penalty and differential privacy."""

from __future__ import annotations

from skdpnoise.base.constructors import constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.linear_model._coordinate_descent import LeastSquaresModel
from skdpnoise.linear_model._penalties import lasso


@register_private
@constructor_of_fields
class DPLasso(LeastSquaresModel):
    r"""Least squares with a penalty on absolute coefficients, protecting every record.

    .. math:: \min_{w, b} \; \frac{1}{2n} |y - X w - b|_2^2 + \alpha |w|_1

    in the units of X and y, as :class:`~sklearn.linear_model.Lasso` has it, from one private
    release of second moments or by private descent. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(regressors: coef_, intercept_, solver_)s
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, not with "gram".
    %(estimators: clip_range_)s
    n_passes_ : int
        Passes made. Not with "gram".
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPLassoPath : All penalties, of standardised columns, from one release.
    DPElasticNet, DPRidge : Other penalties.

    Notes
    -----
    **Privacy.** As for :class:`DPCoordinateDescentRegressor`: releases, their labels and what a
    record does to each are the same. How strong the penalty is for standardised columns follows
    from α, released scales and the number of records, public or released: post-processing.

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

    _penalties = staticmethod(lasso)
