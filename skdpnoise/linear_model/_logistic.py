"""Logistic regression by coordinate descent, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import StrOptions

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.kernels import LOGISTIC
from skdpnoise.linear_model._model import COORDINATE_OR_GRADIENT, LinearClassifier
from skdpnoise.linear_model._parameters import EitherClipParameters


@register_private
@constructor_of_fields
class DPLogisticCD(EitherClipParameters, LinearClassifier):
    r"""Logistic regression with an elastic-net penalty, protecting every record.

    :class:`DPLogisticRegression` is another name of this class.

    .. math:: \min_w \frac{1}{n} \sum_i \log\bigl(1 + e^{-y_i (x_i^\top w + b)}\bigr)
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns that are standardised and clipped to ±3, by private coordinate descent or along
    whole gradients; three classes or more by the multinomial loss, under one guarantee. No scaling
    by hand is needed.

    Parameters
    ----------
    %(parameters)s
    solver : {"auto", "coordinate", "joint"}, default="auto"
        "joint" clips a record's whole gradient, of all columns and classes, by one norm, so that
        many of them cost no more than few; the noise is normal or, with delta = 0 and "auto", that
        of the K-norm of the ball that holds a gradient, in 1 to 20 passes. "coordinate" clips it in
        each coordinate by itself, three classes or more one against the rest. "auto" takes "joint",
        but not where another noise is named, a parameter is set that is made for "coordinate"
        (`clip`, `budget_growth`, `error_weights`), or two classes have few records (a public
        number, with μ n below 70, or of δ = 0 ε n by the root of the number of columns) and columns
        without bounds.
    alpha : float, default=0.0
        Strength of the penalty, on coefficients of standardised columns and beside the mean loss:
        1 / (C n) for C of :class:`~sklearn.linear_model.LogisticRegression` and n records. Clipped
        gradients are weaker than whole ones, so it shrinks more than there.
    classes : array-like of shape (n_classes,) or None, default=None
        The **public** labels, two or more, each once and all of one kind. None treats those that
        occur in y as public: give them where the presence of a label says something about a person.
        A meta-estimator that encodes labels as 0, 1, ..., such as
        :class:`~sklearn.ensemble.VotingClassifier`, wants these numbers here.
    class_weight : dict, "balanced" or None, default=None
        Weights of the records of each class, with "joint" only: a record's clipped gradient is
        multiplied by that of its class, in units of the largest weight, so that none counts for
        more than without weights. A dict has **public** weights by label, 1 where there is none.
        "balanced" is n / (K n_k) for K classes, from noisy numbers of records, which a part of the
        budget pays for; no weight is above 100.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the user's units; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    %(paragraphs: fit_by_either_clip)s

    See Also
    --------
    DPCoordinateDescentRegressor : The same for regression.

    Notes
    -----
    **Privacy.** Neighbours are as ``adjacency`` says. Released are, in this order and all charged
    for in ``privacy_``, under the labels in quotes:

    1. "number of records", under add/remove only: a record moves it by 1.
    2. "class shares", with an intercept and "coordinate" or delta = 0, where "joint" can use no
       column, or for balanced classes: the number of records of each class
       (:func:`~skdpnoise.sensitivity.histogram_counts`: two counts move by 1 under replace-one, one
       under add/remove). The model that knows nothing of the features has these log-odds, and
       balanced weights follow from them.
    3. Locations and scales of the features, as in :class:`DPCoordinateDescentRegressor`:
       "magnitudes", "locations, coarse", "locations, digits", "means" and "mean absolute
       deviations", those "of bounded columns" by themselves where only some columns have bounds; or
       "common magnitude", "alike gaps" and "common location", and "magnitudes" and "locations" of
       columns that are not alike. With "joint" and public bounds for all columns only "means and
       squares of rows", where their noise is not too large, which refine a common scale, too,
       within ±8 of it: with z the p columns in halves of their bounds, around the middles, the sum
       of :math:`(z, z^2 - 1/2)`, whose norm is at most :math:`\sqrt{5 p / 4}`, and of z alone in g
       groups, for which p is that of the others and 1 is added for each group; with delta = 0 the
       squares are one number, their sum over the p columns by the root of p, of the same norm
       (:func:`~skdpnoise.sensitivity.clipped_rows`: twice that under replace-one, once under
       add/remove).
    4. "gradients". With "coordinate" as there; with K > 2 classes a pass releases the sums of all K
       models together. With "joint", for each pass the sum over records of the gradient in all
       columns and classes, the outer product of the row and its slopes, clipped to the norm C (in
       few passes with delta = 0 by the row alone, where its slopes are not large) and rounded to
       integers within it (:mod:`skdpnoise.kernels.joint`: it moves by 2C in Euclidean norm under
       replace-one, by C under add/remove), plus exact integer noise. With delta = 0
       that, and that of item 3, is of the K-norm of the ball, of density in proportion to
       :math:`e^{-\varepsilon_t |z|_2 / \Delta}` with Δ as far as a record moves the sum:
       neighbours' densities differ by :math:`e^{\varepsilon_t}` at most, and the ε_t add up.
    5. With "joint", an intercept and two classes without weights, where there are neither too few
       records nor hardly any noise: "labels by score", how many records of each class have scores
       in each of six bins (with delta = 0 of 12, or 24 where records are many) around the model's
       intercept, which depend on released numbers alone
       (:func:`~skdpnoise.sensitivity.histogram_counts`: a record is one count, so that two counts
       move by 1 under replace-one, one under add/remove). The slope and the intercept of the
       log-odds follow from them. With "coordinate", an intercept and two classes, or with delta = 0
       and either few records or many classes, where noise may have made the model worse than the
       largest class (of many, by more than noise hides): "gain over the largest class", how many
       more records it labels rightly. A record adds −1, 0 or 1, and moves it by 2 under
       replace-one, by 1 under add/remove.

    How these compose, and what is not protected, is said there too.

    References
    ----------
    Mangold et al., arXiv:2110.11688, Algorithm 1. Muthukrishnan and Kalyani, arXiv:2302.03511,
    Theorems 4 and 5 and Remark 5 (allocation of the noise).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPLogisticCD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = np.where(X[:, 0] / 10 + rng.normal(size=10_000) > 5, "yes", "no")
    >>> model = DPLogisticCD(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.72)
    True
    >>> model.predict(X[:3]).shape, model.predict_proba(X[:3]).shape
    ((3,), (3, 2))
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "classes": [None, "array-like"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _loss, _solvers = LOGISTIC, COORDINATE_OR_GRADIENT

    _: KW_ONLY
    classes: Any = None
    class_weight: Any = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities; with "coordinate" and three classes, normalised ones of each.

        Parameters
        ----------
        %(predictions: X)s

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        odds = _compressed(scores)
        if odds.ndim == 1:
            return np.stack([LOGISTIC.mean(-odds), LOGISTIC.mean(odds)], axis=1)
        if self.solver_ == "joint":
            odds = _compressed(scores - scores.max(axis=1, keepdims=True))
        chances = softmax(odds, axis=1) if self.solver_ == "joint" else LOGISTIC.mean(odds)
        # Near one, doubles may not tell chances apart: what is predicted is the likeliest still.
        predicted = np.arange(len(scores)), scores.argmax(axis=1)
        chances[predicted] = np.maximum(chances[predicted], (1.0 + 1e-12) * chances.max(axis=1))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of probabilities.

        Parameters
        ----------
        %(predictions: X)s

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.asarray(np.log(self.predict_proba(X)))


DPLogisticRegression = DPLogisticCD
"""Another name of the same class, for those who look for it."""


def _compressed(scores: np.ndarray) -> np.ndarray:
    """Return log-odds compressed beyond ±15, so that no probability is 0 or 1 or ties."""
    # A model full of noise may be certain of anything; 15 is already one in three million.
    beyond = np.maximum(np.abs(scores) - 15.0, 0.0)
    size = np.minimum(np.abs(scores), 15.0) + 15.0 * np.tanh(beyond / 15.0)
    return np.asarray(np.sign(scores) * size)
