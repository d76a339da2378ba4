"""One private run: a fit to the training part, its score on the validation part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skdpnoise._utils.context import Said
from skdpnoise._utils.redaction import silence
from skdpnoise.accounting.budget import BESIDE, HALF
from skdpnoise.accounting.limits import Budget, SpendingLimit, UnsettledError
from skdpnoise.base.advice import left_to
from skdpnoise.base.compositions import private_estimators
from skdpnoise.base.parts import after_charge, private_parts
from skdpnoise.compose.fitting import Given, check_steps, fit_guarded, read_steps
from skdpnoise.compose.shares import with_budget
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.table import mapped, total
from skdpnoise.mechanisms import calibrate
from skdpnoise.metrics.scoring import (
    BITS,
    MOST,
    LabelShares,
    Losses,
    Scoring,
    pair_losses,
    pair_share,
)
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._splits import tossed
from skdpnoise.privacy import Adjacency, LossBudget, PureLoss
from skdpnoise.queries import private_location_scale
from skdpnoise.queries.ranges import COUNT_SHARE, release_record_count
from skdpnoise.sampling import RandomWords, SystemWords
from skdpnoise.sampling.observer import note_charge
from skdpnoise.sensitivity import SensitivityProfile, histogram_counts

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

REFERENCE = BESIDE  # of the records, for the units of a target that must be bought, or for scores
LEAST_VARIANCE = 0.05  # a variance below it would be noise
_RAREST = 0.02  # the least share of a label, so that no error weighs more than all others
HIDDEN = (
    "The noise hides the scale of the target, so that candidates are compared in units of 1, which "
    "may tell them apart badly. Public 'target_bounds', more records or a larger epsilon help."
)


_SAID = "_said"  # what a fit had to say, kept by the model until it leaves the search


class SearchStopped(RuntimeError):
    """Raised where a search ends without a result after it was charged; tells no value."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Which records are fitted to, which are scored, and which tell the units of the target."""

    # train, validation, reference: disjoint rows of the records; the last may be empty
    train: Any
    validation: Any
    reference: Any
    folds: tuple[Any, ...] = ()  # of a cross-validation: disjoint rows, each scored once


@dataclass(frozen=True, slots=True)
class Target:
    """Released or public units of the target of a regression."""

    # location, scale: in the units of the target
    location: float = 0.0
    scale: float = 1.0
    variance: float = 1.0  # mean loss of a model that predicts the location, in squared scales
    shares: LabelShares | None = None  # of the labels, where a score needs them

    @property
    def units(self) -> Any:
        """The units in which losses of records are measured."""
        return self.scale if self.shares is None else self.shares


