"""Scores of models on private records."""

from skdpnoise.metrics.scoring import BITS, SCORINGS, Scoring, choose_scoring

__all__ = ["BITS", "SCORINGS", "Scoring", "choose_scoring"]
