"""Compiled loops over arrays. They know nothing of privacy and own no randomness."""

from __future__ import annotations

from skdpnoise.solvers.coordinate_descent import coordinate_descent

__all__ = ["coordinate_descent"]
