"""Plans: cost and findings of a fit from public facts and made-up rows, before it is run."""

from skdpnoise.planning.plan_fits import plan
from skdpnoise.planning.plans import PlannedStage, PrivacyPlan, SimulatedScore

__all__ = ["PlannedStage", "PrivacyPlan", "SimulatedScore", "plan"]
