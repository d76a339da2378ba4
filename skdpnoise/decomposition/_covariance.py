"""A covariance matrix, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.covariance import EmpiricalCovariance, empirical_covariance, log_likelihood
from sklearn.utils.validation import check_is_fitted

from skdpnoise.base.constructors import constructor_of_fields
from skdpnoise.base.private_fit import check_unpaid_arguments
from skdpnoise.base.register import register_private
from skdpnoise.data.tables import read_table
from skdpnoise.decomposition.moments import PrivateMoments, PrivateMomentsMixin, denoised
from skdpnoise.kernels.second_moments import Floats

# Eigenvalues are at least this part of the largest: an inverse keeps half of the digits.
_LEAST = float(np.sqrt(np.finfo(np.float64).eps))


@register_private
@constructor_of_fields
class DPCovariance(PrivateMomentsMixin, EmpiricalCovariance):
    r"""Covariance matrix, protecting every record of the training data.

    .. math:: \hat C = \frac1n \Bigl(\sum_i z_i z_i^\top + E\Bigr), \qquad
              z_i = (x_i - c) \min\Bigl(1, \frac{R}{|x_i - c|_2}\Bigr)

    made positive definite. Release and parameters are those of
    :class:`~skdpnoise.decomposition.DPPCA`, but more is spent on R, so that few rows are shrunk. By
    post-processing, eigenvalues that stand out of the noise lose its mean effect; the others are
    replaced by their mean.

    **Guarantee.** That of DPPCA. What :meth:`score`, :meth:`error_norm` and :meth:`mahalanobis`
    return of private rows is not private.

    Parameters
    ----------
    %(parameters)s
    store_precision : bool, default=True
        Whether ``precision_`` is computed and kept.
    assume_centered : bool, default=False
        Whether the second moments are about the origin; else about a private mean.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Positive definite.
    location_ : ndarray of shape (n_features,)
        Private mean, or zeros.
    precision_ : ndarray of shape (n_features, n_features)
        Inverse of the covariance, if ``store_precision``.
    n_samples_ : float
        Number of records; noisy under "add_remove".
    row_norm_ : float
        R, public or found.
    %(estimators: privacy_, n_features_in_, feature_names_in_)s

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis", STOC 2014, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.decomposition import DPCovariance
    >>> X = np.random.default_rng(0).multivariate_normal([9, 5], [[2, 1], [1, 2]], size=50_000)
    >>> model = DPCovariance(epsilon=1.0, row_norm=8.0).fit(X)
    >>> bool(np.all(np.abs(model.covariance_ - [[2, 1], [1, 2]]) < 0.1))
    True
    """

    _keeps_rows = True

    _: KW_ONLY
    store_precision: bool = True
    assume_centered: bool = False

    @property
    def _centers(self) -> bool:
        return not self.assume_centered

    def _store(self, moments: PrivateMoments) -> None:
        self.location_ = moments.mean
        self._set_covariance(_positive(moments.covariance, moments.noise))

    def score(self, X_test: Any, y: Any = None, **params: Any) -> float:
        """Return the log-likelihood of rows under a normal law: of private rows, not private.

        Parameters
        ----------
        X_test : array-like of shape (n_samples, n_features)
            Rows; finite.
        %(fits: y)s
        **params : dict
            Refused, but for ``sample_weight=None``.

        Returns
        -------
        float
        """
        check_unpaid_arguments(self, params, "score")
        check_is_fitted(self)
        rows = read_table(self, X_test, reset=False) - self.location_
        moments = empirical_covariance(rows, assume_centered=True)
        return float(log_likelihood(moments, self.get_precision()))

    def mahalanobis(self, X: Any) -> Floats:
        """Return squared Mahalanobis distances of rows from the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; finite.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = read_table(self, X, reset=False) - self.location_
        return np.asarray(np.einsum("ij,ij->i", rows @ self.get_precision(), rows))


def _positive(matrix: Floats, noise: float) -> Floats:
    """Return a positive definite matrix with the same eigenvectors, freed of noise."""
    size = float(np.abs(matrix).max())
    unit = 2.0 ** np.floor(np.log2(size)) if size > 0.0 else 1.0  # exact, and nothing overflows
    values, vectors = eigh(matrix / unit)
    clear = values > 2.0 * noise / unit
    estimates = denoised(values, noise / unit)
    if not clear.all():
        estimates[~clear] = values[~clear].mean()
    # Even of data that are all zero: what the noise can hide.
    floor = max(_LEAST * float(estimates.max()), _LEAST * noise / unit, np.finfo(float).tiny)
    symmetric = (vectors * np.maximum(estimates, floor)) @ vectors.T
    return np.asarray(0.5 * (symmetric + symmetric.T) * unit)
