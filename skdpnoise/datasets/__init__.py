"""Real data for examples, tests and benchmarks: local files first, else downloads."""

from skdpnoise.datasets.california import fetch_california
from skdpnoise.datasets.electricity import fetch_electricity

__all__ = ["fetch_california", "fetch_electricity"]
