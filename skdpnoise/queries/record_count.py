"""The number of records, released where the neighbouring relation hides it."""

from __future__ import annotations

import numpy as np

from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import LossBudget
from skdpnoise.queries._releases import Charge
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["COUNT_SHARE", "release_record_count"]

COUNT_SHARE = 0.02  # of the budget of a fit or a query


def release_record_count(
    n_records: int, budget: LossBudget, noise: str, rng: RandomWords, charge: Charge
) -> float:
    """Return a noisy number of records, which one record moves by 1, for a share of the budget."""
    mechanism = calibrate(noise, SensitivityProfile(np.ones(1)), budget.share(COUNT_SHARE))
    charge("number of records", mechanism)
    return float(mechanism.release(np.array([n_records]), rng)[0])