class Outcome(NamedTuple):
    """The result of a search: the winner, its noisy score, and whether the units are hidden."""

    candidate: int
    model: Any
    score: float
    hidden: bool = False
    folds: Any = None  # of a cross-validation: models, noisy scores, and errors of their noise

    @property
    def models(self) -> Sequence[Any]:
        """All models that leave the search."""
        return [self.model] if self.folds is None else self.folds[0]

    def said(self) -> list[Said]:
        """Take off the models what their fits had to say, and return it, each text once."""
        found = [one for model in self.models for one in taken_from(model)]
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
    buys: bool  # whether the units of the target are estimated from the reference part; public
    known: Target | None  # units that are public
    adjacency: Adjacency
    delta: float  # δ at which parts of a candidate state a Gaussian budget
    declared: tuple[str, ...]  # what is public by the word of the user
    rng: RandomWords
    classes: NDArray[Any] | None = None  # public labels
    records: Any = None  # WholeRecords or SpreadRecords: private, once they are read
    parts: Any = None  # how they are divided

    def priced(self, estimator: Any, budget: Budget) -> Priced:
        """Return a copy of an estimator whose parts ask for a budget together, and no more."""
        asking = with_budget(estimator, budget, self.delta, ledger=None, rng=self.rng)
        for _, one in private_estimators(asking):
            if self.classes is not None and getattr(one, "classes", self.classes) is None:
                # A list, as users give it: cards of scikit-learn 1.7 cannot compare arrays.
                one.set_params(classes=self.classes.tolist())
        return Priced(asking, budget, tuple(part.label for part in private_parts(asking)))

    def fitted(self, priced: Priced, rows: Any = None) -> Any:
        """Return the estimator fitted to some rows, the training part if none are given."""
        # Compositions fit their parts one by one, whatever their `n_jobs` and joblib are told: in
        # another thread nobody would know that the search is charged, and nothing would be silent.
        # Its limit is made here, in the process that fits, and taken off again: it spends the
        # budget once, and the model that is returned has charged what it reports.
        rows = self.parts.train if rows is None else rows
        model, limit = priced.estimator, SpendingLimit(priced.budget, self.adjacency)
        give_ledger(model, limit.part)
        check_all_pay(model, priced.labels)
        said: list[Said] = []
        try:
            with (
                left_to(said),
                silence(),
                parallel_config("sequential"),
                after_charge(model),
            ):
                model = fit_guarded("The search", model, *self.records.of(rows))
        except Exception:
            if not limit.refused:
                raise
        settle(limit, model)
        give_ledger(model, partial(_same, None))
        return said_by(model, said)

    def check(self, owner: str, candidate: Candidate, budget: Budget) -> None:
        """Refuse a candidate for its parameters, whatever the records are."""
        priced = replace(self, rng=SystemWords()).priced(candidate.estimator, budget)
        check_all_pay(priced.estimator, priced.labels)
        check_steps(owner, priced.estimator, candidate.parts, grouped=False)

    def read(self, owner: str, candidate: Candidate, budget: Budget) -> None:
        """Have a candidate check all records, as far as it needs no draw."""
        priced = replace(self, rng=SystemWords()).priced(candidate.estimator, budget)
        model, limit = priced.estimator, SpendingLimit(None, self.adjacency)
        give_ledger(model, limit.part)
        with silence(), parallel_config("sequential"):
            X, y = self.records.of(self.records.all())
            read_steps(model, Given(X, y), candidate.parts, owner=owner)
        if not limit.asked:
            raise ValueError(
                f"The 'estimator' parameter of {owner} must charge for what it releases. Got "
                f"{type(candidate.estimator).__name__}, which released nothing, or did not charge."
            )

    def losses(self, models: Sequence[Any], target: Target) -> Losses:
        """Return the losses of the validation part by models: private integers."""
        rows, units = self.parts.validation, target.units
        models = [model if model is None else self.records.handed(model) for model in models]
        if not self.scoring.by_pairs:
            step = partial(_summed, self.scoring, models, units)
            sums, held = self.records.total(rows, step, "scores")
            return Losses(sums, held, rows.size)
        sums = [rows.size << BITS] * len(models)
        for k, model in enumerate(models):
            if model is not None:
                take = partial(_scores, self.scoring, model, units)
                sums[k] = int(self.records.joined(rows, take, _of_pairs, "scores"))
        return Losses(np.array(sums), np.zeros(len(models), dtype=np.int64), rows.size)

    def noisy_score(self, loss: int, budget: LossBudget, target: Target) -> float:
        """Return the score of a model with noise, by the sum of its losses."""
        return self.score_and_error(loss, budget, target)[0]

    def score_and_error(self, loss: int, budget: LossBudget, target: Target) -> tuple[float, float]:
        """Return the score of a model with noise, and the standard error of that noise."""
        n = self.parts.validation.size
        mean, error = released_mean((loss, n), budget, self.adjacency, self.rng)
        low, found, high = (
            self.scoring.score(each * self.scoring.limit, target.scale, target.variance)
            for each in (max(mean - error, 0.0), mean, mean + error)
        )
        return found, 0.5 * abs(high - low)


