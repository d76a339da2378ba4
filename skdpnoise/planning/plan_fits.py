"""Planning before spending: fits to made-up records of the shape of a private table."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.metrics import get_scorer

from skdpnoise._utils.checks import check_count, check_real, complaint
from skdpnoise._utils.context import within
from skdpnoise._utils.nested import estimators_in, give_seeds
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.report import noise_in_records, release_shares
from skdpnoise.ledger.refusal import to_four_digits
from skdpnoise.planning.plans import PlannedStage, PrivacyPlan, SimulatedScore
from skdpnoise.planning.synthetic import Law, MadeUpRecords, kind_of, law_for, part_of
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling.words import SEEDED

__all__ = ["plan"]

_NEEDED = ("epsilon", "delta", "adjacency", "ledger", "random_state")
_AROUND = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the estimator's ε
_FITS = 4
_JUDGED = 10_000  # records by which a fit is scored
_CLOSE = 1e-4  # what four digits tell apart
_SMALLEST, _LARGEST = 1e-4, 1e3  # of the ledger's ε; and an ε
_Score = Callable[[Any, Any, Any], float]


def plan(
    estimator: Any,
    n_samples: int,
    features: Any = None,
    *,
    epsilons: Sequence[float] | None = None,
    classes: Any = None,
    signal: float = 0.5,
    scoring: str | None = None,
    n_fits: int | None = None,
    n_groups: int | None = None,
    ledger: Any = None,
    random_state: int = 0,
) -> PrivacyPlan:
    r"""Say what a fit would release, hide and reach, before anything is spent.

    Copies without a ledger are fitted to made-up records of the same shape, and scored by others.
    Only public facts enter: the numbers of rows, columns and classes, bounds and categories of a
    schema, and the parameters of the estimator. Private records are never passed, nothing is
    charged, and seeds of the copies' own leave the randomness of the estimator alone.

    What is released, its noise and its cost are those of a real fit to so many rows, but where a
    stage depends on what an earlier one released. **Scores and hidden columns are a simulation.**
    Made-up columns are independent, the target is linear in them and `signal` is its strength
    (the head of ``skdpnoise/planning/synthetic.py`` states the law): real columns are correlated,
    skewed and less obliging. Compare plans with one another, and the fall of the score towards
    small ε with the best possible one; a score itself is that of your data only if `signal` is.

    Parameters
    ----------
    estimator : estimator
        A private estimator, pipeline or search; it is copied.
    n_samples : int
        Number of rows.
    features : int, list of str, dict or None, default=None
        Number of columns; or the names of columns of a frame; or a schema: what is public of each
        column by its name, which is a tuple of bounds ``(low, high)``, a list of categories,
        ``"log"`` for a positive number of any size, ``"category"``, ``"date"``, or None. Columns
        that this leaves open are what the `schema` of the estimator's own
        :class:`~skdpnoise.DPTableVectorizer` says, or have the bounds of its `feature_bounds`.
        None takes the columns of that schema.
    epsilons : sequence of float or None, default=None
        Where to simulate the score, beside the estimator's ε; None: .01, .03, .1, .3, 3 times it.
    classes : int, dict of label to float, or None, default=None
        Number of classes, or labels with their shares; None: those the estimator names, else two.
    signal : float, default=0.5
        Share of the variance of the target (of a classifier, of what is behind its labels) that the
        columns explain, in [0, 1].
    scoring : str or None, default=None
        A scorer of scikit-learn; None is the estimator's own ``score``.
    n_fits : int or None, default=None
        Fits at each ε, to other records and with other noise; None is 4.
    n_groups : int or None, default=None
        The fits are for groups of rows: so many, of equal size.
    ledger : PrivacyLedger or None, default=None
        What the plan asks for the largest ε that it still covers; None is that of the estimator.
    random_state : int, default=0
        Seed of the made-up records and of the copies.

    Returns
    -------
    PrivacyPlan

    Raises
    ------
    TypeError
        If the estimator spends no privacy, or a parameter is of the wrong kind.
    ValueError
        If a parameter is not as described, or the estimator cannot be fitted to such a table.

    See Also
    --------
    skdpnoise.plotting.PlanDisplay : Score against ε.

    Examples
    --------
    >>> from skdpnoise import DPLogisticCD
    >>> from skdpnoise.inspection import plan
    >>> found = plan(DPLogisticCD(epsilon=1.0), 5_000, {"age": (17, 90), "hours": (0, 100)})
    >>> found.stages[0].release.label
    'magnitudes'
    >>> bool(found.epsilon_for(score=0.7) < 1.0), round(found.best, 1)
    (True, 0.8)
    """
    budget = _budget_of(estimator)
    n_samples = check_count("plan", "n_samples", n_samples, low=2)
    law = law_for(estimator, n_samples, features, classes, signal)
    if n_fits is None:
        n_fits = _FITS
    n_fits = check_count("plan", "n_fits", n_fits)
    seed = check_count("plan", "random_state", random_state, low=0)
    room = _room(estimator, ledger)
    groups = None
    if n_groups is not None:
        most = check_count("plan", "n_groups", n_groups, low=2, high=n_samples)
        groups = np.arange(n_samples) % most
    name, score = _scoring(estimator, scoring)
    grid = _grid(epsilons, budget.epsilon) if score is not None else [budget.epsilon]
    run = _Simulation(estimator, law, n_samples, groups, score, budget.epsilon)
    for one in np.random.SeedSequence(seed).spawn(n_fits):
        run.add(one, grid)
    report, heard = run.reports[0]
    best = None
    if name is None and run.best:
        name, best = run.best[0][0], float(np.mean([value for _, value in run.best]))
    stages, share_of = _stages(report)
    return PrivacyPlan(
        type(estimator).__name__,
        budget,
        n_samples,
        len(law.columns),
        stages,
        share_of,
        tuple((column, count / n_fits) for column, count in run.hidden.items()),
        tuple(heard),
        name,
        tuple(SimulatedScore(epsilon, tuple(values)) for epsilon, values in run.scores.items()),
        best,
        law.signal,
        n_fits,
        None if room is None else _affordable(run, seed, room),
    )


@dataclass(slots=True)
class _Simulation:
    estimator: Any
    law: Law
    n_samples: int
    groups: NDArray[Any] | None
    score: _Score | None
    epsilon: float  # of the estimator
    reports: list[tuple[PrivacyReport, list[str]]] = field(default_factory=list)  # and warnings
    hidden: Counter[str] = field(default_factory=Counter)  # columns, and in how many of them
    scores: dict[float, list[float]] = field(default_factory=dict)  # by ε
    best: list[tuple[str, float]] = field(default_factory=list)  # the usual one, at its best

    def add(self, seed: np.random.SeedSequence, grid: Sequence[float]) -> None:
        sample = self.law.sampler(seed)
        records, others = sample(self.n_samples), sample(_JUDGED)
        # The same seed at every ε: what differs between two is ε alone.
        number = int(seed.generate_state(1)[0])
        usual = self.law.best_score(others)
        if usual is not None:
            self.best.append(usual)
        for epsilon in grid:
            model, heard, hidden = self.fitted(records, number, epsilon)
            if epsilon == self.epsilon:
                self.reports.append((model.privacy_, heard))
                self.hidden.update(hidden)
            if self.score is not None:
                found = float(self.score(model, others.X, others.y))
                self.scores.setdefault(epsilon, []).append(found)

    def fitted(
        self, records: MadeUpRecords, seed: int, epsilon: float, ledger: Any = None
    ) -> tuple[Any, list[str], list[str]]:
        """Return a fitted copy, what it warned of, and the names of columns that noise hid."""
        copy, parts = clone_without(self.estimator, "ledger")
        give_seeds(parts, seed)
        copy.set_params(epsilon=epsilon, ledger=ledger)
        given = {} if self.groups is None else {"groups": self.groups}
        data = (records.X,) if records.y is None else (records.X, records.y)
        hidden: list[tuple[str, NDArray[np.bool_]]] = []
        with uncharged_fits() as caught, within(hidden=hidden):
            try:
                copy.fit(*data, **given)
            except Exception as error:
                error.add_note(f"A plan fitted {type(copy).__name__} at epsilon={epsilon:g}.")
                raise
        names = [name for owner, mask in hidden for name in self._names(copy, owner, mask)]
        return copy, _told(caught), list(dict.fromkeys(names))

    def _names(self, model: Any, owner: str, mask: NDArray[np.bool_]) -> Iterator[str]:
        """Yield the names of hidden columns: those of the table, or of what a pipeline made."""
        known: Sequence[str] = [column.name for column in self.law.columns]
        if len(known) != mask.size:
            known = [owner] if mask.size == 1 else [f"{owner}[{j}]" for j in range(mask.size)]
            with suppress(Exception):  # a pipeline whose steps do not name what they return
                made = model[:-1].get_feature_names_out()
                known = [*map(str, made)] if len(made) == mask.size else known
        yield from (known[place] for place in np.flatnonzero(mask).tolist())


def clone_without(estimator: Any, *names: str) -> tuple[Any, list[Any]]:
    """Return a clone and all estimators in it, in which these parameters are None."""
    copy = clone(estimator)
    parts = list(estimators_in(copy, set()))
    for part in parts:
        given = part.get_params(deep=False)
        part.set_params(**{name: None for name in names if given.get(name) is not None})
    return copy, parts


@contextmanager
def uncharged_fits() -> Iterator[list[warnings.WarningMessage]]:
    """Let fits within run in this thread and charge no ledger, and keep what they warn of."""
    with (
        warnings.catch_warnings(record=True) as caught,
        parallel_config(backend="sequential"),
        within(is_audited=True),
    ):
        warnings.simplefilter("always")
        yield caught


def _told(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what is worth knowing of what was warned of: not that a plan has seeds."""
    texts = [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning)]
    return list(dict.fromkeys(text for text in texts if not text.startswith(SEEDED)))


