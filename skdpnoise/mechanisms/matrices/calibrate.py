"""Private second moments of bounded rows: noise on a symmetric matrix."""

from __future__ import annotations

import math

from skdpnoise.mechanisms.additive import compared, noted
from skdpnoise.mechanisms.matrices._families import FAMILIES, proposals
from skdpnoise.mechanisms.matrices.mechanism import MARGIN, SymmetricMatrixMechanism
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import (
    Adjacency,
    GaussianLoss,
    LossBudget,
    PrivacyGuarantee,
    PureLoss,
    gdp_mu,
)
from skdpnoise.privacy.checks import check_option, check_type
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity import RowBounds

__all__ = ["SECOND_MOMENT_NOISES", "SymmetricMatrixMechanism", "calibrate_second_moments"]

SECOND_MOMENT_NOISES = (*FAMILIES, *CHOICES)

_AUTO = tuple(name for name in FAMILIES if not name.startswith("iid_"))

# Sums of so large squares of integer rows fit 63 bits for a thousand million rows, and sums over a
# million rows are exact in double precision.
_LARGEST_SQUARE = 2.0**32.5
_SMALLEST, _LARGEST = 1e-70, 1e70  # of the bounds: fourth powers stay within double precision


@shared_texts
def calibrate_second_moments(
    noise: str,
    row_bounds: RowBounds,
    guarantee: PrivacyGuarantee | LossBudget,
    adjacency: Adjacency | None = None,
) -> SymmetricMatrixMechanism:
    r"""Return the least noise for the second moments of bounded rows.

    Scales of the columns and of the diagonal are those of least expected squared error of the whole
    matrix among a few candidates, all decided from public facts:

    - Half the variance off the diagonal (Gaussian; inherent to "k_norm" and "wishart"):
      for add/remove, μ is the largest :math:`\sum_j x_j^2/s_j^2`. With bounds c on the columns,
      :math:`s_j^2 \propto \min(c_j, \tau)`, τ such that :math:`\sum_j \min(c_j, \tau)^2 = R^2`.
      For bounds that are a box rather than a ball somewhat more noise off the diagonal is better,
      up to Theorem 4's :math:`\sqrt{1/2}` times the variance.
    - Laplace: with A and B as in :func:`~skdpnoise.sensitivity.second_moment_change`, the ratio r
      that minimises the error is
      :math:`r^3 = \frac{B^2 - A}{2 A} \frac{\sum_j s_j^4}{\sum_{j \ne k} s_j^2 s_k^2}`, at least
      1/2, or where the bound by Cauchy and Schwarz is the smaller one,
      :math:`r^4 = \frac{p - 1}{4} \frac{\sum_j s_j^4}{\sum_{j \ne k} s_j^2 s_k^2}`.
    - "iid_gaussian" and "iid_laplace" are the same noise in every entry of the upper triangle.

    Rows are bounded by 2**15.25 to 2**16.25 grid steps, if the samplers have so many bits: sums of
    a thousand million rows fit 63 bits.

    Parameters
    ----------
    noise : str
        One of ``SECOND_MOMENT_NOISES``. "auto" and "search" are the same here: the smallest
        expected error among those that can give the guarantee.
    row_bounds : RowBounds
        What every row obeys; the solver that sums them must be given the same.
    guarantee : PrivacyGuarantee or LossBudget
        What the release may cost. A guarantee with δ > 0 is met by Gaussian loss, or by pure loss
        that leaves δ unused.
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation; None takes that of `guarantee`, or "replace_one" for a loss.

    Returns
    -------
    SymmetricMatrixMechanism

    Raises
    ------
    %(mechanisms: TypeError)s
    ValueError
        If the noise is unknown or cannot give the guarantee, or magnitudes are beyond double
        precision.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5. Dwork, Talwar, Thakurta and
    Zhang, "Analyze Gauss", STOC 2014.

    Examples
    --------
    >>> calibrate_second_moments("auto", RowBounds(50, 1.0), PrivacyGuarantee(1.0, 1e-6))
    SymmetricMatrixMechanism(noise='inid_gaussian', n_columns=50, adjacency='replace_one',
    loss=0.236704-GDP)
    >>> calibrate_second_moments("auto", RowBounds(50, 1.0), PrivacyGuarantee(1.0))
    SymmetricMatrixMechanism(noise='wishart', n_columns=50, adjacency='replace_one', loss=1-DP)
    """
    adjacency = _checked_adjacency(noise, row_bounds, guarantee, adjacency)
    if noise not in CHOICES:
        return _calibrate(noise, row_bounds, guarantee, adjacency)
    made, considered = compared(
        _AUTO,
        lambda name: _calibrate(name, row_bounds, guarantee, adjacency),
        SymmetricMatrixMechanism.expected_error,
    )
    # Among errors that are equal up to rounding, the first candidate is kept.
    least = min(one.expected_error() for one in made) * (1.0 + 1e-9)
    best = next(one for one in made if one.expected_error() <= least)
    chosen: SymmetricMatrixMechanism = noted(best, considered)
    return chosen


