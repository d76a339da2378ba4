"""What noise of pure privacy on whole vectors does alike: shares of ε, and limits of doubles."""

from __future__ import annotations

from skdpnoise.mechanisms.requests import number_of
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss

_MARGIN = 1e-12  # floating-point error of a quotient, with room to spare
_SMALLEST, _LARGEST = 1e-280, 1e280


def epsilon_of_each(owner: str, guarantee: object, n_releases: int) -> float:
    """Return an ε of one release of which ``n_releases`` are at most the guarantee, with δ = 0."""
    whole = 0.0
    if isinstance(guarantee, PrivacyGuarantee | PureLoss):
        whole = number_of(guarantee)
    if whole == 0.0:
        allowed = (
            f"The 'guarantee' parameter of {owner} must be a PrivacyGuarantee or a PureLoss with a "
            f"positive epsilon. Got {guarantee!r} instead"
        )
        if isinstance(guarantee, PrivacyLoss):
            raise ValueError(f"{allowed}: calibrate Gaussian noise to such a loss.")
        raise TypeError(f"{allowed}.")
    each = whole / n_releases
    while each * n_releases > whole:
        each *= 1.0 - _MARGIN
    return each


def check_units(owner: str, name: str, scale: float, bits: int) -> None:
    """Refuse a scale that is near the limits of doubles, or whose grid step is."""
    if not (scale <= _LARGEST and scale * 2.0**-bits >= _SMALLEST):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be within double precision with its grid "
            f"steps. Got {scale!r} instead. Choose other units."
        )
