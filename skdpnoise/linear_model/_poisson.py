"""Poisson regression by coordinate descent, with differential privacy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import d2_tweedie_score

from skdpnoise.base.constructors import constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.kernels import POISSON
from skdpnoise.linear_model._model import COORDINATE_OR_GRADIENT, LinearRegressor
from skdpnoise.linear_model._parameters import EitherClipParameters
from skdpnoise.linear_model._targets import COUNTS


@register_private
@constructor_of_fields
class DPPoissonRegressor(EitherClipParameters, LinearRegressor):
    r"""Poisson regression with an elastic-net penalty, protecting every record.

    .. math:: \min_w \frac{1}{n} \sum_i \bigl(e^{s_i} - s_i y_i / m\bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr),
              \qquad s_i = x_i^\top w + b

    over columns that are standardised and clipped to ±3, along whole gradients or by private
    coordinate descent; m is a private mean of the target (1 without an intercept), so that
    predictions are :math:`m e^{x^\top w + b}`. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    solver : {"auto", "coordinate", "joint"}, default="auto"
        "joint" clips a record's whole gradient, of all columns, by one norm, so that many of them
        cost no more than few; the noise is normal or, with delta = 0 and "auto", that of the K-norm
        of the ball that holds a gradient. "coordinate" clips it in each coordinate by itself.
        "auto" takes "joint", but not with delta = 0 or another noise, nor where a parameter is set
        that is made for "coordinate" (`clip`, `budget_growth`, `error_weights`).
    alpha : float, default=0.0
        Strength of the penalty, on coefficients of standardised columns. The loss is divided by m:
        α here is about α m in :class:`~sklearn.linear_model.PoissonRegressor`. Few passes and
        clipped gradients shrink without it.
    clip : float or "auto", default="auto"
        Bound on one record's gradient, of standardised features and a target in units of its
        scale: in each coordinate or, with "joint", on its norm. Counts have long tails, which too
        small a bound makes biased.
    target_bounds : tuple (low, high) or None, default=None
        **Public** bounds that the target is clipped to, such as (0, 50). A low end below 0 counts
        as 0. None finds mean and scale privately, as for the features. Where that finds no scale,
        counts above 1 count as 1: rates should not be in much smaller units.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the user's units: what a unit adds to the logarithm of the prediction.
    intercept_ : float
        Intercept, a logarithm.
    %(paragraphs: fit_by_either_clip)s

    See Also
    --------
    DPCoordinateDescentRegressor : Least squares.
    DPLogisticCD : The same for classification.

    Notes
    -----
    **Privacy.** Neighbours are as ``adjacency`` says. Released are, in this order and all charged
    for in ``privacy_``, under the labels in quotes:

    1. "number of records", under add/remove only: a record moves it by 1.
    2. Location and scale of the target, as in :class:`DPCoordinateDescentRegressor`: the mean m is
       the location, σ the scale. Where the second look after a search, from 0 up, is taken, as it
       is where nearly all counts are alike, one more clipped sum is m: "target: mean count", of
       counts in [0, 2 s], s being the magnitude of their differences, from a tenth of what is left.
       Where no scale is found, or m is hardly more than its noise, a constant is predicted. It is
       "target: mean count" of counts in [0, 1], from half of what is left, or the location of the
       search if that is larger. A record moves either sum by the end of its interval at most, under
       both adjacencies. A mean below σ/16 counts as that.
    3. Locations and scales of the features, as in the same class.
    4. "gradients", for each pass the sum over records of :math:`(e^{x_i^\top w + b} - y_i / m) x_i`
       plus exact integer noise. With "coordinate" each entry is clipped to [−C σ/m, C σ/m] and
       rounded to integer grid steps (:func:`~skdpnoise.sensitivity.clipped_gradient`: twice the
       bound under replace-one, once under add/remove). With "joint" the whole vector is clipped to
       the norm C σ/m and rounded to integers within it (:mod:`skdpnoise.kernels.joint`: twice that
       in Euclidean norm, or once).
    5. "level", with "joint" and an intercept, from a tenth of what is left for the gradients: the
       sums of the finished model's predictions and of the counts, each divided by a limit that
       follows from released numbers, and clipped to [0, 1]. A record moves them by √2 in Euclidean
       norm, under both adjacencies. The intercept moves by the logarithm of their ratio, as far as
       noise lets it be believed: clipped gradients alone would make the mean too small. Where
       released numbers say that noise would be larger than that, it is not released.

    Composition, and what is not protected, are as there; negative targets raise an error too. A
    record is clipped whatever it holds: the curvature of the exponential, which no number bounds,
    matters to accuracy alone.

    References
    ----------
    Mangold et al., arXiv:2110.11688, Algorithm 1. Muthukrishnan and Kalyani, arXiv:2302.03511,
    Theorems 4 and 5 and Remark 5 (allocation of the noise).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = rng.poisson(np.exp(X[:, 0] / 10 - 4))
    >>> model = DPPoissonRegressor(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.3)
    True
    >>> bool((model.predict(X) > 0.0).all())
    True
    """

    _loss, _target, _solvers = POISSON, COUNTS, COORDINATE_OR_GRADIENT
    _metric = staticmethod(partial(d2_tweedie_score, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _means(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(np.clip(scores, -700.0, 700.0)))
