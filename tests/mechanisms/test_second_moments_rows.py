"""What one row does to counts of second moments is what is charged for, by force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from skdpnoise.kernels import second_moments
from skdpnoise.mechanisms import calibrate_second_moments
from skdpnoise.privacy import PureLoss
from skdpnoise.sensitivity import RowBounds
from tests._cases import each_value, quick
from tests.mechanisms._second_moments import ADJACENCIES, BOUNDS, NOISES, budget, resource

# What a row can do, replayed through the solver that counts


def frobenius_weights(mechanism):
    """Weights of the entries of the upper triangle in the norm that counts, and its order."""
    p, r = mechanism.n_columns, mechanism.off_diagonal
    upper = np.triu(np.ones((p, p)), 1)
    if mechanism.noise.endswith("_laplace"):
        return np.eye(p) + upper / r, 1
    return np.eye(p) + upper * (2.0 if mechanism.noise == "k_norm" else r**-2), 2


def costs(mechanism, changes):
    """What changes of the integers cost, from the definition of the noise."""
    scaled = np.asarray(changes) * 4.0**-mechanism.bits
    if mechanism.noise == "wishart":
        return 0.5 * np.abs(np.linalg.eigvalsh(scaled)).sum(axis=-1)
    weights, order = frobenius_weights(mechanism)
    return (weights * np.abs(scaled) ** order).sum(axis=(-1, -2)) ** (1.0 / order)


def rows_to_try(rng, bounds, scale):
    """Rows of every kind, and those that the bounds are made for."""
    p = bounds.n_columns
    c = bounds.limits
    rows = [rng.normal(size=p) * 10.0 ** rng.uniform(-3, 6, size=p) for _ in range(60)]
    rows += [sign * 1e9 * np.eye(p)[j] for j in range(p) for sign in (-1.0, 1.0)]
    rows += [sign * 1e9 * np.ones(p) for sign in (-1.0, 1.0)]
    rows += [c * rng.choice([-1.0, 1.0], p) for _ in range(20)]
    filled, room = np.zeros(p), bounds.radius**2
    for j in np.argsort(scale):
        filled[j] = math.sqrt(min(c[j] ** 2, room))
        room -= filled[j] ** 2
    rows += [filled, 1e9 * np.where(np.arange(p) % 2, 1.0, -1.0)]
    angles = np.where(np.arange(p) < p // 2, 1.0, 5.0) * np.pi / 8
    rows += [1e9 * np.cos(angles), 1e9 * np.sin(angles)]
    if bounds.l1_norm is not None:
        # Two values, such that both balls are touched.
        mean = bounds.l1_norm / p
        spread = math.sqrt(max(bounds.norm**2 / p - mean**2, 0.0))
        rows.append(np.repeat([mean - spread, mean + spread], [p // 2, p - p // 2]))
    return np.array(rows)


REACHED = (
    {
        ("add_remove", noise, kind)
        for noise, kind in itertools.product(NOISES, BOUNDS)
        if not (kind == "all" or (noise.endswith("_laplace") and kind in ("columns", "l1")))
    }
    | {("replace_one", noise, "ball") for noise in NOISES if not noise.endswith("_laplace")}
    | {("replace_one", noise, "one") for noise in NOISES}
    | {("add_remove", "inid_laplace", "l1")}
)


@quick("inid_gaussian")
@each_value(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("noise", NOISES)
def test_no_row_changes_the_counts_by_more_than_is_paid_for(noise, kind, adjacency):
    rng, bounds = np.random.default_rng(0), BOUNDS[kind]
    mechanism = calibrate_second_moments(noise, bounds, budget(noise), adjacency)
    allowed = resource(mechanism.privacy_loss())
    keywords = {
        "row_grid_size": mechanism.row_grid_size,
        "norm": bounds.norm,
        "columns": bounds.columns,
        "l1_norm": bounds.l1_norm,
    }
    rows = rows_to_try(rng, bounds, mechanism.row_scale)
    counts = np.array([second_moments(row[None], **keywords) for row in rows])
    changes = counts
    if adjacency == "replace_one":
        one, other = np.triu_indices(len(rows), 1)
        changes = counts[one] - counts[other]
    largest = costs(mechanism, changes).max()
    assert largest <= allowed
    if (adjacency, noise, kind) in REACHED:
        assert largest >= 0.99 * allowed


def test_only_the_row_that_changes_matters():
    rng, bounds = np.random.default_rng(1), RowBounds(3, 1.0, l1_norm=1.5)
    mechanism = calibrate_second_moments("auto", bounds, PureLoss(1.0), "replace_one")
    keywords = {"row_grid_size": mechanism.row_grid_size, "norm": 1.0, "l1_norm": 1.5}
    X = rng.normal(size=(50, 3)) * 1e3
    other = X.copy()
    other[17] = [1e100, -1e-100, 0.0]
    whole = second_moments(X, **keywords) - second_moments(other, **keywords)
    alone = second_moments(X[17:18], **keywords) - second_moments(other[17:18], **keywords)
    assert (whole == alone).all()


# The Wishart noise is pure

NODES = np.polynomial.legendre.leggauss(300)


def wishart_log_density(t, v):
    """Return log g at the matrix t I + (traceless of norm v), of size 2, by quadrature.

    Positive semi-definite matrices of size 2 are a I + B with B traceless, a point of the plane, of
    norm at most a. So W = A lies above 0 and W' = A - M above 0 if B is in two discs, of radius a
    around 0 and of radius a - t around M, and the density there is exp(-a) exp(-(a - t)).
    """
    nodes, weights = NODES
    low = max(0.0, t, 0.5 * (v + t))
    a = low + 30.0 * (0.5 + 0.5 * nodes) ** 2  # fine near the tip
    width = 30.0 * (0.5 + 0.5 * nodes) * weights
    return math.log(np.sum(width * np.exp(-2.0 * a + t) * lens(a, a - t, v)))


def lens(r, s, d):
    """Return the area that two discs of radius r and s have in common, at distance d."""
    small, large = np.minimum(r, s), np.maximum(r, s)
    inside = d <= large - small
    with np.errstate(invalid="ignore", divide="ignore"):
        x = (d * d + r * r - s * s) / (2.0 * d)
        y = (d * d + s * s - r * r) / (2.0 * d)
        segments = [
            q * q * np.arccos(np.clip(u / q, -1, 1)) - u * np.sqrt(np.maximum(q * q - u * u, 0.0))
            for q, u in ((r, x), (s, y))
        ]
    return np.where(inside, np.pi * small**2, sum(segments))


def test_the_wishart_density_never_falls_faster_than_is_charged_for():
    rng, steepest = np.random.default_rng(0), 0.0
    for _ in range(600):
        t, dt = rng.normal(size=2) * rng.choice([0.1, 1.0, 3.0])
        v, dv = rng.normal(size=(2, 2)) * rng.choice([0.1, 1.0, 3.0])
        if rng.random() < 0.2:
            dv *= 0.0
        nuclear = 2.0 * max(abs(dt), np.linalg.norm(dv))  # eigenvalues dt +- |dv|
        fall = wishart_log_density(t, np.linalg.norm(v)) - wishart_log_density(
            t + dt, np.linalg.norm(v + dv)
        )
        assert abs(fall) <= 0.5 * nuclear * (1.0 + 1e-3) + 1e-5
        steepest = max(steepest, abs(fall) / (0.5 * nuclear))
    assert steepest > 0.9
    # Far out, towards where the data point, the bound is reached.
    fall = wishart_log_density(6.0, 0.0) - wishart_log_density(7.0, 0.0)
    assert 0.85 < fall <= 1.0
