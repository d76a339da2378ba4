"""A pipeline with one guarantee."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from skdpnoise._utils.numbers import BUDGET, check_grouped, check_numbers
from skdpnoise._utils.silence import silence
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting.declared import FACTS
from skdpnoise.accounting.limits import Budget, SpendingLimit, UnsettledError, as_loss
from skdpnoise.accounting.reservation import returnable
from skdpnoise.base.advice import advise, advise_on_estimated_number, advise_on_public_number
from skdpnoise.base.compositions import Children, register_inner, watched
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.misuse_warnings import clone_with_ledger, warn_of_misuse
from skdpnoise.base.register import register_private
from skdpnoise.base.steps import Part, after_charge, private_parts, relation_of, taken_apart
from skdpnoise.compose._fitted_steps import FittedSteps, offers
from skdpnoise.compose.fitting import (
    Given,
    check_steps,
    fit_steps,
    read_steps,
    read_to_fit,
    read_unpaid,
    settled,
)
from skdpnoise.compose.shares import (
    check_shareable,
    pure_noise,
    samples_records,
    shows_by_chance,
    whole_budget,
    with_budget,
)
from skdpnoise.compose.statement import (
    declared_of,
    drawing,
    in_order,
    noises_of,
    reserve_whole,
    shares_by_name,
    whole_report,
)
from skdpnoise.data.columns import counted_beside, read_beside
from skdpnoise.data.computed import asked_epsilon, is_charged
from skdpnoise.data.sources import for_storage
from skdpnoise.ledger import LedgerWarning
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import RandomWords, random_words


@dataclass(frozen=True, slots=True, eq=False)
class PipelinePlan:
    """A fit by public facts alone: its steps, and how they share what they may spend."""

    steps: Pipeline  # copies
    parts: tuple[Part, ...]
    weights: Mapping[str, float]
    guarantee: PrivacyGuarantee
    rows_per_group: int | None  # None where records are protected
    rng: RandomWords

    @property
    def budget(self) -> Budget:
        return self._budget_for(self.guarantee)

    def _budget_for(self, guarantee: PrivacyGuarantee) -> Budget:
        return whole_budget(
            guarantee,
            pure=pure_noise(self.steps),
            samples=samples_records(self.steps),
            chances=shows_by_chance(self.steps),
        )

    def cost(self, guarantee: PrivacyGuarantee) -> PrivacyLoss:
        """Return the loss of a fit with another guarantee, whatever is spent of it."""
        return as_loss(self._budget_for(guarantee))

    def priced(self, limit: SpendingLimit) -> Any:
        """Return a copy of the steps that share the budget, and charge a limit."""
        model = with_budget(
            self.steps,
            self.budget,
            self.guarantee.delta,
            ledger=limit,
            rng=self.rng,
            weights=self.weights,
        )
        if self.rows_per_group is not None:
            for part in private_parts(model):
                part.estimator.set_params(rows_per_group=self.rows_per_group)
        return model


@register_private
@constructor_of_fields
class DPPipeline(FittedSteps):
    r"""Steps that are fitted one after the other, under one guarantee.

    scikit-learn's :class:`~sklearn.pipeline.Pipeline`, in which everything that is learnt from the
    data is charged. Steps that may learn from the data without privacy are refused before anything
    is fitted or charged. The private steps share ε, and there is one report.

    ``fit`` makes copies and leaves `steps` as they are. ``predict``, ``named_steps``, slices and
    indices use the fitted copies; parameters that are set later take effect in the next fit. The
    pipeline sets `epsilon`, `delta` and `random_state` of every private step, and also `adjacency`
    and `rows_per_group` where a step leaves them at their default.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and steps, as in scikit-learn. Private steps (``DPStandardScaler``, ``DPLogisticCD``,
        ...), steps that learn nothing (``OneHotEncoder`` with given categories, ``BoundsClipper``,
        "passthrough", ...), and compositions of such (``ColumnTransformer``, ...); see
        :func:`~skdpnoise.compose.taken_apart`.
    %(parameters)s
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation of all steps. None takes "add_remove" where a step asks for it itself,
        as neural networks do, else "replace_one", under which such a step is refused.
    weights : dict of str to float or None, default=None
        Shares of the budget by the names of steps, in any unit; None gives equal shares, but a
        quarter of another one's to a :class:`~skdpnoise.DPTableVectorizer`. What is
        divided is ε for pure noise and μ² for Gaussian noise. A name stands for all private steps
        below it, which share equally.
    ledger : object with ``charge`` or None, default=None
        Where the cost of every fit is recorded, once for the whole, before anything is sampled.
        Fitted steps get it too: fitting one of them again is charged.
    verbose : bool, default=False
        Whether to print the time of each step.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        The fitted copies.
    named_steps : Bunch
        Steps by name: fitted ones after a fit.
    privacy_ : PrivacyReport
        The guarantee of the whole and every release behind it. The fitted steps have the same
        report: each was made from what the others released.
    classes_, n_features_in_, feature_names_in_ : see :class:`~sklearn.pipeline.Pipeline`

    See Also
    --------
    total_guarantee : What steps guarantee together that were fitted by themselves.
    DPGridSearchCV : A private search; it takes a DPPipeline as its estimator.

    Notes
    -----
    **Privacy.** Let the budget be ε (pure noise) or the μ of (ε, δ). Private step k charges a loss
    of at most :math:`\varepsilon_k`, or :math:`\mu_k`, with :math:`\sum_k \varepsilon_k \le
    \varepsilon`, or :math:`\sum_k \mu_k^2 \le \mu^2`; all are fixed before the data are seen. Each
    is private in its input given everything released before, and its input differs in one record
    where the data do, since public and fitted steps act on single records. Adaptive composition
    gives the guarantee (Dwork and Roth, Theorem 3.16; Dong, Roth and Su, Theorem 3.2). That no step
    is fitted twice, or without a charge, is checked at the end of ``fit``: what was charged must be
    what the fitted steps report.

    Before the charge every step checks its parameters and the data. Warnings of scikit-learn are
    not shown during ``fit``, nor are messages that may quote values. Steps with `n_jobs` of their
    own (FeatureUnion, ColumnTransformer) are fitted one after the other.

    **Groups.** ``fit(X, y, groups=...)`` hands the groups to every private step.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014. Dong, Roth and Su,
    "Gaussian differential privacy", arXiv:1905.02383.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise import DPLogisticCD, DPPipeline, DPStandardScaler
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1e6], [10.0, 2e5], size=(20_000, 2))
    >>> y = (X[:, 0] > 50.0).astype(int)
    >>> model = DPPipeline(
    ...     [("scale", DPStandardScaler()), ("classify", DPLogisticCD())],
    ...     weights={"scale": 1, "classify": 3},
    ... ).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.guarantee.epsilon
    (True, 1.0)
    >>> from sklearn.preprocessing import StandardScaler
    >>> DPPipeline([("scale", StandardScaler()), ("classify", DPLogisticCD())]).fit(X, y)
    Traceback (most recent call last):
    ...
    skdpnoise.base.steps.UnpaidStepError: The 'steps' parameter of DPPipeline must hold
    private steps, or steps that learn nothing from the data. Refused: 'scale' (StandardScaler):
    learns from the data without privacy: use DPStandardScaler. ...
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "steps": [list],
        "adjacency": [None, *BUDGET["adjacency"]],
        "weights": [None, dict],
        "verbose": ["boolean"],
    }

    steps: list[tuple[str, Any]]
    _: KW_ONLY
    adjacency: Any = None
    weights: Mapping[str, float] | None = None
    verbose: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # private steps before the last read every value
        return tags

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> DPPipeline:
        """Fit copies of all steps to private data, spending the guarantee.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            In any form that the first step takes, but not sparse.
        y : array-like or RowSource of shape (n_samples,) or None, default=None
            Target or labels, if a step needs them.
        groups : array-like or RowSource of shape (n_samples,) or None, default=None
            Labels of what owns the rows; handed to every private step, each of which uses at most
            ``rows_per_group`` rows of a group. The guarantee is then for groups.
        **params : dict
            Refused: in particular ``sample_weight``, for which no sensitivity is proven.

        Returns
        -------
        self : DPPipeline

        Raises
        ------
        UnpaidStepError
            If a step may learn from the data without privacy.
        ValueError
            If a parameter or the data are not as described.
        TypeError
            If no step is private, or anything but X, y and groups is passed.
        %(fits: BudgetExceededError)s
        """
        # check
        warn_of_misuse(self)
        self._refuse(params, groups)
        plan = self._plan(grouped=groups is not None)
        # What is around a pipeline that was charged has checked it.
        closed = None if is_charged(self) else SpendingLimit(None, plan.guarantee.adjacency)
        checked = None if closed is None else plan.priced(closed)
        if checked is not None:
            check_steps("DPPipeline", checked, plan.parts, grouped=groups is not None)
        # reserve
        declared = in_order([*declared_of(plan.parts), *read_unpaid(plan.steps, X, y)])
        unit = "record" if plan.rows_per_group is None else "group"
        terms = unit, noises_of(plan.parts), declared
        reservation = reserve_whole(self, plan.guarantee, plan.cost, *terms)
        # read
        read = partial(self._read, plan, checked, Given(X, y, groups))
        data, columns = returnable(reservation, read)
        # keep
        releases = closed is None or closed.asked
        if releases:
            reservation.keep()
        else:
            reservation.give_back("no step releases anything")
        # draw
        limit = SpendingLimit(plan.budget, plan.guarantee.adjacency, asked_epsilon(self))
        with drawing(self, reservation, plan.budget):
            with after_charge(plan.steps), silence(PrivacyWarning, LedgerWarning):
                model = fit_steps(self._shown(plan.priced(limit)), data, plan.parts)
            fitted = private_parts(model, fitted=True)
            limit.settle((part.label, part.estimator.privacy_) for part in fitted)
            report = whole_report(self, plan.budget, fitted, declared, plan.rows_per_group)
            if report.releases and not releases:
                raise UnsettledError(
                    "The steps released something without a charge. No guarantee holds."
                )
            # store
            self.steps_ = settled(model, report, self.ledger).steps
            self._declared, self._columns = declared, columns
            self.privacy_ = report
            advise_on_estimated_number(self, report.n_records, grouped=groups is not None)
        return self

    @property
    def _relation(self) -> Any:
        return relation_of(self)

    def _plan(self, *, grouped: bool) -> PipelinePlan:
        check_numbers(self)
        self._validate_params()
        steps = clone(Pipeline(self.steps, verbose=self.verbose))
        parts = taken_apart(steps, owner="DPPipeline", parameter="steps", public=self.public)
        self._check_names()
        relation = self._relation
        check_shareable("DPPipeline", "steps", parts, relation, self.ledger)
        weights = shares_by_name(self.weights, parts)
        rows = int(self.rows_per_group) if grouped else None
        for part in parts:
            own = getattr(part.estimator, "rows_per_group", 1) if part.kind == "private" else 1
            if own not in (1, self.rows_per_group):
                raise ValueError(
                    "The 'rows_per_group' parameter of DPPipeline must be that of its steps. Got "
                    f"{self.rows_per_group!r}, and {part.prefix}rows_per_group={own!r}."
                )
        advise(self)
        guarantee = PrivacyGuarantee(self.epsilon, self.delta, relation)
        return PipelinePlan(steps, parts, weights, guarantee, rows, random_words(self.random_state))

    def _read(self, plan: PipelinePlan, checked: Any, given: Given) -> tuple[Given, Any]:
        """Return the data as steps read and check them, and what the columns are."""
        X, columns = read_to_fit(self, given.X, [plan.steps])
        # Steps check rows in parts themselves.
        read = for_storage(type(X), partial(read_beside, "DPPipeline"), counted_beside)
        y, groups, n_rows, n_groups = read(X, given.y, given.groups)
        if plan.guarantee.adjacency == "replace_one":
            advise_on_public_number(self, n_rows, n_groups)
        data = Given(X, y, groups)
        if checked is not None:
            read_steps(checked, data, plan.parts)
        return data, columns

    @available_if(offers("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Fit, and transform the same data.

        Parameters
        ----------
        X, y, groups, **params : see :meth:`fit`

        Returns
        -------
        ndarray or frame of shape (n_samples, n_transformed_features)
            Of private records: not private by itself.
        """
        model = self.fit(X, y, groups, **params)
        with after_charge(model._ordinary()):  # no step refuses a value of what was fitted to
            return model.transform(X)

    @available_if(offers("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Fit, and predict for the same data.

        Parameters
        ----------
        X, y, groups, **params : see :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model = self.fit(X, y, groups, **params)
        with after_charge(model._ordinary()):  # no step refuses a value of what was fitted to
            return model.predict(X)

    def __getitem__(self, ind: Any) -> Any:
        """Return a step, or a part of the pipeline, which shares its fitted steps and report."""
        if not isinstance(ind, slice):
            return self._ordinary()[ind]
        given = self.get_params(deep=False)
        given["steps"] = list(self.steps)[ind]
        kept = Pipeline(given["steps"]).get_params(deep=True)
        labels = [label for label, value in kept.items() if hasattr(value, "fit")]
        names = {*labels, *(label.rpartition("__")[2] for label in labels)}
        given["public"] = tuple(name for name in self.public if name in names)
        if self.weights is not None:
            given["weights"] = {n: share for n, share in self.weights.items() if n in kept}
        part = type(self)(**given)
        part.ledger = self.ledger
        if hasattr(self, "steps_"):
            part.steps_ = self.steps_[ind]
            kept = {*dict(part.steps_), *FACTS}
            part._declared = tuple(n for n in self._declared if n.partition("__")[0] in kept)
            if part.steps_[:1] == self.steps_[:1]:
                part._columns = self._columns
            part.privacy_ = self.privacy_
        return part

    __sklearn_clone__ = clone_with_ledger

    def _refuse(self, params: Mapping[str, Any], groups: Any) -> None:
        given = [
            name
            for name, value in params.items()
            if value is not None or name.rpartition("__")[2] != "sample_weight"
        ]
        if given:
            names = ", ".join(map(repr, given))
            raise TypeError(
                f"DPPipeline.fit takes X, y and groups. Got {names}: a record's weight multiplies "
                "what it can change, and no sensitivity with weights is proven yet."
            )
        complaint = watched(self)
        if complaint is not None:
            raise ValueError(f"DPPipeline {complaint}.")
        check_grouped(self, groups)

    def _check_names(self) -> None:
        """Refuse names of steps that set_params would take for parameters."""
        clash = sorted({name for name, _ in self.steps} & set(self.get_params(deep=False)))
        if clash:
            raise ValueError(
                "The 'steps' parameter of DPPipeline must not name a step like a parameter of it. "
                f"Got {clash[0]!r}: choose another name."
            )

    def _shown(self, model: Any) -> Any:
        """Hand over progress bars, unless they come from a composition around this one."""
        if not hasattr(self, "_parent_callback_ctx") and hasattr(self, "_skl_callbacks"):
            model.set_callbacks(*self._skl_callbacks)
        return model


def _inside(pipeline: DPPipeline, fitted: bool) -> tuple[Children, Collection[str]]:
    if fitted and hasattr(pipeline, "steps_"):
        # The report is that of what is around it, where steps have longer names.
        known = Pipeline(pipeline.steps_).get_params()
        steps = [name for name in pipeline._declared if hasattr(known.get(name), "fit")]
        return tuple(pipeline.steps_), steps
    return tuple((name, step) for name, step in pipeline.steps), pipeline.public


register_inner(DPPipeline, _inside)
