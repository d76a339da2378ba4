"""Replays of fits on neighbouring data, and attacks on what they release."""

from skdpnoise.inspection.auditing._audit import audit
from skdpnoise.inspection.auditing.report import (
    AuditReport,
    BlackBoxResult,
    OneRunResult,
    ReplayResult,
)
from skdpnoise.inspection.auditing.transcript import Meeting, Transcript, coupled_order

__all__ = [
    "AuditReport",
    "BlackBoxResult",
    "Meeting",
    "OneRunResult",
    "ReplayResult",
    "Transcript",
    "audit",
    "coupled_order",
]
