"""Real data for examples, tests and benchmarks: local files first, else downloads."""

from skdpnoise.datasets.adult import ADULT_CATEGORIES, fetch_adult
from skdpnoise.datasets.california import fetch_california
from skdpnoise.datasets.electricity import fetch_electricity

__all__ = ["ADULT_CATEGORIES", "fetch_adult", "fetch_california", "fetch_electricity"]
