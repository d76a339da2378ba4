"""What may stand beside a private model: the register, and compositions with one guarantee."""

from skdpnoise.compose._caps import Cap, PartCap, Rehearsed, UnsettledError
from skdpnoise.compose._parts import Part, UnpaidStepError, private_parts, taken_apart
from skdpnoise.compose._register import register_private, register_public
from skdpnoise.compose._shares import pure_noise, with_budget
from skdpnoise.compose._total import TotalReport, total_guarantee

__all__ = [
    "Cap",
    "Part",
    "PartCap",
    "Rehearsed",
    "TotalReport",
    "UnpaidStepError",
    "UnsettledError",
    "private_parts",
    "pure_noise",
    "register_private",
    "register_public",
    "taken_apart",
    "total_guarantee",
    "with_budget",
]