def _budget_of(estimator: Any) -> PrivacyGuarantee:
    kind = isinstance(estimator, type)
    able = hasattr(estimator, "get_params") and not kind
    given = estimator.get_params(deep=False) if able else {}
    if any(name not in given for name in _NEEDED):
        must = "be an estimator, pipeline or search of skdpnoise that spends privacy"
        remedy = "Put steps of scikit-learn into a DPPipeline."
        name = estimator.__name__ if kind else type(estimator).__name__
        raise TypeError(complaint("plan", "estimator", must, name, remedy))
    relation = given["adjacency"]  # or, where that is left open, what steps ask for
    relation = estimator._relation if relation is None else relation
    return PrivacyGuarantee(given["epsilon"], given["delta"], relation)


def _grid(epsilons: Sequence[float] | None, own: float) -> list[float]:
    if epsilons is None:
        return [own * factor for factor in _AROUND]
    return sorted({own, *(check_real("plan", "epsilons", one) for one in epsilons)})


def _scoring(estimator: Any, scoring: str | None) -> tuple[str | None, _Score | None]:
    if kind_of(estimator) is None:
        return None, None
    if scoring is None:
        scoring = estimator.get_params(deep=False).get("scoring")
    if scoring is not None:
        return scoring, get_scorer(scoring)
    # D² of counts is the usual one; of other losses it is not what R² says.
    own = getattr(part_of(estimator, first=False), "_metric", None) is not None
    name = "score" if own and kind_of(estimator) != "counts" else None
    return name, lambda model, X, y: model.score(X, y)


