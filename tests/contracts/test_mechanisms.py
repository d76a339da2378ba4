"""What every rule with every noise family must do: being listed is enough to be tested."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from skdpnoise.mechanisms import Mechanism, calibrate, noise_options
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, quick

NOISES = [noise for noise in noise_options() if noise not in CHOICES]
SENSITIVITIES = {
    "one coordinate": SensitivityProfile([3.0]),
    "box": SensitivityProfile([1.0, 2.0, 8.0]),
    "l1": SensitivityProfile([1.0, 2.0, 8.0], l1=9.0),
    "l2": SensitivityProfile([1.0, 2.0, 8.0], l2=8.1),
    "constant": SensitivityProfile([1.0, 0.0, 8.0], l1=8.5, l2=8.01),
}
APPROXIMATE = PrivacyGuarantee(1.0, 1e-6)


def worth_trying(noise, name):
    """Every noise on the box; the best rule, and the noises with a norm, on all."""
    if noise == "inid_mixture" and name == "one coordinate":
        return False
    if noise.endswith(("subbotin", "osgt", "huber")):  # slow to calibrate
        return name == "box" if noise.startswith("inid") else name == "one coordinate"
    return name == "box" or noise.startswith("inid") or noise.endswith(("_gaussian", "_laplace"))


@cache
def calibrated(noise, name, guarantee=APPROXIMATE, n_releases=1):
    return calibrate(noise, SENSITIVITIES[name], guarantee, n_releases=n_releases)


def guarantees(noise):
    yield APPROXIMATE
    if noise.endswith(("gaussian", "laplace")) and "truncated" not in noise:
        yield PrivacyGuarantee(20.0, 1e-30)
    if noise != "inid_mixture" and get_noise(noise.partition("_")[2]).supports_pure:
        yield PrivacyGuarantee(0.1)


ON_THE_BOX = [noise for noise in NOISES if worth_trying(noise, "box")]
PAIRS = [(noise, name) for noise in NOISES for name in SENSITIVITIES if worth_trying(noise, name)]
SHARE = Counter(noise for noise, _ in PAIRS)
# The guarantees of a noise take turns on its sensitivities; all are on the box where these are few.
CASES = [
    (noise, name, guarantee, n_releases)
    for k, (noise, name) in enumerate(PAIRS)
    for turn, guarantee in enumerate(guarantees(noise))
    for n_releases in ((1, 3) if name == "box" and noise.endswith("laplace") else (1,))
    if turn == k % len([*guarantees(noise)]) or (name == "box" and SHARE[noise] < 3)
]


@quick(
    "spr_truncated_laplace-constant-guarantee69-1",
    "inid_truncated_laplace-l1-guarantee103-1",
    "iid_truncated_laplace-box-guarantee33-3",
)
@pytest.mark.parametrize(("noise", "name", "guarantee", "n_releases"), CASES)
def test_the_charge_never_exceeds_the_guarantee_and_one_per_cent_less_noise_would(
    noise, name, guarantee, n_releases
):
    mechanism = calibrated(noise, name, guarantee, n_releases)
    assert isinstance(mechanism, Mechanism)
    loss = mechanism.privacy_loss()
    assert isinstance(loss, PrivacyLoss)
    assert loss.delta(guarantee.epsilon) <= guarantee.delta
    assert loss.epsilon(guarantee.delta) <= guarantee.epsilon * (1.0 + 1e-7)  # rounded up
    if mechanism.family.lattice or not mechanism.family.log_concave:
        return  # the shape follows the budget, not the scale
    less = replace(mechanism, scale=0.99 * mechanism.scale, promise=None)
    assert less.own_loss().delta(guarantee.epsilon) > guarantee.delta


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "noise", [noise for noise in NOISES if noise.startswith("inid") and "subbotin" not in noise]
)
@pytest.mark.parametrize("weighted", ["coordinates", "releases"])
def test_weights_of_coordinates_and_releases_are_heeded(noise, weighted):
    sensitivity, n_releases = SENSITIVITIES["box"], 3
    weights = np.array([100.0, 1.0, 1.0])
    if weighted == "releases":
        weights = weights * np.array([[1.0], [2.0], [4.0]])
    mechanism = calibrate(noise, sensitivity, APPROXIMATE, n_releases=n_releases, weights=weights)
    assert mechanism.privacy_loss().delta(1.0) <= 1e-6
    plain = calibrated(noise, "box", APPROXIMATE, n_releases)
    error = mechanism.expected_error(weights=weights)
    assert error <= plain.expected_error(weights=weights) * (1.0 + 1e-3)


@quick("iid_discrete_gaussian-constant", "spr_subbotin-one coordinate")
@pytest.mark.parametrize(("noise", "name"), dict(PAIRS).items())
def test_draws_are_integers_in_quanta_and_releases_are_multiples_of_it(noise, name):
    sensitivity = SENSITIVITIES[name]
    mechanism = replace(calibrated(noise, name), n_releases=4, promise=None)
    draws = mechanism.sample(SeededWords(0))
    assert draws.dtype == np.int64
    assert draws.shape == (4, sensitivity.n_coordinates)
    assert ((draws != 0).any(axis=0) == (mechanism.scale > 0)).all()
    value = np.round(np.linspace(-5, 5, sensitivity.n_coordinates))
    released = mechanism.release(value, 0)
    noisy = mechanism.grid_size > 0
    quanta = np.rint(released[noisy] / mechanism.grid_size[noisy])
    assert (quanta * mechanism.grid_size[noisy] == released[noisy]).all()
    assert (released[~noisy] == value[~noisy]).all()
    assert np.isfinite(mechanism.expected_error())


@pytest.mark.slow
@pytest.mark.parametrize("noise", ON_THE_BOX)
def test_draws_have_the_variance_that_is_claimed(noise):
    mechanism = replace(calibrated(noise, "box"), n_releases=20_000, promise=None)
    draws = mechanism.sample(SeededWords(7)) * mechanism.grid_size
    ratio = (draws**2).mean(axis=0) / mechanism.standard_deviation**2
    # Of 20,000 squares with a kurtosis below 7 the mean is within 7 standard errors of sqrt(6/n).
    assert (np.abs(ratio - 1.0) < 7.0 * np.sqrt(6.0 / 20_000)).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ON_THE_BOX)
def test_the_same_words_give_the_same_noise_and_half_the_epsilon_more_of_it(noise):
    whole = calibrated(noise, "box")
    assert (whole.sample(SeededWords(1)) == whole.sample(SeededWords(1))).all()
    half = calibrated(noise, "box", PrivacyGuarantee(0.5, 1e-6))
    assert half.expected_error() > 1.9 * whole.expected_error()
    # Two releases of it compose to what a guarantee for two releases costs, or less.
    both = half.privacy_loss() + half.privacy_loss()
    assert both.delta(1.0) <= 2e-6 * np.exp(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ON_THE_BOX[::2])
def test_an_explanation_names_the_noise_and_public_numbers_only(noise):
    text = calibrated(noise, "box").explain()
    assert text.startswith(f"{noise}: scale ")
    assert "expected squared error" in text
