"""The one fit of all linear models: check, plan, reserve, release, solve, store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.numbers import JOBS
from skdpnoise._utils.parameters import as_bounds, check_within
from skdpnoise.accounting.session import Session
from skdpnoise.base.callbacks import (
    CallbackSupportMixin,
    collect_passes,
    is_followed,
    with_callbacks,
)
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.scores import QuietScoreMixin
from skdpnoise.data.reading import NumberColumns, Supervised, read
from skdpnoise.data.schema import Schema
from skdpnoise.data.sparse_tables import read_sparse
from skdpnoise.data.table import Table
from skdpnoise.data.tables import FLOATS, read_table
from skdpnoise.kernels import LOGISTIC, SQUARED, Loss
from skdpnoise.kernels.joint import SOFTMAX
from skdpnoise.linear_model._budget import NORMAL, PURE, FitBudget, split_budget
from skdpnoise.linear_model._column_groups import NO_GROUP, numbered_groups
from skdpnoise.linear_model._constant_models import warn_of_constant
from skdpnoise.linear_model._parameters import TargetParameters
from skdpnoise.linear_model._penalties import of_standard_columns
from skdpnoise.linear_model._records import Fitted, LinearProblem, LinearSchema, Rows, Settings
from skdpnoise.linear_model._scaling import Run, standardise_features
from skdpnoise.linear_model._targets import LABELS, NUMBERS, MakeRows, TargetKind, public_weights
from skdpnoise.linear_model._tuned import holds_rows, prefers_gradient
from skdpnoise.linear_model.solvers.coordinate import COORDINATE
from skdpnoise.linear_model.solvers.final_steps import finished
from skdpnoise.linear_model.solvers.gradient import GRADIENT
from skdpnoise.linear_model.solvers.moments import MOMENTS
from skdpnoise.linear_model.solvers.plans import Solver, SolverPlan
from skdpnoise.mechanisms import noise_options
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import LossBudget, PrivacyGuarantee

COORDINATE_OR_GRADIENT: Mapping[str, Solver] = {"coordinate": COORDINATE, "joint": GRADIENT}


@constructor_of_fields
class PrivateLinearModel(PrivateEstimator, BaseEstimator):
    """A loss, a penalty, a kind of target and the solvers that are allowed; and its one fit."""

    _: KW_ONLY
    fit_intercept: bool = True
    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    n_jobs: int | None = None
    # Features, models, and centre and scale of the target.
    _standardised: tuple[Any, np.ndarray, float, float] = field(init=False)
    _loss: ClassVar[Loss] = SQUARED
    _penalty: ClassVar[Any] = staticmethod(of_standard_columns)
    _target: ClassVar[TargetKind] = NUMBERS
    _solvers: ClassVar[Mapping[str, Solver]] = {"joint": GRADIENT}
    _for_groups: ClassVar[Solver] = GRADIENT  # that "auto" stands for with column_groups
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(noise_options(adaptive=True)))],
        "fit_intercept": ["boolean"],
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "n_jobs": JOBS,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        public = self.feature_bounds is not None or getattr(self, "column_groups", None) is not None
        by_rows = getattr(self, "solver", "joint") in ("auto", "joint") and self._takes_sparse
        tags.input_tags.sparse = public and by_rows and holds_rows(self.noise, self.delta)
        return tags

    @property
    def _takes_sparse(self) -> bool:
        return "joint" in self._solvers

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
        with self._session(groups, params) as session:
            # check
            # What is converted anyway lies as passes read it.
            order = "F" if isinstance(X, np.ndarray) and X.dtype not in FLOATS else None
            features = NumberColumns({"order": order}, sparse=self._takes_sparse)
            form = Supervised(features, self._target.labels, self._target.read)
            jobs = self.n_jobs
            found, rows = read(self, form, self._known, X=X, y=y, groups=groups, n_jobs=jobs)
            schema, make = self._public(found)
            settings, solver = self._settled(schema)
            # plan
            per_group = session.rows_per_group
            budget = split_budget(settings, per_group, schema, session.guarantee)
            self._check_plans(settings, schema, solver, budget)
            # reserve
            stages = budget.stages(schema.n_rows)
            others = partial(self._stages_for, schema, per_group)
            session.reserve(stages, budget.noise, stages_for=others)
            # release
            table = rows.kept(session.rng).rows.map(make)
            columns = table.map(attrgetter("X"), schema.n_columns), table.map(attrgetter("y"))
            session = session.counted(table.n_rows, budget.noise, budget.total)
            run = Run(settings, schema, session, budget.for_records(session.n_records))
            # scale
            target, run = session.answer(self._target.estimate(run), columns[1])
            standard, run = session.answer(standardise_features(run), columns[0])
            problem = LinearProblem(settings, run.schema, standard, target)
            if not standard.used.any():
                problem = session.answer(self._target.constant(problem, run), columns[1])
            plan = solver.plan(problem, session.n_records, run.budget)
            # solve
            model = self._solve(plan, table, session, (X, y))
            # store
            self.__dict__.update(model, privacy_=session.report())
            l1, _ = settings.penalty(plan.problem, session.n_records)
            warn_of_constant(self, penalised=bool(l1.any()))
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
        return scores

    def _minimised(self) -> Loss:
        """Return the loss, which parameters may shape."""
        return self._loss

    def _public(self, schema: Schema) -> tuple[LinearSchema, MakeRows]:
        """Return all that is public of the rows, and what makes them of tables."""
        # Of standardised records: what is beyond these only takes digits from double precision.
        for name, low in (("clip", 1e-100), ("row_norm", 1e-50), ("alpha", 0.0)):
            if hasattr(self, name):
                check_within(self, name, low, 1e100)
        bounds = as_bounds(self.feature_bounds, schema.n_columns, "feature_bounds", self)
        numbers = numbered_groups(self, schema.n_columns)
        bounds[:, numbers != NO_GROUP] = np.array([[-1.0], [1.0]])  # of parts of norm 1
        return self._target.public(self, LinearSchema.of(schema, bounds, numbers))

    def _settled(
        self, schema: LinearSchema, guarantee: PrivacyGuarantee | None = None
    ) -> tuple[Settings, Solver]:
        settings = Settings.of(self)
        if guarantee is not None:  # instead of the model's own
            settings = replace(settings, epsilon=guarantee.epsilon, delta=guarantee.delta)
        if schema.classes is not None:
            facts = settings.owner, settings.class_weight, schema.classes
            settings = replace(settings, weights=public_weights(*facts))
        needs = check_whole_rows(settings, schema)
        name = settings.solver
        prefers = name == "auto" and prefers_gradient(settings, schema)
        if name == "auto":
            gradient = needs or prefers
            name = "joint" if gradient and "joint" in self._solvers else next(iter(self._solvers))
        solver = self._solvers[name]
        if solver is not GRADIENT:
            return settings, solver
        if settings.solver == "auto" and not (prefers or schema.sparse):
            solver = self._for_groups
        settings = whole_rows(settings, schema)
        multinomial = settings.loss is LOGISTIC and schema.n_outputs > 1
        return (replace(settings, loss=SOFTMAX) if multinomial else settings), solver

    def _stages_for(
        self, schema: LinearSchema, rows_per_group: int, guarantee: PrivacyGuarantee
    ) -> list[LossBudget]:
        """Return what each stage of the same fit may cost for another guarantee."""
        settings, _ = self._settled(schema, guarantee)
        return split_budget(settings, rows_per_group, schema, guarantee).stages(schema.n_rows)

    def _check_plans(
        self, settings: Settings, schema: LinearSchema, solver: Solver, budget: FitBudget
    ) -> None:
        """Raise what planning would raise, before anything is spent."""
        solver.check(settings, schema, budget)
        if solver in (GRADIENT, MOMENTS, self._for_groups) and COORDINATE in self._solvers.values():
            # Of settings that are not used, too.
            COORDINATE.check_parameters(settings, schema)

    def _solve(
        self, plan: SolverPlan, table: Table[Rows], session: Session, given: tuple[Any, Any]
    ) -> Fitted:
        """Make the passes, telling callbacks of each; return the fitted attributes."""
        model = partial(self._model, plan)
        finish = partial(finished, plan, table=table, session=session)
        passes = plan.run(table, session)
        if not is_followed(self):
            return model(finish(np.stack([*passes])))
        return model(collect_passes(self, passes, plan.n_passes, model, given, finish))

    def _model(self, plan: SolverPlan, path: np.ndarray) -> Fitted:
        """Return the fitted attributes, in the user's units."""
        # `path` has shape (n_passes, n_outputs, n_features + 1), in standard units.
        problem, output = plan.problem, self._target.output
        features, units, classes = problem.features, problem.target.units, problem.schema.classes
        slopes, intercepts = features.in_user_units(path, units)
        model = {
            "coef_": plan.average(slopes)[output],
            "intercept_": plan.average(intercepts)[output],
            "clip_range_": features.range,
            "_standardised": (features, plan.average(path), *units),
        }
        if classes is not None:
            model["classes_"] = classes
        if plan.solver != MOMENTS.name:
            model["coef_path_"] = slopes[:, output]
            model["intercept_path_"] = intercepts[:, output]
            model["n_passes_"] = len(path)
        if len(self._solvers) > 1:
            names = {solver.name: name for name, solver in self._solvers.items()}
            model["solver_"] = names[plan.solver]
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


