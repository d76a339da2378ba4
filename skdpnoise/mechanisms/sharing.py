"""A guarantee as a loss that adaptive stages can share."""

from __future__ import annotations

from skdpnoise.mechanisms.additive import AdditiveMechanism, compared
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.requests import budget_of, candidates
from skdpnoise.noises import get_noise
from skdpnoise.privacy import LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile


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
    Laplace noise, and "search" any family, whichever has the smallest expected error for a typical
    stage.

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
    names = candidates(noise)
    budgets: dict[str, LossBudget] = {}
    if isinstance(guarantee, PrivacyGuarantee):
        for name in names:
            pure = guarantee.delta == 0.0 or get_noise(name.partition("_")[2]).supports_pure
            budget = budget_of(guarantee, pure=pure)
            assert budget is not None
            budgets[name] = budget.per_row(rows_per_group)
    else:
        if noise == "auto":
            names = ["inid_laplace" if isinstance(guarantee, PureLoss) else "inid_gaussian"]
        budgets = dict.fromkeys(names, guarantee)

    def make(name: str) -> AdditiveMechanism:
        return calibrate(name, sensitivity, budgets[name], n_releases=n_releases)

    made, _ = compared(names, make, AdditiveMechanism.expected_error)
    best = min(made, key=AdditiveMechanism.expected_error).noise
    return best, budgets[best]
