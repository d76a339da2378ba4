"""Displays of noise, budgets, plans, audits and scores, by scikit-learn's conventions."""

from skdpnoise.plotting.allocation_display import AllocationDisplay
from skdpnoise.plotting.audit_display import AuditDisplay
from skdpnoise.plotting.groups_display import GroupsDisplay
from skdpnoise.plotting.ledger_display import LedgerDisplay
from skdpnoise.plotting.noise_display import NoiseDisplay
from skdpnoise.plotting.plan_display import PlanDisplay
from skdpnoise.plotting.privacy_loss_display import PrivacyLossDisplay
from skdpnoise.plotting.score_displays import PrivateCalibrationDisplay, PrivateRocCurveDisplay

__all__ = [
    "AllocationDisplay",
    "AuditDisplay",
    "GroupsDisplay",
    "LedgerDisplay",
    "NoiseDisplay",
    "PlanDisplay",
    "PrivacyLossDisplay",
    "PrivateCalibrationDisplay",
    "PrivateRocCurveDisplay",
]
