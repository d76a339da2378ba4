"""One private run: a fit to the training part, its score on the validation part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skdpnoise._utils.context import Said
from skdpnoise._utils.silence import silence
from skdpnoise.accounting.budget import BESIDE, COUNT_SHARE, HALF
from skdpnoise.accounting.limits import Budget, SpendingLimit, UnsettledError
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.session import Session
from skdpnoise.base.advice import left_to, warn_last
from skdpnoise.base.compositions import private_estimators
from skdpnoise.base.partitioned import without_seeds
from skdpnoise.base.steps import after_charge, private_parts
from skdpnoise.compose.fitting import Given, check_steps, fit_guarded, give_ledger, read_steps
from skdpnoise.compose.shares import with_budget
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.table import Table
from skdpnoise.mechanisms import calibrate
from skdpnoise.metrics.scoring import (
    BITS,
    MOST,
    LabelShares,
    Scoring,
    pair_losses,
    pair_share,
    sums_of,
)
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._splits import Records
from skdpnoise.privacy import LossBudget, PureLoss
from skdpnoise.queries import private_location_scale
from skdpnoise.sampling import SystemWords
from skdpnoise.sensitivity import SensitivityProfile

# One text whatever failed: the error of a run may tell something of the records.
FAILED = (
    "The search has no result: the chosen candidate, or all candidates, could not be fitted. "
    "The error is not shown, since it may depend on private records. Fit the candidates to "
    "made-up records of the same columns to see it."
)
UNSETTLED = (
    "A run of the search did not charge what its private steps report to have spent, so that no "
    "guarantee can be stated. Nothing of the search is published. A step was fitted more than "
    "once, or a copy of it was, or it was given more than its share."
)

UNKNOWN = (
    "{} is registered as private in one process, and is not in another. Register its class in a "
    "module that all processes import, or set n_jobs=None."
)

REFERENCE = BESIDE  # of the records, for the units of a target that must be bought, or for scores
LEAST_VARIANCE = 0.05  # a variance below it would be noise
_RAREST = 0.02  # the least share of a label, so that no error weighs more than all others
HIDDEN = (
    "The noise hides the scale of the target, so that candidates are compared in units of 1, which "
    "may tell them apart badly. Public 'target_bounds', more records or a larger epsilon help."
)


SAID = "_said"  # what a fit had to say, kept by the model until it leaves the search


class SearchStopped(RuntimeError):
    """Raised where a search ends without a result after it was charged; tells no value."""


@dataclass(frozen=True, slots=True)
class Target:
    """Released or public units of the target of a regression."""

    # location, scale: in the units of the target
    location: float = 0.0
    scale: float = 1.0
    variance: float = 1.0  # mean loss of a model that predicts the location, in squared scales
    public: bool = False  # whether location and scale come from public bounds
    shares: LabelShares | None = None  # of the labels, where a score needs them

    @property
    def units(self) -> Any:
        return self.scale if self.shares is None else self.shares


class Outcome(NamedTuple):
    """All that leaves a search: the winner, or the models of all folds, with noisy scores."""

    candidate: int
    models: Sequence[Any]
    scores: Sequence[float]
    errors: Sequence[float] = ()  # of the noise of the scores of folds

    def said(self) -> list[Said]:
        found = [one for model in self.models for one in vars(model).pop(SAID, [])]
        return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """An unfitted estimator whose private parts share a budget; it has no ledger yet."""

    estimator: Any
    budget: Budget  # what one fit of it may spend
    labels: tuple[str, ...]  # its private parts


@dataclass(frozen=True, slots=True, eq=False)
class SearchProblem:
    """Everything that runs share."""

    candidates: Sequence[Candidate]  # sealed and checked
    scoring: Scoring
    target: Target  # in whose units losses are
    session: Session  # of the choice, the scores and the units
    epsilon: float  # of all runs together, as the user gave it
    delta: float  # δ at which parts of a candidate state a Gaussian budget
    declared: tuple[str, ...]  # what is public by the word of the user
    n_jobs: int | None
    classes: NDArray[Any] | None = None  # public labels
    parts: Any = None  # how the records are divided, once they are read

    @property
    def n_scored(self) -> int:
        return int(self.parts.n_in(self.parts.validation))

    def rows(self, places: Collection[int]) -> Table[Records]:
        no_target = np.zeros(0) if self.classes is None else self.classes[:0]
        found: Table[Records] = self.parts.division.at(*places)
        return found.or_else({"X": None, "y": no_target})

    def priced(self, estimator: Any, budget: Budget) -> Priced:
        """Return a copy of an estimator whose parts ask for a budget together, and no more."""
        asking = with_budget(estimator, budget, self.delta, ledger=None, rng=self.session.rng)
        for _, one in private_estimators(asking):
            if self.classes is not None and getattr(one, "classes", self.classes) is None:
                # A list, as users give it: cards of scikit-learn 1.7 cannot compare arrays.
                one.set_params(classes=self.classes.tolist())
        return Priced(asking, budget, tuple(part.label for part in private_parts(asking)))

    def fitted(self, priced: Priced, places: Collection[int] | None = None) -> Any:
        """Return the estimator fitted to the training part, or to records of other places."""
        # Compositions fit their parts one by one, whatever their `n_jobs` and joblib are told: in
        # another thread nobody would know that the search is charged, and nothing would be silent.
        # Its limit is made here, in the process that fits, and taken off again: it spends the
        # budget once, and the model that is returned has charged what it reports.
        records = self.rows(self.parts.train if places is None else places).tables()
        limit = SpendingLimit(priced.budget, self.session.adjacency, self.epsilon)
        model = priced.estimator
        give_limit(model, limit)
        if tuple(part.label for part in private_parts(model)) != priced.labels:
            raise SearchStopped(UNKNOWN.format("A step"))
        said: list[Said] = []
        try:
            with left_to(said), silence(), parallel_config("sequential"), after_charge(model):
                model = fit_guarded("The search", model, records["X"], records["y"])
        except Exception:
            if not limit.refused:
                raise
        settle(limit, model)
        give_ledger(model, None)
        vars(model)[SAID] = said
        return model

    def check(self, owner: str, candidate: Candidate, budget: Budget) -> None:
        """Refuse a candidate for its parameters, whatever the records are."""
        model = self._unseeded().priced(candidate.estimator, budget).estimator
        check_steps(owner, model, candidate.parts, grouped=False)
        if self.n_jobs not in (None, 1):
            for kind in {type(part.estimator) for part in candidate.private}:
                if "<locals>" in kind.__qualname__:
                    raise ValueError(UNKNOWN.format(kind.__name__))

    def read(
        self, owner: str, candidate: Candidate, budget: Budget, records: Table[Records]
    ) -> None:
        """Have a candidate check all records, as far as it needs no draw."""
        limit = SpendingLimit(None, self.session.adjacency)
        model = self._unseeded().priced(candidate.estimator, budget).estimator
        give_limit(model, limit)
        tables = records.tables()
        with silence(), parallel_config("sequential"):
            read_steps(model, Given(tables["X"], tables["y"]), candidate.parts, owner=owner)
        if not limit.asked:
            raise ValueError(
                f"The 'estimator' parameter of {owner} must charge for what it releases. Got "
                f"{type(candidate.estimator).__name__}, which released nothing, or did not charge."
            )

    def _unseeded(self) -> SearchProblem:
        return replace(self, session=replace(self.session, rng=SystemWords()))

    def losses(self, models: Sequence[Any]) -> NDArray[np.int64]:
        """Return what `sums_of` does for the losses of the validation part: private integers."""
        rows, units = self.rows(self.parts.validation), self.target.units
        models = [one if one is None else rows.travelling(one, without_seeds) for one in models]
        if not self.scoring.by_pairs:
            return rows.total(partial(_summed, self.scoring, models, units), "scores")
        sums = np.full(len(models), len(rows) << BITS)
        for k, model in enumerate(models):
            if model is not None:
                take = partial(_scores, self.scoring, model, units)
                sums[k] = rows.joined(take, _of_pairs, "scores")
        return np.stack([sums, np.zeros_like(sums)])

    def score(self, loss: int, budget: LossBudget) -> tuple[float, float]:
        mean, error = released_mean((loss, self.n_scored), budget, self.session)
        low, found, high = (
            self.scoring.score(each * self.scoring.limit, self.target.scale, self.target.variance)
            for each in (max(mean - error, 0.0), mean, mean + error)
        )
        return found, 0.5 * abs(high - low)


def _summed(
    scoring: Scoring, models: Sequence[Any], units: Any, some: Records
) -> NDArray[np.int64]:
    losses = np.full((len(models), len(some["y"])), 1 << BITS, dtype=np.int64)
    for own, model in zip(losses, models, strict=True):
        if model is not None:
            with silence(), parallel_config("sequential"), after_charge(model):
                own[:] = scoring.losses(model, some["X"], some["y"], units)
    return sums_of(losses)


def _scores(
    scoring: Scoring, model: Any, units: Any, some: Records, first: int
) -> NDArray[np.float64]:
    """Return scores of some records, of which pairs are counted, and whether they are positive."""
    n = min(max(MOST - first, 0), len(some["y"]))
    X, y = _safe_indexing(some["X"], slice(0, n)), some["y"][:n]
    with silence(), parallel_config("sequential"), after_charge(model):
        return np.stack([scoring.by_record(model, X, y, units), y == units.classes[1]])


def _of_pairs(found: list[NDArray[np.float64]]) -> int:
    scores, positive = np.concatenate(found, axis=1)
    return int(pair_losses(scores, positive > 0.0).sum())


def give_limit(model: Any, limit: SpendingLimit) -> None:
    for part in private_parts(model):
        part.estimator.ledger = limit.part(part.label)


def settle(limit: SpendingLimit, model: Any) -> None:
    """Stop the search unless a run has charged its limit for what its fitted parts report."""
    found = private_parts(model, fitted=True)
    try:
        limit.settle([(part.label, getattr(part.estimator, "privacy_", None)) for part in found])
    except UnsettledError:
        raise SearchStopped(UNSETTLED) from None


def without_traces(search: Callable[[], Outcome]) -> Outcome:
    """Run a search; whatever fails, the error is made anew and tells nothing of a run."""
    stopped: Exception
    try:
        return search()
    except SearchStopped as error:
        stopped = SearchStopped(str(error))
    except SpreadError as error:
        stopped = SpreadError(str(error))
    except MemoryError:
        stopped = MemoryError("A run of the search needs more memory than there is.")
    except Exception:
        stopped = SearchStopped(FAILED)
    raise stopped  # outside the handler, so that what failed is not attached to it


def score_noise(budget: LossBudget, adjacency: str) -> Any:
    """Return the mechanism of one sum of losses, in units of c/2^24; with the count, if private."""
    one = float(1 << BITS)
    size = 2 if adjacency == "add_remove" else 1
    return calibrate(_noise_for(budget), SensitivityProfile(np.full(size, one)), budget)


def _noise_for(budget: LossBudget) -> str:
    return "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"


def released_mean(
    losses: tuple[int, int], budget: LossBudget, session: Session, label: str = "score"
) -> tuple[float, float]:
    """Return the mean in [0, 1] of so many losses and its standard error, within a budget."""
    # Integers up to 2^24 are summed: their sum and its noise are exact. The number of records is
    # public under replace-one; under add/remove it is a second coordinate of the release.
    mechanism = score_noise(budget, session.adjacency)
    one = float(1 << BITS)
    loss, n = losses
    values = [loss, n << BITS][: mechanism.sensitivity.n_coordinates]
    noisy = session.add(label, mechanism, np.array(values))
    count = max(noisy[1] / one, 1.0) if len(noisy) == 2 else float(max(n, 1))
    mean = float(np.clip(noisy[0] / one / count, 0.0, 1.0))
    # Of a ratio, where the count is noisy, too.
    deviations = mechanism.standard_deviation * np.array([1.0, mean])[: len(noisy)]
    return mean, min(float(np.linalg.norm(deviations)) / one / count, 1.0)


def release_units(problem: SearchProblem, budget: LossBudget) -> Target:
    """Release what scores need of the target: shares of labels, or its units unless public."""
    # The records are those of the reference part, which has the whole budget to itself. Whether
    # there are any does not count: how many they are may be private.
    y = problem.rows(problem.parts.reference).map(itemgetter("y"))
    noise = _noise_for(budget)
    if problem.scoring.needs_shares:
        return _release_shares(problem, y, budget, noise)
    known, rest = problem.target, budget
    if not known.public:
        session = problem.session.under("units of the target: ")
        rest, n_samples = budget.share(1.0 - HALF), float(len(y))
        if session.adjacency == "add_remove":
            n_samples = session.count(len(y), budget.share(COUNT_SHARE), noise)
        found = private_location_scale(
            y.map(_as_column, 1),
            budget.share(HALF - COUNT_SHARE),
            noise=noise,
            adjacency=session.adjacency,
            n_samples=max(2.0, n_samples),
            random_state=session.rng,
            charge=session.spend,
        )
        known = Target(float(found.location[0]), float(found.scale[0]))
        if not found.found[0]:
            known = Target()
            warn_last(HIDDEN)
    label = "variance of the target"
    loss = int(y.total(partial(_squared, problem.scoring, known), label))
    mean, _ = released_mean((loss, len(y)), rest, problem.session, label)
    variance = max(mean * problem.scoring.limit, LEAST_VARIANCE)
    return Target(known.location, known.scale, variance)


def _release_shares(
    problem: SearchProblem, y: Table[NDArray[Any]], budget: LossBudget, noise: str
) -> Target:
    assert problem.classes is not None
    classes = problem.classes
    query = GroupedSum(classes.size, partial(_places_of, classes))
    noisy = problem.session.tally("shares of the labels", query, y, budget, noise).values
    least = min(_RAREST, 0.5 / classes.size)
    shares = np.maximum(noisy / max(float(noisy.sum()), 1.0), least)
    shares /= shares.sum()
    if problem.scoring.by_pairs:
        whole = pair_share(float(shares[1]), problem.n_scored)
    else:
        whole = classes.size * float(shares.min())
    return Target(variance=whole, shares=LabelShares(classes, shares))


def _places_of(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
    places = np.minimum(np.searchsorted(labels, y), labels.size - 1)
    return np.where(labels[places] == y, places, -1)


def _as_column(y: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(y, dtype=np.float64)[:, np.newaxis]


def _squared(scoring: Scoring, units: Target, y: NDArray[Any]) -> NDArray[np.int64]:
    squares = ((np.asarray(y, dtype=np.float64) - units.location) / units.scale) ** 2
    return np.asarray(scoring.rounded(squares).sum())
