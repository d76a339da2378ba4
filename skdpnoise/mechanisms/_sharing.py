"""A guarantee as a loss that adaptive stages can share."""

from __future__ import annotations

from itertools import product

from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["shared_budget"]


def shared_budget(
    noise: str,
    sensitivity: SensitivityProfile,
    guarantee: PrivacyGuarantee | LossBudget,
    n_releases: int,
) -> tuple[str, LossBudget]:
    """Choose the noise of a series of stages, if that is "auto", and the loss they share.

    What a stage costs may depend on what an earlier one released. So costs add up in a loss for
    which that is proved, pure or Gaussian, whichever allows the smaller expected error for a
    typical stage. "auto" compares Gaussian and Laplace noise: over many releases the loss tends to
    that of normal noise, so that other shapes cannot do better by more than a fraction.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"`` or ``"auto"``.
    sensitivity : SensitivityProfile
        Of the typical stage.
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        What all stages together may cost.
    n_releases : int
        Releases of the typical stage.

    Returns
    -------
    noise : str
        ``"<rule>_<family>"``.
    budget : PureLoss or GaussianLoss
        A loss that meets the guarantee.

    Raises
    ------
    ValueError
        If the noise can meet it in neither kind.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016 (pure loss).
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy",
    arXiv:2210.17520, Theorem 1 (Gaussian loss).
    """
    budgets: list[LossBudget]
    if isinstance(guarantee, PrivacyGuarantee):
        budgets = [PureLoss(guarantee.epsilon)]
        if guarantee.delta > 0.0:
            budgets.insert(0, GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta)))
    else:
        budgets = [guarantee]
    names = ("inid_gaussian", "inid_laplace") if noise == "auto" else (noise,)
    errors: dict[tuple[str, LossBudget], float] = {}
    refusals = []
    for name, budget in product(names, budgets):
        try:
            found = calibrate(name, sensitivity, budget, n_releases=n_releases)
        except ValueError as refusal:
            refusals.append(refusal)
        else:
            errors[name, budget] = found.expected_error()
    if not errors:
        raise refusals[0]
    return min(errors, key=errors.__getitem__)
