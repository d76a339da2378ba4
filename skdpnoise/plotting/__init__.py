"""Pictures of noise, of what it costs and of what was spent, in scikit-learn's convention."""

from skdpnoise.plotting.allocation_display import AllocationDisplay
from skdpnoise.plotting.audit_display import AuditDisplay
from skdpnoise.plotting.groups_display import GroupsDisplay
from skdpnoise.plotting.ledger_display import LedgerDisplay
from skdpnoise.plotting.noise_display import NoiseDisplay
from skdpnoise.plotting.plan_display import PlanDisplay
from skdpnoise.plotting.privacy_loss_display import PrivacyLossDisplay

__all__ = [
    "AllocationDisplay",
    "AuditDisplay",
    "GroupsDisplay",
    "LedgerDisplay",
    "NoiseDisplay",
    "PlanDisplay",
    "PrivacyLossDisplay",
]
