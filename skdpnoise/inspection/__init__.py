"""Looking at an estimator from outside: what will it do, and does it keep what it claims?"""

from skdpnoise.inspection.auditing.audits import audit
from skdpnoise.inspection.auditing.report import (
    AuditReport,
    BlackBoxResult,
    OneRunResult,
    ReplayResult,
)
from skdpnoise.inspection.auditing.transcript import Meeting, Transcript, coupled_order
from skdpnoise.inspection.versions import show_versions
from skdpnoise.planning import PlannedStage, PrivacyPlan, SimulatedScore, plan

__all__ = [
    "AuditReport",
    "BlackBoxResult",
    "Meeting",
    "OneRunResult",
    "PlannedStage",
    "PrivacyPlan",
    "ReplayResult",
    "SimulatedScore",
    "Transcript",
    "audit",
    "coupled_order",
    "plan",
    "show_versions",
]
