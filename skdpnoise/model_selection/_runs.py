"""One private run: a fit to the training part, its score on the validation part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skdpnoise.compose.approximate import Budget
from skdpnoise.compose.caps import Cap, Rehearsed, UnsettledError
from skdpnoise.compose.charged import after_charge
from skdpnoise.compose.fitting import rehearse
from skdpnoise.compose.parts import private_parts
from skdpnoise.compose.register import is_private
from skdpnoise.compose.shares import with_budget
from skdpnoise.estimators.seal import silence
from skdpnoise.mechanisms import calibrate
from skdpnoise.metrics.scoring import BITS, LabelShares, Scoring, pair_share
from skdpnoise.model_selection._candidates import Candidate, private_estimators
from skdpnoise.privacy import Adjacency, LossBudget, PureLoss
from skdpnoise.queries import private_location_scale
from skdpnoise.queries.ranges import release_record_count
from skdpnoise.sampling import RandomWords, permutation
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

REFERENCE = 0.1  # of the records, where the units of a target must be bought
_UNITS = 0.6  # of the budget of that part for location and scale; the rest for the variance
_COUNT = 0.05  # and of that, for the number of its records where that is private
_FLOOR = 0.05  # a variance below it would be noise
_RAREST = 0.02  # the least share of a label, so that no error weighs more than all others
HIDDEN = (
    "The noise hides the scale of the target, so that candidates are compared in units of 1, which "
    "may tell them apart badly. Public 'target_bounds', more records or a larger epsilon help."
)

Rows = NDArray[np.intp]
Losses = NDArray[np.int64]  # integers, in units of c/2^24


class SearchStopped(RuntimeError):
    """Raised where a search ends without a result after it was charged; tells no value."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Which records are fitted to, which are scored, and which tell the units of the target."""

    # train, validation, reference: disjoint rows; the last may be empty
    train: Rows
    validation: Rows
    reference: Rows
    folds: tuple[Rows, ...] = ()  # of a cross-validation: disjoint rows, each scored once


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
        """What losses of records are measured in."""
        return self.scale if self.shares is None else self.shares


