"""What has been spent, and refusing to spend more."""

from skdpnoise.ledger.account import Account, BudgetExceededError
from skdpnoise.ledger.report import PrivacyReport, Release

__all__ = ["Account", "BudgetExceededError", "PrivacyReport", "Release"]
