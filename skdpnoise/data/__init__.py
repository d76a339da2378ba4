"""Rows that lie in parts: in files that do not fit, or on many machines."""

from __future__ import annotations

from skdpnoise.data.files import scan_batches, scan_csv, scan_dataset, scan_parquet
from skdpnoise.data.sources import RowSource

__all__ = ["RowSource", "scan_batches", "scan_csv", "scan_dataset", "scan_parquet"]
