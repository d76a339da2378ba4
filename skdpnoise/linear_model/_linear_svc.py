"""Linear support vector classification along whole gradients, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.kernels.losses import Loss, hinge
from skdpnoise.linear_model._model import LinearClassifier
from skdpnoise.linear_model._parameters import WholeGradientParameters


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
    2. Locations and scales of the features, as in :class:`DPLogisticCD` with "joint".
    3. "gradients": for each pass the sum over records of the gradient in all columns and classes,
       clipped to the norm C and rounded to integers within it (:mod:`skdpnoise.kernels.joint`: it
       moves by 2C in Euclidean norm under replace-one, by C under add/remove), plus exact integer
       noise.

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
