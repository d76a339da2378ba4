r"""How one guarantee is shared between the steps of a fit, on public facts alone.

Everything is a function of n, p, and the budget. A radius that is chosen among many is far off with
a probability that falls exponentially in n times the root of its share of μ² (its share of ε), so
that the shares of such choices fall as n μ (n ε) grows, down to a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdpnoise.mechanisms import SymmetricMatrixMechanism, calibrate_second_moments
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import RowBounds

COARSE_ROUNDS = 3
# Shares of coarse means, and of all means, of μ² and of ε.
_GAUSSIAN_MEANS, _PURE_MEANS = (0.05, 0.18), (0.08, 0.3)
_FLOOR, _CEILING = 0.012, 0.08
_PURE_FLOOR, _PURE_CEILING = 0.015, 0.1
_PURE_REST, _GAUSSIAN_REST = 0.55, 0.78  # usually left for second moments
_FEWEST_ROWS = 1 << 15
_PRECISION = 0.01  # noise of a mean, in radii, that hardly matters
# Most rows that are shrunk for a mean, where more would bias it if rows form clusters, and for
# second moments.
_SHRUNK_FOR_MEAN, _SHRUNK = 0.35, 0.7
_SHRUNK_PER_NOISE, _FEWER_PER_NOISE = 30.0, 10.0
# Where few rows may be shrunk: so few if the budget allows it, and the most for all radii then.
_FEW_SHRUNK, _MOST_FOR_RADII = 0.01, 0.35
_SAFETY = 14.0  # a choice is far off with a probability of about exp(-14) times the candidates


@dataclass(frozen=True, slots=True)
class MomentShares:
    """Shares of μ², or of ε."""

    radius: float  # for each radius that is used for a mean
    last: float  # for the radius of the rows whose second moments are released
    # coarse, mean: for one coarse mean, and for all means together
    coarse: float
    mean: float


def choose_budget(
    noise: str, n_columns: int, guarantee: PrivacyGuarantee, rows_per_group: int
) -> tuple[str, LossBudget]:
    """Choose the noise of the second moments, if that is "auto", and the kind of the budget."""
    bounds = RowBounds(n_columns, 1.0)
    kinds: list[tuple[LossBudget, float]] = [(PureLoss(guarantee.epsilon), _PURE_REST)]
    if guarantee.delta > 0.0:
        kinds.append((GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta)), _GAUSSIAN_REST))
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
    """Return the shares for steps that look at so many rows."""
    if isinstance(total, GaussianLoss):
        strength, means = (n_rows * total.mu) ** 2, _GAUSSIAN_MEANS
        least, most, parts = _FLOOR, _CEILING, (500.0, 550.0)
        wanted = (_SAFETY / (0.8 * _FEW_SHRUNK)) ** 2
    else:
        strength, means = n_rows * total.pure_epsilon, _PURE_MEANS
        least, most, parts = _PURE_FLOOR, _PURE_CEILING, (80.0, 90.0)
        wanted = _SAFETY / (0.5 * _FEW_SHRUNK)
    strength = max(strength, 1e-300)
    radius, last = (min(most, max(least, part / strength)) for part in parts)
    if keeps_rows:
        # The last radius may cost what is left if each of the earlier ones costs as much as it may.
        last = max(last, min(wanted / strength, _MOST_FOR_RADII - (COARSE_ROUNDS + 1) * radius))
    return MomentShares(radius, last, *means)


def rows_needed(total: LossBudget, n_columns: int) -> float:
    """Return how many rows place a mean so well that more would hardly matter."""
    if isinstance(total, GaussianLoss):
        coarse, mean = _GAUSSIAN_MEANS
        size = 2.0 * math.sqrt(n_columns / (mean - coarse)) / total.mu
    else:
        coarse, mean = _PURE_MEANS
        size = 2.0 * (n_columns + 1) / ((mean - coarse) * total.pure_epsilon)
    return max(_FEWEST_ROWS, size / _PRECISION)


def noise_level(mechanism: SymmetricMatrixMechanism, n_samples: float) -> float:
    """Return about the largest eigenvalue of the noise, in units of n times the squared radius."""
    # It is twice the root mean square singular value, as for matrices of independent entries.
    deviation = mechanism.standard_deviation
    size = float(np.linalg.norm(deviation)) / math.sqrt(len(deviation))
    return 2.0 * size / (n_samples * mechanism.row_bounds.norm**2)


def mean_level(total: LossBudget, shares: MomentShares, n_rows: float) -> float:
    """Return the quantile of the norms beyond which rows are shrunk for a mean."""
    return 1.0 - min(_SHRUNK_FOR_MEAN, _safe_part(total, shares.radius, n_rows))


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
    per_noise = _FEWER_PER_NOISE if keeps_rows else _SHRUNK_PER_NOISE
    shrunk = max(per_noise * noise, _safe_part(total, shares.last, n_rows))
    return 1.0 - min(_SHRUNK, shrunk)


def _safe_part(total: LossBudget, share: float, n_rows: float) -> float:
    """Return the part of the rows that must lie beyond a radius for its choice to be safe."""
    if isinstance(total, GaussianLoss):
        rate = 0.8 * n_rows * total.mu * math.sqrt(share)
    else:
        rate = 0.5 * n_rows * total.pure_epsilon * share
    return max(1e-9, _SAFETY / max(rate, 1e-300))
