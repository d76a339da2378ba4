"""Another name of :mod:`skdpnoise.data`, from the second edition."""

from skdpnoise.data import RowSource, scan_batches, scan_csv, scan_dataset, scan_parquet

__all__ = ["RowSource", "scan_batches", "scan_csv", "scan_dataset", "scan_parquet"]
