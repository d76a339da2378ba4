"""What has been spent, and refusing to spend more."""

from skdpnoise.ledger.account import Account, BudgetExceededError, Chargeable
from skdpnoise.ledger.report import PrivacyReport, Release
from skdpnoise.ledger.total import TotalReport, total_guarantee

__all__ = [
    "Account",
    "BudgetExceededError",
    "Chargeable",
    "PrivacyReport",
    "Release",
    "TotalReport",
    "total_guarantee",
]
