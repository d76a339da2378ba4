"""Linear models by coordinate descent with differential privacy: their one fit, and regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.numbers import JOBS
from skdpnoise._utils.parameters import as_bounds, check_size, check_within
from skdpnoise.base.callbacks import CallbackSupportMixin, collect_passes, with_callbacks
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator, PrivateRun, known_records
from skdpnoise.base.register import register_private
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.computed import is_computed
from skdpnoise.data.sparse_tables import read_sparse
from skdpnoise.data.spread_tables import is_spread, read_spread
from skdpnoise.data.tables import FLOATS, read_table
from skdpnoise.data.targets import labels_of_parts, read_labels, read_numbers
from skdpnoise.kernels import SQUARED, Loss
from skdpnoise.linear_model._budget import Budget, split_budget, stages_for
from skdpnoise.linear_model._column_groups import NO_GROUP, numbered_groups
from skdpnoise.linear_model._defaults import prefers_gram
from skdpnoise.linear_model._descent import RESIDUALS, DescentPlan, check_descent, plan_descent
from skdpnoise.linear_model._gram import GRAM_NOISES, GramPlan, check_gram, check_moments, plan_gram
from skdpnoise.linear_model._joint import (
    ENOUGH_RECORDS,
    MANY_COLUMNS,
    JointPlan,
    check_joint,
    check_whole_rows,
    is_normal,
    of_whole_rows,
    plan_joint,
    scale_for_joint,
)
from skdpnoise.linear_model._parameters import (
    GROUPS,
    ROW_NORM,
    STRENGTH,
    CoordinateParameters,
    TargetParameters,
)
from skdpnoise.linear_model._penalties import of_standard_columns
from skdpnoise.linear_model._records import (
    Data,
    Fitted,
    Loads,
    Outputs,
    Problem,
    Settings,
    SpreadData,
    Target,
    one_output,
)
from skdpnoise.linear_model._scaling import Run, standardise, standardise_target
from skdpnoise.mechanisms import noise_options
from skdpnoise.privacy import gdp_mu
from skdpnoise.sampling import random_words


@constructor_of_fields
class PrivateLinearModel(PrivateEstimator, BaseEstimator):
    """The one fit of all linear models, their parameters and their linear function."""

    # What is here is a regression by private gradients. Another model overrides the steps that it
    # does otherwise.

    _: KW_ONLY
    fit_intercept: bool = True
    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    n_jobs: int | None = None
    # Features, models, and centre and scale of the target.
    _standardised: tuple[Any, np.ndarray, float, float] = field(init=False)
    _loss: ClassVar[Loss] = SQUARED
    _last: ClassVar[Any] = RESIDUALS
    _penalties: ClassVar[Any] = staticmethod(of_standard_columns)
    _output: ClassVar[int | slice] = 0  # regressors have one output and drop its axis
    _takes_sparse: ClassVar[bool] = False
    _counts: ClassVar[bool] = False  # whether targets are not negative
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "fit_intercept": ["boolean"],
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "n_jobs": JOBS,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        public = self.feature_bounds is not None or getattr(self, "column_groups", None) is not None
        by_rows = getattr(self, "solver", "joint") in ("auto", "joint")
        tags.input_tags.sparse = self._takes_sparse and public and by_rows and is_normal(self)
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> Self:
        """Fit the model to private data, spending the whole guarantee.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            Features, float32 or float64, finite. Gradients are summed column by column: for these,
            arrays in row order are copied once, and large memory-mapped files read more slowly.
        y : array-like or RowSource of shape (n_samples,)
            Target; finite. Of a classifier, labels of one kind: text, whole numbers or booleans.
        %(fits: groups, **params)s

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._private_fit(groups, params) as account:
            # check
            settings = Settings.of(self)
            data = self._read(settings, X, y, groups)
            settings = self._settled(settings, data)
            budget = split_budget(settings, account, data)
            self._check_plans(settings, data, budget)
            plan = partial(stages_for, settings, account.rows_per_group, data)
            account.spend(budget.stages(data.rows.n_kept), budget.noise, stages_for=plan)
            # bound
            rng = random_words(self.random_state)
            data = data.kept(rng)
            n_samples = known_records(len(data.y), account, rng, budget.noise, budget.total)
            run = PrivateRun(account, rng, n_samples, budget.for_records(n_samples))
            target, run = self._find_target(settings, run, data)
            problem = self._standardise(settings, run, data, target)
            # calibrate, charge, draw
            plan = self._plan(settings, run, problem)
            plan.charge(account)
            draws = plan.draw(rng)
            # solve, store
            model = self._solve(settings, problem, plan, draws)
            report = account.report(type(self).__name__, secure=rng.secure)
            self.__dict__.update(model, privacy_=report)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target.

        Parameters
        ----------
        %(predictions: X)s

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the target.
        """
        return self._means(self._linear(X)[:, 0])

    def _means(self, scores: np.ndarray) -> np.ndarray:
        """Return means of the target from values of the linear function."""
        return scores

    def _minimised(self) -> Loss:
        """Return the loss, which parameters may shape."""
        return self._loss

    def _settled(self, settings: Settings, data: Data) -> Settings:
        """Return the settings once it is known what the outputs are."""
        return settings

    def _read(self, settings: Settings, X: Any, y: Any, groups: Any) -> Data:
        """Return the data, or refuse what cannot be fitted."""
        # These checks look at the private data and are not paid for: whether a fit is refused tells
        # that a value is missing, infinite or out of range. See "sharp edges" in the documentation.
        # What is converted anyway lies as passes read it.
        if is_spread(X) or is_spread(y):
            return self._read_parts(X, y, groups)
        order = "F" if isinstance(X, np.ndarray) and X.dtype not in FLOATS else None
        if issparse(X) and self._takes_sparse:
            X = read_sparse(self, X)
        else:
            X = read_table(self, X, ensure_min_samples=2, order=order)
        check_size(self, *X.shape)
        self._check_ranges(X.shape[1])
        y = self._read_target(y, X.shape[0])
        rows = self._grouped(groups, len(y))
        bounds, numbers = self._public_columns(X.shape[1])
        make, target_bounds, attributes = self._outputs(y)
        return Data(X, y, rows, bounds, make(y), target_bounds, attributes, numbers)

    def _read_parts(self, X: Any, y: Any, groups: Any) -> Data:
        """Return data that lie in parts, after a look at each, or refuse what cannot be fitted."""
        kind, labels = type(self), is_classifier(self)
        check = partial(_found_of_target, kind, labels)
        options: Any = {"n_jobs": self.n_jobs, "ensure_min_samples": 2}
        survey = read_spread(self, X, y, groups, target=check, **options)
        check_size(self, len(survey.rows), survey.columns.n_columns)
        self._check_ranges(survey.columns.n_columns)
        rows = self._grouped_parts(survey.rows)
        bounds, numbers = self._public_columns(survey.columns.n_columns)
        found = labels_of_parts(type(self).__name__, survey.found) if labels else np.zeros(0)
        make, target_bounds, attributes = self._outputs(found)
        nothing = make(found[:0])
        public = Data(None, None, None, bounds, nothing, target_bounds, attributes, numbers)
        load = Loads(survey.table, partial(_target_of_part, kind, labels), make, public)
        return SpreadData.of(rows, load, public)

    def _read_target(self, y: Any, n_rows: int) -> np.ndarray:
        """Return the target, or refuse it."""
        if is_classifier(self):
            return read_labels(type(self).__name__, y, n_rows)
        numbers = read_numbers(self, y, n_rows)
        if self._counts and (numbers < 0.0).any() and not is_computed("y", self):
            name = type(self).__name__
            raise ValueError(f"{name} needs counts or rates, and y has negative values.")
        return numbers

    def _public_columns(self, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return public bounds of the columns, and the numbers of their groups."""
        bounds = as_bounds(self.feature_bounds, n_columns, "feature_bounds", self)
        numbers = numbered_groups(self, n_columns)
        bounds[:, numbers != NO_GROUP] = np.array([[-1.0], [1.0]])  # of parts of norm 1
        return bounds, numbers

    def _check_ranges(self, n_columns: int) -> None:
        """Refuse parameters and sizes that a later step would not bear."""
        # Of standardised records: what is beyond these only takes digits from double precision.
        for name, low in (("clip", 1e-100), ("row_norm", 1e-50), ("alpha", 0.0)):
            if hasattr(self, name):
                check_within(self, name, low, 1e100)

    def _outputs(self, y: np.ndarray) -> tuple[Outputs, np.ndarray | None, dict[str, Any]]:
        """Return what makes the targets of outputs, public bounds, and what else is public."""
        # Of labels, y has at least one of each that occurs.
        bounds = getattr(self, "target_bounds", None)
        return one_output, as_bounds(bounds, 1, "target_bounds", self), {}

    def _check_plans(self, settings: Settings, data: Data, budget: Budget) -> None:
        """Raise what planning would raise, before anything is spent or the data are used."""
        check_descent(settings, data.X.shape, len(data.outputs), budget)

    def _find_target(self, settings: Settings, run: Run, data: Data) -> tuple[Target, Run]:
        """Buy what must be known of the target; return it, and the run with what is left."""
        assert data.target_bounds is not None
        scaling, run = standardise_target(settings, run, data.y, data.target_bounds)
        return Target(np.zeros(1), scaling), run

    def _standardise(self, settings: Settings, run: Run, data: Data, target: Target) -> Problem:
        """Buy what must be known of the features; return what is to be minimised."""
        if settings.joint:
            return Problem(data, scale_for_joint(settings, run, data), target)
        features = standardise(settings, run, data.X, data.bounds)
        return Problem(data, features, target)

    def _plan(self, settings: Settings, run: Run, problem: Problem) -> Any:
        """Choose passes and noise, by settings and released numbers."""
        used, n_outputs = problem.features.used, len(problem.data.outputs)
        settings = replace(settings, spread=problem.target.spread)
        return plan_descent(settings, used, n_outputs, run.n_samples, run.budget)

    def _solve(self, settings: Settings, problem: Problem, plan: Any, draws: Any) -> Fitted:
        """Make the passes, telling callbacks of each; return the fitted attributes."""
        problem = plan.standardised(problem)
        model = partial(self._model, settings, problem, plan)
        finish = partial(plan.finish, problem=problem, draws=draws)
        passes, data = plan.passes(settings, problem, draws), problem.data
        return model(collect_passes(self, passes, plan.n_passes, model, (data.X, data.y), finish))

    def _model(self, settings: Settings, problem: Problem, plan: Any, path: np.ndarray) -> Fitted:
        """Return the fitted attributes, in the user's units."""
        # `path` has shape (n_passes, n_outputs, n_features + 1), in standard units.
        features, units, output = problem.features, problem.target.units, self._output
        slopes, intercepts = features.in_user_units(path, units)
        model = {
            "coef_": plan.averaged(slopes)[output],
            "intercept_": plan.averaged(intercepts)[output],
            "clip_range_": features.range,
            "_standardised": (features, plan.averaged(path), *units),
            **problem.data.attributes,
        }
        if isinstance(plan, DescentPlan | JointPlan):
            model["coef_path_"] = slopes[:, output]
            model["intercept_path_"] = intercepts[:, output]
            model["n_passes_"] = len(path)
        return model

    def _linear(self, X: Any) -> np.ndarray:
        """Return the linear function, shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        features, model, center, scale = self._standardised
        sparse = issparse(X) and self._takes_sparse
        X = read_sparse(self, X, reset=False) if sparse else read_table(self, X, reset=False)
        # The same function as clip(X) @ coef_ + intercept_, without the cancellation that a column
        # far from zero brings.
        with np.errstate(all="ignore"):  # of rows far from those of the fit
            return np.asarray(center + scale * (features.scores(X, model[:, :-1]) + model[:, -1]))


def _found_of_target(kind: type, labels: bool, y: Any, n_rows: int) -> Any:
    """Check some of the target; return the labels that there are."""
    y = kind()._read_target(y, n_rows)
    return np.unique(y) if labels else None


def _target_of_part(kind: type, labels: bool, y: Any) -> np.ndarray:
    """Return some of a target that was checked."""
    found = np.asarray(y).ravel()  # of a table of one column
    if labels:
        plain = found.dtype.kind in "iub"
        return found if plain else read_labels(kind.__name__, y, len(found))
    return np.asarray(found, dtype=np.float64)


@constructor_of_fields
class LeastSquaresModel(
    CallbackSupportMixin, QuietScoreMixin, RegressorMixin, TargetParameters, PrivateLinearModel
):
    """Least squares by the solver that suits the records: second moments or gradients."""

    _: KW_ONLY
    solver: str = "auto"
    alpha: float | str = 1.0
    column_groups: Any = None
    _takes_sparse = True
    _parameter_constraints: ClassVar[Constraints] = {
        "solver": [StrOptions({"auto", "gradient", "gram", "joint"})],
        "alpha": STRENGTH,
        "column_groups": GROUPS,
    }

    def _check_plans(self, settings: Settings, data: Data, budget: Budget) -> None:
        if settings.joint:
            check_joint(settings, data, budget)
        elif self.solver != "gradient":
            check_moments(settings, data.X.shape[1])
        if self.solver == "gram":
            check_gram(settings, data.X.shape[1], budget)
        super()._check_plans(settings, data, budget)  # of settings that are not used, too

    def _plan(self, settings: Settings, run: Run, problem: Problem) -> Any:
        if settings.joint:
            return plan_joint(settings, problem, 1, run.n_samples, run.budget)
        if self.solver == "gram" or (self.solver == "auto" and not self._asks_for_descent()):
            features = problem.features
            plan = plan_gram(settings, problem.columns, run.n_samples, run.budget)
            reach = features.reach[features.used]
            if self.solver == "gram" or prefers_gram(plan.noise_level, reach):
                return plan
        return super()._plan(settings, run, problem)

    def _settled(self, settings: Settings, data: Data) -> Settings:
        given = check_whole_rows(self, data)
        automatic = self.solver == "auto" and (given or self._drowns_moments(settings, data))
        if self.solver == "joint" or automatic:
            return of_whole_rows(self, settings, data)
        return settings

    def _drowns_moments(self, settings: Settings, data: Data) -> bool:
        """Whether columns are so many, for the records, that second moments would be noise."""
        if self._asks_for_descent() or not isinstance(settings.row_norm, str):
            return False
        if data.X.shape[1] < MANY_COLUMNS or not is_normal(self):
            return False
        # How many records there are is public under replace-one alone.
        known = data.rows.n_kept if self.adjacency == "replace_one" else 0.0
        strength = gdp_mu(self.epsilon, self.delta) * known
        return bool(strength < ENOUGH_RECORDS * data.X.shape[1])

    def _asks_for_descent(self) -> bool:
        """Whether a parameter is set that only the gradient solver has."""
        return self.noise not in GRAM_NOISES

    def _model(self, settings: Settings, problem: Problem, plan: Any, path: np.ndarray) -> Fitted:
        solver = {GramPlan: "gram", JointPlan: "joint", DescentPlan: "gradient"}[type(plan)]
        return super()._model(settings, problem, plan, path) | {"solver_": solver}


@register_private
@constructor_of_fields
class DPCoordinateDescentRegressor(CoordinateParameters, LeastSquaresModel):
    r"""Least squares with an elastic-net penalty, protecting every record of the training data.

    .. math:: \min_w \frac{1}{2n} \sum_i (x_i^\top w + b - y_i)^2
              + \alpha \bigl(\rho |w|_1 + \tfrac{1 - \rho}{2} |w|_2^2\bigr)

    over columns and target that are standardised and clipped to ±3, by private coordinate descent,
    or from one private release of second moments. It needs no bounds and no scaling by hand.

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
        clipped by its norm, so that noise does not grow with the number of columns; it needs normal
        noise and delta > 0. "auto" takes "joint" for 60 columns or more, unless replace-one makes
        it public that there are very many records (μ n of 100 for each column); else "gram" where
        its noise is small, by released numbers; else "gradient". It also takes "gradient" where a
        parameter is set that is made for it (`n_passes`, `clip`, `budget_growth`, `error_weights`,
        other noises), and not "joint" where `row_norm` is set; but only "joint" reads sparse rows
        and `column_groups`.
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
        "auto" takes "joint" then.
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
    %(estimators: clip_range_)s
    n_passes_ : int
        Passes made. Not with "gram".
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
       (:func:`~skdpnoise.sensitivity.clipped_sum`).
    3. Locations and scales of the features (:func:`~skdpnoise.queries.private_location_scale`): of
       those without public bounds the histograms "magnitudes" of pairs of records, "locations,
       coarse" and "locations, digits", of which a record moves two counts by 1; and for all of them
       the clipped sums "means" and "mean absolute deviations", in ±8 magnitudes, or in halves of
       the public bounds with "of bounded columns" where only some columns have bounds. In these
       units a record moves sums by 2 and 1 under replace-one, by 1 under add/remove.
    4. Either "gradients": for each pass and coordinate, the sum over records of the gradient,
       clipped to [−C, C] and rounded to integer grid steps
       (:func:`~skdpnoise.sensitivity.clipped_gradient`: 2C under replace-one, C under add/remove),
       plus exact integer noise; and then "residuals", the sum of what the model leaves, clipped to
       ±3 scales (±2.5 to 5 where no feature is used): 6 or 3. Or "gradients" of all columns at
       once: for each pass the sum of whole gradients, each clipped to the norm C and rounded to
       integers within it (:mod:`skdpnoise.kernels.joint`: 2C in Euclidean norm, or C), plus exact
       integer noise; and then "second moments" with the released model's prediction as the only
       feature. Or "second moments" alone: once, the sum over records of :math:`z z^\top`, with z =
       (x, y, 1) standardised, clipped to public limits, shrunk into a ball of radius R and rounded
       to integers within it, plus exact integer noise on the symmetric matrix
       (:func:`~skdpnoise.mechanisms.calibrate_second_moments`: in Frobenius norm it moves by R²
       under add/remove, by √2 R² under replace-one).

    Each release, the choice of the solver included, depends on earlier ones only through released
    numbers; costs compose adaptively and exactly, ε adding for pure and μ² for Gaussian noise.
    Everything else is public (shape, parameters, visiting order) or post-processing: the repair of
    noisy moments, penalties, their solution. Whether fit raises an error for malformed data is not
    protected.

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

    def _asks_for_descent(self) -> bool:
        given = (self.n_passes, self.clip, self.budget_growth, self.error_weights)
        automatic = all(isinstance(one, str) for one in given) and self.error_weights != "uniform"
        return super()._asks_for_descent() or not automatic

    def _model(self, settings: Settings, problem: Problem, plan: Any, path: np.ndarray) -> Fitted:
        automatic = isinstance(plan, GramPlan) and isinstance(settings.alpha, str)
        strength = plan.automatic if automatic else settings.strength
        return super()._model(settings, problem, plan, path) | {"alpha_": strength}
