"""Exact rounded samples of vectors and symmetric matrices whose density depends on a norm alone."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from skdpnoise._utils.checks import complaint
from skdpnoise.sampling import lazy
from skdpnoise.sampling.bits import Floats, Integers
from skdpnoise.sampling.lazy import LazyNumbers
from skdpnoise.sampling.words import RandomWords

One = tuple[LazyNumbers, int]
"""One of several numbers, by its index."""

_COARSEST = 32  # fewest places of a draw in the cube: more means that fewer draws must be extended
_FINEST = 52  # most places of half-normals
_FLOAT_ERROR = 2.0**-49  # above the relative error of the seven operations of one magnitude
_MATRIX_ERROR = 2.0**-48  # and that of ten
_LEVEL_BITS = 62  # of the uniform number that chooses a level
_LIMB = 19  # bits of a limb: sums of products of two stay exact in double precision
_LOW = (1 << _LIMB) - 1
MOST_ROWS = (1 << 53 - 2 * _LIMB - 1) - 1  # sums of 2 (p + 1) products of limbs stay exact
_MOST_RESULT_BITS = 50  # of the places of a result and of the degrees of freedom together


def most_places(n_exponentials: int) -> int:
    """Return the binary places at which a sum of exponentials fits 62 bits."""
    # Chernoff's bound: n of them exceed 8 n + 600 with probability below 2^n e^{-4n-300} < 2^-400.
    return 62 - (8 * n_exponentials + 600).bit_length()


def rounded_cube(
    rng: RandomWords, n_draws: int, n_coordinates: int, bits: int, *, places: int | None = None
) -> Integers:
    r"""Draw :math:`\mathrm{round}(2^{bits} X)`, X of density :math:`\propto e^{-|x|_\infty}`.

    Reference: Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, Section 4.
    """
    # X is uniform on the cube of half-width R, the sum of K + 1 exponential numbers. A coordinate
    # is drawn uniformly up to a bound just above R, and rejected if it exceeds R itself.
    places = max(bits + 1, _COARSEST) if places is None else places
    radius = lazy.exponentials(rng, n_draws * (n_coordinates + 1), places)
    least = radius.first.reshape(n_draws, n_coordinates + 1).sum(axis=1)
    bounds = least + (n_coordinates + 1)
    candidates = lazy.uniforms(rng, bounds, n_coordinates, places)
    cells = candidates.first
    for index in np.flatnonzero(cells >= np.repeat(least, n_coordinates)).tolist():
        draw = index // n_coordinates
        terms = range(draw * (n_coordinates + 1), (draw + 1) * (n_coordinates + 1))
        candidate = LazyNumbers(rng, cells[index : index + 1].copy(), places)
        while candidate.first[0] >= least[draw] and not _is_below_sum(candidate, radius, terms):
            candidate = lazy.uniforms(rng, bounds[draw : draw + 1], 1, places)
        cells[index] = candidate.first[0]
    cells >>= places - bits - 1
    return lazy.with_random_signs(rng, (cells + 1) >> 1).reshape(n_draws, n_coordinates)


def _is_below_sum(candidate: LazyNumbers, numbers: LazyNumbers, terms: range) -> bool:
    def ends(extension: int) -> tuple[bool, bool]:
        bits = numbers.bits + extension
        least = sum(numbers.floor(term, bits) for term in terms)
        value = candidate.floor(0, bits)
        return value < least, value < least + len(terms)

    return lazy.settled(ends)


def rounded_euclidean(
    rng: RandomWords, n_draws: int, n_coordinates: int, bits: int, *, places: int = _FINEST
) -> Integers:
    r"""Draw :math:`\mathrm{round}(2^{bits} X)`, X of density :math:`\propto e^{-|x|_2}`.

    .. math:: X = \sqrt{V} \, G, \qquad V \sim \chi^2_{K+1}

    Reference: Gómez, Gómez-Villegas and Marín, "A multivariate generalization of the power
    exponential family of distributions", Communications in Statistics 1998 (the mixture, at β =
    1/2).
    """
    # with G standard normal: a scale mixture, so nothing is divided. V is twice a sum of
    # exponential numbers, plus the square of a normal one if K is even. Magnitudes are bounded from
    # both sides in double precision; where the bounds round to different integers, more places are
    # drawn and the computation is repeated in integers.
    n_terms, odd = divmod(n_coordinates + 1, 2)
    terms = lazy.exponentials(rng, n_draws * n_terms, min(places, most_places(n_terms)))
    normals = lazy.half_normals(rng, n_draws * (n_coordinates + odd), places)
    table = normals.first.reshape(n_draws, n_coordinates + odd)
    total = terms.first.reshape(n_draws, n_terms).sum(axis=1)

    def bound(one: int) -> Integers:
        variance = np.ldexp((total + one * n_terms).astype(np.float64), 1 - terms.bits)
        if odd:
            variance += np.ldexp((table[:, -1] + one).astype(np.float64), -places) ** 2
        magnitude = (table[:, :n_coordinates] + one) * np.sqrt(variance)[:, None]
        return _away(magnitude, _FLOAT_ERROR if one else -_FLOAT_ERROR, bits + 1 - places)

    twice = bound(0)
    for draw, column in np.argwhere(twice != bound(1)).tolist():
        extra = (normals, (draw + 1) * table.shape[1] - 1) if odd else None
        index = draw * table.shape[1] + column
        mine = range(draw * n_terms, (draw + 1) * n_terms)
        twice[draw, column] = scaled_normal(terms, mine, (normals, index), extra, 2 * bits + 2)
    return lazy.with_random_signs(rng, (twice + 1) >> 1)


def _away(magnitudes: Floats, error: float, places: int) -> Integers:
    """Return floor(2**places times magnitudes), moved down or up by a relative error first."""
    return np.floor(np.ldexp(magnitudes * (1.0 + error), places)).astype(np.int64)


def scaled_normal(
    terms: LazyNumbers, mine: range, normal: One, extra: One | None, twice_bits: int
) -> int:
    """Return floor(2**bits sqrt(V) G), V twice a sum of terms, plus the square of the extra."""

    normals, index = normal

    def ends(extension: int) -> tuple[int, int]:
        places = normals.bits + extension
        least = sum(terms.floor(term, places) for term in mine)
        factor = normals.floor(index, places)
        square = 0 if extra is None else extra[0].floor(extra[1], places)
        low, high = least << (places + 1), (least + len(mine)) << (places + 1)
        if extra is not None:
            low, high = low + square**2, high + (square + 1) ** 2
        shift = 4 * places - twice_bits
        return math.isqrt(low * factor**2 >> shift), math.isqrt(high * (factor + 1) ** 2 >> shift)

    return lazy.settled(ends)


@dataclass(frozen=True, slots=True)
class Radii:
    """The law of a radius: j + first / 2**fraction_bits with probability P(j)."""

    # P(0) + ... + P(j) times 2**256, rounded down; the last is left out.
    cumulative: tuple[int, ...]
    # first, fraction_bits: the smallest radius
    first: int
    fraction_bits: int


def rounded_simplex_levels(
    rng: RandomWords,
    n_draws: int,
    n_coordinates: int,
    bits: int,
    radii: Radii,
    places: int | None = None,
) -> Integers:
    r"""Draw :math:`\mathrm{round}(2^{bits} X)`, X uniform on an l1 ball of random radius.

    Reference: Devroye, "Non-uniform random variate generation", 1986, Theorem V.2.1 (spacings).
    """
    # A uniform point of the l1 ball has as magnitudes the spacings of K sorted uniform numbers
    # below the radius, with random signs: all are integers in units of 2**-places, and only their
    # unknown further places must be looked at if a spacing is next to a rounding boundary.
    if places is None:
        places = 61 - (len(radii.cumulative) + 2).bit_length()
    level = _levels(rng, n_draws, radii.cumulative)
    bounds = ((level << radii.fraction_bits) + radii.first) << (places - radii.fraction_bits)
    points = lazy.uniforms(rng, bounds, n_coordinates, places)
    table = np.sort(points.first.reshape(n_draws, n_coordinates), axis=1)
    spacing = np.diff(table, axis=1, prepend=0)
    # A spacing of d cells is between d - 1 and d + 1 of them.
    dropped = places - bits - 1
    open_rows = ((spacing & ((1 << dropped) - 1)) == 0).any(axis=1)
    twice = spacing >> dropped
    for row in np.flatnonzero(open_rows).tolist():
        twice[row] = _spacings(points, row * n_coordinates, n_coordinates, bits + 1)
    return lazy.with_random_signs(rng, (twice + 1) >> 1)


def _levels(rng: RandomWords, n_draws: int, cumulative: tuple[int, ...]) -> Integers:
    numbers = LazyNumbers(rng, (rng.take(n_draws) >> np.uint64(2)).astype(np.int64), 0)
    cuts = np.array([cut >> (256 - _LEVEL_BITS) for cut in cumulative], dtype=np.int64)
    level = np.searchsorted(cuts, numbers.first, side="left").astype(np.int64)
    for draw in np.flatnonzero(level != np.searchsorted(cuts, numbers.first, side="right")):
        level[draw] = bisect_right(cumulative, numbers.floor(int(draw), 256 - _LEVEL_BITS))
    return level


def _spacings(points: LazyNumbers, start: int, count: int, bits: int) -> list[int]:
    """Return floor(2**bits times each spacing) from as many places as it takes."""

    def ends(extension: int) -> tuple[list[int], list[int]]:
        places = points.bits + extension
        values = sorted(points.floor(start + i, places) for i in range(count))
        # The first spacing begins at zero exactly; the others may be one unit less.
        high = [b - a for a, b in zip([0, *values], values, strict=False)]
        low = [high[0], *(spacing - 1 for spacing in high[1:])]
        dropped = places - bits
        return [spacing >> dropped for spacing in low], [spacing >> dropped for spacing in high]

    return lazy.settled(ends)


def rounded_frobenius(
    rng: RandomWords, size: int, bits: int, *, places: int = _FINEST
) -> tuple[Integers, Integers]:
    r"""Draw :math:`\mathrm{round}(2^{bits} M)`, M symmetric of density :math:`e^{-|M|_F}`.

    .. math:: M_{jj} = \sqrt{V} \, G_{jj}, \qquad M_{jk} = \sqrt{V/2} \; G_{jk}, \qquad
              V \sim \chi^2_{D+1}, \quad D = p (p + 1)/2

    Reference: that of :func:`rounded_euclidean`.
    """
    # with G standard normal, as in skdpnoise.sampling.balls.rounded_euclidean. V is drawn to 64
    # places more than a double holds. Magnitudes are bounded from both sides in double precision;
    # where the bounds round to different integers, the computation is repeated in integers, with
    # more places if need be.
    n_entries = size * (size + 1) // 2
    n_terms, odd = divmod(n_entries + 1, 2)
    terms = lazy.exponentials(rng, n_terms, min(places, most_places(n_terms)))
    extra = lazy.half_normals(rng, odd, places)
    normals = lazy.half_normals(rng, n_entries, places)
    sign = lazy.with_random_signs(rng, np.ones(n_entries, dtype=np.int64))
    q = places + lazy.EXTENSIONS[0]
    low = sum(terms.floor(i, q) for i in range(n_terms)) << (q + 1)
    high = low + (n_terms << (q + 1))
    if odd:
        root = extra.floor(0, q)
        low, high = low + root**2, high + (root + 1) ** 2
    halved = np.arange(n_entries) >= size
    ends = []
    for one, variance in enumerate((low, high)):
        first = math.ldexp((variance >> 128) + one, -2 * places)
        scale: Floats = np.sqrt(np.where(halved, 0.5, 1.0) * first)
        error = _MATRIX_ERROR if one else -_MATRIX_ERROR
        ends.append(_away((normals.first + one) * scale, error, bits + 1 - places))
    twice = ends[0]
    for index in np.flatnonzero(ends[0] != ends[1]).tolist():
        twice_bits = 2 * bits + 2 - int(halved[index])
        square = (extra, 0) if odd else None
        twice[index] = scaled_normal(terms, range(n_terms), (normals, index), square, twice_bits)
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
        must = f"be at most {MOST_ROWS}, and less for so many binary places"
        given, remedy = f"{size!r} and 'bits' {bits!r}", "Integers of 64 bits hold no more."
        raise ValueError(complaint("rounded_wishart", "size", must, given, remedy))
    normals = lazy.half_normals(rng, size * n_normals, places)
    ones = np.ones(normals.first.size, dtype=np.int64)
    sign = lazy.with_random_signs(rng, ones).reshape(size, n_normals)
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
    for index in np.flatnonzero(twice != ends[1][rows, columns]).tolist():
        twice[index] = _product(normals, sign, int(rows[index]), int(columns[index]), bits + 1)
    drawn = (twice + 1) >> 1
    diagonal = rows == columns
    return drawn[diagonal], drawn[~diagonal]


def _bounded_products(normals: LazyNumbers, sign: Integers, places: int) -> tuple[Integers, ...]:
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

    return lazy.settled(ends)
