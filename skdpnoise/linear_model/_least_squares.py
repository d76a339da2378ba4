"""Least squares by coordinate descent, whole gradients or second moments, by penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skdpnoise.accounting.session import Session
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.data.table import Table
from skdpnoise.linear_model._model import LinearRegressor
from skdpnoise.linear_model._parameters import GROUPS, MIX, ROW_NORM, STRENGTH, CoordinateParameters
from skdpnoise.linear_model._penalties import elastic_net, lasso, ridge
from skdpnoise.linear_model._records import Fitted, Rows, Settings
from skdpnoise.linear_model._tuned import asks_for_descent
from skdpnoise.linear_model.solvers.coordinate import COORDINATE
from skdpnoise.linear_model.solvers.gradient import GRADIENT
from skdpnoise.linear_model.solvers.moments import MOMENTS, MomentsOr, OneReleasePlan
from skdpnoise.linear_model.solvers.plans import Solver, SolverPlan


@constructor_of_fields
class LeastSquares(LinearRegressor):
    """Least squares by any solver."""

    _solvers: ClassVar[Mapping[str, Solver]] = {
        "auto": MomentsOr(COORDINATE),
        "gradient": COORDINATE,
        "gram": MOMENTS,
        "joint": GRADIENT,
    }
    _for_groups: ClassVar[Solver] = MomentsOr(GRADIENT)
    _parameter_constraints: ClassVar[Constraints] = {
        "solver": [StrOptions({"auto", "gradient", "gram", "joint"})],
        "alpha": STRENGTH,
        "column_groups": GROUPS,
    }

    _: KW_ONLY
    solver: str = "auto"
    alpha: float | str = 1.0
    column_groups: Any = None

    def _solve(
        self, plan: SolverPlan, table: Table[Rows], session: Session, given: tuple[Any, Any]
    ) -> Fitted:
        if isinstance(plan, OneReleasePlan):
            plan = plan.informed(table, session)
        return super()._solve(plan, table, session, given)


@register_private
@constructor_of_fields
class DPCoordinateDescentRegressor(CoordinateParameters, LeastSquares):
    r"""Least squares with an elastic-net penalty, protecting every record of the training data.

    .. math:: \min_w \frac{1}{2n} \sum_i (x_i^\top w + b - y_i)^2
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns and target that are standardised and clipped to ±3, by private coordinate descent,
    or from one private release of second moments, which also tells of columns whose values beyond
    ±3 are worth a wider limit. It needs no bounds and no scaling by hand.

    Parameters
    ----------
    %(parameters)s
    %(noise)s
        Second moments take "iid" and "inid" Gaussian and Laplace noise; for these "auto" also tries
        the noises made for matrices.
    solver : {"auto", "gradient", "gram", "joint"}, default="auto"
        "gradient" descends along noisy gradients, pass by pass, each clipped in each coordinate.
        "gram" releases the second moments of the rows once, and solves the penalised problem
        exactly from these. "joint" descends along gradients of all columns at once, a record's
        clipped by its norm, so that noise does not grow with the number of columns; the noise is
        normal or, with delta = 0 and "auto", that of the K-norm of the ball. "auto" takes "joint"
        for 60 columns or more, unless replace-one makes it public that there are very many records
        (μ n of 100 for each column); else "gram" where its noise is small, by released numbers;
        else "gradient". It also takes "gradient" where a parameter is set that is made for it
        (`n_passes`, `clip`, `budget_growth`, `error_weights`, other noises), and not "joint" where
        `row_norm` is set. With `column_groups` it takes "joint" where it would take "gradient",
        and with sparse rows in any case.
    alpha : float or "auto", default="auto"
        Strength of the penalty, on coefficients of standardised columns. "auto" is none for
        "gradient", which shrinks as it is, and for "gram" a ridge of half the noise level, whatever
        `l1_ratio` is. A number means the same in all three; but clipped gradients are weaker than
        whole ones, so that with "gradient" and "joint" it shrinks more than in scikit-learn.
    row_norm : float or "auto", default="auto"
        For "gram": **public** radius of the ball that standardised rows, target and intercept's
        constant included, are shrunk into. Longer rows count less.
    %(n_passes)s
        For "gradient" and "joint".
    %(clip)s
        For "gradient" and "joint".
    %(budget_growth)s
        For "gradient".
    %(column_groups)s
        For "auto", which takes "joint" or "gram" then, and "joint".
    %(error_weights)s
        For "gradient".

    Attributes
    ----------
    %(regressors: coef_, intercept_, solver_)s
    alpha_ : float
        Strength of the penalty.
    coef_path_, intercept_path_ : ndarray of shape (n_passes, ...)
        Coefficients after every pass, of which ``coef_`` is the mean of the last fifth, with
        "joint" of the last two fifths. Not with "gram".
    %(estimators: clip_range_, n_passes_)s
        Not with "gram".
    %(estimators: n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPLassoPath : Every penalty from one release of second moments.
    DPLogisticCD : The same for classification.

    Notes
    -----
    **Privacy.** Neighbours are as ``adjacency`` says. Released are, in this order and all charged
    for in ``privacy_``, under the labels in quotes:

    1. "number of records", under add/remove only: a record moves it by 1.
    2. Location and scale of the target. Within public bounds, the clipped sums "target: means" and
       "target: mean absolute deviations" (:func:`~skdpnoise.queries.private_location_scale`).
       Without bounds, or if these numbers say that the bounds hide the target, a search: "target:
       median" and "target: spread", counts of records below thresholds or choices of a quantile by
       counts, which a record moves by 1, and perhaps both once more, closer; then "target: mean
       square", in [0, 4], and "target: mean", in ±2.5 to 5 scales, clipped sums
       (:func:`~skdpnoise.sensitivity.clipped_sum`). Where a search took no more than half of what
       there is, the target is looked at once more, as a feature without bounds is (item 3: "target:
       magnitudes", "target: locations, coarse", "target: locations, digits" and so on), from a
       tenth of what is left, with ``delta=0`` a fifth: the magnitudes of differences skip zeros, in
       which a search may end, and are taken where the search found nothing, or a scale that is far
       from them.
    3. Locations and scales of the features (:func:`~skdpnoise.queries.private_location_scale`): of
       those without public bounds the histograms "magnitudes" of pairs of records, "locations,
       coarse" and "locations, digits", of which a record moves two counts by 1; and for all of them
       the clipped sums "means" and "mean absolute deviations", in ±8 magnitudes, or in halves of
       the public bounds with "of bounded columns" where only some columns have bounds. In these
       units a record moves sums by 2 and 1 under replace-one, by 1 under add/remove. Or, where the
       noise would hide these, "magnitudes" and "locations": in each of 8 steps the numbers of
       pairs, or of records, below thresholds less the others
       (``skdpnoise.queries.bisected_columns``), of which a pair moves each by 2, a record by 2
       under replace-one, by 1 under add/remove. Before these, of several columns, "common
       magnitude", "alike gaps" and "common location" are sums of the same sensitivities: columns
       that they show to be alike have one location and one scale, and the model gets what is left,
       but for "means and squares of rows" with gradients of all columns at once. With delta > 0
       columns whose deviations drown in wide bounds are then searched as those without, for as
       much once more, and fitted as such.
    4. Either "gradients": for each pass and coordinate, the sum over records of the gradient,
       clipped to [−C, C] and rounded to integer grid steps
       (:func:`~skdpnoise.sensitivity.clipped_gradient`: 2C under replace-one, C under add/remove),
       plus exact integer noise; and then "residuals", the sum of what the model leaves, clipped to
       ±3 scales (±2.5 to 5 where no feature is used): 6 or 3. Or "gradients" of all columns at
       once: for each pass the sum of whole gradients, each clipped to the norm C and rounded to
       integers within it (:mod:`skdpnoise.kernels.joint`: 2C in Euclidean norm, or C), plus exact
       integer noise; and then "second moments" with the released model's prediction as the only
       feature. Or "second moments" alone: once, the sum over records of :math:`z z^\top`, with z =
       (x, y, 1, x'') standardised, clipped to public limits, shrunk as a whole into a ball of
       radius R and rounded to integers within it, plus exact integer noise on the symmetric matrix
       (:func:`~skdpnoise.mechanisms.calibrate_second_moments`: in Frobenius norm it moves by R²
       under add/remove, by √2 R² under replace-one). Here x'' is what features have beyond the
       limits of x, and by the noisy moments the wider limits are taken for some of them.

    Each release, the choice of the solver included, depends on earlier ones only through released
    numbers; costs compose adaptively and exactly, ε adding for pure and μ² for Gaussian noise.
    Everything else is public (shape, parameters, visiting order) or post-processing: the repair of
    noisy moments, limits chosen by them, penalties, their solution. Whether fit raises an error for
    malformed data is not protected.

    References
    ----------
    Mangold, Bellet, Salmon and Tommasi, "Differentially private coordinate descent for composite
    empirical risk minimization", arXiv:2110.11688, Algorithm 1. Muthukrishnan and Kalyani,
    arXiv:2302.03511, Theorems 4 and 5 and Remark 5 (allocation of the noise). Dwork, Talwar,
    Thakurta and Zhang, "Analyze Gauss", STOC 2014, Algorithm 1 (noisy second moments). Wang,
    "Revisiting differentially private linear regression", arXiv:1803.02596 (regression from them).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPCoordinateDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(10_000, 2))
    >>> y = 0.3 * X[:, 0] - 2e-5 * X[:, 1] + rng.normal(size=10_000)
    >>> model = DPCoordinateDescentRegressor(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.privacy_.guarantee
    PrivacyGuarantee(epsilon=1.0, delta=1e-06, adjacency='replace_one')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [StrOptions({"auto"}), *STRENGTH],
        "row_norm": ROW_NORM,
    }

    _: KW_ONLY
    alpha: float | str = "auto"
    row_norm: float | str = "auto"

    def _may_solve_moments(self) -> bool:
        """Return True if second moments may give this model, and then those of all penalties."""
        by_moments = self.solver in ("auto", "gram") and self.column_groups is None
        return by_moments and not asks_for_descent(Settings.of(self))

    def _model(self, plan: SolverPlan, path: np.ndarray) -> Fitted:
        strength = plan.problem.settings.strength
        if isinstance(plan, OneReleasePlan) and isinstance(self.alpha, str):
            strength = plan.automatic
        return super()._model(plan, path) | {"alpha_": strength}


@register_private
@constructor_of_fields
class DPLasso(LeastSquares):
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
class DPRidge(LeastSquares):
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
class DPElasticNet(LeastSquares):
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
