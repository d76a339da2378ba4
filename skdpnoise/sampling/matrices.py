"""Exact rounded samples of symmetric matrices whose density depends on eigenvalues alone.

They give pure privacy to second moments: see :mod:`skdpnoise.mechanisms.matrices.calibrate`.
"""

from __future__ import annotations

import math

import numpy as np

from skdpnoise.sampling.balls import most_places, scaled_normal
from skdpnoise.sampling.bits import Integers
from skdpnoise.sampling.lazy import (
    EXTENSIONS,
    LazyNumbers,
    exponentials,
    half_normals,
    settled,
    with_random_signs,
)
from skdpnoise.sampling.words import RandomWords

__all__ = ["MOST_ROWS", "rounded_frobenius", "rounded_wishart", "wishart_places"]

_FINEST = 52  # most places of half-normals
_FLOAT_ERROR = 2.0**-48  # above the relative error of the ten operations of one magnitude
_LIMB = 19  # bits of a limb: sums of products of two stay exact in double precision
_LOW = (1 << _LIMB) - 1
MOST_ROWS = (1 << 53 - 2 * _LIMB - 1) - 1  # sums of 2 (p + 1) products of limbs stay exact
_MOST_RESULT_BITS = 50  # of the places of a result and of the degrees of freedom together


def rounded_frobenius(
    rng: RandomWords, size: int, bits: int, *, places: int = _FINEST
) -> tuple[Integers, Integers]:
    r"""Draw :math:`\mathrm{round}(2^{bits} M)`, M symmetric of density :math:`e^{-|M|_F}`.

    .. math:: M_{jj} = \sqrt{V} \, G_{jj}, \qquad M_{jk} = \sqrt{V/2} \; G_{jk}, \qquad
              V \sim \chi^2_{D+1}, \quad D = p (p + 1)/2

    Reference: Gómez, Gómez-Villegas and Marín, "A multivariate generalization of the power
    exponential family of distributions", Communications in Statistics 1998 (the mixture, at β =
    1/2).
    """
    # with G standard normal, as in skdpnoise.sampling.balls.rounded_euclidean. V is drawn to 64
    # places more than a double holds. Magnitudes are bounded from both sides in double precision;
    # where the bounds round to different integers, the computation is repeated in integers, with
    # more places if need be.
    n_entries = size * (size + 1) // 2
    n_terms, odd = divmod(n_entries + 1, 2)
    terms = exponentials(rng, n_terms, min(places, most_places(n_terms)))
    extra = half_normals(rng, odd, places)
    normals = half_normals(rng, n_entries, places)
    sign = with_random_signs(rng, np.ones(n_entries, dtype=np.int64))
    q = places + EXTENSIONS[0]
    low = sum(terms.floor(i, q) for i in range(n_terms)) << (q + 1)
    high = low + (n_terms << (q + 1))
    if odd:
        root = extra.floor(0, q)
        low, high = low + root**2, high + (root + 1) ** 2
    halved = np.arange(n_entries) >= size
    ends = []
    for one, variance in enumerate((low, high)):
        first = math.ldexp((variance >> 128) + one, -2 * places)
        scale = np.sqrt(np.where(halved, 0.5, 1.0) * first)
        error = 1.0 + (_FLOAT_ERROR if one else -_FLOAT_ERROR)
        magnitude = (normals.first + one) * scale * error
        ends.append(np.floor(np.ldexp(magnitude, bits + 1 - places)).astype(np.int64))
    twice = ends[0]
    for index in np.flatnonzero(ends[0] != ends[1]).tolist():
        twice_bits = 2 * bits + 2 - int(halved[index])
        square = (extra, 0) if odd else None
        twice[index] = scaled_normal(terms, range(n_terms), normals, index, square, twice_bits)
    drawn = sign * ((twice + 1) >> 1)
    return drawn[:size], drawn[size:]


def wishart_places(size: int) -> int:
    """Return the most binary places at which all but one entry in a thousand or so are decided."""
    return _FINEST - 12 - (2 * size + 1).bit_length()