def _summed(
    scoring: Scoring, models: Sequence[Any], units: Any, some: tuple[Any, NDArray[Any]]
) -> NDArray[np.int64]:
    """Return sums of the losses of some records by models: the largest by none."""
    losses = np.full((len(models), len(some[1])), 1 << BITS, dtype=np.int64)
    for own, model in zip(losses, models, strict=True):
        if model is not None:
            with silence(), parallel_config("sequential"), after_charge(model):
                own[:] = scoring.losses(model, *some, units)
    found = Losses.of(losses)
    return np.stack([found.sums, found.held])


def _scores(
    scoring: Scoring, model: Any, units: Any, some: tuple[Any, NDArray[Any]], first: int
) -> NDArray[np.float64]:
    """Return scores of some records, of which pairs are counted, and whether they are positive."""
    n = min(max(MOST - first, 0), len(some[1]))
    X, y = _safe_indexing(some[0], slice(0, n)), some[1][:n]
    with silence(), parallel_config("sequential"), after_charge(model):
        return np.stack([scoring.by_record(model, X, y, units), y == units.classes[1]])


def _of_pairs(found: list[NDArray[np.float64]]) -> int:
    """Return what all pairs of records lose."""
    scores, positive = np.concatenate(found, axis=1)
    return int(pair_losses(scores, positive > 0.0).sum())


def taken_from(model: Any) -> list[Said]:
    """Take off a model what its fit had to say of what it released."""
    found: list[Said] = vars(model).pop(_SAID, [])
    return found


def said_by(model: Any, said: list[Said]) -> Any:
    """Return a model that keeps what the fit it was made from had to say."""
    vars(model)[_SAID] = said
    return model


def give_ledger(model: Any, ledger_of: Callable[[str], Any]) -> None:
    """Give each private part of a model its ledger: fitted parts, and what they are made from."""
    for fitted in (False, True):
        for part in private_parts(model, fitted=fitted):
            part.estimator.ledger = ledger = ledger_of(part.label)
            for _, step in getattr(part.estimator, "steps_", ()):  # a DPPipeline's own
                give_ledger(step, partial(_same, ledger))


def check_found(model: Any) -> None:
    """Refuse a private step whose class no other process finds."""
    for part in private_parts(model):
        if "<locals>" in type(part.estimator).__qualname__:
            raise ValueError(
                f"{type(part.estimator).__name__} is registered as private in one process, and is "
                "not in another. Register its class in a module that all processes import, or set "
                "n_jobs=None."
            )


def check_all_pay(model: Any, labels: tuple[str, ...]) -> None:
    """Refuse a model that lost a private part on its way to the process that fits it."""
    here = tuple(part.label for part in private_parts(model))
    if here != labels:
        raise ValueError(
            f"A step that is registered as private in one process is not in another: {labels}, "
            f"and {here}. Register its class in a module that all processes import, or set "
            "n_jobs=None."
        )


def _same(ledger: Any, label: str) -> Any:
    return ledger


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
    noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"
    return calibrate(noise, SensitivityProfile(np.full(size, one)), budget)


def noisy_mean(
    losses: tuple[int, int],
    budget: LossBudget,
    adjacency: str,
    rng: RandomWords,
    label: str = "score",
) -> float:
    """Return the mean of losses in [0, 1], released within a budget."""
    return released_mean(losses, budget, adjacency, rng, label)[0]


def released_mean(
    losses: tuple[int, int],
    budget: LossBudget,
    adjacency: str,
    rng: RandomWords,
    label: str = "score",
) -> tuple[float, float]:
    """Return the mean of so many losses and its standard error, released within a budget."""
    # Integers up to 2^24 are summed: their sum and its noise are exact. The number of records is
    # public under replace-one; under add/remove it is a second coordinate of the release.
    mechanism = score_noise(budget, adjacency)
    note_charge(label, mechanism)
    one = float(1 << BITS)
    loss, n = losses
    values = [loss, n << BITS][: mechanism.sensitivity.n_coordinates]
    noisy = mechanism.release(np.array(values), rng)
    count = max(noisy[1] / one, 1.0) if len(noisy) == 2 else float(max(n, 1))
    mean = float(np.clip(noisy[0] / one / count, 0.0, 1.0))
    # Of a ratio, where the count is noisy, too.
    deviations = mechanism.standard_deviation * np.array([1.0, mean])[: len(noisy)]
    return mean, min(float(np.linalg.norm(deviations)) / one / count, 1.0)