def _calibrate(
    noise: str,
    bounds: RowBounds,
    guarantee: PrivacyGuarantee | LossBudget,
    adjacency: Adjacency,
) -> SymmetricMatrixMechanism:
    resource, family = _resource(noise, guarantee), FAMILIES[noise]
    if bounds.n_columns > family.most_columns:
        raise ValueError(
            f"The 'noise' parameter of calibrate_second_moments is {noise!r}, whose sampler is "
            f"exact for up to {family.most_columns} columns. Got {bounds.n_columns} columns. "
            "Choose another noise, or 'auto'."
        )
    made = []
    for shape, off_diagonal in proposals(noise, bounds, adjacency):
        units = shape * bounds.radius
        worst = family.change(bounds, adjacency, units, off_diagonal) * MARGIN
        scale = units * math.sqrt(worst / resource * (1.0 + 1e-13))
        square = bounds.largest_square(scale)
        # so little noise that its grid steps are one step wide: take more
        if square > _LARGEST_SQUARE:
            scale *= math.sqrt(square / _LARGEST_SQUARE)
        wanted = math.floor(0.5 * math.log2(max(1.0, _LARGEST_SQUARE / square)))
        bits = min(wanted, family.most_bits(bounds.n_columns) // 2)
        made.append(SymmetricMatrixMechanism(noise, bounds, scale, off_diagonal, bits, adjacency))
    best, more = min(made, key=SymmetricMatrixMechanism.expected_error), 1e-12
    while _spent(best) > resource:  # rounding of the scales
        scale, more = best.row_scale * (1.0 + more), 2.0 * more
        best = SymmetricMatrixMechanism(
            noise, bounds, scale, best.off_diagonal, best.bits, adjacency
        )
    return best


def _spent(mechanism: SymmetricMatrixMechanism) -> float:
    loss = mechanism.privacy_loss()
    return loss.pure_epsilon if isinstance(loss, PureLoss) else loss.mu


def _resource(noise: str, guarantee: PrivacyGuarantee | LossBudget) -> float:
    """Return the ε or the μ that the noise may have."""
    pure = FAMILIES[noise].pure
    resource = None
    if isinstance(guarantee, PrivacyGuarantee):
        if pure:
            resource = guarantee.epsilon
        elif guarantee.delta > 0.0:
            resource = gdp_mu(guarantee.epsilon, guarantee.delta)
    elif isinstance(guarantee, PureLoss) and pure:
        resource = guarantee.pure_epsilon
    elif isinstance(guarantee, GaussianLoss) and not pure:
        resource = guarantee.mu
    if resource is None:
        names = [name for name, family in FAMILIES.items() if family.pure != pure]
        raise ValueError(
            "The 'noise' parameter of calibrate_second_moments must be a noise that can give "
            f"{guarantee}, one of {names}. Got {noise!r} instead."
        )
    return resource


def _checked_adjacency(
    noise: str,
    row_bounds: RowBounds,
    guarantee: PrivacyGuarantee | LossBudget,
    adjacency: Adjacency | None,
) -> Adjacency:
    """Return the neighbouring relation, or say what is wrong with the arguments."""
    owner = "calibrate_second_moments"
    check_option(owner, "noise", noise, SECOND_MOMENT_NOISES)
    check_type(owner, "row_bounds", row_bounds, RowBounds)
    check_type(owner, "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    if guarantee in (PureLoss(0.0), GaussianLoss(0.0)):
        raise ValueError(
            f"The 'guarantee' parameter of {owner} must be a positive loss. Got {guarantee!r} "
            "instead: every release costs something."
        )
    if not (row_bounds.limits.min() >= _SMALLEST and row_bounds.radius <= _LARGEST):
        raise ValueError(
            f"The 'row_bounds' parameter of {owner} must be between {_SMALLEST:g} and "
            f"{_LARGEST:g}. Got {row_bounds!r} instead. Choose other units."
        )
    return checked_relation(owner, adjacency, guarantee, "replace_one")
