"""Models that descend along whole gradients alone: Huber, quantile and hinge losses."""

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
from skdpnoise.kernels.losses import Loss, hinge, huber, pinball
from skdpnoise.linear_model._model import LinearClassifier, LinearRegressor
from skdpnoise.linear_model._parameters import DescentParameters


@constructor_of_fields
class WholeGradientParameters(DescentParameters):
    """Parameters of models whose gradients are clipped as a whole."""


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


@register_private
@constructor_of_fields
class DPQuantileRegressor(WholeGradientParameters, LinearRegressor):
    r"""Linear model of a quantile of the target, protecting every record.

    .. math:: \min_w \frac{1}{n} \sum_i \ell_{q, h}\Bigl(\frac{x_i^\top w + b - y_i}{\sigma}\Bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns that are standardised, with σ the released scale of the target and the pinball loss
    of q, its kink smoothed over a width of h (:func:`skdpnoise.kernels.losses.pinball`), by descent
    along whole gradients. The intercept then moves until a share q of the targets is below the
    model. It needs no bounds and no scaling by hand.

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

    With an intercept one more release is the last one: "residuals: quantile", a search for the
    q-quantile of :math:`y - x^\top w`, w being released. Its steps are counts, in which a record
    below a threshold adds 1 - q and another one -q (q in steps of 2**-16): under replace-one a
    record moves them by 1, under add/remove by max(q, 1 - q). Thresholds depend on earlier answers
    and public numbers only.

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


@register_private
@constructor_of_fields
class DPLinearSVC(WholeGradientParameters, LinearClassifier):
    r"""Linear support vector classifier, protecting every record.

    .. math:: \min_w \frac{1}{n} \sum_i \ell_h\bigl(y_i (x_i^\top w + b)\bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns that are standardised, with the hinge loss, its kink smoothed over a margin of h
    (:func:`skdpnoise.kernels.losses.hinge`), by descent along whole gradients. Three classes or
    more are fitted one against the rest, all in the same passes. No scaling by hand is needed.

    Parameters
    ----------
    %(parameters)s
    smoothing : float, default=1.0
        h, a **public** number: margins from 1 - h to 1 lose their square over 2h. It is the hinge
        loss for 0, and the squared one beyond the margins for more.
    alpha : float, default=0.001
        Strength of the penalty, on coefficients of columns in units of their standard deviation and
        beside the mean loss: 1 / (C n) for C of :class:`~sklearn.svm.LinearSVC` and n records.
    l1_ratio : float, default=0.0
        Mix of the penalty: 0 is a ridge, 1 a lasso.
    classes : array-like of shape (n_classes,) or None, default=None
        The **public** labels, two or more, each once and all of one kind. None treats those that
        occur in y as public.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the user's units; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    %(paragraphs: fit_by_whole_gradients)s

    See Also
    --------
    DPLogisticCD : Probabilities of classes.

    Notes
    -----
    **Privacy.** Neighbours are as ``adjacency`` says. Released are, in this order and all charged
    for in ``privacy_``, under the labels in quotes:

    1. "number of records", under add/remove only: a record moves it by 1.
    2. "class shares" with delta = 0, and locations and scales of the features, as in
       :class:`DPLogisticCD` with "joint".
    3. "gradients": for each pass the sum over records of the gradient in all columns and classes,
       clipped to the norm C and rounded to integers within it (:mod:`skdpnoise.kernels.joint`: it
       moves by 2C in Euclidean norm under replace-one, by C under add/remove), plus exact integer
       noise; with delta = 0 of the K-norm, and then the gain, as there.
    4. "labels by score", with an intercept and two classes, as in :class:`DPLogisticCD`.
       They say where labels change, so that few are worse than those of the largest class alone.

    Composition, and what is not protected, are as there.

    References
    ----------
    Cortes and Vapnik, "Support-vector networks", Machine Learning 20, 1995, equation 25. Rennie and
    Srebro, "Loss functions for preference levels", 2005, section 2 (the smooth hinge).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = np.where(X[:, 0] / 10 + rng.normal(size=10_000) > 5, "yes", "no")
    >>> model = DPLinearSVC(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.72)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "smoothing": [Interval(Real, 1e-3, 1e3, closed="both")],
        "classes": [None, "array-like"],
    }

    _: KW_ONLY
    smoothing: float = 1.0
    alpha: float = 0.001
    l1_ratio: float = 0.0
    classes: Any = None

    def _minimised(self) -> Loss:
        return hinge(self.smoothing)
