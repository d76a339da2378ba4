"""Choosing privately: one candidate of several, and the best of many runs."""

from skdpnoise.mechanisms.selection.choices import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    SelectionMechanism,
    range_epsilon,
    range_mu,
    whole_quanta,
)
from skdpnoise.mechanisms.selection.repeated import (
    approximate_base,
    base_budget,
    choose_repetitions,
    repeated_loss,
)

Selection = SelectionMechanism

__all__ = [
    "ExponentialMechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "Selection",
    "SelectionMechanism",
    "approximate_base",
    "base_budget",
    "choose_repetitions",
    "range_epsilon",
    "range_mu",
    "repeated_loss",
    "whole_quanta",
]
