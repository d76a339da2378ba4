"""Hyper-parameter search under one guarantee."""

from skdpnoise.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["DPGridSearchCV", "DPRandomizedSearchCV"]