class Outcome(NamedTuple):
    """What leaves the search: the winner, its noisy score, and whether the units are hidden."""

    candidate: int
    model: Any
    score: float
    hidden: bool = False
    folds: Any = None  # of a cross-validation: models, noisy scores, and errors of their noise


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """An unfitted estimator whose private parts share a budget; it has no ledger yet."""

    estimator: Any
    budget: Budget  # what one fit of it may spend
    labels: tuple[str, ...]  # its private parts


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything that runs share."""

    candidates: Sequence[Candidate]  # sealed and checked
    scoring: Scoring
    # X, y: the private records
    X: Any
    y: NDArray[Any]
    parts: Parts  # how they are divided
    buys: bool  # whether the units of the target are estimated from the reference part; public
    known: Target | None  # units that are public
    adjacency: Adjacency
    delta: float  # δ at which parts of a candidate state a Gaussian budget
    classes: NDArray[Any] | None  # public labels
    rng: RandomWords

    def priced(self, estimator: Any, budget: Budget) -> Priced:
        """Return a copy of an estimator whose parts ask for a budget together, and no more."""
        asking = with_budget(estimator, budget, self.delta, ledger=None, rng=self.rng)
        for _, one in private_estimators(asking):
            if self.classes is not None and getattr(one, "classes", self.classes) is None:
                # A list, as users give it: cards of scikit-learn 1.7 cannot compare arrays.
                one.set_params(classes=self.classes.tolist())
        return Priced(asking, budget, tuple(part.label for part in private_parts(asking)))

    def fitted(self, priced: Priced, rows: Rows | None = None) -> Any:
        """Return the estimator fitted to some rows, the training part if none are given."""
        # Compositions fit their parts one by one, whatever their `n_jobs` and joblib are told: in
        # another thread nobody would know that the search is charged, and nothing would be silent.
        # Its cap is made here, in the process that fits, and taken off again: it spends the budget
        # once, and the model that is returned has charged what it reports.
        rows = self.parts.train if rows is None else rows
        model, cap = priced.estimator, Cap(priced.budget, self.adjacency)
        give_ledger(model, cap.part)
        check_all_pay(model, priced.labels)
        try:
            with silence(), parallel_config("sequential"), after_charge(model):
                model.fit(_taken(self.X, rows), self.y[rows])
        except Exception:
            if not cap.refused:
                raise
        settle(cap, model)
        give_ledger(model, partial(_same, None))
        return model

    def rehearsed(self, owner: str, candidate: Candidate, priced: Priced) -> bool:
        """Fit to all records, with nothing drawn; return whether there was a charge."""
        model, cap = priced.estimator, Cap(None, self.adjacency)
        give_ledger(model, cap.part)
        check_all_pay(model, priced.labels)
        with silence(), parallel_config("sequential"):
            X, y = deepcopy(self.X), self.y.copy()  # a step may write into what it is given
            if is_private(model):
                with suppress(Rehearsed):
                    model.fit(X, y)
            else:
                rehearse(model, X, y, None, candidate.parts, owner=owner)
        return cap.asked

    def losses(self, model: Any, target: Target) -> Losses:
        """Return the losses of the validation part, private integers; the largest if no model."""
        rows = self.parts.validation
        if model is None:
            return np.full(rows.size, 1 << BITS, dtype=np.int64)
        X = _taken(self.X, rows)
        with silence(), parallel_config("sequential"), after_charge(model):
            return self.scoring.losses(model, X, self.y[rows], target.units)

    def noisy_score(self, losses: Losses, budget: LossBudget, target: Target) -> float:
        """Return the score of a model with noise."""
        return self.score_and_error(losses, budget, target)[0]

    def score_and_error(
        self, losses: Losses, budget: LossBudget, target: Target
    ) -> tuple[float, float]:
        """Return the score of a model with noise, and the standard error of that noise."""
        mean, error = released_mean(losses, budget, self.adjacency, self.rng)
        low, found, high = (
            self.scoring.score(each * self.scoring.limit, target.scale, target.variance)
            for each in (max(mean - error, 0.0), mean, mean + error)
        )
        return found, 0.5 * abs(high - low)


def _taken(X: Any, rows: Rows) -> Any:
    """Return rows of a table in memory of their own: a step may write into what it is given."""
    found = _safe_indexing(X, rows)
    return found if isinstance(found, np.ndarray) else deepcopy(found)  # pandas may not copy all


def give_ledger(model: Any, ledger_of: Callable[[str], Any]) -> None:
    """Give each private part of a model its ledger: fitted parts, and what they are made from."""
    for fitted in (False, True):
        for part in private_parts(model, fitted=fitted):
            part.estimator.ledger = ledger = ledger_of(part.label)
            for _, step in getattr(part.estimator, "steps_", ()):  # a DPPipeline's own
                give_ledger(step, partial(_same, ledger))


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


def settle(cap: Cap, model: Any) -> None:
    """Stop the search unless a run has charged its cap for what its fitted parts report."""
    found = private_parts(model, fitted=True)
    try:
        cap.settle([(part.label, getattr(part.estimator, "privacy_", None)) for part in found])
    except UnsettledError:
        raise SearchStopped(UNSETTLED) from None


def without_traces(search: Callable[[], Outcome]) -> Outcome:
    """Run a search; whatever fails, the error is made anew and tells nothing of a run."""
    stopped: Exception
    try:
        return search()
    except SearchStopped as error:
        stopped = SearchStopped(str(error))
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
    losses: Losses, budget: LossBudget, adjacency: str, rng: RandomWords, label: str = "score"
) -> float:
    """Return the mean of losses in [0, 1], released within a budget."""
    return released_mean(losses, budget, adjacency, rng, label)[0]


def released_mean(
    losses: Losses, budget: LossBudget, adjacency: str, rng: RandomWords, label: str = "score"
) -> tuple[float, float]:
    """Return the mean of losses in [0, 1] and its standard error, released within a budget."""
    # Integers up to 2^24 are summed: their sum and its noise are exact. The number of records is
    # public under replace-one; under add/remove it is a second coordinate of the release.
    mechanism = score_noise(budget, adjacency)
    note_charge(label, mechanism)
    one = float(1 << BITS)
    values = [float(losses.sum()), one * losses.size][: mechanism.sensitivity.n_coordinates]
    noisy = mechanism.release(np.array(values), rng)
    count = max(noisy[1] / one, 1.0) if len(noisy) == 2 else float(max(losses.size, 1))
    mean = float(np.clip(noisy[0] / one / count, 0.0, 1.0))
    # Of a ratio, where the count is noisy, too.
    deviations = mechanism.standard_deviation * np.array([1.0, mean])[: len(noisy)]
    return mean, min(float(np.linalg.norm(deviations)) / one / count, 1.0)


def divide(
    n_samples: int,
    validation: float,
    reference: float,
    adjacency: Adjacency,
    rng: RandomWords,
    groups: NDArray[np.intp] | None = None,
) -> Parts:
    """Divide rows into training, validation and reference part, by coins that see no data."""
    shares = validation, reference
    train, scored, kept = scattered(n_samples, shares, adjacency, rng, groups)
    return Parts(train, scored, kept)


def scattered(
    n_samples: int,
    shares: Sequence[float],
    adjacency: Adjacency,
    rng: RandomWords,
    groups: NDArray[np.intp] | None = None,
) -> list[Rows]:
    """Return the rows that are left, and the rows of each share, by coins that see no data."""
    # If the number of rows is public (replace one, no groups), parts have exact sizes. Else each
    # row, or each group of rows, falls into a part by a coin of its own: neighbouring data sets,
    # with the same coins, differ in one part only.
    if groups is None and adjacency == "replace_one":
        sizes = [max(1, round(share * n_samples)) if share else 0 for share in shares]
        place = np.zeros(n_samples, dtype=np.intp)
        order = permutation(rng, n_samples)
        numbers = np.repeat(np.arange(1, len(sizes) + 1), sizes)[:n_samples]
        place[order[: numbers.size]] = numbers
    else:
        codes = np.arange(n_samples) if groups is None else groups
        coins = np.ldexp(rng.take(int(codes.max()) + 1).astype(np.float64), -64)[codes]
        place = 1 + np.searchsorted(np.cumsum(shares), coins, side="right")
        place[place == len(shares) + 1] = 0
    return [np.flatnonzero(place == k) for k in range(len(shares) + 1)]


def release_shares(problem: Problem, y: NDArray[Any], budget: LossBudget) -> Target:
    """Release the shares of the labels, each a histogram's count, within a budget."""
    assert problem.classes is not None
    classes, relation = problem.classes, problem.adjacency
    noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"
    mechanism = calibrate(noise, histogram_counts(classes.size, relation), budget)
    note_charge("shares of the labels", mechanism)
    counts = np.array([np.count_nonzero(y == label) for label in classes])
    noisy = mechanism.release(counts, problem.rng)
    least = min(_RAREST, 0.5 / classes.size)
    shares = np.maximum(noisy / max(float(noisy.sum()), 1.0), least)
    shares /= shares.sum()
    if problem.scoring.by_pairs:
        whole = pair_share(float(shares[1]), problem.parts.validation.size)
    else:
        whole = classes.size * float(shares.min())
    return Target(variance=whole, shares=LabelShares(classes, shares))


