r"""Data-independent choices for everything set to "auto".

Every rule is a function of one public number, the *noise level*

.. math:: \nu = T_0^{1/q - 1/2} \, \sigma_1 / n

with :math:`\sigma_1` the standard deviation of the noise on the sum of one coordinate's gradients
in a run of one pass with clip 1, q the order in which the family's costs add, and T_0 = 10. A run
of T passes with clip C then has noise of about :math:`\nu C \sqrt T` on every mean gradient. It
depends on the number of records and columns, epsilon, delta and the noise alone.

The rules were fitted by hand to grids over passes and clip on several data sets;
``python -m benchmarks rules`` shows how far from the best of a grid they are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COUNT_SHARE", "Defaults", "choose_defaults", "scaling_share"]

COUNT_SHARE = 0.02  # of the budget, for the number of records under add/remove
REFERENCE_PASSES = 10


def scaling_share(all_bounds_public: bool) -> float:
    """Share of the budget that goes to private locations and scales."""
    return 0.1 if all_bounds_public else 0.4


@dataclass(frozen=True, slots=True)
class Defaults:
    """What "auto" stands for.

    Parameters
    ----------
    n_passes : int
        Passes over the coordinates.
    clip : float
        Bound on one record's gradient, in standardised units.
    budget_growth : float
        Ratio of the budgets of successive passes.
    relaxation : float
        Step size in units of 1/M_j.
    """

    n_passes: int
    clip: float
    budget_growth: float
    relaxation: float


def choose_defaults(noise_level: float, loss: str) -> Defaults:
    """Return the defaults for a noise level and a loss, "squared" or "logistic"."""
    n_passes = round(20.0 * min(1.0, (0.016 / noise_level) ** 0.6))
    clip = 0.8 * min(1.0, (0.008 / noise_level) ** 0.5)
    # 1/4 is a loose bound on the curvature of the logistic loss.
    relaxation = 1.5 if loss == "logistic" and noise_level < 0.006 else 1.0
    return Defaults(max(2, n_passes), clip, 1.1, relaxation)
