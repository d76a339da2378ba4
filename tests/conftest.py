"""Fixtures of all tests."""

from tests._storage import stored

__all__ = ["stored"]
