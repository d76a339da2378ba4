"""Noises, bounds and budgets that the tests of second moments share."""

from __future__ import annotations

from skdpnoise.mechanisms import SECOND_MOMENT_NOISES
from skdpnoise.mechanisms.matrices import FAMILIES
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sensitivity import RowBounds

ADJACENCIES = ["add_remove", "replace_one"]
NOISES = [noise for noise in SECOND_MOMENT_NOISES if noise not in CHOICES]
GAUSSIAN = [noise for noise in NOISES if not FAMILIES[noise].pure]
PURE = [noise for noise in NOISES if FAMILIES[noise].pure]
BOUNDS = {
    "ball": RowBounds(6, 1.5),
    "columns": RowBounds(5, 2.0, [0.1, 0.5, 1.0, 1.0, 3.0]),
    "box": RowBounds(4, 100.0, [0.5, 1.0, 2.0, 60.0]),
    "l1": RowBounds(6, 1.0, l1_norm=1.9),
    "all": RowBounds(4, 1.0, [0.3, 0.5, 0.7, 1.0], l1_norm=1.4),
    "one": RowBounds(1, 2.0),
}


def budget(noise, resource=0.7):
    return PureLoss(resource) if noise in PURE else GaussianLoss(resource)


def resource(loss):
    return loss.pure_epsilon if isinstance(loss, PureLoss) else loss.mu
