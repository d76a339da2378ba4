"""Noise families on symmetric matrices: worst case, moments, draws, and shapes worth trying."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.allocation import fill, norm, shape_of
from skdpnoise.privacy import Adjacency
from skdpnoise.sampling import Exponent, RandomWords, balls, piecewise
from skdpnoise.sensitivity import RowBounds, SensitivityProfile, second_moment_change
from skdpnoise.sensitivity.second_moments import ChangeNorm

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[RandomWords, int, float, int], tuple[Integers, Integers]]

_HALF = math.sqrt(0.5)
_MOST_BITS = 52


@dataclass(frozen=True, slots=True)
class Family:
    """Noise on the entries of a symmetric matrix, at unit scale."""

    pure: bool
    norm: ChangeNorm
    deviations: Callable[[int, float], tuple[float, float]]
    draw: Draw
    most_bits: Callable[[int], int]
    most_columns: float = math.inf

    def change(
        self, bounds: RowBounds, adjacency: Adjacency, scale: Vector, off_diagonal: float
    ) -> float:
        """Return the most that one record can do, in units of the noise: the loss."""
        worst = second_moment_change(
            bounds, adjacency, norm=self.norm, scale=scale, off_diagonal=off_diagonal
        )
        return 0.5 * worst if self.norm == "nuclear" else worst


def _independent(
    rounded: Callable[[RandomWords, int, int], Integers], exponent: Callable[[float], Exponent]
) -> Draw:
    """Return a sampler of independent entries; off the diagonal by the exponent at a scale r."""

    def draw(
        rng: RandomWords, size: int, off_diagonal: float, bits: int
    ) -> tuple[Integers, Integers]:
        diagonal, n_others = rounded(rng, size, bits), size * (size - 1) // 2
        if off_diagonal == 1.0:
            return diagonal, rounded(rng, n_others, bits)
        return diagonal, piecewise.rounded_piecewise(rng, n_others, bits, exponent(off_diagonal))

    return draw


def _exponent(linear: float, square: float) -> Exponent:
    return Exponent((0.0,), ((0.0, linear, square, 0.0),))


GAUSSIAN = Family(
    False,
    "l2",
    lambda p, r: (1.0, r),
    _independent(
        piecewise.rounded_gaussian, lambda r: _exponent(0.0, 1.0 if r == _HALF else 0.5 / r**2)
    ),
    lambda p: _MOST_BITS,
)
LAPLACE = Family(
    True,
    "l1",
    lambda p, r: (math.sqrt(2.0), math.sqrt(2.0) * r),
    _independent(piecewise.rounded_laplace, lambda r: _exponent(1.0 / r, 0.0)),
    lambda p: _MOST_BITS,
)
K_NORM = Family(
    True,
    "l2",
    lambda p, r: (math.sqrt(p * (p + 1) / 2 + 1), math.sqrt(0.5 * (p * (p + 1) / 2 + 1))),
    lambda rng, size, r, bits: balls.rounded_frobenius(rng, size, bits),
    lambda p: min(44, balls.most_places(p * (p + 1) // 2 + 1) - 1),
)
WISHART = Family(
    True,
    "nuclear",
    lambda p, r: (2.0 * math.sqrt(p + 1.0), math.sqrt(2.0 * (p + 1.0))),
    lambda rng, size, r, bits: balls.rounded_wishart(rng, size, bits),
    balls.wishart_places,
    balls.MOST_ROWS,
)

FAMILIES = {
    "iid_gaussian": GAUSSIAN,
    "inid_gaussian": GAUSSIAN,
    "iid_laplace": LAPLACE,
    "inid_laplace": LAPLACE,
    "k_norm": K_NORM,
    "wishart": WISHART,
}


def proposals(noise: str, bounds: RowBounds) -> Iterator[tuple[Vector, float]]:
    """Yield scales of the columns, up to a common factor, and the ratio off the diagonal."""
    ones = np.ones(bounds.n_columns)
    if noise.startswith("iid_"):
        yield ones, 1.0
        return
    limits = bounds.limits / bounds.limits.max()
    shapes = [ones]
    if limits.min() < 1.0:
        shapes += [np.sqrt(_capped(bounds)), np.sqrt(limits)]
        if noise == "inid_laplace":
            profile = SensitivityProfile(bounds.limits, l1=bounds.l1_norm, l2=bounds.radius)
            shapes.append(shape_of("inid", profile, order=1.0, weights=None, p=2.0))
    for shape in shapes:
        ratios = iter([_HALF])  # inherent to the other two
        if noise == "inid_laplace":
            ratios = _laplace_ratios(bounds, shape)
        elif noise == "inid_gaussian":
            ratios = _gaussian_ratios(bounds, shape)
        for ratio in ratios:
            yield shape, ratio


def _capped(bounds: RowBounds) -> Vector:
    """Return min(c, τ), of norm R if the box reaches so far, in units of R."""
    limits = bounds.limits / bounds.radius
    return limits if norm(limits, 2.0) <= 1.0 else fill(limits, np.ones(limits.size), 2.0)


def _sums(shape: Vector) -> tuple[float, float]:
    """Return the sums of s_j² s_k² on the diagonal and off it, which the variances multiply."""
    diagonal = float(np.sum(shape**4))
    return diagonal, float(np.sum(shape**2)) ** 2 - diagonal


def _gaussian_ratios(bounds: RowBounds, shape: Vector) -> Iterator[float]:
    """Yield √(1/2), and the best ratio for rows that cannot have all their weight in one column."""
    # The error is (a + b ρ) (f/(2 ρ) + g - g/(2 ρ)) with ρ = r², f = A² and g the bound on Σ u_j^2,
    # so ρ^2 = a (f - g) / (2 b g).
    yield _HALF
    diagonal, others = _sums(shape)
    if others > 0.0:
        # At r = 1 the squared change is (f + g) / 2.
        whole = second_moment_change(bounds, "add_remove", scale=shape, off_diagonal=_HALF)
        mixed = second_moment_change(bounds, "add_remove", scale=shape, off_diagonal=1.0)
        uneven = 2.0 * mixed**2 - whole**2
        rho = math.sqrt(diagonal * max(whole**2 - uneven, 0.0) / (2.0 * others * uneven))
        if rho > 0.5:
            yield math.sqrt(rho)


def _laplace_ratios(bounds: RowBounds, shape: Vector) -> Iterator[float]:
    """Yield the best ratio under either bound; see `calibrate_second_moments`."""
    yield 1.0
    diagonal, others = _sums(shape)
    if others > 0.0:
        squares = bounds.largest_square(shape)
        rest = max(0.0, 0.5 * (bounds.largest_sum(shape) ** 2 - squares))
        yield max(0.5, math.cbrt(rest / squares * diagonal / others))
        yield max(0.5, (0.25 * (bounds.n_columns - 1) * diagonal / others) ** 0.25)
