"""Spending of one fit or query: its account, its report, and limits of compositions."""

from skdpnoise.accounting.account import Account, BudgetExceededError, Chargeable, Ledger
from skdpnoise.accounting.encoding import decode_loss, encode_loss
from skdpnoise.accounting.report import PrivacyReport, Release

__all__ = [
    "Account",
    "BudgetExceededError",
    "Chargeable",
    "Ledger",
    "PrivacyReport",
    "Release",
    "decode_loss",
    "encode_loss",
]
