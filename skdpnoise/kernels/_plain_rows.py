"""The functions of ``_rows`` in numpy, for data that are done sooner than numba compiles loops.

They write the same numbers bit for bit: an entry meets the same operations in the same order.
Products are of integers whose sums are below 2**53, and so exact in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Integers count as within a ball up to this factor of the squared norm, for floating-point error;
# mechanisms leave more room than that.
SLACK = 1.0 + 1e-11


@np.errstate(all="ignore")
def standardise(
    tile: Floats, n: int, standard: tuple[Floats, Floats, Floats, Floats], sums: Floats
) -> None:
    center, inverse_scale, beyond, limit = standard
    z = tile[:, :n]
    z -= center[:, None]
    z *= inverse_scale[:, None]
    far = beyond > 0.0
    if far.any():
        z[far] -= _clip(z[far], beyond[far])
    _clip(z, limit)
    squares, magnitudes, sizes = sums[:, :n]
    squares[:], magnitudes[:] = _down(z * z), _down(np.abs(z))
    np.sqrt(squares, out=sizes)
    odd = ~((squares > 1e-280) & (squares < 1e280))
    if odd.any():
        rows = z[:, odd]
        largest = np.abs(rows).max(axis=0)
        shares = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0.0)
        sizes[odd] = largest * np.sqrt(_down(shares * shares))


@np.errstate(all="ignore")
def quantise(
    tile: Floats, n: int, grid: tuple[Floats, Floats, float, float], sums: Floats, out: Floats
) -> None:
    grid_size, most, norm, l1_norm = grid
    _, magnitudes, sizes = sums[:, :n]
    factors = np.where(sizes > norm, norm / sizes, 1.0)
    factors = np.where(magnitudes * factors > l1_norm, l1_norm / magnitudes, factors)
    unit = grid_size[:, None]
    quotients = tile[:, :n] * factors * (1.0 / unit)

    def fits(k: Floats) -> NDArray[np.bool_]:
        value = k * unit
        inside = _down(value * value) <= norm * norm * SLACK
        return inside & (_down(np.abs(value)) <= l1_norm * SLACK)

    k = _clip(np.rint(quotients), most)
    outside = ~fits(k)
    if outside.any():
        truncated = _clip(np.trunc(quotients[:, outside]), most)
        k[:, outside] = np.where(fits(truncated), truncated, 0.0)
    out[: len(k), :n] = k


def add_products(tile: Floats, n: int, total: Floats) -> None:
    """Add the products of all pairs of columns."""
    total += tile[:, :n] @ tile[:, :n].T


def _clip(values: Floats, bound: Floats) -> Floats:
    """Clip values in place; what is not a number becomes the lower bound."""
    np.fmax(values, -bound[:, None], out=values)
    return np.fmin(values, bound[:, None], out=values)


def _down(values: Floats) -> Floats:
    """Add the columns in turn; `numpy.sum` may take another order."""
    total = np.zeros(values.shape[1])
    for column in values:
        total += column
    return total
