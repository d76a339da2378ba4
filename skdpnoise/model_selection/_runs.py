"""One private run: a fit to the training part, its score on the validation part."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from skdpnoise.mechanisms import calibrate, private_count
from skdpnoise.model_selection._budget import Cap, with_budget
from skdpnoise.model_selection._scoring import BITS, Scoring
from skdpnoise.privacy import LossBudget, PureLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["Outcome", "Parts", "Problem", "Target", "noisy_count", "noisy_mean", "score_noise"]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Which records are fitted to, which are scored, and which tell the units of the target.

    Parameters
    ----------
    train, validation, reference : ndarray of int
        Disjoint rows; the last may be empty.
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    reference: NDArray[np.intp]

    def of(self, rows: NDArray[np.intp]) -> Parts:
        """Return the parts as rows of the table from which these rows were taken."""
        return Parts(rows[self.train], rows[self.validation], rows[self.reference])


@dataclass(frozen=True, slots=True)
class Target:
    """Released or public units of the target of a regression.

    Parameters
    ----------
    location, scale : float
        In the units of the target.
    variance : float
        Mean loss of a model that predicts the location, in squared scales.
    """

    location: float = 0.0
    scale: float = 1.0
    variance: float = 1.0

    @property
    def units(self) -> tuple[float, float]:
        """Location and scale."""
        return self.location, self.scale


class Outcome(NamedTuple):
    """What leaves the search: the winner and its noisy score."""

    candidate: int
    model: Any
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything that runs share.

    Parameters
    ----------
    estimator : estimator
        Before the parameters of a candidate are set.
    candidates : list of dict
        Their parameters.
    scoring : Scoring
    X, y : array-like and ndarray
        The private records.
    parts : Parts
        How they are divided.
    adjacency : str
    delta : float
        δ at which parts of a candidate state a Gaussian budget.
    classes : ndarray or None
        Public labels.
    words : RandomWords
    """

    estimator: Any
    candidates: Sequence[Mapping[str, Any]]
    scoring: Scoring
    X: Any
    y: NDArray[Any]
    parts: Parts
    adjacency: str
    delta: float
    classes: NDArray[Any] | None
    words: RandomWords

    def candidate(self, index: int) -> Any:
        """Return the unfitted estimator of a candidate."""
        return clone(self.estimator).set_params(**clone(dict(self.candidates[index]), safe=False))

    def priced(self, estimator: Any, budget: LossBudget, *, rehearse: bool = False) -> Any:
        """Return a copy that can spend a budget and no more; in a rehearsal, nothing at all."""
        return with_budget(
            estimator,
            budget,
            self.delta,
            ledger=Cap(None if rehearse else budget, self.adjacency),
            words=self.words,
            classes=self.classes,
        )

    def fitted(self, estimator: Any, rows: NDArray[np.intp] | None = None) -> Any:
        """Return the estimator fitted to some rows, the training part if none are given.

        Nothing may be seen of a run that does not win, so that no warning of any kind leaves it.
        """
        rows = self.parts.train if rows is None else rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator.fit(_safe_indexing(self.X, rows), self.y[rows])

    def losses(self, model: Any, target: Target) -> NDArray[np.int64]:
        """Return the losses of the records of the validation part, private integers."""
        rows = self.parts.validation
        X = _safe_indexing(self.X, rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.scoring.losses(model, X, self.y[rows], target.units)

    def noisy_score(self, losses: NDArray[np.int64], budget: LossBudget, target: Target) -> float:
        """Return the score of a model with noise."""
        mean = noisy_mean(losses, budget, self.adjacency, self.words) * self.scoring.limit
        return self.scoring.score(mean, target.units, target.variance)


def score_noise(budget: LossBudget, adjacency: str) -> Any:
    """Return the mechanism of one sum of losses, in units of c/2^24; with the count, if private."""
    one = float(1 << BITS)
    size = 2 if adjacency == "add_remove" else 1
    noise = "iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian"
    return calibrate(noise, SensitivityProfile(np.full(size, one)), budget)


def noisy_mean(
    losses: NDArray[np.int64], budget: LossBudget, adjacency: str, words: RandomWords
) -> float:
    """Return the mean of losses in [0, 1], released within a budget.

    Integers up to 2^24 are summed: their sum and its noise are exact. The number of records is
    public under replace-one; under add/remove it is a second coordinate of the release.
    """
    mechanism = score_noise(budget, adjacency)
    one = float(1 << BITS)
    values = [float(losses.sum()), one * losses.size][: mechanism.sensitivity.n_coordinates]
    noisy = mechanism.release(np.array(values), words)
    count = max(noisy[1] / one, 1.0) if len(noisy) == 2 else float(losses.size)
    return float(np.clip(noisy[0] / one / count, 0.0, 1.0))


def noisy_count(n: int, budget: LossBudget, adjacency: str, words: RandomWords) -> float:
    """Return a number of records, at least 2: public under replace-one, else released."""
    if adjacency == "replace_one":
        return float(max(n, 2))
    found = private_count(n, budget, adjacency="add_remove", random_state=words)
    return max(2.0, float(found.value))
