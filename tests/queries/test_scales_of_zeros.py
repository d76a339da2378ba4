"""Of columns of zeros no search makes a scale out of noise, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPRidge,
    DPRobustScaler,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyGuarantee,
)
from skdpnoise.queries import private_location_scale, private_quantiles
from skdpnoise.queries.ranges import fullest_bins
from tests._statistics import FALSE_ALARM

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

CHANCE = 0.04  # of a fit that finds a scale: one in fifty for magnitudes, and for what is summed
N = 1000


def zeros(p):
    return np.zeros((N, p))


def by_location_scale(p, seed, *, pooled, delta=1e-6):
    guarantee = PrivacyGuarantee(1.0, delta)
    found = private_location_scale(zeros(p), guarantee, pooled=pooled, random_state=seed)
    return found.found.any()


def by_quantiles(p, seed):
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    return private_quantiles(zeros(p), [0.5], guarantee, random_state=seed).found.any()


def by_scaler(p, seed, Scaler):
    return (Scaler(random_state=seed).fit(zeros(p)).scale_ != 1.0).any()


def by_model(p, seed, Model, **settings):
    y = np.random.default_rng(seed).normal(size=N)
    bounds = {"target_bounds": (-5.0, 5.0), **settings}
    return Model(random_state=seed, **bounds).fit(zeros(p), y)._standardised[0].used.any()


def by_table(p, seed):
    names = [f"x{k}" for k in range(p)]
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(zeros(p), columns=names)
    fitted = DPTableVectorizer(random_state=seed).fit(table)
    # Bins of a column without a scale are one bin; its number is 0, whatever the value.
    numbers = np.isin(fitted.get_feature_names_out(), names)
    return np.asarray(fitted.transform(table + 0.7))[:, numbers].any()


FINDERS = {
    "locations and scales": lambda p, s: by_location_scale(p, s, pooled=False),
    "pooled": lambda p, s: by_location_scale(p, s, pooled=True),
    "pure": lambda p, s: by_location_scale(p, s, pooled=False, delta=0.0),
    "pooled, pure": lambda p, s: by_location_scale(p, s, pooled=True, delta=0.0),
    "quantiles": by_quantiles,
    "DPStandardScaler": lambda p, s: by_scaler(p, s, DPStandardScaler),
    "DPRobustScaler": lambda p, s: by_scaler(p, s, DPRobustScaler),
    "moments": lambda p, s: by_model(p, s, DPRidge),
    "coordinates": lambda p, s: by_model(
        p, s, DPCoordinateDescentRegressor, solver="gradient", n_passes=1
    ),
}


@pytest.mark.parametrize("p, fits", [(1, 40), (20, 40)])
@pytest.mark.parametrize("name", FINDERS)
def test_hardly_any_fit_finds_a_scale(name, p, fits):
    found = sum(bool(FINDERS[name](p, seed)) for seed in range(fits))
    assert found <= binom.isf(FALSE_ALARM, fits, CHANCE)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 5, 100])
@pytest.mark.parametrize("name", FINDERS)
def test_hardly_any_of_many_fits_finds_a_scale(name, p):
    found = sum(bool(FINDERS[name](p, seed)) for seed in range(1000, 1200))
    assert found <= binom.isf(1e-4, 200, CHANCE)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 20])
def test_tables_of_zeros_have_no_scale(p):
    found = sum(bool(by_table(p, seed)) for seed in range(60))
    assert found <= binom.isf(FALSE_ALARM, 60, CHANCE)


class Noise:
    """A release of nothing but normal noise, as its mechanism is read from it."""

    def __init__(self, values):
        from skdpnoise.mechanisms import calibrate
        from skdpnoise.privacy import GaussianLoss
        from skdpnoise.sensitivity import SensitivityProfile

        profile = SensitivityProfile(np.ones(values.size))
        self.mechanism = calibrate("iid_gaussian", profile, GaussianLoss(1.0))
        self.values = (values * self.mechanism.scale.reshape(values.shape)).ravel()


@pytest.mark.parametrize("p", [1, 3, 50])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("likely", [None, np.geomspace(1.0, 1e-3, 201)], ids=["alike", "unlike"])
def test_bins_stand_out_of_noise_as_often_as_is_said(p, pooled, likely):
    rng, fits = np.random.default_rng(0), 300
    facts = {"pooled": pooled, "likely": likely}
    found = sum(
        fullest_bins(Noise(rng.normal(size=(p, 201))), p, **facts)[1].any() for _ in range(fits)
    )
    assert found <= binom.isf(FALSE_ALARM, fits, 0.02)


def test_columns_that_stand_out_are_told_from_those_that_do_not():
    rng = np.random.default_rng(0)
    counts = rng.normal(size=(20, 201))
    counts[:5, 100] += 40.0
    fullest, stands_out = fullest_bins(Noise(counts), 20)
    assert (fullest[:5] == 100).all()
    assert stands_out[:5].all()
    assert not stands_out[5:].any()


def test_columns_that_noise_hides_one_by_one_are_found_together():
    rng = np.random.default_rng(0)
    counts = rng.normal(size=(50, 201))
    counts[:, 100] += 2.5
    alone = fullest_bins(Noise(counts), 50)[1]
    fullest, together = fullest_bins(Noise(counts), 50, pooled=True)
    assert alone.sum() < 25
    assert together.all()
    assert (np.abs(fullest[~alone] - 100) <= 2).all()


def test_a_likely_magnitude_needs_less_than_an_unlikely_one():
    counts, likely = np.zeros((1, 201)), np.geomspace(1.0, 1e-3, 201)
    found = {}
    for place in (0, 200):
        counts[:] = 0.0
        counts[0, place] = 4.0
        found[place] = bool(fullest_bins(Noise(counts), 1, likely=likely)[1][0])
    assert found == {0: True, 200: False}
