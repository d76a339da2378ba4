r"""A private mean and covariance: what principal components and covariance estimates rest on.

.. math:: C = \frac{1}{n - d} \Bigl(\sum_i z_i z_i^\top + E\Bigr), \qquad
          z_i = (x_i - c) \min\Bigl(1, \frac{R}{|x_i - c|_2}\Bigr)

with d = 1 for rows that are centred, else 0. With `keeps_rows` d is 0, and few rows are shrunk.

1. A radius r about the origin, or about the middle of public bounds.
2. The mean of the rows less that centre, shrunk to norm r: a coarse mean. If the radius about it is
   much smaller, the data lie far from the centre, and this is repeated, up to three times.
3. A finer mean, of rows shrunk to that smaller radius, and the radius about it, unless public.
   Where few rows are beyond it, how many are beyond radii up to 64 times as large: this radius
   grows where the variance that it would take off them is surely more than the noise it saves.
4. The second moments with all that is left.

**Guarantee.** Each step (under "add_remove" the number n of records first) is charged a share that
depends on public facts and released numbers; the shares sum to at most one, and costs add up in ε
or in μ². With groups, all of this is with respect to one of the rows that are kept. Rows are
rounded to integers that obey |k q| ≤ r, so that one record moves their sum by at most 2r (replace
one) or r (add, remove). A row is counted beyond one radius at most, so that a record that is added
or removed moves one count by 1, and one that is replaced two.

*A subset of large data.* Where far fewer records place the mean well enough, each record is taken
if its own random byte, a secret function of its number, is below a public threshold. Neighbouring
data sets can be given the same bytes for all records but one, and then the subsets are neighbours,
or equal; mixtures of outputs that are (ε, δ)-close are (ε, δ)-close.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from skdpnoise._utils.numbers import JOBS
from skdpnoise._utils.parameters import as_bounds, check_memory, check_within
from skdpnoise.accounting.budget import COUNT_SHARE
from skdpnoise.accounting.queries import ClippedRows, GroupedSum, SecondMoments
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.data.reading import NumberColumns, read
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.decomposition import _budget as rules
from skdpnoise.kernels.second_moments import Floats, row_norms
from skdpnoise.kernels.sizes import in_blocks
from skdpnoise.mechanisms import (
    SECOND_MOMENT_NOISES,
    AdditiveMechanism,
    KNormMechanism,
    SymmetricMatrixMechanism,
    calibrate,
    calibrate_second_moments,
    k_norm,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyLoss, PureLoss
from skdpnoise.queries.norm_quantile import private_norm_quantile
from skdpnoise.queries.ranges import stage_losses
from skdpnoise.sampling.keyed import new_key, words_of_rows
from skdpnoise.sensitivity import RowBounds

__all__ = ["PrivateMoments", "PrivateMomentsMixin", "denoised"]

# |x|_1² over p |x|_2²: 2/π for many independent normal entries, below .73 with 99 %.
_L1_BALL = 0.73
_MOST_EXPONENT = 30.0  # of radii as they are: with _NARROWEST, what balls of rows may be
_SMALLEST, _LARGEST = 1e-100, 1e100  # of norms of rows, in the user's units
_NARROWEST = 1e-60  # bounds on a column, in norms of rows, that still make a difference
_MATRICES = 8  # of p by p that are held at once

# A radius that shrinks by more was that of an offset, which is then looked for again; the last one
# is at most so far from that of a mean.
_FAR = 4.0
_DOWN = _FAR**rules.COARSE_ROUNDS  # how much smaller, or larger, than the last one a radius may be
_BYTE = 256  # subsets are drawn by one random byte for each record
_BYTES = 8  # of a word

RowNoise = AdditiveMechanism | KNormMechanism


@dataclass(frozen=True, slots=True, eq=False)
class PrivateMoments:
    """Released moments."""

    mean: Floats  # shape (n_columns,): the private mean, or zeros
    # shape (n_columns, n_columns): second moments of the shrunk rows about that mean, over n − 1
    # (over n without centring); symmetric, unbiased for those rows, perhaps indefinite
    covariance: Floats
    noise: float  # κ, the root mean square singular value of the noise in it
    n_samples: float  # number of records, public or noisy
    row_norm: float  # norm that rows were shrunk to


@constructor_of_fields
class PrivateMomentsMixin(PrivateEstimator, ABC):
    """The one fit of all estimators on these moments, and the parameters that they share."""

    _: KW_ONLY
    row_norm: float | None = None
    feature_bounds: tuple[Any, Any] | dict[str, Any] | None = None
    n_jobs: int | None = None
    _keeps_rows: ClassVar[bool] = False  # whether few rows are shrunk
    _parameter_constraints: ClassVar[Constraints] = {
        "noise": [StrOptions(set(SECOND_MOMENT_NOISES))],
        "row_norm": [None, Interval(Real, 0, None, closed="neither")],
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "n_jobs": JOBS,
    }

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Self:
        """Fit to private data, spending the whole guarantee.

        Parameters
        ----------
        X : array-like or RowSource of shape (n_samples, n_features)
            The private rows; finite. Float32 and float64 arrays are read without a copy.
        %(fits: y, groups, **params)s

        Returns
        -------
        self : object

        Raises
        ------
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._session(groups, params) as session:
            form = NumberColumns({"largest": np.inf, "keeps_subnormal": True})
            schema, rows = read(self, form, self._known, X=X, groups=groups, n_jobs=self.n_jobs)
            self._check_columns(schema.n_columns)
            plan = self._plan(schema, session)
            session.reserve(plan.stages, plan.noise)
            moments = plan.run(rows.kept(session.rng).rows, session)
            self._store(moments)
            self.n_samples_, self.row_norm_ = moments.n_samples, moments.row_norm
            self.privacy_ = session.report()
        return self

    def _plan(self, schema: Schema, session: FitSession) -> CovariancePlan:
        bounds, size = self._checked_bounds(schema.n_columns), schema.n_columns
        facts = self.noise, size, session.guarantee, session.rows_per_group
        noise, total = rules.choose_budget(*facts)
        relation, ball = session.adjacency, RowBounds(size, 1.0)
        return CovariancePlan(
            noise=noise,
            total=total,
            whole=calibrate_second_moments(noise, ball, total, relation),
            # How often rows are looked for, and what later steps get, depend on what was found.
            stages=stage_losses(total, relation, searches=False),
            bounds=bounds,
            row_norm=self.row_norm,
            centers=self._centers,
            keeps_rows=self._keeps_rows,
            n_axes=self._count_axes(size),
        )

    def _count_axes(self, n_columns: int) -> int:
        """Return of how many axes, or of how many others, the variance is to be found."""
        return max(1, n_columns // 2)

    @property
    @abstractmethod
    def _centers(self) -> bool:
        """Return whether second moments are about a private mean."""

    def _check_columns(self, n_features: int) -> None:
        """Refuse what so many features do not allow."""

    def _checked_bounds(self, n_columns: int) -> Floats:
        """Return the public bounds; refuse parameters and sizes that a later step cannot take."""
        owner = type(self).__name__
        check_within(self, "row_norm", _SMALLEST, _LARGEST)
        bounds = as_bounds(self.feature_bounds, n_columns, "feature_bounds", self)
        if not (0.5 * bounds[1] - 0.5 * bounds[0]).min() >= _SMALLEST:
            raise ValueError(
                f"The 'feature_bounds' parameter of {owner} must not be closer than "
                f"{2 * _SMALLEST:g}: their squares would underflow. Choose other units."
            )
        reason = f"matrices of {n_columns} by {n_columns} columns"
        remedy = "Choose fewer columns, or project them by a public map."
        check_memory(owner, 8.0 * _MATRICES * n_columns**2, reason, remedy)
        return bounds

    @abstractmethod
    def _store(self, moments: PrivateMoments) -> None:
        """Set the fitted attributes from released numbers."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CovariancePlan:
    """How mean and second moments are released, fixed by public facts."""

    noise: str  # of the second moments
    total: LossBudget
    whole: SymmetricMatrixMechanism  # of all of the budget, in units of the radius
    stages: Sequence[PrivacyLoss]
    bounds: Floats  # shape (2, n_columns): public, infinite where there are none
    row_norm: float | None
    centers: bool  # whether second moments are about a private mean
    keeps_rows: bool  # whether few rows are shrunk
    n_axes: int  # of the second moments that matter

    def run(self, rows: Table[Any], session: FitSession) -> PrivateMoments:
        # The noise of the second moments may not fit one number.
        session = session.counted(len(rows), count_noise(self.total), self.total)
        level = rules.noise_level(self.whole, session.n_records)
        mean, radius, used = Locator(self, rows, session).find(level)
        used += COUNT_SHARE if session.adjacency == "add_remove" else 0.0
        unit = _unit(radius)
        ball = _row_bounds(self.bounds, mean, radius, self.noise, unit)
        left = self.total.share(1.0 - used) if used else self.total
        query = SecondMoments(ball, mean, unit, n_threads=rows.n_threads)
        mechanism = query.calibrated(self.noise, left, session.adjacency)
        found = session.released("second moments", query, rows, mechanism)
        divisor = session.n_records - (0.0 if self.keeps_rows else float(self.centers))
        deviation = float(np.linalg.norm(mechanism.standard_deviation)) / np.sqrt(mean.size)
        covariance = found.values / divisor * unit**2
        return PrivateMoments(
            mean, covariance, deviation / divisor * unit**2, session.n_records, radius
        )


class Locator:
    """Finds a center and a radius of the rows, adaptively, from shares of the budget."""

    def __init__(self, plan: CovariancePlan, rows: Table[Any], session: FitSession) -> None:
        n_columns = rows.tail[0]
        self._plan, self._session = plan, session
        self._n_threads, self._all_rows = rows.n_threads, rows
        needed = rules.rows_needed(plan.total, n_columns)
        self._rows, self._n_rows = _subset(rows, needed, session)
        self._shares = rules.share_out(plan.total, self._n_rows, keeps_rows=plan.keeps_rows)
        self._center = np.zeros(n_columns)
        self._level = rules.mean_level(plan.total, self._shares, self._n_rows)
        self._used = 0.0

    def find(self, noise: float) -> tuple[Floats, float, float]:
        """Return the centre, the radius, and the share of the whole budget that was spent."""
        # The centre is a private mean, or zeros; the radius a norm that many rows, less the centre,
        # do not exceed, or a public bound on it.
        plan, shares, (low, high) = self._plan, self._shares, self._plan.bounds
        closed, row_norm, limits = np.isfinite(low) & np.isfinite(high), plan.row_norm, None
        if plan.centers:
            # Halves are taken before the sum, so that the widest bounds do not overflow.
            self._center[closed] = 0.5 * low[closed] + 0.5 * high[closed]
        if closed.all():
            reach = np.maximum(np.abs(low - self._center), np.abs(high - self._center))
            # Squares of the widest bounds would overflow, those of the closest vanish.
            size = float(reach.max())
            farthest = size * float(np.linalg.norm(reach / size))
            limits = (farthest / _DOWN, farthest)
        if plan.centers or (row_norm is None and plan.keeps_rows):
            radius = self._radius(self._level, shares.radius, limits)
            if plan.centers:
                radius = self._mean(radius)
            limits = (radius / (1.0 if plan.keeps_rows else _FAR), radius * _FAR)
        if row_norm is None:
            level = rules.row_level(
                plan.total, shares, self._n_rows, noise, keeps_rows=plan.keeps_rows
            )
            row_norm = self._radius(level, shares.last, limits)
            if rules.may_widen(level) and not plan.keeps_rows:
                row_norm = self._widened(row_norm, noise)
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

    def _spent(self, share: float) -> LossBudget:
        self._used += share
        return self._plan.total.share(share)

    @property
    def _norms_of(self) -> Callable[[Any], Floats]:
        return partial(row_norms, center=self._center, n_threads=self._n_threads)

    def _radius(self, level: float, share: float, limits: tuple[float, float] | None) -> float:
        norms, terms = self._rows.map(self._norms_of), self._session.terms
        facts = {"limits": limits, "n_samples": self._n_rows, **terms}
        return private_norm_quantile(norms, level, self._spent(share), **facts)

    def _widened(self, radius: float, noise: float) -> float:
        """Return a larger radius where counts of the rows beyond tell that they have variance."""
        plan, n_groups = self._plan, round(2.0 * math.log2(_DOWN))
        radii = radius * np.exp2(np.arange(n_groups + 1) / 2.0)
        norms = self._all_rows.map(self._norms_of)
        query = GroupedSum(n_groups, partial(_numbers_beyond, radii[:-1]))
        loss = self._spent(self._shares.coarse)
        found = self._session.tally(
            "rows beyond radii", query, norms, loss, count_noise(plan.total)
        )
        # √p times the largest eigenvalue of the noise is twice its Frobenius norm.
        size = noise * math.sqrt(plan.n_axes * self._center.size) * self._session.n_records
        return rules.widest_worth(found.values, found.standard_deviation[0], radii, size)

    def _move(self, share: float, radius: float, label: str) -> None:
        bounds = RowBounds(self._center.size, radius)
        query = ClippedRows(bounds, self._center, n_threads=self._n_threads)
        mechanism = row_noise(query, self._spent(share), self._session.adjacency)
        found = self._session.released(label, query, self._rows, mechanism, self._n_rows)
        step = found.values
        length = float(np.linalg.norm(step))
        if length > radius:  # no mean of rows in a ball lies outside it
            step *= radius / length
        self._center = np.clip(self._center + step, *self._plan.bounds)


def count_noise(total: LossBudget) -> str:
    return "iid_laplace" if isinstance(total, PureLoss) else "iid_gaussian"


def row_noise(query: ClippedRows, loss: LossBudget, adjacency: Any) -> RowNoise:
    # Under a pure budget its density falls with the Euclidean norm: for p columns, half the
    # variance of Laplace noise.
    profile = query.sensitivity(adjacency)
    if isinstance(loss, GaussianLoss):
        return calibrate("iid_gaussian", profile, loss)
    assert profile.l2 is not None
    return k_norm(2, profile.l2, profile.n_coordinates, loss)


def _subset(rows: Table[Any], needed: float, session: FitSession) -> tuple[Table[Any], float]:
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


def _numbers_beyond(radii: Floats, norms: Floats) -> NDArray[Any]:
    """Return for each norm the last radius that it is beyond; -1 where there is none."""
    found = np.empty(len(norms), dtype=np.int8)
    for at in in_blocks(len(norms)):
        found[at] = np.searchsorted(radii, norms[at]) - 1
    return found


def _row_bounds(
    bounds: Floats, center: Floats, radius: float, noise: str, unit: float
) -> RowBounds:
    """Return the ball, in some unit, with the box that public bounds make about the centre."""
    # For structured Laplace noise rows are held in an l1 ball too: of rows spread over many columns
    # hardly any leaves it, and the noise falls with it.
    size = center.size
    reach = np.maximum(np.abs(bounds[0] - center), np.abs(bounds[1] - center))
    columns = None
    if (reach < radius).any():
        columns = np.maximum(np.minimum(reach, radius), _NARROWEST * radius) / unit
    radius /= unit
    wide = radius * np.sqrt(max(1.0, _L1_BALL * size))
    l1_norm = wide if noise == "inid_laplace" else None
    return RowBounds(size, radius, columns=columns, l1_norm=l1_norm)


def _unit(radius: float) -> float:
    """Return the unit of rows: 1, unless columns or fourth powers could leave their ranges."""
    exponent = np.floor(np.log2(radius))
    return float(np.exp2(exponent)) if abs(exponent) > _MOST_EXPONENT else 1.0


def denoised(values: Floats, noise: float) -> Floats:
    r"""Return eigenvalues without what noise adds to them on average, none negative.

    .. math:: \hat\lambda = \tfrac12 \Bigl(\lambda + \sqrt{\lambda^2 - 4 \kappa^2}\Bigr)
              \quad (\lambda \ge 2\kappa)

    Reference: Benaych-Georges and Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank
    perturbations of large random matrices", Advances in Mathematics 2011, Section 3.1.
    """
    # It inverts λ = λ̂ + κ²/λ̂: there an eigenvalue ends up under independent noise on a symmetric
    # matrix whose own noise fills [−2κ, 2κ]. Smaller ones are halved, which joins continuously, and
    # negative ones become 0. Post-processing of released numbers, which costs nothing.
    half = 0.5 * np.maximum(values, 0.0)
    # The product of two roots, so that no square overflows.
    return np.asarray(half + np.sqrt(np.maximum(half - noise, 0.0)) * np.sqrt(half + noise))
