"""What every rule with every noise family must do: being listed is enough to be tested."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.mechanisms import Mechanism, calibrate, noise_options
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile

NOISES = noise_options()
SENSITIVITIES = {
    "one coordinate": SensitivityProfile([3.0]),
    "box": SensitivityProfile([1.0, 2.0, 8.0]),
    "l1": SensitivityProfile([1.0, 2.0, 8.0], l1=9.0),
    "l2": SensitivityProfile([1.0, 2.0, 8.0], l2=8.1),
    "constant": SensitivityProfile([1.0, 0.0, 8.0], l1=8.5, l2=8.01),
}


def guarantees(noise):
    yield PrivacyGuarantee(1.0, 1e-6)
    yield PrivacyGuarantee(20.0, 1e-30)
    if noise == "auto" or get_noise(noise.partition("_")[2]).supports_pure:
        yield PrivacyGuarantee(0.1)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES.values(), ids=SENSITIVITIES)
@pytest.mark.parametrize("n_releases", [1, 3])
@pytest.mark.parametrize("weighted", ["no", "coordinates", "releases"])
def test_the_charge_never_exceeds_the_guarantee_and_nearly_uses_it(
    noise, sensitivity, n_releases, weighted
):
    size = sensitivity.n_coordinates
    weights = {
        "no": None,
        "coordinates": 1.0 + np.arange(size),
        "releases": 1.0 + np.arange(n_releases * size).reshape(n_releases, size),
    }[weighted]
    for guarantee in guarantees(noise):
        mechanism = calibrate(noise, sensitivity, guarantee, n_releases=n_releases, weights=weights)
        assert isinstance(mechanism, Mechanism)
        loss = mechanism.privacy_loss()
        assert isinstance(loss, PrivacyLoss)
        assert loss.delta(guarantee.epsilon) <= guarantee.delta
        assert loss.epsilon(guarantee.delta) <= guarantee.epsilon
        target = mechanism.family.resource(guarantee)
        assert target * (1 - 1e-5) < mechanism.resource <= target


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES.values(), ids=SENSITIVITIES)
def test_draws_are_integers_in_quanta_and_releases_are_multiples_of_it(noise, sensitivity):
    mechanism = calibrate(noise, sensitivity, PrivacyGuarantee(1.0, 1e-6), n_releases=4)
    draws = mechanism.sample(SeededWords(0))
    assert draws.dtype == np.int64
    assert draws.shape == (4, sensitivity.n_coordinates)
    assert ((draws != 0).any(axis=0) == (mechanism.scale > 0)).all()
    value = np.linspace(-5, 5, sensitivity.n_coordinates)
    released = mechanism.release(value, 0)
    noisy = mechanism.quantum > 0
    quanta = np.rint(released[noisy] / mechanism.quantum[noisy])
    assert (quanta * mechanism.quantum[noisy] == released[noisy]).all()
    assert (released[~noisy] == value[~noisy]).all()
    assert np.isfinite(mechanism.expected_error())


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_words_give_the_same_noise_and_half_the_budget_gives_more(noise):
    sensitivity = SENSITIVITIES["box"]
    whole = calibrate(noise, sensitivity, PrivacyGuarantee(1.0, 1e-6))
    assert (whole.sample(SeededWords(1)) == whole.sample(SeededWords(1))).all()
    half = calibrate(whole.noise, sensitivity, whole.privacy_loss().share(0.5))
    assert half.expected_error() > 1.9 * whole.expected_error()
    twice = half.privacy_loss() + half.privacy_loss()
    assert twice.delta(1.0) <= 1e-6
