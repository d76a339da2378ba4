"""Every penalty of a linear regression from one release, with differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.parameters import check_memory, check_within, number_vector
from skdpnoise.accounting.session import Session
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.register import register_private
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.table import Table
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._least_squares import DPCoordinateDescentRegressor
from skdpnoise.linear_model._model import PrivateLinearModel
from skdpnoise.linear_model._parameters import MIX, ROW_NORM, TargetParameters
from skdpnoise.linear_model._records import Fitted, LinearSchema, Rows, Settings
from skdpnoise.linear_model._tuned import MOMENT_NOISES, path_alpha
from skdpnoise.linear_model.solvers.moments import MOMENTS, OneReleasePlan, PseudoData
from skdpnoise.linear_model.solvers.plans import Solver, SolverPlan


@register_private
@constructor_of_fields
class DPLassoPath(QuietScoreMixin, RegressorMixin, TargetParameters, PrivateLinearModel):
    r"""The whole path of lasso or elastic-net penalties, for the price of one release.

    .. math:: \min_w \frac{1}{2n} \sum_i (x_i^\top w + b - y_i)^2
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)
              \quad\text{for every } \alpha

    The second moments of columns and target, standardised, clipped and held in a ball, are released
    once; each model is computed from what was released and costs nothing more.

    Parameters
    ----------
    %(parameters)s
    noise : str, default="auto"
        "iid" or "inid" with "gaussian" or "laplace"; "auto" is that of the least expected error.
    l1_ratio : float, default=1.0
        Mix of the penalty, 1 for the lasso and 0 for ridge.
    alphas : int or array-like, default=100
        Penalties of the path, on coefficients of standardised columns; or how many, spaced evenly
        in their logarithm from the least one for which all coefficients are 0.
    eps : float, default=1e-3
        Length of the path: its smallest penalty over its largest. Not a privacy parameter.
    row_norm : float or "auto", default="auto"
        **Public** radius of the ball that standardised rows, target and intercept's constant
        included, are shrunk into.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        Penalties, from the largest to the smallest.
    coefs_ : ndarray of shape (n_features, n_alphas)
        Coefficients in the user's units, as :func:`sklearn.linear_model.lasso_path` arranges them.
    intercepts_ : ndarray of shape (n_alphas,)
        Intercepts in the user's units.
    alpha_ : float
        The penalty of ``predict``: what the noise of the release calls for.
    coef_, intercept_ : ndarray of shape (n_features,), float
        The model of ``alpha_``.
    %(estimators: clip_range_, n_features_in_, feature_names_in_, privacy_)s

    See Also
    --------
    DPCoordinateDescentRegressor : One model, with ``solver="gram"`` from the same release.
    sklearn.linear_model.lasso_path : The path without privacy.

    Notes
    -----
    **Privacy.** As for :class:`DPCoordinateDescentRegressor` with ``solver="gram"``, where it says
    what a record does to each release: the "number of records"; "target: means" and "target: mean
    absolute deviations", or "target: median", "target: spread", "target: mean square" and "target:
    mean", and then "target: magnitudes", "target: locations, coarse" and "target: locations,
    digits"; "magnitudes", "locations, coarse", "locations, digits", "means" and "mean absolute
    deviations", those "of bounded columns" by themselves, or "common magnitude", "alike gaps" and
    "common location", and "magnitudes" and "locations"; and noisy "second moments". The path,
    ``model`` and ``predict`` are functions of these and of public parameters alone.

    References
    ----------
    Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear models via
    coordinate descent", JSS 2010, section 2.2 (covariance updates: second moments suffice).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPLassoPath
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6, 0.0], [10.0, 2e5, 1.0], size=(20_000, 3))
    >>> y = 0.3 * X[:, 0] - 2e-5 * X[:, 1] + rng.normal(size=20_000)
    >>> path = DPLassoPath(epsilon=1.0).fit(X, y)
    >>> path.coefs_.shape, path.privacy_.releases[-1].label
    ((3, 100), 'second moments')
    >>> [int(np.count_nonzero(path.model(alpha).coef_)) for alpha in (10.0, 0.3)]
    [0, 2]
    """

    _solvers: ClassVar[dict[str, Solver]] = {"gram": MOMENTS}
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(MOMENT_NOISES))],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratio": MIX,
        "row_norm": ROW_NORM,
        "eps": [Interval(Real, 0, 1, closed="neither")],
    }

    _: KW_ONLY
    l1_ratio: float = 1.0
    alphas: Any = 100
    eps: float = 1e-3
    row_norm: float | str = "auto"
    _pseudo_data: PseudoData = field(init=False)

    def _check_plans(
        self, settings: Settings, schema: LinearSchema, solver: Solver, budget: FitBudget
    ) -> None:
        super()._check_plans(settings, schema, solver, budget)
        check_within(self, "eps", 1e-100, 1.0)
        given = self._given_alphas()
        n_alphas = int(self.alphas) if given is None else len(given)
        n_bytes = 32.0 * n_alphas * (schema.n_columns + 2)
        reason = f"the path of {n_alphas} 'alphas'"
        check_memory("DPLassoPath", n_bytes, reason, "Ask for fewer of them.")

    def _solve(
        self, plan: SolverPlan, table: Table[Rows], session: Session, given: tuple[Any, Any]
    ) -> Fitted:
        assert isinstance(plan, OneReleasePlan)
        plan = plan.informed(table, session)
        features, units = plan.problem.features, plan.problem.target.units
        pseudo = plan.data
        alpha = path_alpha(pseudo.noise_level, int(features.used.sum()))
        alphas = self._given_alphas()
        alphas = self._grid(pseudo) if alphas is None else alphas
        models = pseudo.solve(np.append(alphas, alpha), self.l1_ratio)
        coefs, intercepts = features.in_user_units(models, units)
        path = {"alphas_": alphas, "coefs_": coefs[:-1].T, "intercepts_": intercepts[:-1]}
        model = {"alpha_": alpha, "coef_": coefs[-1], "intercept_": intercepts[-1]}
        standard = {"clip_range_": features.range, "_standardised": (features, models[-1:], *units)}
        return {**path, **model, **standard, "_pseudo_data": pseudo}

    def predict(self, X: Any, alpha: float | None = None) -> np.ndarray:
        """Predict the target with the model of one penalty.

        Parameters
        ----------
        %(predictions: X)s
        alpha : float or None, default=None
            Penalty, on the path or not; None is ``alpha_``.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the target.
        """
        return self.model(alpha).predict(X) if alpha is not None else self._linear(X)[:, 0]

    def model(
        self, alpha: float | str, l1_ratio: float | None = None
    ) -> DPCoordinateDescentRegressor:
        """Return the fitted regressor of any penalty: post-processing, which costs nothing.

        Parameters
        ----------
        alpha : float or "auto"
            Strength of the penalty, at least 0; "auto" is the ridge of the regressor's default.
        l1_ratio : float or None, default=None
            Mix of the penalty; None is that of the path.

        Returns
        -------
        DPCoordinateDescentRegressor
            Fitted, with the path's ``privacy_``. To fit it, or a clone of it, again spends the
            path's epsilon once more, and charges the path's ledger.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        check_is_fitted(self)
        l1_ratio = self.l1_ratio if l1_ratio is None else l1_ratio
        settings = self.get_params(deep=False) | {"alpha": alpha, "l1_ratio": l1_ratio}
        del settings["alphas"], settings["eps"]
        regressor = DPCoordinateDescentRegressor(solver="gram", **settings)
        regressor._validate_params()
        features, _, center, scale = self._standardised
        strength = alpha
        if alpha == "auto":
            strength, l1_ratio = 0.5 * self._pseudo_data.noise_level, 0.0
        standard = self._pseudo_data.solve([strength], l1_ratio)
        coefs, intercepts = features.in_user_units(standard, (center, scale))
        model = {"coef_": coefs[0], "intercept_": intercepts[0], "alpha_": float(strength)}
        facts = {"solver_": "gram", "_standardised": (features, standard, center, scale)}
        kept = ("clip_range_", "n_features_in_", "feature_names_in_", "privacy_")
        known = {name: vars(self)[name] for name in kept if name in vars(self)}
        regressor.__dict__.update(known | model | facts)
        return regressor

    def _given_alphas(self) -> np.ndarray | None:
        if isinstance(self.alphas, Integral):
            return None
        expected = "a number of penalties or an array of shape (n_alphas,) of finite numbers >= 0"
        alphas = number_vector("DPLassoPath", "alphas", self.alphas, expected)
        if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ValueError(
                f"The 'alphas' parameter of DPLassoPath must be {expected}. Got shape "
                f"{alphas.shape} instead."
            )
        return np.sort(alphas)[::-1]

    def _grid(self, pseudo: PseudoData) -> np.ndarray:
        # With l1_ratio=0 no penalty makes all coefficients 0; 1e-3 is scikit-learn's substitute.
        largest = pseudo.alpha_max / max(self.l1_ratio, 1e-3)
        if largest <= np.finfo(np.float64).resolution:
            return np.full(self.alphas, np.finfo(np.float64).resolution)
        return np.geomspace(largest, largest * self.eps, self.alphas)
