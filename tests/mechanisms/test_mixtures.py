"""Mechanisms whose coordinates differ in family."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._statistics import FALSE_ALARM, fit_pvalue

GUARANTEE = PrivacyGuarantee(1.0, 1e-6)
DOMINATED = SensitivityProfile([200.0, *[1.0] * 100])


@pytest.mark.slow
def test_a_dominant_coordinate_is_worth_a_mixture():
    mechanism = calibrate("inid_mixture", DOMINATED, GUARANTEE)
    assert mechanism.families[0] == get_noise("laplace")
    assert set(mechanism.families[1:]) == {get_noise("gaussian")}
    single = [
        calibrate(f"inid_{family}", DOMINATED, GUARANTEE).expected_error()
        for family in ("gaussian", "laplace")
    ]
    assert mechanism.expected_error() < 0.75 * min(single)


@pytest.mark.slow
def test_its_loss_is_that_of_its_parts_and_one_per_cent_less_noise_breaks_it():
    mechanism = calibrate("inid_mixture", DOMINATED, GUARANTEE)
    mu = np.sqrt(np.sum((1.0 / mechanism.scale[1:]) ** 2))
    laplace = NumericLoss(((get_noise("laplace"), 200.0 / mechanism.scale[0], 1),))
    parts = laplace + GaussianLoss(mu)
    assert parts.delta(1.0) <= mechanism.own_loss().delta(1.0) <= 1e-6
    assert parts.delta(1.0) == pytest.approx(1e-6, rel=1e-3)
    less = NumericLoss(((get_noise("laplace"), 200.0 / mechanism.scale[0] / 0.99, 1),))
    assert (less + GaussianLoss(mu / 0.99)).delta(1.0) > 1e-6


@pytest.mark.slow
def test_every_coordinate_is_drawn_from_its_own_family():
    mechanism = calibrate("inid_mixture", DOMINATED, GUARANTEE, n_releases=100)
    draws = np.stack([mechanism.sample(SeededWords(seed))[:, :2] for seed in range(300)])
    for j, family in enumerate(("laplace", "gaussian")):
        other = get_noise("gaussian" if family == "laplace" else "laplace")
        column = draws[:, :, j].ravel()
        assert fit_pvalue(column, get_noise(family), mechanism.bits) > FALSE_ALARM
        assert fit_pvalue(column, other, mechanism.bits) < FALSE_ALARM


@pytest.mark.slow
def test_the_explanation_counts_the_families():
    text = calibrate("inid_mixture", DOMINATED, GUARANTEE).explain()
    assert "1 coordinates: Laplace()" in text
    assert "100 coordinates: Gaussian()" in text


def test_there_must_be_something_to_mix():
    with pytest.raises(ValueError, match="no coordinate dominates"):
        calibrate("inid_mixture", SensitivityProfile([1.0, 1.0]), GUARANTEE)
    with pytest.raises(ValueError, match="no coordinate dominates"):
        calibrate("inid_mixture", SensitivityProfile([1.0]), GUARANTEE)
    for other in (PrivacyGuarantee(1.0), GaussianLoss(0.5)):
        with pytest.raises(ValueError, match="needs a PrivacyGuarantee with delta > 0"):
            calibrate("inid_mixture", DOMINATED, other)
