"""Many fits on two neighbouring data sets: how well can they be told apart?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import NDArray

from skdpnoise._utils.parallel import in_order
from skdpnoise.inspection.auditing._attack import choose_attack, cross_fitted, of_normal_scores
from skdpnoise.inspection.auditing._bounds import epsilon_bound, mu_bound
from skdpnoise.inspection.auditing._claims import check_fits, fit_quietly, seeded_clones
from skdpnoise.inspection.auditing._neighbours import Neighbours
from skdpnoise.inspection.auditing._tables import stacked, taken
from skdpnoise.inspection.auditing._views import UNREAD, Layout, Parameters, View, view
from skdpnoise.inspection.auditing.report import BlackBoxResult
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, gdp_mu

_POINTS = 3  # records that are asked about beside those that differ
_CHOOSING = 0.25  # of the fits choose score and threshold
FEWEST = 20  # fits on each data set
# Rounds of the search for the worst neighbours: fits on each data set, as a share of all that
# measure, and the share of the pairs that is kept.
_ROUNDS = ((0.01, 0.5), (0.03, 0.2), (0.08, 0.0))
_FEWEST_PILOTS = 16
_BATCH = 25


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    estimator: Any
    seeds: np.random.SeedSequence  # every fit has a seed of its own
    n_jobs: int | None
    tell: Callable[[int], None]  # called with the number of fits that are done

    def views(self, pair: Neighbours, n_fits: int) -> tuple[list[View], list[View]]:
        points = _points(pair)
        seeds = self.seeds.spawn(1)[0].generate_state(2 * n_fits, np.uint32).tolist()
        tasks = [
            (side, seeds[side::2][start : start + _BATCH])
            for side in (0, 1)
            for start in range(0, n_fits, _BATCH)
        ]
        found: tuple[list[View], list[View]] = ([], [])
        calls = (
            delayed(_batch)(self.estimator, (pair.first, pair.second)[side], points, part)
            for side, part in tasks
        )
        for (side, _), views in zip(tasks, in_order(calls, self.n_jobs), strict=True):
            found[side].extend(views)
            self.tell(len(views))
        return found


def black_box(
    fits: Fits,
    pairs: Sequence[Neighbours],
    claim: PrivacyGuarantee,
    n_fits: int,
    false_alarm: float,
) -> BlackBoxResult:
    """Choose neighbours, score and thresholds on fits of their own; bound ε and μ on others."""
    (copy,) = seeded_clones(fits.estimator, [0])
    model, _, raised = fit_quietly(copy, *pairs[0].first)
    if raised is not None:
        check_fits(type(model).__name__, [raised, *_raised(fits.estimator, pairs)])
    pair = _worst(fits, pairs, n_fits)
    n_choose = max(FEWEST // 2, round(_CHOOSING * n_fits))
    n_measure = n_fits - n_choose
    each = false_alarm / 2  # one bound on epsilon and one on mu
    chosen = fits.views(pair, n_choose)
    layout = Layout([*chosen[0], *chosen[1]])
    here, there = (layout.table(views) for views in chosen)
    attack = choose_attack(here, there, n_measure, claim.delta, each)
    measured = fits.views(pair, n_measure)
    unread = {
        name.removeprefix(UNREAD)
        for views in (*chosen, *measured)
        for one in views
        for name in one
        if name.startswith(UNREAD)
    }
    first, second = (attack.score(layout.table(views)) for views in measured)
    hits, false_hits = attack.for_epsilon.hits(first, second)
    epsilon = float(epsilon_bound(hits, false_hits, n_measure, claim.delta, each))
    mu = float(mu_bound(*attack.for_mu.hits(first, second), n_measure, each))
    stated = getattr(getattr(model, "privacy_", None), "total", None)
    is_gaussian = isinstance(stated, GaussianLoss)
    return BlackBoxResult(
        claim=claim,
        claimed_mu=gdp_mu(claim.epsilon, claim.delta) if is_gaussian else None,
        epsilon=max(epsilon, 0.0),
        mu=max(mu, 0.0),
        most_epsilon=max(float(epsilon_bound(n_measure, 0, n_measure, claim.delta, each)), 0.0),
        most_mu=max(float(mu_bound(n_measure, 0, n_measure, each)), 0.0),
        n_fits=n_fits,
        n_measured=n_measure,
        hits=(hits, false_hits),
        score=attack.name,
        neighbours=pair.label,
        mean_shift=_mean_shift(first, second),
        false_alarm=false_alarm,
        unread=tuple(sorted(unread)),
    )


def _worst(fits: Fits, pairs: Sequence[Neighbours], n_fits: int) -> Neighbours:
    """Return the pair that pilot fits tell apart best: better ones go on, with more fits."""
    left = list(pairs)
    for count, keep in _rounds(len(pairs), n_fits):
        values = [_separation(*fits.views(pair, count)) for pair in left]
        left = [left[k] for k in np.argsort(values)[::-1][:keep]]
    return left[0]


def _rounds(n_pairs: int, n_fits: int) -> list[tuple[int, int]]:
    rounds, left = [], n_pairs
    for share, keep in _ROUNDS:
        if left > 1:
            left = max(1, min(left - 1, round(keep * n_pairs)))
            rounds.append((max(_FEWEST_PILOTS, round(share * n_fits)), left))
    return rounds


def count_fits(n_pairs: int, n_fits: int) -> int:
    total, left = 2 * n_fits, n_pairs
    for count, keep in _rounds(n_pairs, n_fits):
        total += 2 * left * count
        left = keep
    return total


def _raised(estimator: Any, pairs: Sequence[Neighbours]) -> list[str | None]:
    data = [side for pair in pairs for side in (pair.first, pair.second)]
    copies = seeded_clones(estimator, range(len(data)))
    return [fit_quietly(copy, *side)[2] for copy, side in zip(copies, data, strict=True)]


def _separation(first: Sequence[View], second: Sequence[View]) -> float:
    """Return how far apart the scores of two halves are, each scored as the other half says."""
    layout = Layout([*first, *second])
    tables = [layout.table(views) for views in (first, second)]
    return _mean_shift(*cross_fitted(of_normal_scores, *tables))


def _mean_shift(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the distance of two means in standard deviations: a diagnostic, no bound."""
    spread = float(np.sqrt(0.5 * (first.var() + second.var())))
    gap = abs(float(first.mean() - second.mean()))
    return gap / spread if spread > 0.0 else (np.inf if gap > 0.0 else 0.0)


def _points(pair: Neighbours) -> Any:
    """Return the records that a model is asked about: those that differ, and some others."""
    # Not one with an odd value, for which a model may say nothing at all.
    size, place = len(pair.first[0]), pair.place % len(pair.first[0])
    others = np.delete(np.arange(size), place)[np.linspace(0, size - 2, _POINTS).astype(int)]
    if pair.odd is not None:
        return taken(pair.first[0], others)
    asked = taken(pair.first[0], [place, *others])
    return stacked(asked, taken(pair.second[0], [min(place, len(pair.second[0]) - 1)]))


def _batch(estimator: Any, data: tuple[Any, Any], points: Any, seeds: Sequence[int]) -> list[View]:
    found = []
    for copy in seeded_clones(estimator, seeds):
        given = Parameters(copy)
        model, warned, raised = fit_quietly(copy, *data)
        found.append(view(model, points, warned, raised, given))
    return found
