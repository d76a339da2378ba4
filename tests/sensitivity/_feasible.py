"""Boxes and balls that touch, and points that are within them exactly: for tests of worst cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

UNITS = [1.0, 1e-150, 1e140, 3.0**-0.5, 7.1]


@dataclass(frozen=True)
class Instance:
    """A box, a ball that may touch it, and scales of noise."""

    limit: np.ndarray
    radius: float
    scale: np.ndarray
    ball: float  # its order: 1 or 2


def exactly(values):
    return [Fraction(float(value)) for value in values]


def pushed_inside(point, instance):
    """Return a point next to the given one that obeys the box and the ball in exact arithmetic."""
    point = np.minimum(np.abs(np.asarray(point, dtype=float)), instance.limit)
    power, room = int(instance.ball), Fraction(float(instance.radius)) ** int(instance.ball)
    relative = point / instance.radius
    point = point / max(1.0, float(np.sum(relative**power)) ** (1.0 / power))
    for _ in range(100):
        if sum(x**power for x in exactly(point)) <= room:
            return point
        point = point * (1.0 - 2.0**-52)
    raise AssertionError("rounding cannot move a point so far out of the ball")


def candidates(instance, q) -> Iterator[np.ndarray]:
    """Points near where the weighted norm of order q may be largest."""
    limit, r, size = instance.limit, instance.ball, instance.limit.size
    yield limit
    yield from np.diag(limit)
    # Filled in the order of the scales, of the limits, and of both, as far as the ball allows.
    for key in (instance.scale, -limit, -limit / instance.scale):
        point, room = np.zeros(size), 1.0
        for j in np.argsort(key, kind="stable"):
            part = min(float(limit[j] / instance.radius), max(room, 0.0) ** (1.0 / r))
            point[j] = part * instance.radius
            room -= part**r
            yield point.copy()
    if r > q:
        shape = (instance.scale.min() / instance.scale) ** (q / (r - q))
        low, high = 0.0, float((limit / shape).max())
        for _ in range(100):  # the level at which min(limit, level * shape) leaves the ball
            middle = 0.5 * (low + high)
            inside = np.sum((np.minimum(limit, middle * shape) / instance.radius) ** r) <= 1.0
            low, high = (middle, high) if inside else (low, middle)
        yield np.minimum(limit, low * shape)
        for level in np.unique(limit / shape)[:: max(1, size // 6)]:
            yield np.minimum(limit, level * shape)


def feasible_points(instance, q, few=3) -> list[np.ndarray]:
    """Return feasible points: those of the candidates with the largest weighted norms."""
    inside = [pushed_inside(point, instance) for point in candidates(instance, q)]
    with np.errstate(under="ignore"):
        sizes = [
            float(np.sum((x / instance.radius * (instance.scale.min() / instance.scale)) ** q))
            for x in inside
        ]
    return [inside[k] for k in np.argsort(sizes, kind="stable")[::-1][:few]]


@st.composite
def instances(draw, balls=(1.0, 2.0), most=20, units=UNITS):
    """Instances where floating-point comparisons tie.

    The ball goes through a corner of the box, or of some of its sides, give or take a few ulps;
    bounds and scales are equal, of few sizes, or spread over many orders of magnitude.
    """
    size, ball = draw(st.integers(1, most)), draw(st.sampled_from(balls))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = ["equal", "two sizes", "some", "wide"]
    limit = {
        "equal": lambda: np.full(size, size ** (-1.0 / ball)),
        "two sizes": lambda: rng.choice([0.3, 1.0], size),
        "some": lambda: rng.uniform(0.1, 1.0, size),
        "wide": lambda: 10.0 ** rng.uniform(-9.0, 0.0, size),
    }[draw(st.sampled_from(kinds))]()
    scale = {
        "equal": lambda: np.ones(size),
        "steps": lambda: np.linspace(1.0, 10.0, size),
        "as the box": lambda: limit.copy(),
        "some": lambda: rng.lognormal(0.0, 1.0, size),
        "wide": lambda: 10.0 ** rng.uniform(-8.0, 8.0, size),
    }[draw(st.sampled_from(["equal", "steps", "as the box", "some", "wide"]))]()
    sides = rng.permutation(size)[: draw(st.integers(1, size))]
    if draw(st.booleans()):
        sides = np.arange(size)
    radius = float(np.sum(limit[sides] ** ball)) ** (1.0 / ball)
    towards = draw(st.sampled_from([0.0, math.inf]))
    for _ in range(draw(st.integers(0, 2))):
        radius = math.nextafter(radius, towards)
    radius *= draw(st.sampled_from([1.0, 1.0, 1.0 - 1e-13, 1.0 + 1e-13, 0.6, 3.0]))
    unit = draw(st.sampled_from(units))
    limit = np.maximum(limit * unit, 1e-300)
    return Instance(limit, max(radius * unit, float(limit.max())), scale, ball)