def release_units(problem: Problem, y: NDArray[Any], budget: LossBudget) -> tuple[Target, bool]:
    """Release location and scale of the target, unless public, and its variance, for R²."""
    if problem.scoring.needs_shares:
        return release_shares(problem, y, budget), False
    # The records are those of the reference part, which has the whole budget to itself. Whether
    # there are any does not count: how many they are may be private.
    adjacency, rng = problem.adjacency, problem.rng
    known, rest, hidden = problem.known, budget, False
    if known is None:
        rest, n_samples = budget.share(1.0 - _UNITS), float(y.size)
        noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"

        def charge(label: str, one: Any) -> None:
            note_charge(f"units of the target: {label}", one)

        if adjacency == "add_remove":
            n_samples = release_record_count(y.size, budget.share(_COUNT), noise, rng, charge)
        found = private_location_scale(
            [y],
            budget.share(_UNITS - _COUNT),
            noise=noise,
            adjacency=adjacency,
            n_samples=max(2.0, n_samples),
            random_state=rng,
            charge=charge,
        )
        hidden = not found.found[0]
        units = (0.0, 1.0) if hidden else (float(found.location[0]), float(found.scale[0]))
        known = Target(*units)
    squares = ((np.asarray(y, dtype=np.float64) - known.location) / known.scale) ** 2
    losses = problem.scoring.rounded(squares)
    label = "variance of the target"
    variance = noisy_mean(losses, rest, adjacency, rng, label) * problem.scoring.limit
    return Target(known.location, known.scale, max(variance, _FLOOR)), hidden
