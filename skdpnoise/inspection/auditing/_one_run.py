"""One fit with many canaries, each in the data by a coin of its own: how many are guessed right?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.inspection.auditing._bounds import one_run_bound
from skdpnoise.inspection.auditing._claims import check_fits, fit_quietly, seeded_clones
from skdpnoise.inspection.auditing._neighbours import Data, append_rows, bounds_of, target_ends
from skdpnoise.inspection.auditing._tables import (
    names_of,
    numbers,
    numeric_columns,
    taken,
    with_numbers,
)
from skdpnoise.inspection.auditing.report import OneRunResult
from skdpnoise.privacy import PrivacyGuarantee

_GUESSED = (1.0, 0.3, 0.1)  # shares of the canaries that are guessed about, fixed in advance

Score = Callable[[Any, Any, Any, Any, Any], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Canaries:
    """How many canaries there are, the seed of their coins, and what scores them; None chooses."""

    count: int
    seed: np.random.SeedSequence
    score: Score | None = None


def one_run(
    estimator: Any, data: Data, claim: PrivacyGuarantee, canaries: Canaries, false_alarm: float
) -> OneRunResult:
    """Fit once to data with canaries, guess which were in, and bound ε by how many guesses hold."""
    n_canaries, score = canaries.count, canaries.score
    fit_seed, coin_seed = canaries.seed.spawn(2)
    rng = np.random.default_rng(coin_seed)
    records, others = _canaries(estimator, data, n_canaries)
    coins = rng.integers(0, 2, n_canaries).astype(bool)
    (rows, targets), (places, their_targets) = records, others
    if claim.adjacency == "replace_one":
        rows = np.where(coins[:, np.newaxis], rows, places)
        targets = None if targets is None else np.where(coins, targets, their_targets)
    else:
        rows, targets = rows[coins], None if targets is None else targets[coins]
    blank = taken(data[0], np.zeros(len(rows), dtype=np.intp))
    X, y = append_rows(data, with_numbers(blank, dict(enumerate(rows.T))), targets)
    (copy,) = seeded_clones(estimator, fit_seed.generate_state(1).tolist())
    model, _, raised = fit_quietly(copy, X, y)
    check_fits(type(estimator).__name__, [raised])
    if score is None:
        scores = _default_score(model, data, len(X), records, others)
    else:
        scores = np.asarray(score(model, *records, *others), dtype=np.float64)
    order = np.argsort(scores, kind="stable")
    each = false_alarm / len(_GUESSED)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for share in _GUESSED:
        half = max(1, round(0.5 * share * n_canaries))
        right = int(np.count_nonzero(coins[order[-half:]]) + np.count_nonzero(~coins[order[:half]]))
        found = one_run_bound(n_canaries, 2 * half, right, claim.delta, each)
        best = max(best, (found, 2 * half, right))
    whole = 2 * max(1, round(0.5 * n_canaries))
    return OneRunResult(
        claim=claim,
        epsilon=best[0],
        most_epsilon=one_run_bound(n_canaries, whole, whole, claim.delta, each),
        n_canaries=n_canaries,
        n_guesses=best[1],
        n_right=best[2],
        false_alarm=false_alarm,
    )


def _canaries(estimator: Any, data: Data, count: int) -> tuple[Data, Data]:
    """Return records and those in their places, along the axes in turn, as far as bounds allow."""
    X, y = data
    n_columns = X.shape[1]
    if len(numeric_columns(X)) < n_columns:
        raise ValueError(
            "method='one_run' makes canaries of numbers, and a column of X does not hold numbers. "
            "Use another method, or audit what comes after the encoding."
        )
    values = numbers(X, range(n_columns))
    low, high = bounds_of(estimator, values, columns=names_of(X, range(n_columns)))
    axis = np.arange(count) % n_columns
    center = 0.5 * (low + high)
    one, other = np.tile(center, (2, count, 1))
    one[np.arange(count), axis] = high[axis]
    if y is None:
        other[np.arange(count), axis] = low[axis]
        return (one, None), (other, None)
    first, last = target_ends(estimator, y)
    return (one, np.full(count, last)), (one.copy(), np.full(count, first))


def _default_score(
    model: Any, data: Data, n_rows: int, records: Data, others: Data
) -> NDArray[np.float64]:
    """Return how much the model says for each canary rather than for what is in its place."""
    (X, y), (other_X, other_y) = records, others
    if y is not None and hasattr(model, "predict_proba"):
        share = np.log(np.clip(model.predict_proba(X), 1e-300, 1.0))
        place = [np.searchsorted(model.classes_, labels) for labels in (y, other_y)]
        each = np.arange(len(share))
        return np.asarray(share[each, place[0]] - share[each, place[1]])
    if y is not None and hasattr(model, "predict"):
        turn = np.sign(np.asarray(y, dtype=np.float64) - np.asarray(other_y, dtype=np.float64))
        return np.asarray(model.predict(X), dtype=np.float64) * turn
    rows, places = np.asarray(X, dtype=np.float64), np.asarray(other_X, dtype=np.float64)
    known = np.asarray(data[0], dtype=np.float64)
    if hasattr(model, "covariance_"):
        form = n_rows * model.covariance_ - known.T @ known
        here, there = (np.einsum("ij,jk,ik->i", one, form, one) for one in (rows, places))
        return np.asarray(here - there)
    if getattr(model, "mean_", None) is not None:
        return np.asarray((rows - places) @ (n_rows * model.mean_ - known.sum(axis=0)))
    raise ValueError(
        f"method='one_run' knows no score for {type(model).__name__}, which neither predicts nor "
        "has 'covariance_' or 'mean_': pass score=, a function of the model, X, y and what stands "
        "in their place, or use another method."
    )
