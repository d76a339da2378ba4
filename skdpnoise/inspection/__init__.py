"""Looking at an estimator from outside: what will it do, and does it keep what it claims?"""

from skdpnoise.compose.planning import plan
from skdpnoise.compose.plans import PlannedStage, PrivacyPlan, SimulatedScore
from skdpnoise.inspection._audit import audit
from skdpnoise.inspection.report import AuditReport, BlackBoxResult, OneRunResult, ReplayResult
from skdpnoise.inspection.transcript import Meeting, Transcript, coupled_order
from skdpnoise.inspection.versions import show_versions

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
