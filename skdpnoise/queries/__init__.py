"""Queries of analysts: counts, sums, means, histograms, quantiles, locations and scales."""

from skdpnoise.mechanisms.categories import CategoryMechanism
from skdpnoise.mechanisms.selection import NormQuantileMechanism
from skdpnoise.queries.aggregates import PrivateEstimate, private_count, private_mean, private_sum
from skdpnoise.queries.argmax import private_argmax
from skdpnoise.queries.categories import PrivateCategories, private_categories
from skdpnoise.queries.histogram import noisy_histogram, private_histogram
from skdpnoise.queries.location_scale import LocationScale, private_location_scale
from skdpnoise.queries.moments import Moments, private_moments
from skdpnoise.queries.norm_quantile import private_norm_quantile
from skdpnoise.queries.quantiles import Quantiles, private_quantiles

__all__ = [
    "CategoryMechanism",
    "LocationScale",
    "Moments",
    "NormQuantileMechanism",
    "PrivateCategories",
    "PrivateEstimate",
    "Quantiles",
    "noisy_histogram",
    "private_argmax",
    "private_categories",
    "private_count",
    "private_histogram",
    "private_location_scale",
    "private_mean",
    "private_moments",
    "private_norm_quantile",
    "private_quantiles",
    "private_sum",
]
