"""Noise for groups of coordinates: a general optimiser, brute force, and known tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import laplace

from skdpnoise.mechanisms import AdditiveMechanism, allocate, calibrate, worst_case_norm
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile
from tests._cases import each_value, every_pair, quick
from tests.mechanisms._optimisers import error, optimum_under_cuts, vertices

BOUNDS = np.array([0.5, 2.0, 1.2])
GROUPS = np.array([0, 1, 1, 2, 0, 1])
WEIGHTS = np.array([3.0, 0.2, 1.0, 0.7, 1.0, 0.4])
RULES = ["iid", "spr", "inid"]
FAMILIES = [
    name for name in noise_names() if get_noise(name).log_concave and not get_noise(name).lattice
]


def changes(profile, scale=None, n=300, seed=0):
    """Changes on the border of what a record can do, spread over groups or on one coordinate."""
    rng = np.random.default_rng(seed)
    members, r = profile.members, profile.order
    joint = profile.l2 if r == 2.0 else profile.l1
    for k in range(n):
        d = np.abs(rng.normal(size=members.size)) ** (1.0 if k % 3 else 8.0)
        if scale is not None and k < 20:
            d = scale ** -(k / 4.0)
        for g, bound in enumerate(profile.bounds):
            size = np.linalg.norm(d[members == g], r)
            d[members == g] *= bound / size if k % 2 else min(1.0, bound / size)
        size = np.linalg.norm(d, r)
        if joint is not None:
            d *= min(1.0, joint / size)
        yield d
    # One coordinate of each group takes all that the group may move, one group after the other.
    places = [np.flatnonzero(members == g) for g in range(profile.n_groups)]
    for chosen in itertools.product(*places):
        for ranked in itertools.permutations(range(profile.n_groups)):
            d, left = np.zeros(members.size), np.inf if joint is None else joint**r
            for g in ranked:
                d[chosen[g]] = min(profile.bounds[g], left ** (1.0 / r))
                left = max(left - d[chosen[g]] ** r, 0.0)
            yield d


def all_cuts(profile):
    """|d_j|^r at every vertex of what a record can do, for costs of the same order."""
    order, members = profile.order, profile.members
    joint = profile.l2 if order == 2.0 else profile.l1
    radius = np.linalg.norm(profile.bounds, order) if joint is None else joint
    places = [np.flatnonzero(members == g) for g in range(profile.n_groups)]
    for masses in vertices(profile.bounds, radius, order):
        for chosen in itertools.product(*places):
            cut = np.zeros(members.size)
            cut[list(chosen)] = masses
            yield cut


@every_pair
@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("joint", [None, 2.1])
@pytest.mark.parametrize("order", [1, 2])
def test_one_scale_for_each_group_is_the_optimum_of_a_general_optimiser(order, joint, p, weights):
    profile = GroupedProfile(BOUNDS, GROUPS, order=order, joint=joint)
    scale = allocate("inid", profile, order=float(order), weights=weights, p=p)
    _, best = optimum_under_cuts(list(all_cuts(profile)), weights, float(order), p)
    assert error(scale, weights, p) == pytest.approx(best, rel=1e-5)
    assert all(np.ptp(scale[g == GROUPS]) == 0.0 for g in range(3))


@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS])
def test_laplace_noise_on_groups_in_l2_balls_is_the_optimum_too(weights):
    profile = GroupedProfile(BOUNDS, GROUPS, order=2)
    scale = allocate("inid", profile, order=1.0, weights=weights)

    def cost(log_v):
        v = np.exp(log_v)
        return sum(b * np.linalg.norm(v[g == GROUPS]) for g, b in enumerate(BOUNDS))

    # Where weights differ within a group, one scale is no longer the best for l2 balls.
    alike = np.bincount(GROUPS, weights=weights)[GROUPS] / np.bincount(GROUPS)[GROUPS]
    best = minimize(
        lambda log_v: np.log((alike * np.exp(-2.0 * log_v)).sum()),
        np.full(6, np.log(0.1)),
        constraints={"type": "ineq", "fun": lambda log_v: 1.0 - cost(log_v)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert error(scale, weights, 2.0) == pytest.approx(np.exp(best.fun), rel=1e-5)


@every_pair
@pytest.mark.parametrize("joint", [None, 2.1])
@pytest.mark.parametrize("group_order", [1, 2])
@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize("rule", RULES)
def test_no_change_within_the_balls_costs_more_than_the_worst_case(rule, order, group_order, joint):
    profile = GroupedProfile(BOUNDS, GROUPS, order=group_order, joint=joint)
    rng = np.random.default_rng(1)
    for scale in (allocate(rule, profile, order=order), rng.uniform(0.5, 2.0, 6)):
        worst = worst_case_norm(scale, profile, order)
        found = [np.linalg.norm(d / scale, order) for d in changes(profile, scale)]
        assert max(found) <= worst * (1.0 + 1e-12)  # of the changes
        assert max(found) > 0.8 * worst
    assert worst_case_norm(allocate(rule, profile, order=order), profile, order) == pytest.approx(1)


@pytest.mark.parametrize("order", [1.0, 2.0])
def test_the_worst_case_of_unequal_scales_within_a_ball_is_reached(order):
    scale = np.array([0.5, 1.0, 3.0])
    profile = GroupedProfile([2.0], [0, 0, 0], order=2)
    worst = worst_case_norm(scale, profile, order)
    d = 1.0 / scale if order == 1.0 else np.array([1.0, 0.0, 0.0])
    assert np.linalg.norm(2.0 * d / np.linalg.norm(d) / scale, order) == pytest.approx(worst)


@quick("inid-1", "iid-2")
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("rule", RULES)
def test_groups_of_one_coordinate_are_the_plain_profile(rule, order):
    limit, name = np.array([0.3, 1.0, 2.0]), f"{rule}_{'laplace' if order == 1 else 'gaussian'}"
    numbers = np.array([2, 0, 1])
    bounds = np.empty(3)
    bounds[numbers] = limit
    grouped = GroupedProfile(bounds, numbers, order=order, joint=2.05)
    plain = SensitivityProfile(limit, **{f"l{order}": 2.05})
    for guarantee in (PrivacyGuarantee(0.7, 1e-6), PrivacyGuarantee(0.7)):
        if guarantee.delta == 0.0 and order == 2:
            continue
        found, expected = (calibrate(name, one, guarantee) for one in (grouped, plain))
        np.testing.assert_array_equal(found.scale, expected.scale)


def test_one_group_of_all_and_a_joint_bound_alone_are_global_clipping():
    for profile in (
        GroupedProfile([2.0], np.zeros(50)),
        GroupedProfile(np.full(50, 2.0), np.arange(50), joint=2.0),
    ):
        for rule in RULES:
            scale = allocate(rule, profile, order=2.0)
            np.testing.assert_allclose(scale, 2.0, rtol=1e-12)


def test_the_theorem_for_groups():
    sizes, weights = np.array([9, 64, 10]), np.linspace(0.5, 2.0, 83)
    groups = np.repeat(np.arange(3), sizes)
    bounds, w = np.array([1.0, 2.0, 0.5]), np.bincount(groups, weights=weights)
    scale = allocate("inid", GroupedProfile(bounds, groups), order=2.0, weights=weights)
    expected = bounds / np.sqrt(w) * (bounds @ np.sqrt(w))
    np.testing.assert_allclose(scale**2, expected[groups], rtol=1e-12)
    assert weights @ scale**2 == pytest.approx((bounds @ np.sqrt(w)) ** 2)


def resnet20():
    """Sizes of the parameter tensors of ResNet-20 with two projections: weights, and the others."""
    weights = [3 * 16 * 9, *[16 * 16 * 9] * 6]
    weights += [16 * 32 * 9, *[32 * 32 * 9] * 5, 32 * 64 * 9, *[64 * 64 * 9] * 5]
    weights += [16 * 32, 32 * 64, 64 * 10]
    norms = [16] * 7 + [32] * 7 + [64] * 7  # of the convolutions and projections, scale and shift
    return np.array(weights), np.array([*norms, *norms, 10])


@pytest.mark.parametrize(("others", "expected"), [(False, 0.702), (True, 0.298)])
def test_the_noise_power_of_groups_of_a_network(others, expected):
    weights, rest = resnet20()
    sizes = np.concatenate([weights, rest]) if others else weights
    n_groups = len(sizes)
    assert len(weights) == 22
    profile = GroupedProfile(
        np.full(n_groups, 1.0 / np.sqrt(n_groups)), np.repeat(np.arange(n_groups), sizes)
    )
    power = {rule: (allocate(rule, profile, order=2.0) ** 2).sum() for rule in ("inid", "spr")}
    assert power["inid"] / power["spr"] == pytest.approx(expected, abs=6e-4)
    assert power["inid"] / power["spr"] == pytest.approx(
        np.sqrt(sizes).sum() ** 2 / (n_groups * sizes.sum())
    )


@every_pair
@pytest.mark.parametrize("joint", [None, 2.1])
@pytest.mark.parametrize("group_order", [1, 2])
@pytest.mark.parametrize("rule", RULES)
def test_normal_noise_on_groups_costs_what_a_gaussian_of_the_worst_shift_does(
    rule, group_order, joint
):
    profile = GroupedProfile(BOUNDS, GROUPS, order=group_order, joint=joint)
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    mu = gdp_mu(1.0, 1e-6)
    weights = np.vstack([WEIGHTS, 9.0 * WEIGHTS])
    for kwargs in ({"n_releases": 4}, {"n_releases": 2, "weights": weights}):
        mechanism = calibrate(f"{rule}_gaussian", profile, guarantee, **kwargs)
        scales = np.broadcast_to(mechanism.scale, (kwargs["n_releases"], 6))
        squares = sum(max(np.sum((d / row) ** 2) for d in changes(profile)) for row in scales)
        assert 0.8 * mu < np.sqrt(squares) <= mu * (1.0 + 1e-12)
        assert mechanism.privacy_loss().delta(1.0) <= 1e-6


def hockey_stick(shifts, epsilon, step=0.01):
    """δ(ε) of independent Laplace numbers of unit scale, moved by these shifts, by convolution."""
    # The loss of one of them is an atom at each end, and a density between.
    atoms = {0.0: 1.0}
    for a in shifts:
        grid = np.linspace(-a, a, 2 * round(a / step) + 1)
        edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
        # P(loss <= l) under the first distribution; the loss falls from a to -a as t rises.
        below = np.where(edges >= a, 1.0, laplace.sf((a - edges) / 2))
        below[edges < -a] = 0.0
        masses = np.diff(below)
        combined = {}
        for loss, mass in atoms.items():
            for other, more in zip(grid, masses, strict=True):
                key = round(loss + other, 9)
                combined[key] = combined.get(key, 0.0) + mass * more
        atoms = combined
    return sum(m * -np.expm1(epsilon - loss) for loss, m in atoms.items() if loss > epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [None, 2.1])
def test_laplace_noise_on_groups_meets_its_guarantee_at_every_change_of_a_grid(joint):
    profile = GroupedProfile([1.0, 2.0], [0, 0, 1], order=1, joint=joint)
    mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(1.0, 1e-2))
    for part in (0.0, 0.25, 0.5, 1.0):
        d = np.array([part, 1.0 - part, 2.0])
        d *= 1.0 if joint is None else min(1.0, joint / d.sum())
        found = hockey_stick(d / mechanism.scale, 1.0)
        assert found <= 1e-2 * 1.005  # by a rule of midpoints
        if joint is None and part == 1.0:
            assert found > 0.5e-2


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rule", RULES)
def test_families_that_add_up_take_groups_for_approximate_privacy(rule, name):
    profile = GroupedProfile(BOUNDS, GROUPS, order=1)
    guarantee = PrivacyGuarantee(2.0, 1e-5)
    mechanism = calibrate(f"{rule}_{name}", profile, guarantee)
    assert mechanism.own_loss().delta(2.0) <= 1e-5
    plain = calibrate(f"{rule}_{name}", SensitivityProfile(BOUNDS[GROUPS]), guarantee)
    assert mechanism.expected_error() < plain.expected_error()


@pytest.mark.slow
def test_groups_compose_one_shift_each():
    profile = GroupedProfile(BOUNDS, GROUPS, order=1)
    mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(2.0, 1e-5))
    terms = mechanism.own_loss().terms
    shifts = sorted(shift for _, shift, count in terms for _ in range(count))
    scales = np.array([mechanism.scale[g == GROUPS][0] for g in range(3)])
    np.testing.assert_allclose(shifts, np.sort(BOUNDS / scales), rtol=1e-6)


def test_pure_laplace_noise_spends_epsilon_on_the_norms_of_groups():
    profile = GroupedProfile(BOUNDS, GROUPS, order=1)
    mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(0.5))
    assert mechanism.privacy_loss() == PureLoss(0.5)
    worst = max(np.abs(d / mechanism.scale).sum() for d in changes(profile))
    assert 0.5 * 0.999 < worst <= 0.5 * (1.0 + 1e-12)


@pytest.mark.slow
def test_auto_takes_groups_and_search_is_not_worse():
    profile = GroupedProfile([1.0, 1.0, 3.0], np.repeat([0, 1, 2], [20, 5, 1]), order=1)
    for guarantee in (PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0), GaussianLoss(0.2)):
        auto, search = (calibrate(noise, profile, guarantee) for noise in ("auto", "search"))
        assert search.expected_error() <= auto.expected_error() * (1.0 + 1e-9)
        assert {"inid_gaussian", "inid_laplace"} <= {name for name, _ in search.considered}


def test_noise_of_unknown_cost_under_groups_is_refused():
    profile = GroupedProfile([1.0, 2.0], [0, 0, 1])
    for noise in ("inid_staircase", "inid_mixture", "iid_discrete_laplace"):
        with pytest.raises(ValueError, match="norm of a group is not known"):
            calibrate(noise, profile, PrivacyGuarantee(1.0, 1e-6))


def test_a_mechanism_of_such_noise_counts_every_coordinate():
    profile = GroupedProfile([1.0, 1.0], [0, 0, 1])
    plain = calibrate("inid_staircase", SensitivityProfile(np.ones(3)), PrivacyGuarantee(1.0))
    other = type(plain)(plain.noise, plain.scale, plain.bits, profile, families=plain.families)
    assert other.own_loss() == plain.own_loss()


def test_groups_that_cannot_move_stay_as_they_are_but_for_iid():
    profile = GroupedProfile([1.0, 0.0], [0, 0, 1])
    assert calibrate("inid_gaussian", profile, GaussianLoss(1.0)).scale[2] == 0.0
    assert calibrate("iid_gaussian", profile, GaussianLoss(1.0)).scale[2] > 0.0


def test_releases_of_many_groups_take_no_time_and_no_bits_too_many():
    rng = np.random.default_rng(0)
    profile = GroupedProfile(rng.uniform(0.5, 2.0, 40), rng.permutation(np.arange(8000) % 40))
    mechanism = calibrate("inid_gaussian", profile, GaussianLoss(1.0), n_releases=10)
    assert mechanism.privacy_loss().mu <= 1.0
    assert mechanism.grid_size.max() <= profile.bounds.min() * 2.0**-23


def test_the_rounding_of_every_coordinate_of_a_group_is_charged_for():
    profile = GroupedProfile([1.0], np.zeros(1000), order=1)
    mechanism = AdditiveMechanism("iid_laplace", np.full(1000, 2.0), 16, profile)
    ((_, shift, count),) = mechanism.own_loss().terms
    # A value may be rounded by half a grid step, in either data set.
    assert (count, shift) == (1, pytest.approx(0.5 + 1000 * 2.0**-16, rel=1e-4))
    assert shift >= 0.5 + 1000 * 2.0**-16


def test_large_exponents_of_the_error_do_not_overflow_with_large_groups():
    profile = GroupedProfile([1.0, 2.0], np.append(np.zeros(100_000), 1.0))
    scale = allocate("inid", profile, order=1.0, p=130.0)
    assert worst_case_norm(scale, profile, 1.0) == pytest.approx(1.0)
    quotient = SensitivityProfile([np.sqrt(1e5), 2.0])  # with weights of 1e5 and 1
    expected = allocate("inid", quotient, order=1.0, weights=np.array([1e5, 1.0]), p=130.0)
    np.testing.assert_allclose(scale[-2:], expected, rtol=1e-6)
