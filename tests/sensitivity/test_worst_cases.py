"""Every worst case of the library is an upper bound as computed, at ties too, and a tight one.

A worst case is the largest value of an objective over what one record can do. An entry of the
register computes one, and judges it by points that are feasible, in exact rational arithmetic: so
no rounding hides a bound that is too small. Instances are generated where comparisons of
floating-point numbers tie. A new worst case is a new entry.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from skdpnoise.accounting import queries
from skdpnoise.linear_model import DPCoordinateDescentRegressor
from skdpnoise.mechanisms import k_norm, worst_case_norm
from skdpnoise.mechanisms.allocation import binding_balls, fill, shifts, worst_shift
from skdpnoise.mechanisms.balls import L1StaircaseMechanism
from skdpnoise.mechanisms.matrices import SECOND_MOMENT_NOISES, calibrate_second_moments
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sensitivity import (
    RowBounds,
    SensitivityProfile,
    clipped_gradient,
    clipped_rows,
    clipped_sum,
    second_moment_change,
    second_moments_profile,
)
from skdpnoise.sensitivity.bounds import bounded_ones, clipped_moments, shifted_sums
from skdpnoise.sensitivity.worst_cases import largest_norm, rounded_up
from tests.sensitivity._feasible import Instance, exactly, feasible_points, instances

HALF = math.sqrt(0.5)
CLOSE = 1.0 + 1e-9
Judged = Iterator[tuple[float, int, Fraction, float]]
"""Of each claim: itself, its power, what a feasible point attains in that power, and how close."""


def weighted_power(point, scale, q):
    return sum(
        ((x / s) ** int(q) for x, s in zip(exactly(point), exactly(scale), strict=True)),
        Fraction(0),
    )


def best_power(instance, q):
    points = feasible_points(instance, q)
    return max(weighted_power(point, instance.scale, q) for point in points)


def profile_of(instance):
    name = "l1" if instance.ball == 1.0 else "l2"
    return SensitivityProfile(instance.limit, **{name: instance.radius})


def rows_of(instance, l1_norm=None):
    return RowBounds(instance.limit.size, instance.radius, instance.limit, l1_norm)


# The register: each entry takes an instance whose ball is l2 (first part) or any (second).


def a_weighted_norm_in_a_box_and_a_ball(instance: Instance) -> Judged:
    for q in {1.0, instance.ball}:
        claim = largest_norm(
            1.0 / instance.scale, instance.limit, instance.radius, order=q, ball=instance.ball
        )
        yield claim, int(q), best_power(instance, q), CLOSE


def a_change_of_a_profile(instance: Instance) -> Judged:
    profile = profile_of(instance)
    for q in {1.0, instance.ball}:
        claim = worst_case_norm(instance.scale, profile, q)
        yield claim, int(q), best_power(instance, q), CLOSE
        twice = worst_case_norm(np.stack([instance.scale] * 2), profile, q)
        yield twice, int(q), 2 * best_power(instance, q), CLOSE
    if instance.ball == 1.0:  # enters by the l2 ball that holds it, not tightly for unequal scales
        yield worst_case_norm(instance.scale, profile, 2.0), 2, best_power(instance, 2.0), math.inf
        alike = Instance(instance.limit, instance.radius, np.ones(instance.limit.size), 1.0)
        claim = worst_case_norm(alike.scale, profile, 2.0)
        yield claim, 2, best_power(alike, 2.0), CLOSE


def a_joint_bound_that_an_l1_bound_implies(instance: Instance) -> Judged:
    alike = Instance(instance.limit, instance.radius, np.ones(instance.limit.size), instance.ball)
    for order, radius in binding_balls(profile_of(instance), 2.0):
        assert order == 2.0
        yield radius, 2, best_power(alike, 2.0), CLOSE


def a_vector_filled_to_unit_norm(instance: Instance) -> Judged:
    limit, r = instance.limit / instance.radius, instance.ball
    if float(np.sum(limit**r)) >= 1.0:
        filled = fill(limit, 1.0 / instance.scale, r)
        assert (filled <= limit).all()
        yield float(np.sum(filled**r)) * (1.0 + 1e-12), 1, Fraction(1), CLOSE
        level = filled * instance.scale  # no coordinate below its limit is filled less than others
        assert (level[filled < limit] >= level.max() * (1.0 - 1e-12)).all()


def the_shift_of_all_releases(instance: Instance) -> Judged:
    profile = profile_of(instance)
    for q, releases in itertools.product({1.0, instance.ball}, (1, 3)):
        claim = worst_shift(instance.scale, profile, releases, 52, q)
        yield claim, int(q), releases * best_power(instance, q), math.inf
    values, counts = shifts(instance.scale, profile, 3, 52, by="release")
    assert counts.tolist() == [3.0]
    yield float(values[0]), 1, best_power(instance, 1.0), math.inf
    values, _ = shifts(instance.scale, profile, 1, 52, by="coordinate")
    for value, limit, scale in zip(values, instance.limit, instance.scale, strict=True):
        yield float(value), 1, Fraction(float(limit)) / Fraction(float(scale)), math.inf


def sums_over_a_row(instance: Instance) -> Judged:
    bounds = rows_of(instance)
    yield bounds.largest_sum(instance.scale), 1, best_power(instance, 1.0), CLOSE
    yield bounds.largest_square(instance.scale), 1, best_power(instance, 2.0), CLOSE
    both = rows_of(instance, l1_norm=max(0.7 * float(instance.limit.sum()), bounds.radius))
    for point in feasible_points(instance, 1.0):
        size = sum(exactly(point))
        share = min(Fraction(1), Fraction(both.l1_norm) / size)
        attained = share * weighted_power(point, instance.scale, 1)
        yield both.largest_sum(instance.scale), 1, attained, math.inf


def sums_of_rows(instance: Instance) -> Judged:
    alike = Instance(instance.limit, instance.radius, np.ones(instance.limit.size), 2.0)
    for adjacency, width in (("add_remove", 1), ("replace_one", 2)):
        profile = clipped_rows(rows_of(instance), adjacency)
        yield profile.l1, 1, width * best_power(alike, 1.0), CLOSE
        yield profile.l2, 2, width**2 * best_power(alike, 2.0), CLOSE
        for stated, limit in zip(profile.per_coordinate, instance.limit, strict=True):
            yield float(stated), 1, width * Fraction(float(limit)), CLOSE


def second_moments_of_a_row(instance: Instance) -> Judged:
    bounds = rows_of(instance)
    points = [feasible_points(instance, q, few=1)[0] for q in (1.0, 2.0)]
    for adjacency, off_diagonal in itertools.product(
        ("add_remove", "replace_one"), (HALF, 0.3, 2.0)
    ):
        for norm in ("l2", "l1", "nuclear"):
            if norm == "l2" and off_diagonal < HALF:
                continue
            claim = second_moment_change(
                bounds, adjacency, norm=norm, scale=instance.scale, off_diagonal=off_diagonal
            )
            r, power = Fraction(off_diagonal), 2 if norm == "l2" else 1
            for point in points:
                total = weighted_power(point, instance.scale, 1) ** 2
                squares = weighted_power(point, instance.scale, 2)
                fourth = sum(
                    (x / s) ** 4
                    for x, s in zip(exactly(point), exactly(instance.scale), strict=True)
                )
                attained = {
                    "l2": squares**2 / (2 * r * r) + (1 - 1 / (2 * r * r)) * fourth,
                    "l1": total / (2 * r) + (1 - 1 / (2 * r)) * squares,
                    "nuclear": squares,
                }[norm]
                yield claim, power, attained, math.inf
    close = second_moment_change(bounds, "add_remove", norm="nuclear", scale=instance.scale)
    yield close, 1, best_power(instance, 2.0), CLOSE
    half = second_moment_change(
        bounds, "add_remove", norm="l1", scale=instance.scale, off_diagonal=0.5
    )
    yield half, 1, best_power(instance, 1.0) ** 2, CLOSE


def entries_of_second_moments(instance: Instance) -> Judged:
    p = instance.limit.size
    stated = second_moments_profile(rows_of(instance), "add_remove").per_coordinate
    for (j, k), bound in zip(
        itertools.combinations_with_replacement(range(p), 2), stated, strict=True
    ):
        chosen = [j] if j == k else [j, k]
        pair = Instance(instance.limit[chosen], instance.radius, np.ones(len(chosen)), 2.0)
        for point in feasible_points(pair, 1.0):
            x = exactly(point)
            yield float(bound), 1, x[0] * x[-1], math.inf


def sums_of_clipped_values(instance: Instance) -> Judged:
    low, high = -instance.scale, instance.limit
    widths = clipped_sum(low, high).per_coordinate
    for stated, a, b in zip(widths, exactly(low), exactly(high), strict=True):
        yield float(stated), 1, b - a, CLOSE
    means = clipped_gradient(instance.limit, n_samples=49).per_coordinate
    for stated, c in zip(means, exactly(instance.limit), strict=True):
        yield float(stated), 1, 2 * c / 49, CLOSE
    shifted = shifted_sums(low, high, 0.5 * high + 0.5 * low).per_coordinate[:-1]
    centres = exactly(0.5 * high + 0.5 * low)
    for stated, a, b, c in zip(shifted, exactly(low), exactly(high), centres, strict=True):
        yield float(stated), 1, max(b - c, c - a), CLOSE


def first_two_moments(instance: Instance) -> Judged:
    a = exactly(instance.scale)
    ratio = instance.limit / instance.radius + 0.01
    for factor in (0.5, 1.6, 3.0):
        second = factor * instance.scale * ratio
        profile = clipped_moments(instance.scale, second)
        b = exactly(second)
        grid = [Fraction(k, 16) for k in range(33)]
        l1 = sum(max(d * (x + y * (2 - d)) for d in grid) for x, y in zip(a, b, strict=True))
        l2 = sum(
            max(d * d * (x * x + y * y * (2 - d) ** 2) for d in grid)
            for x, y in zip(a, b, strict=True)
        )
        yield profile.l1, 1, l1, 1.02
        yield profile.l2, 2, l2, 1.02


def noise_by_a_norm(instance: Instance) -> Judged:
    quanta = Fraction(1, 2**20)
    for order, size in ((2.0, 4), (math.inf, 5)):
        made = k_norm(order, instance.radius, size, PureLoss(0.7), n_releases=3)
        rounding = Fraction(1, 2**made.bits) * (2 if order == 2.0 else 1)
        each = Fraction(made.radius) / Fraction(made.scale) + rounding
        yield made.privacy_loss().pure_epsilon, 1, 3 * each, 1.0 + 1e-4
        assert made.privacy_loss().pure_epsilon <= 0.7
    width = float(instance.radius)
    made = L1StaircaseMechanism(4, width, width, 0.5, 0.5, 20)  # as wide as Δ, without rounding
    moved = (Fraction(made.radius) + 4 * quanta * Fraction(width)) / Fraction(width)
    yield made.privacy_loss().pure_epsilon, 1, Fraction(0.5) * math.ceil(moved), CLOSE


L2_ONLY = [
    sums_over_a_row,
    sums_of_rows,
    second_moments_of_a_row,
    entries_of_second_moments,
]
ANY_BALL = [
    a_weighted_norm_in_a_box_and_a_ball,
    a_change_of_a_profile,
    a_vector_filled_to_unit_norm,
    the_shift_of_all_releases,
    sums_of_clipped_values,
    first_two_moments,
    noise_by_a_norm,
]
L1_ONLY = [a_joint_bound_that_an_l1_bound_implies]
REGISTER: dict[str, tuple[Callable[[Instance], Judged], tuple[float, ...]]] = {
    **{entry.__name__: (entry, (2.0,)) for entry in L2_ONLY},
    **{entry.__name__: (entry, (1.0,)) for entry in L1_ONLY},
    **{entry.__name__: (entry, (1.0, 2.0)) for entry in ANY_BALL},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTER)
def test_a_worst_case_is_never_below_a_feasible_point_and_close_to_the_best(name):
    entry, balls = REGISTER[name]

    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(instance=instances(balls, most=6 if name.startswith("entries") else 16))
    def check(instance):
        for claim, power, attained, close in entry(instance):
            assert Fraction(claim) ** power >= attained
            if close < math.inf:
                assert Fraction(claim) ** power <= attained * Fraction(close) ** power

    check()


def test_rounding_up_covers_sums_in_any_order():
    rng = np.random.default_rng(0)
    for size in (1, 2, 17, 3000):
        values = 10.0 ** rng.uniform(-20.0, 3.0, size)
        exact = sum(exactly(values))
        forward = 0.0
        for value in values.tolist():
            forward += value
        for computed in (forward, float(values.sum()), float(values @ np.ones(size))):
            assert exact <= Fraction(rounded_up(computed, size)) <= exact * Fraction(1.0 + 1e-12)
    assert rounded_up(0.0) > 0.0


def test_the_row_of_the_review_is_covered():
    """All columns bounded alike, and the radius their norm, up to rounding."""
    bounds = RowBounds(13, 1.0, np.full(13, 13**-0.5))
    row = np.full(13, 13**-0.5) * (1.0 - 1e-15)
    assert np.linalg.norm(row) <= 1.0
    assert bounds.largest_sum(np.linspace(1.0, 10.0, 13)) >= float(
        (row / np.linspace(1.0, 10.0, 13)).sum()
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_counts_of_records_with_few_ones_are_covered_exactly(k, adjacency):
    """All changes of small vectors, in fractions."""
    d = 5
    records = [v for v in itertools.product((0, 1), repeat=d) if sum(v) <= k]
    others = records if adjacency == "replace_one" else [(0,) * d]
    for mixing in (0.0, 0.1, 1.0 / 7.0, 0.3):
        profile = bounded_ones(d, k, adjacency, mixing=mixing)
        c, largest, entry = Fraction(mixing), Fraction(0), Fraction(0)
        for one, other in itertools.product(records, others):
            change = [a - b for a, b in zip(one, other, strict=True)]
            mixed = [value - c * sum(change) for value in change]
            largest = max(largest, sum(x * x for x in mixed))
            entry = max(entry, max(abs(x) for x in mixed))
        assert largest <= Fraction(profile.l2) ** 2 <= largest * Fraction(CLOSE)
        assert Fraction(float(profile.per_coordinate[0])) >= entry


def cost_of_a_row(mechanism, row):
    """What adding a row costs, entry by entry of its second moments."""
    u = row / mechanism.row_scale
    moments, p = np.outer(u, u), row.size
    if mechanism.noise == "wishart":
        return 0.5 * float(np.trace(moments))
    if mechanism.noise == "k_norm":
        return float(np.linalg.norm(moments))
    relative = moments / np.where(np.eye(p) > 0.0, 1.0, mechanism.off_diagonal)
    upper = relative[np.triu_indices(p)]
    return float(np.linalg.norm(upper, 1 if mechanism.noise.endswith("laplace") else 2))


@pytest.mark.slow
@pytest.mark.parametrize("noise", SECOND_MOMENT_NOISES)
def test_calibrated_second_moments_claim_no_less_than_a_row_costs(noise):
    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(instance=instances((2.0,), units=[1.0, 7.1, 1e-50, 1e50]))
    def check(instance):
        gaussian = noise.endswith("gaussian")
        budget = GaussianLoss(0.5) if gaussian else PureLoss(1.0)
        made = calibrate_second_moments(noise, rows_of(instance), budget, "add_remove")
        claimed = made.privacy_loss().mu if gaussian else made.privacy_loss().pure_epsilon
        assert claimed <= (0.5 if gaussian else 1.0)
        scaled = Instance(instance.limit, instance.radius, made.row_scale, 2.0)
        for row in feasible_points(scaled, 1.0) + feasible_points(scaled, 2.0):
            assert cost_of_a_row(made, row) <= claimed

    check()


@pytest.mark.parametrize("seed", [11, 15, 111, 129, 181, 249, 373])
def test_laplace_noise_on_second_moments_claims_no_less_than_the_corner_of_a_box_costs(seed):
    """The radius is the norm of the bounds, as estimators choose it: whose square may be less."""
    rng = np.random.default_rng(seed)
    limits = rng.uniform(0.1, 1.0, int(rng.integers(2, 24)))
    bounds = RowBounds(limits.size, float(np.linalg.norm(limits)), limits)
    for noise in ("inid_laplace", "iid_laplace", "auto"):
        made = calibrate_second_moments(noise, bounds, PureLoss(1.0), "add_remove")
        claimed = made.privacy_loss().pure_epsilon
        assert cost_of_a_row(made, limits * (1.0 - 1e-15)) <= claimed <= 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_fits_by_second_moments_spend_no_more_than_their_charge(monkeypatch):
    """The call of the review: a radius so large that the norm of the limits takes its place."""
    made, calibrated = [], queries.calibrate_second_moments

    def kept(*arguments):
        made.append(calibrated(*arguments))
        return made[-1]

    monkeypatch.setattr(queries, "calibrate_second_moments", kept)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 14))
        X = rng.normal(size=(200, p))
        wide = 10.0 ** rng.uniform(0.3, 2.0, p)  # bounds far beyond the spread make unequal limits
        model = DPCoordinateDescentRegressor(
            epsilon=40.0,
            delta=0,
            solver="gram",
            noise="inid_laplace",
            row_norm=1e6,
            adjacency="add_remove",
            feature_bounds=(-wide, wide),
            target_bounds=(-3.0, 3.0),
            random_state=seed,
        )
        model.fit(X, np.clip(X[:, 0], -3.0, 3.0))
    for mechanism in made:
        bounds = mechanism.row_bounds
        instance = Instance(bounds.limits, bounds.radius, mechanism.row_scale, 2.0)
        claimed = mechanism.privacy_loss().pure_epsilon
        for row in feasible_points(instance, 1.0):
            assert cost_of_a_row(mechanism, row) <= claimed


@pytest.mark.parametrize("limit", [1e-170, 1e-140, 1e-100, 5e-324])
def test_no_entry_of_a_row_is_too_small_to_count(limit):
    """Squares of such entries, in units of the largest, are below all doubles."""
    bounds = RowBounds(2, norm=1.0, columns=[limit] * 2)
    assert bounds.largest_sum([1.0, 1.0]) >= 2.0 * limit
