"""Hyper-parameter search and cross-validation, each under one guarantee."""

from skdpnoise.model_selection._cross_validation import PrivateCrossValidation, dp_cross_validate
from skdpnoise.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV", "PrivateCrossValidation", "dp_cross_validate"]
