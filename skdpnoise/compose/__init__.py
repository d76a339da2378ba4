"""Compositions with one guarantee, and the register of what may stand beside a private model."""

from importlib import import_module
from typing import TYPE_CHECKING

from skdpnoise.base.public_output import PublicOutput
from skdpnoise.base.register import register_private, register_public
from skdpnoise.base.steps import Part, UnpaidStepError, taken_apart

if TYPE_CHECKING:
    from skdpnoise.compose._pipeline import DPPipeline
    from skdpnoise.compose._total import TotalReport, total_guarantee

__all__ = [
    "DPPipeline",
    "Part",
    "PublicOutput",
    "TotalReport",
    "UnpaidStepError",
    "register_private",
    "register_public",
    "taken_apart",
    "total_guarantee",
]

# Imported when somebody asks for them: models need them at a fit, if at all.
_HOMES = {"DPPipeline": "_pipeline", "TotalReport": "_total", "total_guarantee": "_total"}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
