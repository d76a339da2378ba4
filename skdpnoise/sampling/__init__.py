"""Random words in, exact integers out."""

from skdpnoise.sampling.integers import integers_below, permutation, secret_order, secret_pairs
from skdpnoise.sampling.piecewise import (
    Exponent,
    integer_piecewise,
    rounded_gaussian,
    rounded_laplace,
    rounded_piecewise,
)
from skdpnoise.sampling.source import random_words
from skdpnoise.sampling.words import RandomWords, SeededWords, SystemWords, is_seeded

__all__ = [
    "Exponent",
    "RandomWords",
    "SeededWords",
    "SystemWords",
    "integer_piecewise",
    "integers_below",
    "is_seeded",
    "permutation",
    "random_words",
    "rounded_gaussian",
    "rounded_laplace",
    "rounded_piecewise",
    "secret_order",
    "secret_pairs",
]
