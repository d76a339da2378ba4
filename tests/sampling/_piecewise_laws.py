"""Laws to try the sampler of piecewise exponents on, with their distribution functions."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfc, gammaincc
from scipy.stats import laplace, norm

from skdpnoise.sampling import Exponent


class Symmetric:
    """Distribution functions from the mass beyond x >= 0 of one half of the density."""

    def __init__(self, mass_beyond, reach=100.0):
        self._mass_beyond = mass_beyond
        self._reach = reach

    def sf(self, z):
        z = np.asarray(z, dtype=float)
        tail = 0.5 * self._mass_beyond(np.abs(z)) / self._mass_beyond(np.zeros(1))[0]
        return np.where(z >= 0, tail, 1.0 - tail)

    def isf(self, q):
        q = np.asarray(q, dtype=float)
        low, high = np.full(q.shape, -self._reach), np.full(q.shape, self._reach)
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = self.sf(middle) > q
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high


def _normal_mass(x):
    return math.sqrt(math.pi / 2) * erfc(x / math.sqrt(2))


def _flipped_huber_mass(x):
    beyond = math.exp(-2.0) * _normal_mass(np.maximum(x, 2.0))
    return beyond + 0.5 * (np.exp(-2.0 * np.minimum(x, 2.0)) - math.exp(-4.0))


def _staircase(increase, first):
    """Steps of length one that end at first + i, where the density falls by the whole increase."""

    def mass(x):
        turns = np.floor(x)
        y = x - turns
        later = math.exp(-increase)
        period = first + (1.0 - first) * later
        here = np.maximum(first - y, 0.0) + np.minimum(1.0 - y, 1.0 - first) * later
        return np.exp(-increase * turns) * (here + period * later / (1.0 - later))

    pieces = ((0.0, 0.0, 0.0, 0.0), (increase, 0.0, 0.0, 0.0))
    exponent = Exponent((0.0, first), pieces, period=(1.0, increase))
    return exponent, Symmetric(mass, 60.0 / increase)


def one_piece(c1=0.0, c2=0.0, c3=0.0, **others):
    return Exponent((0.0,), ((0.0, c1, c2, c3),), **others)


LAWS = {
    "normal": (one_piece(c2=0.5), norm),
    "laplace": (one_piece(c1=1.0), laplace),
    "flipped_huber": (
        Exponent((0.0, 2.0), ((0.0, 2.0, 0.0, 0.0), (2.0, 0.0, 0.5, 0.0))),
        Symmetric(_flipped_huber_mass),
    ),
    "osgt": (one_piece(c1=1.3, c2=0.5), Symmetric(lambda x: _normal_mass(x + 1.3))),
    "truncated_laplace": (
        one_piece(c1=1.0, end=3.0),
        Symmetric(lambda x: np.maximum(np.exp(-x) - math.exp(-3.0), 0.0), 3.0),
    ),
    "subbotin": (
        one_piece(c3=1.0, power=1.5),
        Symmetric(lambda x: gammaincc(1 / 1.5, x**1.5)),
    ),
    "subbotin_5": (one_piece(c3=0.2, power=5.0), Symmetric(lambda x: gammaincc(0.2, 0.2 * x**5))),
    "staircase": _staircase(1.0, 0.37),
    "steep_staircase": _staircase(8.0, 1.0 / (1.0 + math.exp(4.0))),
    "flat_staircase": _staircase(0.1, 0.49),
}


def discrete_laplace(b):
    return one_piece(c1=1.0 / b)


def discrete_gaussian(sigma):
    return one_piece(c2=0.5 / sigma**2)


INTEGERS = {
    "laplace_0.3": (discrete_laplace, 0.3),
    "laplace_1.7": (discrete_laplace, 1.7),
    "gaussian_0.4": (discrete_gaussian, 0.4),
    "gaussian_3.3": (discrete_gaussian, 3.3),
}
# So wide that rounded continuous noise has the same probabilities to ten digits.
WIDE = {
    "laplace_1e6": (discrete_laplace, 1e6, laplace),
    "laplace_1e12": (discrete_laplace, 1e12, laplace),
    "gaussian_1e5": (discrete_gaussian, 1e5, norm),
    "gaussian_1e9": (discrete_gaussian, 1e9, norm),
}


def integer_weights(exponent):
    """Weights of -200, ..., 200 under a law of one piece."""
    k = np.abs(np.arange(-200.0, 201.0))
    return np.exp(-exponent.coefficients[0][1] * k - exponent.coefficients[0][2] * k**2)
