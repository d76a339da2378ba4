"""Storages of ledgers: memory, or a database."""

from __future__ import annotations

import os

from skdpnoise.ledger.storage.base import Storage
from skdpnoise.ledger.storage.database import DatabaseStorage
from skdpnoise.ledger.storage.memory import MemoryStorage

__all__ = ["MEMORY", "STORAGE", "reopened", "storage_of"]

STORAGE = "SKDPNOISE_LEDGER"
"""The environment variable that names the storage where none is given."""

MEMORY = "memory"
"""The name of a ledger in memory, whatever the environment says."""


def storage_of(storage: str | None) -> Storage:
    """Return the given storage, else that of the environment, else memory."""
    if storage is None:
        storage = os.environ.get(STORAGE) or MEMORY
        if storage != MEMORY:
            return DatabaseStorage(storage, f"The environment variable {STORAGE}")
    return MemoryStorage() if storage == MEMORY else DatabaseStorage(storage)


def reopened(address: str | None) -> Storage:
    """Return the storage of a pickled ledger, which is closed if it was memory."""
    return MemoryStorage(process=0) if address is None else DatabaseStorage(address)
