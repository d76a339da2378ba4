"""Closed forms against general optimisers, and worst cases against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from skdpnoise.mechanisms import allocate, capped_profile, worst_case_norm
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import every_pair
from tests.mechanisms._optimisers import error, optimum_under_cuts, vertices, worst_change

PROFILE = np.array([0.3, 1.0, 2.0, 5.0])
WEIGHTS = np.array([4.0, 0.2, 1.0, 0.7])
RULES = ["iid", "spr", "inid"]


@every_pair
@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("weights", [np.ones(4), WEIGHTS])
def test_the_closed_form_is_the_optimum_of_a_general_optimiser(order, p, weights):
    scale = allocate("inid", SensitivityProfile(PROFILE), order=order, weights=weights, p=p)
    _, best = optimum_under_cuts([PROFILE**order], weights, order, p)
    assert error(scale, weights, p) == pytest.approx(best, rel=1e-6)
    assert ((PROFILE / scale) ** order).sum() == pytest.approx(1.0, rel=1e-12)


@every_pair
@pytest.mark.parametrize(("order", "name"), [(2.0, "l2"), (1.0, "l1")])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("weights", [np.ones(4), WEIGHTS])
@pytest.mark.parametrize("radius", [5.0, 5.3])
def test_the_cap_by_a_ball_of_the_same_order_is_the_exact_optimum(order, name, p, weights, radius):
    sensitivity = SensitivityProfile(PROFILE, **{name: radius})
    scale = allocate("inid", sensitivity, order=order, weights=weights, p=p)
    _, best = optimum_under_cuts(list(vertices(PROFILE, radius, order)), weights, order, p)
    assert error(scale, weights, p) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("weights", [np.ones(4), WEIGHTS])
def test_the_cap_of_laplace_noise_by_an_l2_ball_is_the_exact_optimum(p, weights):
    sensitivity = SensitivityProfile(PROFILE, l2=5.05)
    scale = allocate("inid", sensitivity, order=1.0, weights=weights, p=p)
    cuts = [np.minimum(PROFILE, 5.05 / 2), worst_change(scale, PROFILE, 5.05)]
    for _ in range(25):  # cutting planes: the set of changes is curved
        found, best = optimum_under_cuts(cuts, weights, 1.0, p)
        cuts.append(worst_change(found, PROFILE, 5.05))
        if (cuts[-1] / found).sum() < 1 + 1e-8:
            break
    assert (cuts[-1] / found).sum() < 1 + 1e-5
    assert error(scale, weights, p) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(
    ("order", "name", "exponent"), [(2.0, "l2", 1 / 2), (1.0, "l1", 1.0), (1.0, "l2", 1 / 4)]
)
def test_the_cap_has_the_exponents_of_the_table_for_squared_error(order, name, exponent):
    limit = np.array([0.3, 5.0, 5.0, 5.0])
    sensitivity = SensitivityProfile(limit, **{name: 5.0})
    d = capped_profile(sensitivity, order=order, weights=WEIGHTS)
    assert d[0] == pytest.approx(0.3)  # at its limit, since its weight is large
    assert d[1:] / d[1] == pytest.approx((WEIGHTS[1:] / WEIGHTS[1]) ** exponent)
    assert np.linalg.norm(d, int(name[1])) == pytest.approx(5.0)


def test_a_ball_outside_the_box_changes_nothing():
    loose = SensitivityProfile(PROFILE, l1=100.0, l2=100.0)
    assert (capped_profile(loose, order=1.0) == PROFILE).all()
    for rule, order in itertools.product(RULES, [1.0, 2.0]):
        expected = allocate(rule, SensitivityProfile(PROFILE), order=order)
        assert (allocate(rule, loose, order=order) == expected).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_worst_case_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    limit, scale = rng.lognormal(0, 1, 5), rng.lognormal(0, 1, 5)
    box = SensitivityProfile(limit)
    for order in (1.0, 2.0):
        name, top = ("l1", limit.sum()) if order == 1.0 else ("l2", np.linalg.norm(limit))
        assert worst_case_norm(scale, box, order) == pytest.approx(
            np.linalg.norm(limit / scale, order)
        )
        radius = rng.uniform(limit.max(), top)
        profile = SensitivityProfile(limit, **{name: radius})
        brute = max((u / scale**order).sum() for u in vertices(limit, radius, order))
        assert worst_case_norm(scale, profile, order) ** order == pytest.approx(brute, rel=1e-12)
    radius = rng.uniform(limit.max(), np.linalg.norm(limit))
    profile = SensitivityProfile(limit, l2=radius)
    brute = (worst_change(scale, limit, radius) / scale).sum()
    assert worst_case_norm(scale, profile, 1.0) == pytest.approx(brute, rel=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_an_l1_bound_serves_gaussian_noise_by_the_l2_bound_that_it_implies(seed):
    rng = np.random.default_rng(seed)
    limit = rng.lognormal(0, 1, 5)
    radius = rng.uniform(limit.max(), limit.sum())
    implied = max((u**2).sum() for u in vertices(limit, radius, 1.0)) ** 0.5
    ones = np.ones(5)
    found = worst_case_norm(ones, SensitivityProfile(limit, l1=radius), 2.0)
    assert found == pytest.approx(implied)
    tighter = SensitivityProfile(limit, l1=radius, l2=limit.max())
    assert worst_case_norm(ones, tighter, 2.0) == pytest.approx(limit.max())


def test_a_coordinate_that_can_move_without_noise_has_no_finite_cost():
    assert worst_case_norm(np.array([1.0, 0.0]), SensitivityProfile([1.0, 1.0]), 2.0) == np.inf
    alone = worst_case_norm(np.array([1.0, 0.0]), SensitivityProfile([1.0, 0.0]), 2.0)
    assert 1.0 <= alone <= 1.0 + 1e-13


def numeric_error(cost, weights, p, order, n_free):
    """The least error over scales exp(x) of unit cost, by scale invariance without constraint."""

    def objective(x):
        scale = np.exp(x)
        return np.log((weights * cost(scale, True) ** p).sum()) + p / order * np.log(
            cost(scale, False)
        )

    return float(np.exp(minimize(objective, np.zeros(n_free), method="BFGS", tol=1e-10).fun))


@every_pair
@pytest.mark.parametrize("order", [1.0, 2.0])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("rule", RULES)
def test_the_budget_is_spread_over_releases_as_a_general_optimiser_would(order, p, rule):
    weights = np.array([WEIGHTS, 3 * WEIGHTS, WEIGHTS[::-1]])
    found = allocate(
        rule, SensitivityProfile(PROFILE), order=order, n_releases=3, weights=weights, p=p
    )
    assert found.shape == (3, 4)
    within = {"iid": np.ones(4), "spr": PROFILE}

    def cost(free, as_scale):
        scale = free.reshape(3, 4) if rule == "inid" else free[:, None] * within[rule]
        return scale if as_scale else ((PROFILE / scale) ** order).sum()

    best = numeric_error(cost, weights, p, order, 12 if rule == "inid" else 3)
    assert error(found, weights, p) == pytest.approx(best, rel=1e-6)
    assert worst_case_norm(found, SensitivityProfile(PROFILE), order) == pytest.approx(1.0)


def test_releases_of_one_weight_share_the_budget_equally():
    sensitivity = SensitivityProfile(PROFILE, l2=5.2)
    for rule, order in itertools.product(RULES, [1.0, 2.0]):
        once = allocate(rule, sensitivity, order=order, weights=WEIGHTS)
        often = allocate(rule, sensitivity, order=order, n_releases=9, weights=WEIGHTS)
        assert often == pytest.approx(once * 9 ** (1 / order))
        rows = allocate(
            rule, sensitivity, order=order, n_releases=9, weights=np.tile(WEIGHTS, (9, 1))
        )
        assert rows == pytest.approx(np.tile(often, (9, 1)))


def test_weights_that_grow_geometrically_give_a_geometric_budget():
    growth = 1.3
    weights = growth ** (2 * np.arange(10.0))[:, None] * np.ones(4)
    scale = allocate("inid", SensitivityProfile(PROFILE), order=2.0, n_releases=10, weights=weights)
    budget = ((PROFILE / scale) ** 2).sum(axis=1)
    assert budget[1:] / budget[:-1] == pytest.approx(np.full(9, growth))
    assert scale**2 == pytest.approx(
        scale[0, 0] ** 2 * (PROFILE / PROFILE[0]) / np.sqrt(weights / weights[0])
    )


@pytest.mark.parametrize("seed", range(10))
def test_inid_never_loses_to_another_rule_nor_to_a_single_bound(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 12))
    limit = rng.lognormal(0, rng.choice([0.1, 1.0, 4.0]), size)
    limit[rng.random(size) < 0.1] = 0.0
    limit[0] += 0.1
    bounds = {"l1": None, "l2": None}
    if rng.random() < 0.7:
        bounds["l1"] = rng.uniform(limit.max(), 1.2 * limit.sum())
    if rng.random() < 0.7:
        bounds["l2"] = rng.uniform(limit.max(), 1.2 * np.linalg.norm(limit))
    joint, box = SensitivityProfile(limit, **bounds), SensitivityProfile(limit)
    alternatives = [box] + [
        SensitivityProfile(limit, **{name: bound}) for name, bound in bounds.items() if bound
    ]
    n_releases = int(rng.integers(1, 4))
    weights = rng.lognormal(0, 1, (n_releases, size) if rng.random() < 0.5 else size)
    for order, p in itertools.product([1.0, 2.0], [1.0, 2.0, 3.0]):
        kwargs = {"order": order, "p": p, "weights": weights, "n_releases": n_releases}
        best = error(allocate("inid", joint, **kwargs), weights, p)
        others = [allocate(rule, joint, **kwargs) for rule in ("iid", "spr")]
        others += [allocate("inid", single, **kwargs) for single in alternatives]
        # iid_ adds noise to constant coordinates too: it can only lose more by that.
        assert all(best <= error(other, weights, p) * (1 + 1e-6) for other in others)


def test_constant_coordinates_get_no_noise_except_from_identical_noise():
    sensitivity = SensitivityProfile([1.0, 0.0, 2.0])
    for order in (1.0, 2.0):
        assert allocate("iid", sensitivity, order=order)[1] > 0.0
        for rule in ("spr", "inid"):
            scale = allocate(rule, sensitivity, order=order)
            without = allocate(rule, SensitivityProfile([1.0, 2.0]), order=order)
            assert scale[1] == 0.0
            assert scale[[0, 2]] == pytest.approx(without)
