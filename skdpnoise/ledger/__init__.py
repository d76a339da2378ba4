"""Budgets of data sets that last: what was spent, and refusals to spend more."""

from skdpnoise.accounting.account import Account, BudgetExceededError, Chargeable, Ledger
from skdpnoise.accounting.encoding import decode_loss, encode_loss
from skdpnoise.accounting.report import PrivacyReport, Release
from skdpnoise.ledger.charge import Charge, LedgerTotal
from skdpnoise.ledger.errors import (
    BudgetChangedError,
    LedgerError,
    LedgerSchemaError,
    LedgerStorageError,
    LedgerWarning,
    UnknownDatasetError,
)
from skdpnoise.ledger.exports import (
    model_card,
    registry_record,
    registry_yaml,
    releases_frame,
    report_from_json,
    report_to_json,
)
from skdpnoise.ledger.privacy_ledger import PrivacyLedger

__all__ = [
    "Account",
    "BudgetChangedError",
    "BudgetExceededError",
    "Charge",
    "Chargeable",
    "Ledger",
    "LedgerError",
    "LedgerSchemaError",
    "LedgerStorageError",
    "LedgerTotal",
    "LedgerWarning",
    "PrivacyLedger",
    "PrivacyReport",
    "Release",
    "UnknownDatasetError",
    "decode_loss",
    "encode_loss",
    "model_card",
    "registry_record",
    "registry_yaml",
    "releases_frame",
    "report_from_json",
    "report_to_json",
]
