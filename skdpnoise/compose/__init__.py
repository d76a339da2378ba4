"""What may stand beside a private model: the register, and compositions with one guarantee."""

from skdpnoise.compose._pipeline import DPPipeline
from skdpnoise.compose._total import TotalReport, total_guarantee
from skdpnoise.compose.parts import Part, UnpaidStepError, taken_apart
from skdpnoise.compose.register import register_private, register_public

__all__ = [
    "DPPipeline",
    "Part",
    "TotalReport",
    "UnpaidStepError",
    "register_private",
    "register_public",
    "taken_apart",
    "total_guarantee",
]
