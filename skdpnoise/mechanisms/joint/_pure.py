"""What noise of pure privacy on whole vectors does alike: shares of ε, and limits of doubles."""

from __future__ import annotations

from skdpnoise.mechanisms.quanta import within_doubles
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss

_MARGIN = 1e-12  # floating-point error of a quotient, with room to spare


def epsilon_of_each(owner: str, guarantee: object, n_releases: int) -> float:
    """Return an ε of one release of which ``n_releases`` are at most the guarantee, with δ = 0."""
    if isinstance(guarantee, PrivacyGuarantee):
        whole = guarantee.epsilon
    elif isinstance(guarantee, PureLoss) and guarantee.pure_epsilon > 0.0:
        whole = guarantee.pure_epsilon
    else:
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


def check_units(owner: str, name: str, value: float, scale: float, bits: int) -> None:
    """Refuse a value whose noise scale, or the grid step of that, is near the limits of doubles."""
    if not within_doubles(scale, bits):
        raise ValueError(
            f"The {name!r} parameter of {owner} must give noise and grid steps within double "
            f"precision. Got {value!r} instead. Choose other units."
        )
