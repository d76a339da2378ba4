"""Noise on whole vectors: correlated, for bounded counts, and along a norm."""
