"""What an additive mechanism releases, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skdpnoise.mechanisms import AdditiveMechanism, Mechanism, calibrate
from skdpnoise.noises.gaussian import Gaussian
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import quick
from tests._statistics import FALSE_ALARM, binned_pvalue

PROFILE = SensitivityProfile([1.0, 4.0, 0.0])
GUARANTEE = PrivacyGuarantee(1.0, 1e-6)
WEIGHTS = np.array([[1.0, 2.0, 1.0], [3.0, 1.0, 1.0]])


def no_noise(family, words, size, bits):
    """Stands in for the sampler of a family, to see what a release does besides the noise."""
    return np.zeros(size, dtype=np.int64)


@quick("iid_gaussian")
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace", "iid_gaussian", "spr_laplace"])
def test_noise_has_the_scale_that_is_claimed_and_charged_for(noise):
    mechanism = calibrate(noise, SensitivityProfile([1.0, 4.0]), GUARANTEE)
    value = np.array([100.0, -7.0])
    released = np.array([mechanism.release(value, seed) for seed in range(200)])
    assert (np.abs(released.mean(axis=0) - value) < 0.5 * mechanism.standard_deviation).all()
    many = calibrate(noise, SensitivityProfile([1.0, 4.0]), GUARANTEE, n_releases=100_000)
    draws = many.sample(SeededWords(0))
    assert draws.shape == (100_000, 2)
    for column, scale, grid_size in zip(draws.T, many.scale, many.grid_size, strict=True):
        bits = many.bits
        assert scale == grid_size * 2.0**bits
        assert binned_pvalue(column, many.family, bits) > FALSE_ALARM
        assert binned_pvalue(column, many.family, bits, scale=1.05) < FALSE_ALARM
        assert binned_pvalue(column, many.family, bits, scale=0.95) < FALSE_ALARM


def test_coordinates_and_releases_draw_independent_noise():
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE, n_releases=2, weights=WEIGHTS)
    draws = mechanism.sample(SeededWords(0))
    assert draws.dtype == np.int64
    assert np.unique(draws[:, :2]).size == 4
    assert (draws[:, 2] == 0).all()


@pytest.mark.parametrize("noise", ["inid_gaussian", "spr_laplace", "iid_gaussian"])
def test_released_values_are_whole_numbers_of_quanta(noise):
    mechanism = calibrate(noise, SensitivityProfile([1.0, 4.0]), GUARANTEE, n_releases=50)
    values = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e6]
    released = mechanism.release(values, 1)
    quanta = np.rint(released / mechanism.grid_size)
    assert (quanta * mechanism.grid_size == released).all()
    assert np.abs(quanta).max() < 2.0**47  # floats are much finer, so the check is not idle
    other = released + values * 1e-12
    assert (np.rint(other / mechanism.grid_size) * mechanism.grid_size != other).any()


def test_a_constant_coordinate_is_released_unchanged():
    for noise in ("inid_gaussian", "spr_laplace"):
        mechanism = calibrate(noise, PROFILE, GUARANTEE)
        assert mechanism.grid_size[2] == 0.0
        released = mechanism.release([0.0, 0.0, 0.1], 0)
        assert released[2] == 0.1
        assert (released[:2] != 0.0).all()


def test_values_are_rounded_to_the_nearest_quantum_before_noise(monkeypatch):
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE)
    monkeypatch.setattr(Gaussian, "sample_rounded", no_noise)
    value = np.array([np.pi, -np.e * 1e9, 0.0])
    released = mechanism.release(value)
    assert (np.abs(released - value) <= mechanism.grid_size / 2 * (1 + 1e-9)).all()


def test_absurd_values_are_clipped_and_stay_finite():
    mechanism = calibrate("inid_laplace", SensitivityProfile([1.0, 1.0]), GUARANTEE)
    released = mechanism.release([1e308, -1e308], 0)
    assert released == pytest.approx(np.array([1, -1]) * 2.0**62 * mechanism.grid_size, rel=1e-9)
    tiny = mechanism.release([5e-324, -5e-324], 0)
    assert np.isfinite(tiny).all()


@pytest.mark.usefixtures("the_same_words")
def test_a_seed_reproduces_a_release_and_none_does_not():
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE)
    value = [1.0, 2.0, 3.0]
    assert (mechanism.release(value, 5) == mechanism.release(value, 5)).all()
    assert (mechanism.release(value, 5) != mechanism.release(value, 6))[:2].all()
    assert (mechanism.release(value) != mechanism.release(value))[:2].all()


def test_a_release_is_the_value_plus_what_sample_draws():
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE, n_releases=2, weights=WEIGHTS)
    drawn = mechanism.sample(SeededWords(3)) * mechanism.grid_size
    assert (mechanism.release(np.zeros((2, 3)), SeededWords(3)) == drawn).all()
    for t in range(2):
        (drawn,) = mechanism.sample(SeededWords(3), n_releases=1, first=t)
        released = mechanism.release(np.zeros(3), SeededWords(3), first=t)
        assert (released == drawn * mechanism.grid_size[t]).all()


def test_the_value_given_is_not_changed():
    value = np.array([1.0, 2.0, 3.0])
    calibrate("inid_gaussian", PROFILE, GUARANTEE).release(value, 0)
    assert value.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_without_showing_it(bad):
    with pytest.raises(ValueError, match=r"'value'.*finite") as refusal:
        calibrate("inid_gaussian", PROFILE, GUARANTEE).release([123.456, bad, 0.0])
    assert "123" not in str(refusal.value)


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0], np.ones((1, 2)), np.ones((1, 1, 3)), []])
def test_a_value_of_the_wrong_shape_is_refused(value):
    with pytest.raises(ValueError, match=r"'value'.*of shape \(3,\) or \(n, 3\)"):
        calibrate("inid_gaussian", PROFILE, GUARANTEE).release(value)


@pytest.mark.parametrize("value", [["a", "b", "c"], [1j, 0, 0], [None, 1, 2]])
def test_a_value_that_is_not_real_is_refused(value):
    with pytest.raises(TypeError, match=r"'value'.*real numbers"):
        calibrate("inid_gaussian", PROFILE, GUARANTEE).release(value)


def test_more_releases_than_are_charged_for_are_refused():
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE, n_releases=2)
    assert mechanism.sample(SeededWords(0), 2).shape == (2, 3)
    for count in (1, 2):
        with pytest.raises(ValueError, match=rf"'first'.*at most {2 - count}, so that {count} rel"):
            mechanism.sample(SeededWords(0), count, first=3 - count)
        with pytest.raises(ValueError, match=rf"'first'.*at most {2 - count}.*n_releases=2"):
            mechanism.release(np.ones((count, 3)), first=3 - count)
    for first, kind in ((-1, ValueError), (0.0, TypeError), (True, TypeError)):
        with pytest.raises(kind, match="first"):
            mechanism.release(np.ones(3), first=first)
    with pytest.raises(ValueError, match=r"'n_releases'.*3 releases.*charged for 2.*n_releases=3"):
        mechanism.sample(SeededWords(0), 3)
    with pytest.raises(ValueError, match=r"'value'.*3 releases.*n_releases=3"):
        mechanism.release(np.ones((3, 3)))
    for count, kind in ((0, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(kind, match="n_releases"):
            mechanism.sample(SeededWords(0), count)


def test_expected_error_is_that_of_the_formula_and_of_the_draws():
    mechanism = calibrate("inid_laplace", PROFILE, PureLoss(1.0), n_releases=2, weights=WEIGHTS)
    scale = mechanism.scale
    assert mechanism.expected_error() == pytest.approx(2 * (scale**2).sum())
    assert mechanism.expected_error(p=1, weights=WEIGHTS) == pytest.approx((WEIGHTS * scale).sum())
    assert mechanism.mean_squared_error == pytest.approx(2 * (scale**2).mean())
    assert mechanism.standard_deviation == pytest.approx(np.sqrt(2) * scale)
    equal = calibrate("inid_gaussian", PROFILE, GUARANTEE, n_releases=5)
    assert equal.expected_error() == pytest.approx(5 * (equal.scale**2).sum())
    assert equal.expected_error(weights=[1.0, 0.5, 9.0]) == pytest.approx(
        5 * ([1.0, 0.5, 9.0] * equal.scale**2).sum()
    )


def test_what_is_charged_follows_from_what_draws():
    mechanism = calibrate("inid_gaussian", PROFILE, GaussianLoss(0.5), n_releases=4)
    for factor in (0.5, 2.0):
        other = AdditiveMechanism(
            mechanism.noise, factor * mechanism.scale, mechanism.bits, PROFILE, 4
        )
        assert other.privacy_loss().mu == pytest.approx(0.5 / factor, rel=1e-6)
    more = AdditiveMechanism(mechanism.noise, mechanism.scale, mechanism.bits, PROFILE, 16)
    assert more.privacy_loss().mu == pytest.approx(1.0, rel=1e-6)


def test_a_mechanism_is_a_frozen_record_that_pickles_and_prints():
    mechanism = calibrate("inid_gaussian", PROFILE, GUARANTEE)
    assert isinstance(mechanism, Mechanism)
    with pytest.raises(AttributeError):
        mechanism.bits = 3
    with pytest.raises(ValueError, match="read-only"):
        mechanism.scale[0] = 0.0
    copied = pickle.loads(pickle.dumps(mechanism))
    assert (copied.scale == mechanism.scale).all()
    assert copied.privacy_loss() == mechanism.privacy_loss()
    assert repr(mechanism) == (
        "AdditiveMechanism(noise='inid_gaussian', scale=0 to 18.8933, n_coordinates=3, "
        "n_releases=1, loss=0.236704-GDP)"
    )