def divide(
    records: Any, validation: float, reference: float, adjacency: Adjacency, rng: RandomWords
) -> Parts:
    """Divide rows into training, validation and reference part, by coins that see no data."""
    shares, again = (validation, reference), adjacency == "replace_one"

    def enough(sizes: list[int]) -> bool:
        train, scored, kept = sizes
        return train >= 2 and scored >= 1 and kept >= (1 if reference else 0)

    return Parts(*tossed(records, shares, enough, rng, again=again))


def release_shares(problem: SearchProblem, y: Any, budget: LossBudget) -> Target:
    """Release the shares of the labels, each a histogram's count, within a budget."""
    assert problem.classes is not None
    classes, relation = problem.classes, problem.adjacency
    noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"
    mechanism = calibrate(noise, histogram_counts(classes.size, relation), budget)
    note_charge("shares of the labels", mechanism)
    counts = total(y, partial(_of_labels, classes), "labels")
    noisy = mechanism.release(counts, problem.rng)
    least = min(_RAREST, 0.5 / classes.size)
    shares = np.maximum(noisy / max(float(noisy.sum()), 1.0), least)
    shares /= shares.sum()
    if problem.scoring.by_pairs:
        whole = pair_share(float(shares[1]), problem.parts.validation.size)
    else:
        whole = classes.size * float(shares.min())
    return Target(variance=whole, shares=LabelShares(classes, shares))


def _of_labels(labels: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    return np.array([np.count_nonzero(y == label) for label in labels])


def release_units(problem: SearchProblem, y: Any, budget: LossBudget) -> tuple[Target, bool]:
    """Release location and scale of the target, unless public, and its variance, for R²."""
    if problem.scoring.needs_shares:
        return release_shares(problem, y, budget), False
    # The records are those of the reference part, which has the whole budget to itself. Whether
    # there are any does not count: how many they are may be private.
    adjacency, rng = problem.adjacency, problem.rng
    known, rest, hidden = problem.known, budget, False
    if known is None:
        rest, n_samples = budget.share(1.0 - HALF), float(len(y))
        noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"

        def charge(label: str, one: Any) -> None:
            note_charge(f"units of the target: {label}", one)

        if adjacency == "add_remove":
            n_samples = release_record_count(len(y), budget.share(COUNT_SHARE), noise, rng, charge)
        found = private_location_scale(
            mapped(y, _as_column, 1),
            budget.share(HALF - COUNT_SHARE),
            noise=noise,
            adjacency=adjacency,
            n_samples=max(2.0, n_samples),
            random_state=rng,
            charge=charge,
        )
        hidden = not found.found[0]
        units = (0.0, 1.0) if hidden else (float(found.location[0]), float(found.scale[0]))
        known = Target(*units)
    label = "variance of the target"
    loss = int(total(y, partial(_squared, problem.scoring, known.location, known.scale), label))
    variance = noisy_mean((loss, len(y)), rest, adjacency, rng, label) * problem.scoring.limit
    return Target(known.location, known.scale, max(variance, LEAST_VARIANCE)), hidden


def _as_column(y: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(y, dtype=np.float64)[:, np.newaxis]


def _squared(scoring: Scoring, location: float, scale: float, y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sum of the squared distances from a location, as losses."""
    squares = ((np.asarray(y, dtype=np.float64) - location) / scale) ** 2
    return np.asarray(scoring.rounded(squares).sum())
