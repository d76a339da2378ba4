"""Principal components, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.data.tables import read_projections, read_table, survivable
from skdpnoise.decomposition.moments import PrivateMoments, PrivateMomentsMixin, denoised
from skdpnoise.kernels.products import row_products
from skdpnoise.kernels.second_moments import Floats


@constructor_of_fields
class ComponentsParameter:
    """The parameter that DPPCA has first: what all share follows."""

    n_components: int | float | str | None = None


@register_private
@constructor_of_fields
class DPPCA(
    PrivateMomentsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    ComponentsParameter,
):
    r"""Principal component analysis, protecting every record of the training data.

    Noise is added once, to the second moments of the rows about a private mean,

    .. math:: \tilde S = \sum_i z_i z_i^\top + E, \qquad
              z_i = (x_i - c) \min\Bigl(1, \frac{R}{|x_i - c|_2}\Bigr)

    and everything else is computed from that matrix. Centre c and radius R are found privately too;
    public bounds on the features or on the norm of a centred row save most of their budget.

    **Guarantee.** (ε, δ)-differential privacy of all fitted attributes together, for neighbours
    by `adjacency`: of how far one record moves the second moments
    (:func:`~skdpnoise.sensitivity.second_moment_change`) and of how a radius is chosen
    (:func:`~skdpnoise.queries.norm_quantile.private_norm_quantile`); the steps share the budget.
    Counts of rows beyond 12 radii, each row in one count at most, are released where R may grow:
    one record that is added moves one of them by 1, one that is replaced two.

    Rows beyond R are shrunk to it: where noise matters a third to two thirds of them, fewer as n
    grows. That blurs directions less than the noise would, but lowers ``explained_variance_``. If
    fewer than a third are, R grows where rows beyond surely have more variance than noise gains.

    Parameters
    ----------
    n_components : int, float, "auto" or None, default=None
        Number of components; a share of the (private) variance, in (0, 1); "auto" for those that
        stand out of the noise, one at least; None for as many as there are features.
    %(parameters)s
    center : bool, default=True
        Whether to subtract a private mean; else components are those of rows about the origin.
    whiten : bool, default=False
        Whether :meth:`transform` scales the components to unit variance.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal principal axes, by decreasing variance, with scikit-learn's signs.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the shrunk rows along each axis, less what noise adds on average; at least 0.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same over the total variance.
    singular_values_ : ndarray of shape (n_components,)
        The square roots of (n − 1) times ``explained_variance_``.
    mean_ : ndarray of shape (n_features,)
        Private mean, or zeros.
    noise_variance_ : float
        Average variance along the axes that are left out.
    n_components_ : int
        Number of components.
    n_samples_ : float
        Number of records; noisy under "add_remove".
    row_norm_ : float
        R, public or found.
    %(estimators: privacy_, n_features_in_, feature_names_in_)s

    See Also
    --------
    skdpnoise.decomposition.DPCovariance : The matrix itself.

    Notes
    -----
    For ``delta=0``, drawing one eigenvector after another by the exponential mechanism loses to
    noise on the matrix, except where neither is of use (``python -m benchmarks pca``). One Wishart
    matrix is not pure; ``noise="wishart"`` is the difference of two, which is.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis", STOC 2014, Algorithm 1. Amin, Dick, Kulesza, Muñoz Medina and
    Vassilvitskii, "Differentially private covariance estimation", NeurIPS 2019 (the exponential
    mechanism).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.decomposition import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 5)) * [5.0, 3.0, 0.5, 0.5, 0.5] + 100.0
    >>> pca = DPPCA(n_components=2, epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(pca.components_ - np.eye(2, 5)) < 0.1))
    True
    >>> pca.transform(X).shape
    (20000, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "center": ["boolean"],
        "whiten": ["boolean"],
    }

    _: KW_ONLY
    center: bool = True
    whiten: bool = False

    def transform(self, X: Any) -> Floats:
        """Project rows on the components; nothing is clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        with np.errstate(all="ignore"):  # the rows may be those of a fit, in a pipeline
            projected = row_products(X, self.components_.T, self.mean_)
            if self.whiten:
                projected /= self._lengths
            projected = projected.astype(X.dtype, copy=False)
        return survivable(projected)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that have these projections and lie in the span of the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        projected = read_projections(type(self).__name__, X, len(self.components_))
        with np.errstate(all="ignore"):
            lengths = self._lengths if self.whiten else 1.0
            rows = row_products(projected * lengths, self.components_) + self.mean_
            return rows.astype(projected.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def _lengths(self) -> Floats:
        lengths = np.sqrt(self.explained_variance_)
        return np.where(lengths > 0.0, lengths, 1.0)

    @property
    def _centers(self) -> bool:
        return self.center

    def _check_columns(self, n_features: int) -> None:
        wanted = self.n_components
        if isinstance(wanted, Integral) and int(wanted) > n_features:
            raise ValueError(
                f"The 'n_components' parameter of {type(self).__name__} must be at most the number "
                f"of features, {n_features}. Got {wanted} instead."
            )

    def _count_axes(self, n_columns: int) -> int:
        most, wanted = super()._count_axes(n_columns), self.n_components
        return min(int(wanted), most) if isinstance(wanted, Integral) else most

    def _store(self, moments: PrivateMoments) -> None:
        wanted = self.n_components
        most = int(wanted) if isinstance(wanted, Integral) else moments.mean.size
        values, axes = _axes(moments.covariance, most)
        variances = denoised(values, moments.noise)
        count = self._count_components(variances, values, moments.noise)
        kept = variances[:count]
        total = max(float(np.trace(moments.covariance)), float(kept.sum()))
        self.mean_ = moments.mean
        self.components_ = axes[:count]
        self.explained_variance_ = kept
        self.explained_variance_ratio_ = kept / total if total > 0.0 else np.zeros(count)
        divisor = moments.n_samples - (1.0 if self.center else 0.0)
        self.singular_values_ = np.sqrt(divisor * kept)
        rest = moments.mean.size - count
        self.noise_variance_ = (total - float(kept.sum())) / rest if rest else 0.0
        self.n_components_ = count

    def _count_components(self, variances: Floats, values: Floats, noise: float) -> int:
        wanted = self.n_components
        if wanted is None:
            return values.size
        if isinstance(wanted, str):
            return max(1, int(np.count_nonzero(values > 2.0 * noise)))
        if isinstance(wanted, Integral):
            return int(wanted)
        total = max(float(values.sum()), float(variances.sum()))
        if total <= 0.0:
            return 1
        # The least number whose share is at least the one wanted.
        reached = np.cumsum(variances) >= float(wanted) * total * (1.0 - 1e-12)
        return int(np.argmax(reached)) + 1 if reached.any() else values.size


def _axes(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, decreasing, and their eigenvectors as rows."""
    size = float(np.abs(matrix).max())
    unit = 2.0 ** np.floor(np.log2(size)) if size > 0.0 else 1.0  # exact, and nothing overflows
    last = len(matrix) - 1
    values, vectors = eigh(matrix / unit, subset_by_index=(last + 1 - count, last))
    _, axes = svd_flip(None, np.ascontiguousarray(vectors[:, ::-1].T), u_based_decision=False)
    return values[::-1] * unit, axes
