"""How the stages of one run share a loss: by parts that are fixed before the first release."""

from __future__ import annotations

from skdpnoise.privacy import LossBudget

__all__ = ["BESIDE", "COUNT_SHARE", "HALF", "LEAST", "split"]

HALF = 0.5  # the share of each of two stages that matter alike
BESIDE = 0.1  # the share of what is needed beside the main stage: units, scores, one more sum
LEAST = 0.01  # the share of what costs hardly anything
COUNT_SHARE = 0.02  # of the budget of a fit or a query, for a private number of records

_ROUNDING = 1e-13  # what rounding adds to a sum of shares: less than it takes off each part


def split(total: LossBudget, **shares: float) -> dict[str, LossBudget]:
    """Return parts of a pure or Gaussian loss by name, which together cost no more than it."""
    # Shares are of ε, or of the square of μ. One of 0 has no part, one of 1 is the whole as it is.
    given = {name: share for name, share in shares.items() if share}
    if [*given.values()] == [1.0]:
        return dict.fromkeys(given, total)
    parts = shares.values()
    if not (min(parts) >= 0.0 and max(parts) < 1.0 and sum(parts) <= 1.0 + _ROUNDING):
        raise ValueError(f"Shares must be non-negative and add up to 1 at most. Got {shares}.")
    return {name: total.share(share) for name, share in given.items()}