def _stages(report: PrivacyReport) -> tuple[tuple[PlannedStage, ...], str]:
    shares, share_of = release_shares(report)
    return tuple(
        PlannedStage(release, share, noise_in_records(release, report.guarantee))
        for release, share in zip(report.releases, shares, strict=True)
    ), share_of


def _room(estimator: Any, ledger: Any) -> Any:
    """Return the ledger that can be asked what it still covers; None if there is none."""
    if ledger is None:
        own = estimator.get_params(deep=False)["ledger"]
        return own if hasattr(own, "covers") else None
    if not hasattr(ledger, "covers"):
        must = "be a PrivacyLedger, or have its method covers"
        raise TypeError(complaint("plan", "ledger", must, type(ledger).__name__))
    return ledger


class _Asked(Exception):
    """Raised where a fit would charge: its cost, and what is stated with it."""


class _Asking:
    """Stands where a ledger would, and ends a fit at its charge, which is one for all of it."""

    dataset = "a plan"

    def charge(self, label: str, cost: Any, **facts: Any) -> None:
        raise _Asked(cost, {name: facts.get(name) for name in ("adjacency", "unit")})

    def __deepcopy__(self, memo: Any) -> _Asking:
        return self

    __copy__ = __sklearn_clone__ = __deepcopy__


def _affordable(run: _Simulation, seed: int, ledger: Any) -> float | None:
    """Return the largest ε for which a ledger covers what a fit would charge, rounded down."""
    records = run.law.sampler(np.random.SeedSequence(seed))(run.n_samples)

    def asked(epsilon: float, of_ledger: Callable[..., Any], otherwise: Any) -> Any:
        try:
            run.fitted(records, seed, epsilon, _Asking())
        except _Asked as stopped:
            cost, facts = stopped.args
            return of_ledger(cost, **facts)
        except ValueError:  # no noise gives this guarantee
            pass
        return otherwise

    facts = asked(run.epsilon, lambda cost, **facts: facts, None)
    if facts is None:
        return None
    ledger.covers(**facts)  # other neighbours, or another unit: an error says so

    def left(epsilon: float) -> float:
        return max(float(asked(epsilon, ledger.left_after, -math.inf)), -_LARGEST)

    high = float(ledger.guarantee.epsilon)
    low = high * _SMALLEST
    while left(high) > 0.0:
        if high >= _LARGEST:
            return to_four_digits(high)
        low, high = high, 2.0 * high
    if left(low) <= 0.0:
        return 0.0
    # What is left falls with ε in nearly a straight line, so that few fits find where nothing is.
    best = to_four_digits(
        brentq(left, low, high, xtol=_SMALLEST * low, rtol=0.5 * _CLOSE) * (1.0 + _CLOSE)
    )
    while not asked(best, ledger.covers, False):
        best = to_four_digits(best * (1.0 - _CLOSE))
    return best
