"""Where the rows of a table lie, and how far from there: found before second moments are released.

1. A radius r about the origin, or about the middle of public bounds.
2. The mean of the rows less that centre, shrunk to norm r: a coarse mean. If the radius about it is
   much smaller, the data lie far from the centre, and this is repeated, up to three times.
3. A finer mean, of rows shrunk to that smaller radius, and the radius about it, unless public.

**Guarantee.** Each step is charged a fixed share of the budget, and what is spent is bounded
whatever is released. Rows are rounded to integers that obey |k q| ≤ r, so that one record moves
their sum by at most 2r (replace one) or r (add, remove) in the Euclidean norm.

*A subset of large data.* Where far fewer records place the mean well enough, each record is taken
if its own random byte is below a public threshold: bytes are a secret function of the numbers of
rows (:func:`~skdpnoise.sampling.keyed.words_of_rows`), so that parts of the rows take the same ones
as all of them. Neighbouring data sets can be given the same bytes for all records but one, and then
the subsets are neighbours, or equal. Mixtures of outputs that are (ε, δ)-close are (ε, δ)-close,
since the hockey-stick divergence is jointly convex.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.base.private_fit import FitSession
from skdpnoise.data.table import Table, in_units
from skdpnoise.decomposition import _budget as rules
from skdpnoise.kernels.second_moments import Floats, clipped_row_sums, row_norms
from skdpnoise.mechanisms import AdditiveMechanism, KNormMechanism, calibrate, k_norm
from skdpnoise.privacy import GaussianLoss, LossBudget
from skdpnoise.queries.norm_quantile import private_norm_quantile
from skdpnoise.sampling.keyed import new_key, words_of_rows
from skdpnoise.sensitivity import RowBounds, clipped_rows

RowNoise = AdditiveMechanism | KNormMechanism

# A radius that shrinks by more was that of an offset, which is then looked for again; the last one
# is at most so far from that of a mean.
_FAR = 4.0
_DOWN = _FAR**rules.COARSE_ROUNDS  # how much smaller than the last one a radius may be
_BYTE = 256  # subsets are drawn by one random byte for each record
_BYTES = 8  # of a word


def row_sum(n_columns: int, radius: float, loss: LossBudget, adjacency: Any) -> RowNoise:
    """Calibrate the noise of a sum of rows of norm at most `radius`."""
    # Under a pure budget its density falls with the Euclidean norm: for p columns, half the
    # variance of Laplace noise.
    profile = clipped_rows(RowBounds(n_columns, radius), adjacency)
    if isinstance(loss, GaussianLoss):
        return calibrate("iid_gaussian", profile, loss)
    assert profile.l2 is not None
    return k_norm(2, profile.l2, n_columns, loss)


class Locator:
    """Finds a center and a radius of the rows, adaptively, from shares of the budget."""

    def __init__(
        self,
        rows: Table[Any],
        session: FitSession,
        total: LossBudget,
        *,
        keeps_rows: bool,
        n_jobs: int | None,
    ) -> None:
        n_columns = rows.shape[1]
        self._session, self._total, self._keeps_rows = session, total, keeps_rows
        self._n_threads = rows.n_threads(n_jobs)
        needed = rules.rows_needed(total, n_columns)
        self._rows, self._n_rows = _subset(rows, needed, session)
        self._shares = rules.share_out(total, self._n_rows, keeps_rows=keeps_rows)
        self._center = np.zeros(n_columns)
        self._level = rules.mean_level(total, self._shares, self._n_rows)
        self._used = 0.0

    def find(
        self, bounds: Floats, row_norm: float | None, noise: float, *, center: bool
    ) -> tuple[Floats, float, float]:
        """Return the centre, the radius, and the share of the whole budget that was spent."""
        # The centre is a private mean, or zeros; the radius a norm that many rows, less the centre,
        # do not exceed, or a public bound on it.
        shares = self._shares
        low, high = self._low, self._high = bounds
        closed = np.isfinite(low) & np.isfinite(high)
        if center:
            # Halves are taken before the sum, so that the widest bounds do not overflow.
            self._center[closed] = 0.5 * low[closed] + 0.5 * high[closed]
        limits = None
        if closed.all():
            reach = np.maximum(np.abs(low - self._center), np.abs(high - self._center))
            # Squares of the widest bounds would overflow, those of the closest vanish.
            size = float(reach.max())
            farthest = size * float(np.linalg.norm(reach / size))
            limits = (farthest / _DOWN, farthest)
        if center or (row_norm is None and self._keeps_rows):
            radius = self._radius(self._level, shares.radius, limits)
            if center:
                radius = self._mean(radius)
            limits = (radius / (1.0 if self._keeps_rows else _FAR), radius * _FAR)
        if row_norm is None:
            level = rules.row_level(
                self._total, shares, self._n_rows, noise, keeps_rows=self._keeps_rows
            )
            row_norm = self._radius(level, shares.last, limits)
        return self._center, row_norm, self._used

    def _mean(self, radius: float) -> float:
        """Move the centre to the mean, coarse to fine; return the last radius that was found."""
        rest = self._shares.mean
        for _ in range(rules.COARSE_ROUNDS):
            self._move(self._shares.coarse, radius, "coarse mean")
            rest -= self._shares.coarse
            last, limits = radius, (radius / _DOWN, radius)
            radius = self._radius(self._level, self._shares.radius, limits)
            if radius > last / _FAR:
                break
        self._move(rest, radius, "mean")
        return radius

    def _radius(self, level: float, share: float, limits: tuple[float, float] | None) -> float:
        self._used += share
        session = self._session
        return private_norm_quantile(
            self._rows.map(self._of_rows(row_norms)),
            level,
            self._total.share(share),
            limits=limits,
            n_samples=self._n_rows,
            adjacency=session.adjacency,
            random_state=session.rng,
            charge=session.charge,
        )

    def _move(self, share: float, radius: float, label: str) -> None:
        self._used += share
        session, size = self._session, self._center.size
        release = row_sum(size, radius, self._total.share(share), session.adjacency)
        drawn = session.draw(label, release)
        add = self._of_rows(clipped_row_sums, row_grid_size=release.grid_size, norm=radius)
        noisy = drawn.add(self._rows.total(add, label), drawn.noise[0])
        step = in_units(noisy, release.grid_size / self._n_rows)
        length = float(np.linalg.norm(step))
        if length > radius:  # no mean of rows in a ball lies outside it
            step *= radius / length
        self._center = np.clip(self._center + step, self._low, self._high)

    def _of_rows(self, function: Callable[..., Any], **facts: Any) -> Callable[[Any], Any]:
        """Return a function of rows about the center as it is now."""
        return partial(function, center=self._center, n_threads=self._n_threads, **facts)


def _subset(rows: Table[Any], needed: float, session: FitSession) -> tuple[Table[Any], float]:
    """Return some records, each taken with one public probability, and about how many."""
    n = session.n_records
    threshold = int(np.ceil(_BYTE * needed / n)) if needed < n else _BYTE
    if threshold > _BYTE // 2:
        return rows, n
    taken = rows.chosen(partial(_chosen, new_key(session.rng), threshold))
    # If n is public, how many were taken is known from the coins alone; else it is private.
    if session.adjacency == "replace_one":
        return taken, float(max(len(taken), 1))
    return taken, n * threshold / _BYTE


def _chosen(key: bytes, threshold: int, begin: int, end: int) -> NDArray[np.bool_]:
    """Return which rows are taken, by a secret byte for the number of each."""
    first = begin // _BYTES
    words = words_of_rows(key, first, -(-end // _BYTES))
    coins = words.astype("<u8", copy=False).view(np.uint8)
    return np.asarray(coins[begin - _BYTES * first :][: end - begin] < threshold)