def rounded_wishart(
    rng: RandomWords, size: int, bits: int, *, places: int = _FINEST
) -> tuple[Integers, Integers]:
    r"""Draw :math:`\mathrm{round}(2^{bits} (W - W'))`, two Wishart matrices of p + 1 degrees.

    .. math:: W = \sum_{i=1}^{p+1} g_i g_i^\top, \qquad g_i \sim N(0, I_p)

    Reference: Wishart, "The generalised product moment distribution in samples from a normal
    multivariate population", Biometrika 1928 (the density).
    """
    # Each W has the density ∝ e^{-\mathrm{tr} W/2} on the cone of positive semi-definite matrices.
    # The normal numbers are known to `places` binary places at first, and cut into limbs of 19
    # bits, whose products are summed exactly in double precision. Entries that the unknown places
    # could move over a rounding boundary are computed again in integers of more places.
    n_normals = 2 * (size + 1)
    if size > MOST_ROWS or bits + n_normals.bit_length() > _MOST_RESULT_BITS:
        raise ValueError(
            f"The 'size' parameter of rounded_wishart must be at most {MOST_ROWS}, and less for "
            f"so many binary places: integers of 64 bits hold no more. Got {size!r} and 'bits' "
            f"{bits!r} instead."
        )
    normals = half_normals(rng, size * n_normals, places)
    ones = np.ones(normals.first.size, dtype=np.int64)
    sign = with_random_signs(rng, ones).reshape(size, n_normals)
    above, below, unknown = _bounded_products(normals, sign, places)
    shift = places * 2 - 2 * _LIMB - bits - 1  # from units of `below` to those of the result
    ends = []
    for error in (-unknown, unknown):
        low = below + error
        if shift <= 2 * _LIMB:
            ends.append((above << (2 * _LIMB - shift)) + (low >> shift))
        else:
            ends.append((above + (low >> (2 * _LIMB))) >> (shift - 2 * _LIMB))
    rows, columns = np.triu_indices(size)
    twice = ends[0][rows, columns]
    open_entries = np.flatnonzero(twice != ends[1][rows, columns])
    for index in open_entries.tolist():
        twice[index] = _product(normals, sign, int(rows[index]), int(columns[index]), bits + 1)
    drawn = (twice + 1) >> 1
    diagonal = rows == columns
    return drawn[diagonal], drawn[~diagonal]


def _bounded_products(
    normals: LazyNumbers, sign: Integers, places: int
) -> tuple[Integers, Integers, Integers]:
    """Return integers a, b, e such that the entries are a 2**38 + b, but for at most e."""
    # Units are 2**(38 - 2 places), and b is in [0, 2**38).
    size, n_normals = sign.shape
    half = n_normals // 2
    first = normals.first.reshape(size, n_normals)
    limbs = [first >> (2 * _LIMB), (first >> _LIMB) & _LOW, first & _LOW]
    left = [(limb * sign).astype(np.float64) for limb in limbs]
    right = [limb.copy() for limb in left]
    for limb in right:
        limb[:, half:] *= -1.0  # the second matrix is subtracted

    def product(i: int, j: int) -> Integers:
        # Of integers, whose sums are exact in whatever order they are taken.
        return (left[i] @ right[j].T).astype(np.int64)

    def both(i: int, j: int) -> Integers:
        one = product(i, j)
        return one + one.T

    # The product of the last limbs is left out, and so is what is below the last place: each is
    # less than 2**38 in units of 2**(-2 places), and first + second + 1 of these.
    carried = (both(1, 2) >> _LIMB) + product(1, 1) + both(0, 2)
    middle = both(0, 1) + (carried >> _LIMB)
    above = product(0, 0) + (middle >> _LIMB)
    below = ((middle & _LOW) << _LIMB) + (carried & _LOW)
    # Rounded down term by term, since the sum of many terms may not fit 63 bits.
    sums = (first >> (2 * _LIMB)).sum(axis=1) + n_normals
    unknown = np.add.outer(sums, sums) + 3 * n_normals + 4
    return above, below, unknown


def _product(normals: LazyNumbers, sign: Integers, row: int, column: int, bits: int) -> int:
    """Return floor(2**bits times an entry) from as many places as it takes."""
    n_normals = sign.shape[1]
    half = n_normals // 2
    signs = (sign[row] * sign[column] * np.where(np.arange(n_normals) < half, 1, -1)).tolist()

    def ends(extension: int) -> tuple[int, int]:
        q = normals.bits + extension
        low = high = 0
        for i, one in enumerate(signs):
            a, b = (normals.floor(j * n_normals + i, q) for j in (row, column))
            least, most = a * b, (a + 1) * (b + 1)
            low += least if one > 0 else -most
            high += most if one > 0 else -least
        return low >> (2 * q - bits), high >> (2 * q - bits)

    return settled(ends)