def check_whole_rows(settings: Settings, schema: LinearSchema) -> list[str]:
    """Return what is given that only whole rows can use; refuse it to another solver."""
    facts = {
        "class_weight": settings.class_weight is not None,
        "column_groups": settings.column_groups,
        "sparse X": schema.sparse,
    }
    given = [name for name, is_given in facts.items() if is_given]
    if given and settings.solver not in ("auto", "joint"):
        raise ValueError(
            f"The 'solver' parameter of {settings.owner} must not be {settings.solver!r} with "
            f"{', '.join(given)}. Use solver='auto' or 'joint'."
        )
    return given


def whole_rows(settings: Settings, schema: LinearSchema) -> Settings:
    """Return the settings of noise on gradients of whole rows, or refuse what these lack."""
    if schema.sparse and not np.isfinite(schema.bounds).all():
        raise ValueError(
            f"{settings.owner} needs public scales of all columns of a sparse X, since private "
            "ones would make it dense: give 'feature_bounds', or 'column_groups' for columns "
            "that share one unit of norm in each row."
        )
    if not holds_rows(settings.noise, settings.delta):
        reason = "sparse X" if schema.sparse else "gradients of whole rows (solver='joint')"
        raise ValueError(
            f"The 'noise' parameter of {settings.owner} must be 'auto', or normal noise with a "
            f"positive delta, for {reason}. Got noise={settings.noise!r} and "
            f"delta={settings.delta:g}. Use noise='auto', or another solver."
        )
    chosen = NORMAL if settings.delta else PURE
    noise = chosen if settings.noise in CHOICES else settings.noise
    return replace(settings, noise=noise, whole=True)


@constructor_of_fields
class LinearRegressor(
    CallbackSupportMixin, QuietScoreMixin, RegressorMixin, TargetParameters, PrivateLinearModel
):
    """A linear model of numbers."""


@constructor_of_fields
class LinearClassifier(CallbackSupportMixin, QuietScoreMixin, ClassifierMixin, PrivateLinearModel):
    """A linear model of labels."""

    classes_: np.ndarray = field(init=False)
    _target = LABELS

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the second class, or of each class against the rest.

        Parameters
        ----------
        %(predictions: X)s

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The first for two classes; of logistic regression, log-odds.
        """
        scores = self._linear(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        %(predictions: X)s

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        scores = self.decision_function(X)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return np.asarray(self.classes_[places])
