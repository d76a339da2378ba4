"""How one guarantee is shared between the steps of a fit, on public facts alone.

A radius that is chosen among many is far off with a probability that falls exponentially in n times
the root of its share of μ² (its share of ε), so that the shares of such choices fall as n μ (n ε)
grows, down to a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdpnoise.accounting.budget import BESIDE, HALF, LEAST
from skdpnoise.kernels.second_moments import Floats
from skdpnoise.mechanisms import SymmetricMatrixMechanism, calibrate_second_moments
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import RowBounds

COARSE_ROUNDS = 3
# Shares of coarse means, and of all means: of μ², and of ε, of which they need more.
_MEANS = ((0.05, 0.18), (0.08, 0.3))
_FEWEST_ROWS = 1 << 15
_FEW = 0.01  # noise of a mean, in radii, or part of the rows that is shrunk: it hardly matters
# Most rows that are shrunk for a mean, where more would bias it if rows form clusters; twice as
# many for second moments. Where few rows may be shrunk, also the most for all radii.
_SHRUNK = 0.35
_PER_NOISE = 30.0  # rows that are shrunk for second moments, by the noise of these
_SAFETY = 14.0  # a choice is far off with a probability of about exp(-14) times the candidates


@dataclass(frozen=True, slots=True)
class MomentShares:
    """Shares of μ², or of ε."""

    radius: float  # for each radius that is used for a mean
    last: float  # for the radius of the rows whose second moments are released
    # coarse, mean: for one coarse mean, or the counts of far rows, and for all means together
    coarse: float
    mean: float


def choose_budget(
    noise: str, n_columns: int, guarantee: PrivacyGuarantee, rows_per_group: int
) -> tuple[str, LossBudget]:
    """Choose the noise of the second moments, if that is "auto", and the kind of the budget."""
    bounds = RowBounds(n_columns, 1.0)
    # What radii and means usually leave: less where losses add up.
    kinds: list[tuple[LossBudget, float]] = [(PureLoss(guarantee.epsilon), HALF)]
    if guarantee.delta > 0.0:
        mu = gdp_mu(guarantee.epsilon, guarantee.delta)
        kinds.append((GaussianLoss(mu), 1.0 - _MEANS[0][1]))
    found: list[tuple[float, str, LossBudget]] = []
    for whole, rest in kinds:
        total = whole.per_row(rows_per_group)
        try:
            mechanism = calibrate_second_moments(noise, bounds, total.share(rest))
        except ValueError:  # of the other kind
            continue
        found.append((mechanism.expected_error(), mechanism.noise, total))
    if not found:
        calibrate_second_moments(noise, bounds, guarantee)  # says what is wrong
    _, name, budget = min(found, key=lambda option: option[0])
    return name, budget


def share_out(total: LossBudget, n_rows: float, *, keeps_rows: bool = False) -> MomentShares:
    # A radius is safe for as many rows as second moments may shrink: the safety of one for a mean,
    # where fewer are, would cost half of the budget of few rows.
    radius = last = min(BESIDE, max(LEAST, _safe_share(total, 2.0 * _SHRUNK, n_rows)))
    if keeps_rows:
        # The last radius may cost what is left if each of the earlier ones costs as much as it may.
        wanted = _safe_share(total, _FEW, n_rows)
        last = max(last, min(wanted, _SHRUNK - (COARSE_ROUNDS + 1) * radius))
    return MomentShares(radius, last, *_means(total))


def rows_needed(total: LossBudget, n_columns: int) -> float:
    """Return how many rows place a mean so well that more would hardly matter."""
    coarse, mean = _means(total)
    if isinstance(total, GaussianLoss):
        size = 2.0 * math.sqrt(n_columns / (mean - coarse)) / total.mu
    else:
        size = 2.0 * (n_columns + 1) / ((mean - coarse) * total.pure_epsilon)
    return max(_FEWEST_ROWS, size / _FEW)


def noise_level(mechanism: SymmetricMatrixMechanism, n_samples: float) -> float:
    """Return about the largest eigenvalue of the noise, in units of n times the squared radius."""
    # It is twice the root mean square singular value, as for matrices of independent entries.
    deviation = mechanism.standard_deviation
    size = float(np.linalg.norm(deviation)) / math.sqrt(len(deviation))
    return 2.0 * size / (n_samples * mechanism.row_bounds.norm**2)


def mean_level(total: LossBudget, shares: MomentShares, n_rows: float) -> float:
    """Return the quantile of the norms beyond which rows are shrunk for a mean."""
    return 1.0 - min(_SHRUNK, _safe_part(total, shares.radius, n_rows))


def row_level(
    total: LossBudget,
    shares: MomentShares,
    n_rows: float,
    noise: float,
    *,
    keeps_rows: bool = False,
) -> float:
    """Return the quantile of the norms beyond which rows are shrunk for second moments."""
    # Signal and noise grow with the radius, but the signal ends where the rows do: the more noise,
    # the more rows are shrunk.
    per_noise = _PER_NOISE * (_SHRUNK if keeps_rows else 1.0)
    shrunk = max(per_noise * noise, _safe_part(total, shares.last, n_rows))
    return 1.0 - min(2.0 * _SHRUNK, shrunk)


def may_widen(level: float) -> bool:
    """Return whether few rows lie beyond a radius, so that it may be too small for its noise."""
    return level >= 1.0 - _SHRUNK


def widest_worth(counts: Floats, deviation: float, radii: Floats, noise: float) -> float:
    r"""Return the radius at which lost variance and noise together are surely least.

    .. math:: \mathrm{tr}\, M(r) + 2 \sqrt{k} |E|_F, \qquad
              \mathrm{tr}\, M(r) = \sum_i \max(0, |z_i|^2 - r^2)
    """
    # By so much less, at most, the best k axes of S − M + E, where M is what shrinking takes off,
    # have of S than its own best ones. `counts` are noisy numbers of rows beyond each of the
    # increasing `radii` and up to the next; the square of a row is taken for the product of these
    # two. What a radius gains beside the first is linear in the counts: that which gains most is
    # returned, each less two standard deviations.
    # `noise` is the second term at a radius of 1. In units of the first radius no square overflows.
    squares = (radii / radii[0]) ** 2
    kept = np.minimum(np.sqrt(squares[:-1] * squares[1:]), squares[:-1, np.newaxis]) - 1.0
    gains = kept @ counts - 2.0 * deviation * np.linalg.norm(kept, axis=1)
    return float(radii[np.argmax(gains - noise * (squares[:-1] - 1.0))])


def _means(total: LossBudget) -> tuple[float, float]:
    return _MEANS[0 if isinstance(total, GaussianLoss) else 1]


def _safe_part(total: LossBudget, share: float, n_rows: float) -> float:
    rate, order = _rate(total, n_rows)
    return float(max(1e-9, _SAFETY / max(rate * share ** (1.0 / order), 1e-300)))


def _safe_share(total: LossBudget, part: float, n_rows: float) -> float:
    rate, order = _rate(total, n_rows)
    return float((_SAFETY / (part * max(rate, 1e-100))) ** order)


def _rate(total: LossBudget, n_rows: float) -> tuple[float, float]:
    """Return how fast a choice gets safer with the part of the rows, and the order of shares."""
    if isinstance(total, GaussianLoss):
        return 0.8 * n_rows * total.mu, 2.0
    return 0.5 * n_rows * total.pure_epsilon, 1.0
