"""Looking at an estimator from outside: what will it do, and does it keep what it claims?"""

from skdpnoise.inspection.auditing import (
    AuditReport,
    BlackBoxResult,
    Meeting,
    OneRunResult,
    ReplayResult,
    Transcript,
    audit,
    coupled_order,
)
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
