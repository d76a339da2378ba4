"""Ridge regression with scikit-learn's penalty and differential privacy."""

from __future__ import annotations

from skdpnoise.base.constructors import constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.linear_model._coordinate_descent import LeastSquaresModel
from skdpnoise.linear_model._penalties import ridge


@register_private
@constructor_of_fields
class DPRidge(LeastSquaresModel):
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
    %(regressors: coef_, intercept_, solver_)s
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, not with "gram".
    %(estimators: clip_range_)s
    n_passes_ : int
        Passes made. Not with "gram".
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPLasso, DPElasticNet : Penalties that leave columns out.
    DPCoordinateDescentRegressor : A penalty of standardised columns.

    Notes
    -----
    **Privacy.** As for :class:`DPCoordinateDescentRegressor`: releases, their labels and what a
    record does to each are the same. How strong the penalty is for standardised columns follows
    from α, released scales and the number of records, public or released: post-processing.

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

    _penalties = staticmethod(ridge)
