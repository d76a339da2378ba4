"""Calibration: the numbers of the paper, guarantees met and not overpaid, and bad input."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from skdpnoise.mechanisms import AdditiveMechanism, calibrate, noise_options
from skdpnoise.mechanisms.additive import least_mu
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.privacy.numeric import loss
from skdpnoise.sensitivity import SensitivityProfile, histogram_counts
from tests._audit import resource
from tests._cases import each_value, every_pair, quick

RULES = ["iid", "spr", "inid"]
APPROXIMATE = PrivacyGuarantee(1.0, 1e-6)
PURE = PrivacyGuarantee(1.0)
INDEX = np.arange(1.0, 21.0)
PROFILES = {
    "linear": INDEX,
    "quadratic": INDEX**2,
    "powers of two": 2.0**INDEX,
    "powers of e": np.exp(INDEX),
    "one-hot": np.eye(20)[7],
}
REDUCTION = {
    "linear": (23.17, 11.81, 0.3167),
    "quadratic": (43.01, 27.38, 0.4866),
    "powers of two": (85.00, 75.34, 0.8500),
    "powers of e": (89.18, 82.66, 0.8918),
    "one-hot": (95, 95, 0.95),
}
JOINT = [
    SensitivityProfile([0.5, 1.0, 2.0, 2.0]),
    SensitivityProfile([0.5, 1.0, 2.0, 2.0], l1=3.0),
    SensitivityProfile([0.5, 1.0, 2.0, 2.0], l2=2.5),
    SensitivityProfile([0.5, 1.0, 2.0, 2.0], l1=3.0, l2=2.1),
]


def total_variance(noise, profile, guarantee):
    return calibrate(noise, SensitivityProfile(profile), guarantee).expected_error()


def gini(values):
    values = np.sort(values)
    size = values.size
    return (2 * np.arange(1, size + 1) - size - 1) @ values / (size * values.sum())


@pytest.mark.parametrize("name", PROFILES)
def test_the_reduction_over_iid_noise_is_that_of_the_paper(name):
    profile, (gaussian, laplace, coefficient) = PROFILES[name], REDUCTION[name]
    for family, percent, guarantee in (
        ("gaussian", gaussian, APPROXIMATE),
        ("laplace", laplace, PURE),
    ):
        saved = 1 - total_variance(f"inid_{family}", profile, guarantee) / total_variance(
            f"iid_{family}", profile, guarantee
        )
        assert 100 * saved == pytest.approx(percent, abs=0.0051)
    assert gini(profile) == pytest.approx(coefficient, abs=5.1e-5)


@pytest.mark.parametrize("name", ["linear", "quadratic", "powers of two"])
def test_the_mean_squared_errors_are_the_closed_forms_of_the_table(name):
    profile, size = PROFILES[name], 20
    mu, epsilon = gdp_mu(1.0, 1e-6), 1.0

    def p_norm(p):
        return (profile**p).sum() ** (1 / p)

    expected = {
        "iid_gaussian": size * p_norm(2) ** 2 / mu**2,
        "spr_gaussian": size * p_norm(2) ** 2 / mu**2,
        "inid_gaussian": p_norm(1) ** 2 / mu**2,
        "iid_laplace": 2 * size * p_norm(1) ** 2 / epsilon**2,
        "spr_laplace": 2 * size**2 * p_norm(2) ** 2 / epsilon**2,
        "inid_laplace": 2 * p_norm(2 / 3) ** 2 / epsilon**2,
    }
    for noise, value in expected.items():
        guarantee = APPROXIMATE if noise.endswith("gaussian") else PURE
        assert total_variance(noise, profile, guarantee) == pytest.approx(value, rel=1e-6)


def test_two_coordinates_have_the_mean_absolute_errors_of_the_table():
    # The table minimises the absolute error: p = 1.
    sensitivity = SensitivityProfile([0.15, 0.85])
    table = {0.5: 3.4283, 1.0: 1.7141, 1.5: 1.1428, 2.0: 0.8571, 2.5: 0.6857, 3.0: 0.5714}
    for epsilon, value in table.items():
        for noise, expected in (("inid_laplace", value), ("iid_laplace", 2 / epsilon)):
            mechanism = calibrate(noise, sensitivity, PrivacyGuarantee(epsilon), p=1.0)
            assert mechanism.expected_error(p=1) == pytest.approx(expected, abs=5.1e-5)


def test_pure_laplace_beats_gaussian_exactly_where_the_criterion_says():
    guarantee, pure = PrivacyGuarantee(0.5, 1e-6), PrivacyGuarantee(0.5)
    assert 0.5 / (np.sqrt(2) * gdp_mu(0.5, 1e-6)) == pytest.approx(2.849, abs=5e-4)
    for size in range(1, 15):
        profile = np.ones(size)
        laplace = total_variance("inid_laplace", profile, pure)
        assert (laplace < total_variance("inid_gaussian", profile, guarantee)) == (size < 9)
    for name in ("powers of two", "powers of e"):
        laplace = total_variance("inid_laplace", PROFILES[name], pure)
        assert laplace < total_variance("inid_gaussian", PROFILES[name], guarantee)


def test_the_joint_bound_of_a_histogram_spares_the_box():
    box, joint = SensitivityProfile(np.ones(10)), histogram_counts(10)
    errors = [
        calibrate(noise, sensitivity, APPROXIMATE).expected_error()
        for noise, sensitivity in (
            ("iid_gaussian", joint),
            ("inid_gaussian", box),
            ("inid_gaussian", joint),
        )
    ]
    assert np.round(errors).tolist() == [357, 1785, 357]


def box_and_ball_points(sensitivity, scale, order):
    """Changes that a record can make, dense near the worst: brute force, no closed form."""
    rng = np.random.default_rng(0)
    limit = sensitivity.per_coordinate
    for subset in itertools.product([0.0, 1.0], repeat=limit.size):
        yield limit * subset
    for _ in range(1000):
        level = 10.0 ** rng.uniform(-1, 1, limit.size)
        yield np.minimum(limit, level)
        yield np.minimum(limit, rng.lognormal(0, 1) / scale ** rng.choice([1.0, 2.0]))
        order_of_filling, d = rng.permutation(limit.size), np.zeros(limit.size)
        for j in order_of_filling:
            room = [limit[j]]
            if sensitivity.l1 is not None:
                room.append(sensitivity.l1 - d.sum())
            if sensitivity.l2 is not None:
                room.append(np.sqrt(max(0.0, sensitivity.l2**2 - d @ d)))
            d[j] = max(0.0, min(room))
        yield d


def brute_force_worst(sensitivity, scale, order):
    worst = 0.0
    for d in box_and_ball_points(sensitivity, scale, order):
        factor = 1.0
        if sensitivity.l1 is not None:
            factor = min(factor, sensitivity.l1 / max(d.sum(), 1e-300))
        if sensitivity.l2 is not None:
            factor = min(factor, sensitivity.l2 / max(np.linalg.norm(d), 1e-300))
        worst = max(worst, np.linalg.norm(factor * d / scale, order))
    return worst


@each_value(2)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sensitivity", JOINT[:3], ids=["box", "l1", "l2"])
def test_gaussian_scales_meet_the_guarantee_and_one_per_cent_less_noise_fails(rule, sensitivity):
    mechanism = calibrate(f"{rule}_gaussian", sensitivity, APPROXIMATE)
    assert mechanism.privacy_loss().delta(1.0) <= 1e-6
    assert mechanism.privacy_loss().epsilon(1e-6) <= 1.0

    def delta(mu):  # the definition, not ours
        return norm.sf(1 / mu - mu / 2) - np.e * norm.sf(1 / mu + mu / 2)

    worst = brute_force_worst(sensitivity, mechanism.scale, 2)
    assert delta(worst) <= 1e-6
    if sensitivity.l1 is None:  # an l1 ball serves Gaussian noise by its l2 consequence only
        assert delta(worst / 0.99) > 1e-6
    less = AdditiveMechanism(mechanism.noise, 0.99 * mechanism.scale, mechanism.bits, sensitivity)
    assert less.privacy_loss().delta(1.0) > 1e-6


@each_value(2)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sensitivity", JOINT[:3], ids=["box", "l1", "l2"])
def test_laplace_scales_meet_the_guarantee_and_one_per_cent_less_noise_fails(rule, sensitivity):
    mechanism = calibrate(f"{rule}_laplace", sensitivity, PURE)
    assert mechanism.privacy_loss().epsilon(0.0) <= 1.0
    # The largest log-likelihood ratio of Laplace noise is |d/b|_1.
    worst = brute_force_worst(sensitivity, mechanism.scale, 1)
    assert worst <= 1.0 < worst / 0.99
    less = AdditiveMechanism(mechanism.noise, 0.99 * mechanism.scale, mechanism.bits, sensitivity)
    assert less.privacy_loss().epsilon(0.0) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace", "spr_laplace", "iid_gaussian"])
def test_two_joint_bounds_together_are_safe(noise):
    mechanism = calibrate(noise, JOINT[3], APPROXIMATE)
    if noise.endswith("gaussian"):
        worst = brute_force_worst(JOINT[3], mechanism.scale, 2.0)
        assert norm.sf(1 / worst - worst / 2) - np.e * norm.sf(1 / worst + worst / 2) <= 1e-6
    else:  # a change counts as that of one coordinate
        worst = brute_force_worst(JOINT[3], mechanism.scale, 1.0)
        assert -np.expm1((1.0 - worst) / 2) <= 1e-6
    for single in JOINT[1:3]:
        weaker = SensitivityProfile(single.per_coordinate, l1=single.l1, l2=single.l2 and 2.1)
        other = calibrate(noise, weaker, APPROXIMATE)
        assert mechanism.expected_error() <= other.expected_error() * (1.0 + 1e-12)  # rounding up


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_many_releases_together_cost_what_was_asked(family):
    sensitivity, n_releases = SensitivityProfile([1.0, 3.0]), 7
    weights = 1.3 ** np.arange(7.0)[:, None] * np.array([1.0, 2.0])
    order = {"gaussian": 2.0, "laplace": 1.0}[family]
    target = {"gaussian": GaussianLoss(0.3), "laplace": PureLoss(0.3)}[family]
    for rule, w in itertools.product(RULES, [None, weights]):
        mechanism = calibrate(
            f"{rule}_{family}", sensitivity, target, n_releases=n_releases, weights=w
        )
        scale = np.broadcast_to(mechanism.scale, (7, 2))
        spent = ((np.array([1.0, 3.0]) / scale) ** order).sum() ** (1 / order)
        assert 0.3 * (1 - 1e-6) < spent < 0.3
        assert spent < resource(mechanism) <= 0.3
        single = calibrate(f"{rule}_{family}", sensitivity, target)
        assert mechanism.mean_squared_error > single.mean_squared_error


def least_error(family, epsilon, delta):
    """The squared error of the least noise of one shape on one number, by the curve alone."""
    log_scale = brentq(
        lambda x: float(family.hockey_stick(epsilon, math.exp(-x))) - delta, -5.0, 8.0, xtol=1e-6
    )
    return math.exp(2.0 * log_scale) * family.absolute_moment(2.0)


@quick("3.0-0.01-flipped_huber", "0.5-0.001-osgt")
@each_value(2)
@pytest.mark.parametrize("family", ["flipped_huber", "osgt", "subbotin", "truncated_laplace"])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, 1e-3), (1.0, 1e-3), (0.1, 1e-4), (3.0, 1e-2), (1.0, 1e-6)]
)
def test_no_shape_of_a_family_has_less_error_than_the_one_that_is_found(family, epsilon, delta):
    # Of the flipped Huber density the error has two valleys over the shape.
    shapes = np.geomspace(*get_noise(family).shape_range, 30)
    errors = []
    for shape in shapes:
        with suppress(ValueError):  # no scale of this shape meets the guarantee
            errors.append(least_error(get_noise(family, shape), epsilon, delta))
    made = calibrate(f"iid_{family}", SensitivityProfile([1.0]), PrivacyGuarantee(epsilon, delta))
    assert len(errors) >= 10
    assert made.standard_deviation[0] ** 2 <= 1.001 * min(errors)


def test_more_budget_means_less_noise():
    for noise, guarantees in (
        ("inid_gaussian", [PrivacyGuarantee(e, 1e-6) for e in (0.01, 0.1, 1.0, 10.0, 50.0)]),
        ("inid_laplace", [PrivacyGuarantee(e) for e in (0.01, 0.1, 1.0, 10.0, 50.0)]),
        ("inid_gaussian", [PrivacyGuarantee(1.0, d) for d in (1e-30, 1e-9, 1e-3)]),
    ):
        scales = [calibrate(noise, JOINT[0], guarantee).scale.max() for guarantee in guarantees]
        assert (np.diff(scales) < 0).all()


@pytest.mark.slow
def test_a_search_takes_the_smallest_error_of_the_kind_asked_for():
    for profile, p in (([1.0], 2.0), ([1.0, 3.0], 1.0)):
        chosen = calibrate("search", SensitivityProfile(profile), APPROXIMATE, p=p)
        errors = dict(chosen.considered)
        assert chosen.noise == min(
            (noise for noise, error in errors.items() if not isinstance(error, str)),
            key=errors.get,
        )
        assert set(errors) == {
            noise
            for noise in noise_options()
            if noise.startswith("inid_") and "discrete" not in noise
        }
        assert all(f"  {noise}: " in chosen.explain() for noise in errors)


@every_pair
@pytest.mark.parametrize(
    "guarantee",
    [PURE, APPROXIMATE, PrivacyGuarantee(6.0), GaussianLoss(0.5), PureLoss(2.0)],
    ids=str,
)
@pytest.mark.parametrize("n_releases", [1, 3])
@pytest.mark.parametrize("profile", [[1.0], [1.0, 4.0], np.geomspace(1.0, 50.0, 100)], ids=len)
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_auto_is_the_best_of_what_it_compares(guarantee, n_releases, profile, p):
    sensitivity = SensitivityProfile(profile)
    chosen = calibrate("auto", sensitivity, guarantee, n_releases=n_releases, p=p)
    errors = dict(chosen.considered)
    formulas = {"inid_gaussian", "inid_laplace", "inid_staircase"}
    assert set(errors) == formulas | {"inid_subbotin", "inid_mixture"}
    numbers = {noise: error for noise, error in errors.items() if not isinstance(error, str)}
    assert chosen.noise == min(numbers, key=numbers.get)
    assert chosen.expected_error(p) == numbers[chosen.noise]
    if isinstance(guarantee, GaussianLoss):
        assert chosen.own_loss().mu <= guarantee.mu
    else:
        pure = isinstance(guarantee, PureLoss)
        epsilon = guarantee.pure_epsilon if pure else guarantee.epsilon
        assert chosen.own_loss().delta(epsilon) <= (0.0 if pure else guarantee.delta)
    plain = "inid_gaussian" if "inid_gaussian" in numbers else "inid_laplace"
    other = calibrate(plain, sensitivity, guarantee, n_releases=n_releases, p=p)
    assert chosen.expected_error(p) <= other.expected_error(p) * (1.0 + 1e-9)


@each_value(2)
@pytest.mark.parametrize("guarantee", [PURE, APPROXIMATE, GaussianLoss(0.5)], ids=str)
@pytest.mark.parametrize("size", [1, 20, 5000])
def test_auto_computes_few_compositions_and_none_again(guarantee, size, monkeypatch):
    computed = []
    monkeypatch.setattr(loss, "_compose", partial(_counted, computed, loss._compose))
    sensitivity = SensitivityProfile(np.geomspace(1.0, 9.0, size))
    calibrate("auto", sensitivity, guarantee)
    if size == 1 and guarantee == APPROXIMATE:
        return  # one number has an exact curve, and nothing is composed
    assert len(computed) <= (7 if guarantee == APPROXIMATE else 0)
    if size == 20 and guarantee == APPROXIMATE:
        assert computed
    computed.clear()
    calibrate("auto", sensitivity, guarantee)
    assert not computed


def _counted(computed, function, *args, **kwargs):
    computed.append(function)
    return function(*args, **kwargs)


@each_value(2)
@pytest.mark.slow
@pytest.mark.parametrize("power", [-200, -100, 100, 200])
@pytest.mark.parametrize("noise", ["iid_gaussian", "spr_laplace", "inid_gaussian", "inid_laplace"])
def test_units_do_not_matter(noise, power):
    unit = 2.0**power
    here = calibrate(noise, SensitivityProfile([1.0, 3.0, 3.0], l2=4.0), APPROXIMATE)
    there = calibrate(
        noise, SensitivityProfile(np.array([1.0, 3.0, 3.0]) * unit, l2=4.0 * unit), APPROXIMATE
    )
    assert there.scale == pytest.approx(here.scale * unit, rel=1e-12)
    assert there.bits == here.bits


@every_pair
@pytest.mark.parametrize("noise", ["iid_gaussian", "spr_laplace", "inid_gaussian", "inid_laplace"])
@pytest.mark.parametrize("spread", [1e-30, 1e-100, 1e-149])
@pytest.mark.parametrize("bounds", [{}, {"l1": 1.5}, {"l2": 1.2}])
def test_a_profile_of_enormous_range_is_still_calibrated_exactly(noise, spread, bounds):
    sensitivity = SensitivityProfile([1.0, 1.0, spread], **bounds)
    mechanism = calibrate(noise, sensitivity, APPROXIMATE)
    target = gdp_mu(1.0, 1e-6)
    if noise.endswith("gaussian"):
        assert target * (1 - 1e-6) < resource(mechanism) <= target
    assert mechanism.own_loss().delta(1.0) <= 1e-6
    assert (mechanism.scale > 0).all()
    assert np.isfinite(mechanism.scale).all()


@pytest.mark.parametrize("magnitude", [1e-300, 1e290])
def test_magnitudes_beyond_double_precision_are_refused(magnitude):
    with pytest.raises(ValueError, match=r"beyond double precision.*units"):
        calibrate("inid_gaussian", SensitivityProfile([magnitude]), APPROXIMATE)


def test_a_guarantee_too_small_for_the_rounding_of_the_value_is_refused():
    with pytest.raises(ValueError, match=r"too small for double precision.*larger epsilon"):
        calibrate("iid_laplace", SensitivityProfile(np.ones(1000)), PrivacyGuarantee(1e-13))


@pytest.mark.parametrize("target", [PrivacyGuarantee(1.0), PureLoss(1.0)])
def test_pure_privacy_is_refused_for_gaussian_noise_naming_what_can_give_it(target):
    with pytest.raises(ValueError, match=r"laplace"):
        calibrate("inid_gaussian", JOINT[0], target)
    assert calibrate("auto", JOINT[0], target).own_loss().epsilon(0.0) <= 1.0


@pytest.mark.slow
def test_a_gaussian_loss_as_target_leaves_only_families_that_keep_to_it():
    mechanism = calibrate("inid_gaussian", JOINT[0], GaussianLoss(0.25))
    assert mechanism.privacy_loss().mu == pytest.approx(0.25, rel=1e-9)
    assert mechanism.privacy_loss().mu <= 0.25
    chosen = calibrate("auto", JOINT[0], GaussianLoss(0.25))
    assert chosen.noise == "inid_gaussian"  # the only one whose loss is Gaussian exactly
    for noise in ("inid_laplace", "inid_flipped_huber"):
        other = calibrate(noise, JOINT[0], GaussianLoss(0.25))
        assert other.privacy_loss() == GaussianLoss(0.25)
        for epsilon in (0.0, 0.1, 0.5, 1.0):
            assert other.own_loss().delta(epsilon) <= GaussianLoss(0.25).delta(epsilon)
    with pytest.raises(ValueError, match=r"'gaussian', 'laplace'.*inid_truncated_laplace"):
        calibrate("inid_truncated_laplace", JOINT[0], GaussianLoss(0.25))


@each_value(3)
@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("family", ["laplace", "gaussian", "osgt", "subbotin", "flipped_huber"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 4)])
@pytest.mark.parametrize("size", [30.0, 100.0, 300.0, 1e4, 1e6])
def test_losses_beyond_double_precision_give_less_noise_and_no_error(family, shape, size):
    sensitivity, n_releases = SensitivityProfile(np.linspace(1.0, 2.0, shape[0])), shape[1]
    mechanism = calibrate(f"inid_{family}", sensitivity, GaussianLoss(size), n_releases=n_releases)
    assert np.isfinite(mechanism.scale).all()
    assert (mechanism.scale > 0.0).all()
    assert least_mu(mechanism) <= size * (1.0 + 1e-12)
    if size <= 100.0:
        approximate = PrivacyGuarantee(size, 1e-6)
        mechanism = calibrate(f"inid_{family}", sensitivity, approximate, n_releases=n_releases)
        assert mechanism.own_loss().delta(size) <= 1e-6


@pytest.mark.parametrize("noise", ["gaussian", "inid", "", "iid_cauchy", "best_laplace", "AUTO"])
def test_an_unknown_noise_is_refused_and_the_known_ones_are_listed(noise):
    with pytest.raises(
        ValueError, match=r"'noise'.*'auto', 'search', 'inid_mixture'.*'inid_laplace'.*Got"
    ):
        calibrate(noise, JOINT[0], APPROXIMATE)


def test_a_numeric_loss_is_not_a_budget():
    with pytest.raises(TypeError, match=r"'guarantee'.*PureLoss or GaussianLoss"):
        calibrate("inid_laplace", JOINT[0], PureLoss(1.0).numeric())


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"noise": 1}, "noise"),
        ({"sensitivity": [1.0]}, "sensitivity"),
        ({"guarantee": 1.0}, "guarantee"),
        ({"n_releases": 2.0}, "n_releases"),
        ({"p": "2"}, "p"),
        ({"weights": ["a"]}, "weights"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_by_name(changed, name):
    arguments = {"noise": "auto", "sensitivity": JOINT[0], "guarantee": PURE} | changed
    with pytest.raises(TypeError, match=f"'{name}' parameter of calibrate"):
        calibrate(**arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": np.ones(3)}, r"'weights'.*\(4,\).*\(2, 4\).*Got shape \(3,\)"),
        ({"weights": np.ones((3, 4))}, r"Got shape \(3, 4\)"),
        ({"weights": np.ones((1, 4))}, r"Got shape \(1, 4\)"),
        ({"weights": 1.0}, r"Got shape \(\)"),
        ({"weights": [1.0, 0.0, 1.0, 1.0]}, "positive finite numbers.*small weight"),
        ({"weights": [1.0, -1.0, 1.0, 1.0]}, "positive finite numbers.*small weight"),
        ({"weights": [1.0, np.nan, 1.0, 1.0]}, "positive finite numbers.*small weight"),
        ({"weights": [1.0, np.inf, 1.0, 1.0]}, "positive finite numbers.*small weight"),
        ({"weights": [1.0, 1e200, 1.0, 1.0]}, "within a factor"),
        ({"n_releases": 0}, "'n_releases'"),
        ({"p": 0.0}, "'p'"),
        ({"p": np.nan}, "'p'"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(changed, message):
    with pytest.raises(ValueError, match=message):
        calibrate("auto", JOINT[0], PURE, **({"n_releases": 2} | changed))


def test_one_record_spans_many_quanta_wherever_precision_allows():
    for noise, guarantee in itertools.product(
        ["iid_gaussian", "spr_gaussian", "inid_laplace"],
        [APPROXIMATE, PrivacyGuarantee(0.01, 1e-9)],
    ):
        mechanism = calibrate(noise, JOINT[0], guarantee, n_releases=30)
        spans = JOINT[0].per_coordinate / mechanism.grid_size
        assert 2.0**24 <= spans.min() < 2.0**26
    assert calibrate("iid_laplace", SensitivityProfile([1.0, 1e-20]), PURE).bits == 52
    assert calibrate("iid_laplace", SensitivityProfile([1.0]), PrivacyGuarantee(1e6)).bits == 16
