"""Noise on second moments: what is charged is what a row can do, and the least is taken."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from skdpnoise.kernels import second_moments
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import SECOND_MOMENT_NOISES, calibrate_second_moments
from skdpnoise.mechanisms.matrices import FAMILIES
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import RowBounds
from tests._cases import each_value, quick
from tests._statistics import FALSE_ALARM, fit_pvalue
from tests.mechanisms._second_moments import (
    ADJACENCIES,
    BOUNDS,
    GAUSSIAN,
    NOISES,
    budget,
    resource,
)


@quick("iid_laplace")
@each_value(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("noise", NOISES)
def test_the_charge_uses_the_budget_and_one_per_cent_less_noise_breaks_it(noise, kind, adjacency):
    for amount in (1e-3, 0.7, 40.0):
        mechanism = calibrate_second_moments(noise, BOUNDS[kind], budget(noise, amount), adjacency)
        spent = resource(mechanism.privacy_loss())
        assert amount * (1.0 - 1e-9) < spent <= amount
        less = dataclasses.replace(mechanism, row_scale=mechanism.row_scale * math.sqrt(0.99))
        assert less.standard_deviation == pytest.approx(0.99 * mechanism.standard_deviation)
        assert resource(less.privacy_loss()) > 1.01 * amount


@each_value(1)
@pytest.mark.parametrize("noise", SECOND_MOMENT_NOISES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_guarantee_is_met_and_an_impossible_one_refused(noise, delta):
    guarantee = PrivacyGuarantee(0.8, delta, "add_remove")
    if noise in GAUSSIAN and delta == 0.0:
        with pytest.raises(ValueError, match="one of"):
            calibrate_second_moments(noise, BOUNDS["ball"], guarantee)
        return
    mechanism = calibrate_second_moments(noise, BOUNDS["ball"], guarantee)
    assert mechanism.adjacency == "add_remove"
    assert mechanism.privacy_loss().delta(0.8) <= delta
    account = Account(guarantee)
    account.charge("second moments", mechanism)
    (release,) = account.report("test", secure=True).releases
    assert (release.noise, release.n_releases) == (mechanism.noise, 1)
    assert release.n_coordinates == 21


# How much noise


@pytest.mark.parametrize("noise", NOISES)
def test_draws_have_the_deviations_that_are_stated(noise):
    bounds = RowBounds(60, 1.0)
    mechanism = calibrate_second_moments(noise, bounds, budget(noise), "add_remove")
    words, n = SeededWords(7), 15
    drawn = np.array([mechanism.sample(words) for _ in range(n)]) * mechanism.grid_size
    assert (drawn == drawn.transpose(0, 2, 1)).all()
    scaled = drawn / mechanism.standard_deviation
    rows, columns = np.triu_indices(60, 1)
    for entries in (scaled[:, range(60), range(60)], scaled[:, rows, columns]):
        # Five deviations of the mean square, of entries with at most the kurtosis of Laplace's; the
        # common radius of "k_norm" adds a deviation of 2/60 to each draw's.
        allowed = 5.0 * math.sqrt(5.0 / entries.size) + 0.02
        assert np.mean(entries**2) == pytest.approx(1.0, abs=allowed)
    total = (drawn**2).sum() / n
    assert total == pytest.approx(mechanism.expected_error(), rel=0.06)


@quick("inid_gaussian", "inid_laplace")
@pytest.mark.parametrize("noise", ["iid_gaussian", "inid_gaussian", "iid_laplace", "inid_laplace"])
def test_independent_entries_have_their_density_and_a_wrong_scale_is_seen(noise):
    size = 330
    columns = np.ones(size)
    bounds = RowBounds(size, 1.0, columns) if noise[0:3] == "iid" else RowBounds(size, 1.0)
    mechanism = calibrate_second_moments(noise, bounds, budget(noise), "add_remove")
    family = get_noise(noise.partition("_")[2])
    drawn = mechanism.sample(SeededWords(2))
    bits, r = 2 * mechanism.bits, mechanism.off_diagonal
    others = drawn[np.triu_indices(size, 1)]
    assert fit_pvalue(others, family, bits, scale=r) > FALSE_ALARM
    assert fit_pvalue(others, family, bits, scale=1.05 * r) < FALSE_ALARM
    assert fit_pvalue(others, family, bits, scale=r / 1.05) < FALSE_ALARM
    words = SeededWords(3)
    diagonal = np.concatenate([mechanism.sample(words).diagonal() for _ in range(17)])
    assert fit_pvalue(diagonal, family, bits) > FALSE_ALARM
    if noise.endswith("gaussian"):
        squares = ((diagonal / 2.0**bits) ** 2).sum()
        assert chi2.sf(squares, diagonal.size) > FALSE_ALARM
        assert chi2.sf(squares * 1.15**2, diagonal.size) < FALSE_ALARM
        assert chi2.cdf(squares / 1.15**2, diagonal.size) < FALSE_ALARM


@each_value(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", BOUNDS)
def test_unequal_noise_is_never_worse_than_the_same_everywhere(kind, adjacency):
    for family in ("gaussian", "laplace"):
        one, other = (
            calibrate_second_moments(
                f"{rule}_{family}", BOUNDS[kind], budget(f"{rule}_{family}"), adjacency
            ).expected_error()
            for rule in ("iid", "inid")
        )
        assert other <= one * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("p", [2, 20, 300])
def test_for_rows_in_a_ball_errors_are_the_closed_forms(p, adjacency):
    bounds, worth = RowBounds(p, 2.0), 2.0 if adjacency == "replace_one" else 1.0

    def error(noise):
        return calibrate_second_moments(noise, bounds, budget(noise), adjacency).expected_error()

    unit = 16.0 / 0.7**2
    assert error("iid_gaussian") == pytest.approx(worth * p**2 * unit, rel=1e-6)
    assert error("inid_gaussian") == pytest.approx(worth * p * (p + 1) / 2 * unit, rel=1e-6)
    entries = p * (p + 1) / 2
    assert error("k_norm") == pytest.approx(worth * entries * (entries + 1) * unit, rel=1e-6)
    assert error("wishart") == pytest.approx(worth**2 * p * (p + 1) ** 2 / 2 * unit, rel=1e-6)
    if adjacency == "add_remove":
        same = 2.0 * (p * (p + 1) / 2) ** 2 * unit
        assert error("iid_laplace") == pytest.approx(same, rel=1e-6)
    else:
        root = 2.0 * (p * (p + 1)) ** 2 * unit
        assert error("inid_laplace") <= root * (1.0 + 1e-6)


def test_an_l1_ball_lowers_laplace_noise_by_its_share():
    p = 20
    errors = [
        calibrate_second_moments(noise, bounds, PureLoss(1.0), "add_remove").expected_error()
        for noise, bounds in (
            ("iid_laplace", RowBounds(p, 1.0)),
            ("inid_laplace", RowBounds(p, 1.0, l1_norm=math.sqrt(0.73 * p))),
        )
    ]
    assert math.sqrt(errors[1] / errors[0]) < 0.735


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["inid_gaussian", "wishart"])
@pytest.mark.parametrize("kind", ["columns", "box", "all"])
def test_scales_of_the_columns_are_near_those_of_a_general_optimiser(kind, noise):
    bounds = BOUNDS[kind]
    mechanism = calibrate_second_moments(noise, bounds, budget(noise), "add_remove")
    family = FAMILIES[noise]

    def error(logs):
        scale, r = np.exp(logs[:-1]), math.sqrt(0.5 + logs[-1] ** 2)
        worst = family.change(bounds, "add_remove", scale, r) / 0.7
        diagonal, others = family.deviations(bounds.n_columns, r)
        outer = np.outer(scale, scale) * others
        np.fill_diagonal(outer, scale**2 * diagonal)
        return math.log(np.sum(outer**2) * worst**2)

    start = np.append(np.log(mechanism.row_scale), 0.1)
    best = min(
        minimize(error, start + shift, method="Nelder-Mead", options={"maxiter": 4000}).fun
        for shift in (0.0, 0.3 * np.random.default_rng(0).normal(size=start.size))
    )
    assert math.log(mechanism.expected_error()) <= best + 0.015


def test_auto_takes_the_smallest_error_of_those_that_can_give_the_guarantee():
    for p, guarantee in itertools.product(
        (1, 2, 4, 10, 60),
        (
            PrivacyGuarantee(1.0),
            PrivacyGuarantee(1.0, 1e-6),
            PrivacyGuarantee(9.0, 1e-9, "add_remove"),
            GaussianLoss(0.3),
            PureLoss(0.3),
        ),
    ):
        bounds = RowBounds(p, 1.0)
        auto = calibrate_second_moments("auto", bounds, guarantee)
        errors = []
        for noise in NOISES:
            try:
                made = calibrate_second_moments(noise, bounds, guarantee)
            except ValueError:
                continue
            errors.append(made.expected_error())
        assert auto.expected_error() == pytest.approx(min(errors))
        assert len(auto.considered) == 4
    assert calibrate_second_moments("auto", RowBounds(1, 1.0), PureLoss(1.0)).noise == (
        "inid_laplace"
    )
    assert calibrate_second_moments("auto", RowBounds(3, 1.0), PureLoss(1.0)).noise == "k_norm"
    assert calibrate_second_moments("auto", RowBounds(9, 1.0), PureLoss(1.0)).noise == "wishart"


# Integers


@each_value(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("noise", NOISES)
def test_rows_span_enough_quanta_and_sums_of_a_thousand_million_rows_fit(noise, adjacency):
    for p, amount, norm in itertools.product((1, 7, 50), (0.01, 1.0, 100.0), (1e-30, 1.0, 1e30)):
        bounds = RowBounds(p, norm)
        mechanism = calibrate_second_moments(noise, bounds, budget(noise, amount), adjacency)
        span = norm / mechanism.row_grid_size.max()
        least = 15.0 if noise != "wishart" or amount >= 1.0 else 12.0
        assert least <= math.log2(span) <= 16.25 + 1e-9
        assert span**2 * 1e9 < 2**63 - 2**61
        assert (mechanism.grid_size == np.outer(*[mechanism.row_grid_size] * 2)).all()


@pytest.mark.parametrize("noise", NOISES)
def test_with_next_to_no_noise_or_next_to_no_budget_all_stays_in_range(noise):
    for amount in (1e-12, 1e12):
        bounds = RowBounds(3, 1.0)
        mechanism = calibrate_second_moments(noise, bounds, budget(noise, amount), "add_remove")
        assert resource(mechanism.privacy_loss()) <= amount
        assert 0 <= mechanism.bits <= 26
        assert 1.0 / mechanism.row_grid_size.max() <= 2.0**16.25 * (1 + 1e-9)
        X = np.random.default_rng(0).normal(size=(100, 3))
        counts = second_moments(X, row_grid_size=mechanism.row_grid_size, norm=1.0)
        released = mechanism.release(counts, 0)
        assert np.isfinite(released).all()
        if amount == 1e12:
            X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
            assert released == pytest.approx(X.T @ X, abs=0.01)


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("noise", NOISES)
def test_a_release_is_the_counts_and_the_noise_in_quanta(noise):
    mechanism = calibrate_second_moments(noise, BOUNDS["columns"], budget(noise))
    counts = np.arange(25).reshape(5, 5) * 10**12
    counts = counts + counts.T
    released = mechanism.release(counts, SeededWords(4))
    noise_drawn = mechanism.sample(SeededWords(4))
    assert (released == (counts + noise_drawn) * mechanism.grid_size).all()
    assert (released == released.T).all()
    assert (mechanism.release(counts, 5) == mechanism.release(counts, 5)).all()
    assert (mechanism.release(counts) != mechanism.release(counts)).any()
    # Counts that no data can have stay within 64 bits.
    huge = np.full((5, 5), 2**63 - 1)
    assert (mechanism.release(huge, 0) > 0).all()


@pytest.mark.parametrize("noise", NOISES)
def test_scales_that_no_noise_of_the_family_has_are_refused(noise):
    # The proofs of these families are for one ratio of the scales off and on the diagonal.
    mechanism = calibrate_second_moments(noise, RowBounds(3, 1.0), budget(noise, 1.0))
    if noise.startswith("inid_"):
        assert dataclasses.replace(mechanism, off_diagonal=0.9).off_diagonal == 0.9
        return
    for ratio in (0.9, np.nextafter(mechanism.off_diagonal, 0.0)):
        with pytest.raises(ValueError, match="'off_diagonal'"):
            dataclasses.replace(mechanism, off_diagonal=ratio)
    if noise.startswith("iid_"):
        with pytest.raises(ValueError, match="equal row_scale"):
            dataclasses.replace(mechanism, row_scale=mechanism.row_scale * [1.0, 1.0, 2.0])


def test_what_it_is_is_shown_and_kept_from_change():
    mechanism = calibrate_second_moments("auto", BOUNDS["ball"], PrivacyGuarantee(0.1, 1e-6))
    assert repr(mechanism) == (
        "SymmetricMatrixMechanism(noise='inid_gaussian', n_columns=6, adjacency='replace_one', "
        f"loss={gdp_mu(0.1, 1e-6):.6g}-GDP)"
    )
    assert "considered: inid_gaussian" in mechanism.explain()
    with pytest.raises(ValueError, match="read-only"):
        mechanism.row_scale[0] = 1.0
    copied = copy.deepcopy(mechanism)
    assert (copied.sample(SeededWords(1)) == mechanism.sample(SeededWords(1))).all()
    assert (mechanism.n_releases, mechanism.diagonal) == (1, 1.0)
    assert mechanism.scale.diagonal() == pytest.approx(mechanism.row_scale**2)
    weights = np.zeros((6, 6))
    weights[0, 0] = 2.0
    expected = 2.0 * mechanism.standard_deviation[0, 0] ** 2
    assert mechanism.expected_error(weights) == pytest.approx(expected)


BALL = RowBounds(2, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: calibrate_second_moments("spr", BALL, PureLoss(1.0)), ValueError, "among"),
        (lambda: calibrate_second_moments(None, BALL, PureLoss(1.0)), TypeError, "noise"),
        (lambda: calibrate_second_moments("auto", 2, PureLoss(1.0)), TypeError, "row_bounds"),
        (lambda: calibrate_second_moments("auto", BALL, 1.0), TypeError, "guarantee"),
        (lambda: calibrate_second_moments("auto", BALL, PureLoss(0.0)), ValueError, "positive"),
        (
            lambda: calibrate_second_moments("wishart", BALL, GaussianLoss(1.0)),
            ValueError,
            "gaussian",
        ),
        (
            lambda: calibrate_second_moments("inid_gaussian", BALL, PureLoss(1.0)),
            ValueError,
            "wishart",
        ),
        (lambda: calibrate_second_moments("auto", BALL, PureLoss(1.0), "both"), ValueError, "adj"),
        (
            lambda: calibrate_second_moments("auto", BALL, PrivacyGuarantee(1.0), "add_remove"),
            ValueError,
            "that of the guarantee",
        ),
        (
            lambda: calibrate_second_moments("auto", RowBounds(2, 1e150), PureLoss(1.0)),
            ValueError,
            "units",
        ),
        (
            lambda: calibrate_second_moments("k_norm", RowBounds(2, 1.0, 1e-99), PureLoss(1.0)),
            ValueError,
            "units",
        ),
        (
            lambda: calibrate_second_moments("auto", BALL, PureLoss(1.0)).release(np.eye(2)),
            TypeError,
            "integers",
        ),
        (
            lambda: calibrate_second_moments("auto", BALL, PureLoss(1.0)).release(
                np.eye(3, dtype=int)
            ),
            ValueError,
            "shape",
        ),
    ],
)
def test_impossible_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
