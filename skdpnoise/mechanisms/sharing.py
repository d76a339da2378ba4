"""A guarantee as a loss that adaptive stages can share."""

from __future__ import annotations

from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.requests import noise_options
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["shared_budget"]


def shared_budget(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | LossBudget,
    n_releases: int,
    rows_per_group: int = 1,
) -> tuple[str, LossBudget]:
    """Choose the noise of a series of stages, if it has no name, and the loss they share.

    What a stage costs may depend on what an earlier one released. So costs add up in a loss for
    which that is proved: pure for families that can be pure, else Gaussian. "auto" takes normal or
    Laplace noise, whichever has the smaller expected error for a typical stage: over many releases
    the loss tends to that of normal noise, so other shapes gain a fraction of a percent. "search"
    tries every family.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"``, ``"auto"`` or ``"search"``.
    sensitivity : SensitivityProfile
        Of the typical stage.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        What all stages together may cost.
    n_releases : int
        Releases of the typical stage.
    rows_per_group : int, default=1
        If the guarantee is for groups of at most so many rows; the sensitivity and the budget are
        with respect to one row all the same.

    Returns
    -------
    noise : str
        ``"<rule>_<family>"``.
    budget : PureLoss or GaussianLoss
        A loss, with respect to one row, that meets the guarantee.

    Raises
    ------
    ValueError
        If the noise can meet it in neither kind.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016 (pure loss).
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy",
    arXiv:2210.17520, Theorem 1 (Gaussian loss).

    Examples
    --------
    >>> noise, budget = shared_budget(
    ...     "auto", SensitivityProfile([1.0, 1.0]), PrivacyGuarantee(1.0, 1e-6), n_releases=20
    ... )
    >>> print(noise, budget, budget.share(0.25))
    inid_gaussian 0.236704-GDP 0.118352-GDP
    """
    names = {
        "auto": ["inid_gaussian", "inid_laplace"],
        "search": [name for name in noise_options(adaptive=True) if name.startswith("inid_")],
    }.get(noise, [noise])
    options: dict[str, LossBudget]
    if not isinstance(guarantee, PrivacyGuarantee):
        if noise == "auto":
            names = ["inid_laplace" if isinstance(guarantee, PureLoss) else "inid_gaussian"]
        options = dict.fromkeys(names, guarantee)
    else:
        options = {name: _budget(name, guarantee).per_row(rows_per_group) for name in names}
    errors: dict[str, float] = {}
    refusals = []
    for name, budget in options.items():
        try:
            found = calibrate(name, sensitivity, budget, n_releases=n_releases)
        except ValueError as refusal:
            refusals.append(refusal)
        else:
            errors[name] = found.expected_error()
    if not errors:
        raise refusals[0]
    best = min(errors, key=errors.__getitem__)
    return best, options[best]


def _budget(noise: str, guarantee: PrivacyGuarantee) -> LossBudget:
    pure = guarantee.delta == 0.0 or get_noise(noise.partition("_")[2]).supports_pure
    if pure:
        return PureLoss(guarantee.epsilon)
    return GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta))
