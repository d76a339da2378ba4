"""Looking at an estimator from outside: does it keep what it claims?"""

from skdpnoise.inspection._audit import audit
from skdpnoise.inspection.report import AuditReport, BlackBoxResult, OneRunResult, ReplayResult
from skdpnoise.inspection.transcript import Meeting, Transcript, coupled_order

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
