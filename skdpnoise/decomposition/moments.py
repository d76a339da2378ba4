r"""A private mean and covariance: what principal components and covariance estimates rest on.

.. math:: C = \frac{1}{n - d} \Bigl(\sum_i z_i z_i^\top + E\Bigr), \qquad
          z_i = (x_i - c) \min\Bigl(1, \frac{R}{|x_i - c|_2}\Bigr)

with d = 1 for rows that are centred, else 0. With `keeps_rows` d is 0, and few rows are shrunk:
directions survive shrinking, variances do not.

**Guarantee.** Under "add_remove" the number n of records comes first; then the centre c and the
radius R (:class:`~skdpnoise.decomposition._location.Locator`), and the second moments with all that
is left (:func:`~skdpnoise.mechanisms.calibrate_second_moments`). The shares depend on public facts
and released numbers, and sum to at most one. Costs add up, of adaptive steps too, in ε or in μ².
With groups, all of this is with respect to one of the rows that are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval, StrOptions

from skdpnoise._utils.numbers import JOBS
from skdpnoise._utils.parameters import as_bounds, check_memory, check_within
from skdpnoise.accounting import Account
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import FitRows, PrivateEstimator, PrivateRun, known_records
from skdpnoise.data.table import Partitioned
from skdpnoise.data.table import total as sum_over
from skdpnoise.decomposition._budget import choose_budget, noise_level
from skdpnoise.decomposition._location import Locator
from skdpnoise.kernels.second_moments import Floats, second_moments
from skdpnoise.mechanisms import SECOND_MOMENT_NOISES, calibrate_second_moments
from skdpnoise.privacy import PureLoss
from skdpnoise.queries.ranges import COUNT_SHARE, stage_losses
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sensitivity import RowBounds

__all__ = ["PrivateMoments", "PrivateMomentsMixin", "denoised"]

# |x|_1² over p |x|_2²: 2/π for many independent normal entries, below .73 with 99 %.
_L1_BALL = 0.73
_MOST_EXPONENT = 30.0  # of radii as they are: with _NARROWEST, what balls of rows may be
_SMALLEST, _LARGEST = 1e-100, 1e100  # of norms of rows, in the user's units
_NARROWEST = 1e-60  # bounds on a column, in norms of rows, that still make a difference
_MATRICES = 8  # of p by p that are held at once


@dataclass(frozen=True, slots=True, eq=False)
class PrivateMoments:
    """What was released, all of it public."""

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
        %(fits: X, y, groups, **params)s

        Returns
        -------
        self : object

        Raises
        ------
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._private_fit(groups, params) as account:
            limits: Any = {"largest": np.inf, "keeps_subnormal": True}
            rows = self._read_rows(X, groups, self.n_jobs, **limits)
            self._check_columns(rows.n_columns)
            bounds = self._checked_bounds(rows.n_columns)
            facts = self.noise, bounds, self.row_norm, self._centers, self._keeps_rows
            settings = _Settings(*facts, effective_n_jobs(self.n_jobs))
            rng = random_words(self.random_state)
            moments = _private_moments(settings, rows, account, rng)
            self._store(moments)
            self.n_samples_, self.row_norm_ = moments.n_samples, moments.row_norm
            self.privacy_ = account.report(type(self).__name__, secure=rng.secure)
        return self

    @property
    @abstractmethod
    def _centers(self) -> bool:
        """Whether second moments are about a private mean."""

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


@dataclass(frozen=True, slots=True, eq=False)
class _Settings:
    """What the release knows of the estimator."""

    noise: str
    bounds: Floats  # shape (2, n_columns): public, infinite where there are none
    row_norm: float | None
    centers: bool  # whether second moments are about a private mean
    keeps_rows: bool  # whether few rows are shrunk
    n_threads: int


def _private_moments(
    settings: _Settings, rows: FitRows, account: Account, rng: RandomWords
) -> PrivateMoments:
    """Release mean and covariance of the rows."""
    n_columns, adjacency = rows.n_columns, account.guarantee.adjacency
    noise, total = choose_budget(settings.noise, n_columns, account)
    whole = calibrate_second_moments(noise, RowBounds(n_columns, 1.0), total, adjacency)
    # How often rows are looked for depends on what was found, and so does what later steps get.
    pure, private_n = isinstance(total, PureLoss), adjacency == "add_remove"
    account.spend(stage_losses(total, counts=pure and private_n, searches=False), noise)
    X = rows.keep(rng)
    # Parts are read at a time instead.
    n_threads = 1 if isinstance(X, Partitioned) else settings.n_threads
    # The noise of the second moments may not fit one number.
    count_noise = "iid_laplace" if pure else "iid_gaussian"
    n_samples = known_records(len(X), account, rng, count_noise, total)
    run = PrivateRun(account, rng, n_samples, total)
    locator = Locator(X, run, n_threads, keeps_rows=settings.keeps_rows)
    level, center = noise_level(whole, n_samples), settings.centers
    mean, radius, used = locator.find(settings.bounds, settings.row_norm, level, center=center)
    used += COUNT_SHARE if private_n else 0.0
    unit = _unit(radius)
    ball = _row_bounds(settings.bounds, mean, radius, noise, unit)
    left = total.share(1.0 - used) if used else total
    mechanism = calibrate_second_moments(noise, ball, left, adjacency)
    account.charge("second moments", mechanism)
    add = partial(
        second_moments,
        center=mean,
        scale=unit,
        row_grid_size=mechanism.row_grid_size,
        norm=ball.norm,
        columns=ball.columns,
        l1_norm=ball.l1_norm,
        n_threads=n_threads,
    )
    counts = sum_over(X, add, "second moments")
    divisor = n_samples - (0.0 if settings.keeps_rows else float(center))
    deviation = float(np.linalg.norm(mechanism.standard_deviation)) / np.sqrt(n_columns)
    covariance = mechanism.release(counts, rng) / divisor * unit**2
    noise_left = deviation / divisor * unit**2
    return PrivateMoments(mean, covariance, noise_left, n_samples, radius)


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
