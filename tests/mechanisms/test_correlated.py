"""Correlated noise: the formulas, the guarantee by force, and exactness."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from skdpnoise.mechanisms import AdditiveMechanism, Mechanism, calibrate
from skdpnoise.mechanisms.mixed import bounded_counts, correlated_sum
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile
from tests._cases import each_value
from tests._statistics import FALSE_ALARM

ADD_REMOVE = PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove")
PROFILES = [np.ones(5), np.arange(1.0, 8.0), 2.0 ** np.arange(12), np.array([3.0])]
MU = 0.7


@pytest.mark.parametrize("high", PROFILES, ids=len)
def test_gaussian_variances_are_those_of_the_formula(high):
    mechanism = correlated_sum(high, GaussianLoss(MU))
    l2 = np.linalg.norm(high)
    s = (high.sum() + l2) / 2
    deviation = mechanism.additive.standard_deviation
    assert deviation[:-1] ** 2 == pytest.approx(high / 2 * s / MU**2, rel=1e-5)
    assert deviation[-1] ** 2 == pytest.approx(s / (l2 / 2) / MU**2, rel=1e-5)
    assert mechanism.expected_error() == pytest.approx(s**2 / MU**2, rel=1e-5)
    assert mechanism.expected_error() <= (high.sum() / MU) ** 2 * (1 + 1e-5)  # independent noise


@pytest.mark.parametrize("d", [1, 4, 20, 1000])
def test_equal_bounds_give_lebedas_noise(d):
    mechanism = correlated_sum(np.ones(d), GaussianLoss(MU))
    deviation = mechanism.additive.standard_deviation
    assert deviation[0] ** 2 == pytest.approx((d + d**0.5) / (4 * MU**2), rel=1e-5)
    assert (deviation[-1] / 2) ** 2 == pytest.approx((d**0.5 + 1) / (4 * MU**2), rel=1e-5)
    assert mechanism.expected_error() / d == pytest.approx((d**0.5 + 1) ** 2 / (4 * MU**2), 1e-5)


@pytest.mark.parametrize("high", [np.ones(5), np.arange(1.0, 8.0), 1.5 ** np.arange(6)], ids=len)
def test_laplace_errors_are_those_of_the_formula(high):
    mechanism = correlated_sum(high, PureLoss(0.5), "inid_laplace")
    expected = 0.5 * (np.sum(high ** (2 / 3)) + np.linalg.norm(high) ** (2 / 3)) ** 3 / 0.5**2
    assert mechanism.expected_error() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("high", [[1.0], [1.0, 1.0], [100.0, 1.0, 1.0, 1.0, 1.0]], ids=len)
def test_laplace_noise_is_never_worse_than_independent_noise_or_than_shifting_all(high):
    error = correlated_sum(high, PureLoss(0.5), "inid_laplace").expected_error()
    alone = calibrate("inid_laplace", SensitivityProfile(high), PureLoss(0.5)).expected_error()
    high = np.array(high)
    shifted = 0.5 * (np.sum(high ** (2 / 3)) + np.linalg.norm(high) ** (2 / 3)) ** 3 / 0.5**2
    assert error <= alone * (1 + 1e-4)
    assert error <= shifted * (1 + 1e-4)
    assert len(high) < 5 or error < 0.95 * min(alone, shifted)


def test_general_intervals_weights_and_a_wanted_count():
    low, high = np.array([-1.0, 2.0, 0.0]), np.array([1.0, 3.0, 8.0])
    mechanism = correlated_sum(high, GaussianLoss(1.0), low=low)
    assert mechanism.shift.tolist() == [0.0, 2.5, 4.0]
    reach, c = np.array([1.0, 0.5, 4.0]), mechanism.shift
    assert mechanism.expected_error() == pytest.approx(
        (reach.sum() + np.linalg.norm(c)) ** 2, rel=1e-5
    )
    weights = np.array([9.0, 1.0, 4.0])
    weighted = correlated_sum(high, GaussianLoss(1.0), low=low, weights=weights, count_weight=5.0)
    total = (np.sqrt(weights) @ reach + np.sqrt(weights @ c**2 + 5.0)) ** 2
    count = weighted.covariance[-1, -1]
    assert weighted.expected_error(weights=weights) + 5 * count == pytest.approx(total, rel=1e-5)
    symmetric = correlated_sum(high, GaussianLoss(1.0), low=-high)
    assert symmetric.expected_error() == pytest.approx(high.sum() ** 2, rel=1e-5)


@pytest.mark.slow
def test_auto_takes_the_better_family():
    for d, family in [(2, "laplace"), (100, "gaussian")]:
        mechanism = correlated_sum(np.ones(d), ADD_REMOVE, "auto")
        errors = [
            correlated_sum(np.ones(d), ADD_REMOVE, f"inid_{name}").expected_error()
            for name in ("laplace", "gaussian")
        ]
        assert mechanism.expected_error() == min(errors)
        assert mechanism.additive.noise == f"inid_{family}"
    assert correlated_sum([1.0], PureLoss(1.0), "auto").additive.noise == "inid_laplace"


def corners(high):
    return np.array(list(itertools.product(*((0.0, end) for end in high))))


def test_no_record_costs_more_than_the_charge_and_one_per_cent_less_noise_breaks_it():
    high = np.array([1.0, 2.0, 5.0, 0.5])
    mechanism = correlated_sum(high, GaussianLoss(MU))
    rng = np.random.default_rng(0)
    contributions = np.concatenate([corners(high), high * rng.random((1000, 4))])
    # The released sums and count together are as telling as (f - n c, n): an invertible map.
    moved = np.column_stack([contributions, np.ones(len(contributions))])
    precision = np.linalg.inv(mechanism.covariance)
    mu = np.sqrt(np.einsum("ij,jk,ik->i", moved, precision, moved)).max()
    assert MU * (1 - 1e-5) < mu <= MU
    assert mechanism.privacy_loss().mu <= MU
    less = dataclasses.replace(mechanism.additive, scale=0.99 * mechanism.additive.scale)
    assert less.privacy_loss().mu > MU * 1.005


def test_laplace_losses_by_force():
    high = np.array([1.0, 2.0, 5.0, 0.5])
    mechanism = correlated_sum(high, PureLoss(MU), "inid_laplace")
    assert (mechanism.shift > 0).any()
    moved = np.column_stack([corners(high) - mechanism.shift, np.ones(16)])
    loss = (np.abs(moved) / mechanism.additive.scale).sum(axis=1).max()
    assert MU * (1 - 1e-5) < loss <= MU


@pytest.mark.slow
def test_a_release_is_computed_exactly_and_has_the_covariance_that_is_claimed():
    high = np.array([1.0, 2.0, 5.0])
    mechanism = correlated_sum(high, GaussianLoss(MU), n_releases=10_000)
    value = np.array([3.0, 100.0, 7e5, 2e5])
    released = mechanism.release(np.broadcast_to(value, (10_000, 4)), 0) - value
    whitened = np.linalg.solve(np.linalg.cholesky(mechanism.covariance), released.T)
    # Under the claim this is chi-square with so many degrees of freedom.
    total = float((whitened**2).sum())
    free = whitened.size
    for scale, fits in ((1.0, True), (1.05, False), (0.95, False)):
        tail = chi2.sf(total / scale**2, free), chi2.cdf(total / scale**2, free)
        assert (2 * min(tail) > FALSE_ALARM) == fits
    correlation = whitened @ whitened.T / whitened.shape[1]
    assert np.abs(correlation - np.eye(4)).max() < 6.5 / np.sqrt(whitened.shape[1]) * 1.5


def without_noise(mechanism, monkeypatch):
    monkeypatch.setattr(
        AdditiveMechanism,
        "sample",
        lambda self, words, n=None, *, first=None: np.zeros(
            (n, self.sensitivity.n_coordinates), dtype=np.int64
        ),
    )
    return mechanism


def test_large_sums_lose_nothing_on_the_way_to_integers(monkeypatch):
    mechanism = without_noise(correlated_sum([0.3, 0.7], GaussianLoss(1.0)), monkeypatch)
    # n c alone is off by several grid steps in floating point.
    n = 2**51 + 1
    sums = [Fraction(c) * n for c in mechanism.shift.tolist()]
    released = mechanism.release([float(sums[0]), float(sums[1]), n], 0)
    part = released[:-1] - mechanism.shift * released[-1]
    for j in range(2):
        error = Fraction(float(sums[j])) - sums[j]
        quanta = round(error / Fraction(mechanism.grid_size[j]))
        assert abs(part[j] - quanta * mechanism.grid_size[j]) <= np.spacing(released[j])


@pytest.mark.parametrize(
    ("k", "variance"), [(1, 1.0), (5, 4.5687), (10, 7.1794)], ids=["1", "5", "10"]
)
def test_bounded_counts_have_the_reference_variances(k, variance):
    mechanism = bounded_counts(20, k, GaussianLoss(1.0))
    assert mechanism.expected_error() / 20 == pytest.approx(variance, abs=1e-4)
    assert np.diag(mechanism.covariance) == pytest.approx(np.full(20, variance), abs=1e-4)


@pytest.mark.slow
def test_bounded_counts_follow_the_closed_form():
    d = 30
    for k in range(2, 15):
        s = ((d - k) / (k * (d - 1))) ** 0.5
        q = (1 - s) / d
        a = k * (1 - q * k)
        if q <= 1 / (2 * k):
            covariance = bounded_counts(d, k, GaussianLoss(1.0)).covariance
            assert covariance == pytest.approx(a * np.eye(d) + a * q / s, rel=1e-4)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_bounded_counts_are_never_worse_than_independent_or_lebedas_noise(adjacency):
    gains = []
    for d in (1, 2, 7, 20):
        for k in range(1, d + 1):
            mechanism = bounded_counts(d, k, GaussianLoss(1.0), adjacency=adjacency)
            error = mechanism.expected_error() / d
            changed = min(2 * k, d) if adjacency == "replace_one" else k
            assert error <= changed * (1 + 1e-5)
            if adjacency == "add_remove":
                assert error <= (d**0.5 + 1) ** 2 / 4 * (1 + 1e-5)
            elif 2 * k <= d:
                assert error <= 2 * k * (k + d - 1) / (k + d) * (1 + 1e-5)
            gains.append(error / changed)
    assert min(gains) < 0.8


@each_value(1)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (4, 1), (4, 2), (5, 3), (5, 5), (6, 2), (6, 5)])
def test_every_change_of_bounded_counts_is_within_the_charge_and_one_reaches_it(d, k, adjacency):
    mechanism = bounded_counts(d, k, GaussianLoss(MU), adjacency=adjacency)
    rows = np.array([r for r in itertools.product((0, 1), repeat=d) if sum(r) <= k])
    moved = rows if adjacency == "add_remove" else (rows[:, None] - rows).reshape(-1, d)
    precision = np.linalg.inv(mechanism.covariance)
    mu = np.sqrt(np.einsum("ij,jk,ik->i", moved, precision, moved)).max()
    assert MU * (1 - 1e-5) < mu <= MU
    assert mu / 0.99 > MU  # one per cent less noise
    less = dataclasses.replace(mechanism.additive, scale=0.99 * mechanism.additive.scale)
    assert less.privacy_loss().mu > MU


@pytest.mark.slow
def test_bounded_counts_release_what_they_claim(monkeypatch):
    mechanism = bounded_counts(6, 2, GaussianLoss(MU), n_releases=6_000)
    value = np.array([5, 10**9, 0, 3, 77, 10**8])
    released = mechanism.release(np.broadcast_to(value, (6_000, 6)), 0) - value
    whitened = np.linalg.solve(np.linalg.cholesky(mechanism.covariance), released.T)
    total, free = float((whitened**2).sum()), whitened.size
    for scale, fits in ((1.0, True), (1.05, False), (0.95, False)):
        tail = chi2.sf(total / scale**2, free), chi2.cdf(total / scale**2, free)
        assert (2 * min(tail) > FALSE_ALARM) == fits
    quiet = without_noise(mechanism, monkeypatch)
    assert quiet.release(value, 0) == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: correlated_sum([1.0, 2.0], ADD_REMOVE, n_releases=n),
        lambda n: bounded_counts(3, 2, ADD_REMOVE, n_releases=n),
    ],
    ids=["correlated_sum", "bounded_counts"],
)
def test_they_are_mechanisms(make):
    mechanism = make(3)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.n_releases == 3
    assert mechanism.privacy_loss().epsilon(1e-6) <= 1.0
    draws = mechanism.sample(SeededWords(0), 2)
    assert draws.shape == (2, 3)
    assert draws.dtype == np.int64
    assert mechanism.grid_size.shape == (3,)
    assert mechanism.release(np.zeros((2, 3)), 0).shape == (2, 3)
    one, three = make(1), mechanism
    assert three.expected_error() == pytest.approx(9 * one.expected_error(), rel=1e-4)
    assert three.expected_error(weights=np.full(three.covariance.shape[0] - one_count(three), 2.0))
    assert repr(copy.copy(mechanism)) == repr(mechanism)


def one_count(mechanism):
    """Whether the last coordinate is a count that errors leave out."""
    return int(hasattr(mechanism, "shift"))


@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize(
    ("noise", "loss"), [("inid_gaussian", GaussianLoss(1.0)), ("inid_laplace", PureLoss(1.0))]
)
def test_other_exponents_agree_with_draws(noise, loss, p):
    mechanism = correlated_sum([1.0, 1.0, 1.0, 1.0], loss, noise, n_releases=200_000)
    assert (mechanism.shift == 0.5).all()
    noisy = mechanism.sample(SeededWords(0)) * mechanism.grid_size
    errors = np.abs(noisy[:, :-1] + noisy[:, -1:] * mechanism.shift) ** p
    assert errors.sum() == pytest.approx(mechanism.expected_error(p), rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: correlated_sum([1.0], PrivacyGuarantee(1.0, 1e-6)), "replace_one"),
        (lambda: correlated_sum([1.0, np.nan], ADD_REMOVE), "finite"),
        (lambda: correlated_sum([1.0], ADD_REMOVE, low=2.0), "swapped"),
        (lambda: correlated_sum([1.0], ADD_REMOVE, weights=[-1.0]), "weights"),
        (lambda: correlated_sum([1.0], ADD_REMOVE, count_weight=-1.0), "count_weight"),
        (lambda: correlated_sum([1.0], ADD_REMOVE, "inid_unknown"), "noise"),
        (lambda: correlated_sum([1.0], ADD_REMOVE, "inid_discrete_laplace"), "continuous|integers"),
        (lambda: correlated_sum([1.0], ADD_REMOVE).release([np.inf, 1.0]), "finite"),
        (lambda: correlated_sum([1.0], ADD_REMOVE).release([1.0]), "shape"),
        (lambda: correlated_sum([1.0], ADD_REMOVE).release(np.zeros((2, 2))), "n_releases=2"),
        (lambda: bounded_counts(3, 4, ADD_REMOVE), "max_ones"),
        (lambda: bounded_counts(3, 1, ADD_REMOVE, adjacency="replace_one"), "adjacency"),
        (lambda: bounded_counts(3, 1, PureLoss(1.0)), "(?i)gaussian"),
        (lambda: bounded_counts(3, 1, ADD_REMOVE).release([np.nan, 0, 0]), "finite"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mechanism_for_groups_covers_nothing():
    guarantee = PrivacyGuarantee(1.0, 1e-6, "add_remove")
    sums, counts = correlated_sum(np.ones(3), guarantee), bounded_counts(4, 2, guarantee)
    for made, name in ((sums, "CorrelatedSum"), (counts, "BoundedCounts")):
        limit = made.additive.sensitivity.per_coordinate
        for groups in (np.zeros(limit.size), np.arange(limit.size)):
            bounds = np.full(int(groups.max()) + 1, limit.max())
            additive = calibrate("iid_gaussian", GroupedProfile(bounds, groups), guarantee)
            with pytest.raises(ValueError, match=f"'additive' parameter of {name}"):
                replace(made, additive=additive)


@pytest.mark.parametrize("part", [0.5, 0.995, 1.0 - 1e-9])
def test_a_mechanism_by_hand_is_calibrated_to_all_of_its_sensitivity(part):
    guarantee = PrivacyGuarantee(1.0, 1e-6, "add_remove")
    sums, counts = correlated_sum(np.ones(3), guarantee), bounded_counts(4, 2, guarantee)
    has, norms = sums.additive.sensitivity, counts.additive.sensitivity
    assert has.l2 is None
    assert norms.l2 is not None
    for less in (
        SensitivityProfile(part * has.per_coordinate),
        SensitivityProfile(
            has.per_coordinate,
            l2=max(has.per_coordinate.max(), part * np.linalg.norm(has.per_coordinate)),
        ),
    ):
        additive = calibrate("inid_gaussian", less, guarantee)
        with pytest.raises(ValueError, match="'additive' parameter of CorrelatedSum"):
            replace(sums, additive=additive)
    for less in (
        SensitivityProfile(part * norms.per_coordinate, l2=norms.l2),
        SensitivityProfile(
            norms.per_coordinate, l2=max(norms.per_coordinate.max(), part * norms.l2)
        ),
    ):
        with pytest.raises(ValueError, match="'additive' parameter of BoundedCounts"):
            replace(counts, additive=calibrate("iid_gaussian", less, guarantee))
