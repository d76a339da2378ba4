"""Real data for examples, tests and benchmarks: local files first, else downloads."""

from skdpnoise.datasets.loaders import (
    ADULT_CATEGORIES,
    fetch_adult,
    fetch_california,
    fetch_electricity,
)

__all__ = ["ADULT_CATEGORIES", "fetch_adult", "fetch_california", "fetch_electricity"]
