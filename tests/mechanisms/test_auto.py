"""What "auto" proposes for δ > 0: it meets the guarantee, and comes close to a search."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest

from skdpnoise.mechanisms import AdditiveMechanism, _auto, calibrate
from skdpnoise.mechanisms._auto import delta_of_both, quick_mixture, quick_shape, settled
from skdpnoise.mechanisms._scale_search import Request
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, every_pair

QUICK = ("inid_gaussian", "inid_laplace", "inid_staircase", "inid_subbotin", "inid_mixture")
PROFILES = {
    "equal": np.ones(10),
    "spread": np.linspace(1.0, 10.0, 14),
    "one large": np.r_[50.0, np.ones(19)],
    "three large": np.r_[np.full(3, 30.0), np.ones(17)],
    "two": np.array([1.0, 10.0]),
}


@each_value(2)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize(("shift", "mu"), [(0.05, 0.03), (0.8, 0.3), (3.0, 0.9), (0.3, 1.5)])
def test_the_curve_of_one_laplace_and_one_normal_number(epsilon, shift, mu):
    terms = ((get_noise("laplace"), shift, 1), (get_noise("gaussian"), mu, 1))
    exact = NumericLoss(terms).delta(epsilon)
    found = delta_of_both(epsilon, np.array([shift]), np.array([mu]))[0]
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-12)


@every_pair
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("n_releases", [1, 4])
def test_auto_meets_the_guarantee_and_is_the_best_of_what_it_compares(profile, epsilon, n_releases):
    sensitivity, guarantee = SensitivityProfile(PROFILES[profile]), PrivacyGuarantee(epsilon, 1e-6)
    found = calibrate("auto", sensitivity, guarantee, n_releases=n_releases)
    assert found.own_loss().delta(epsilon) <= guarantee.delta
    assert [name for name, _ in found.considered] == list(QUICK)
    errors = [error for _, error in found.considered if isinstance(error, float)]
    assert found.expected_error() == min(errors)
    assert found.noise == {e: n for n, e in found.considered}[min(errors)]


@pytest.mark.parametrize("guarantee", [PureLoss(1.0), PrivacyGuarantee(1.0), GaussianLoss(0.3)])
def test_without_delta_there_are_no_proposals(guarantee):
    found = calibrate("auto", SensitivityProfile(PROFILES["one large"]), guarantee)
    said = dict(found.considered)
    assert isinstance(said["inid_subbotin"], str)
    assert isinstance(said["inid_mixture"], str)


@each_value(1)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [1e-300, 1e-80, 1e-62, 1e-41, 1e-39, 0.09, 0.11, 0.63, 0.99])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_auto_meets_every_delta_by_its_own_loss_and_without_a_warning(epsilon, delta):
    profiles = np.ones(200), np.exp(np.random.default_rng(0).normal(0.0, 4.0, 100))
    for profile in profiles:
        target = PrivacyGuarantee(epsilon, delta)
        found = calibrate("auto", SensitivityProfile(profile), target)
        assert found.own_loss().delta(epsilon) <= delta


def test_what_is_remembered_depends_on_all_that_is_asked():
    sensitivity = SensitivityProfile(PROFILES["spread"])
    first = calibrate("auto", sensitivity, PrivacyGuarantee(1.0, 1e-6))
    assert first.noise == "inid_subbotin"
    others = [
        calibrate("auto", sensitivity, PrivacyGuarantee(1.0, 1e-7)),
        calibrate("auto", sensitivity, PrivacyGuarantee(1.1, 1e-6)),
        calibrate("auto", sensitivity, PrivacyGuarantee(1.0, 1e-6), n_releases=2),
        calibrate("auto", SensitivityProfile(PROFILES["spread"] ** 1.1), first_guarantee()),
    ]
    assert all(not np.array_equal(first.scale, other.scale) for other in others)
    again = calibrate("auto", sensitivity, PrivacyGuarantee(1.0, 1e-6))
    assert np.array_equal(again.scale, first.scale)
    # Another unit is the same noise in that unit.
    scaled = calibrate("auto", SensitivityProfile(8.0 * PROFILES["spread"]), first_guarantee())
    np.testing.assert_allclose(scaled.scale, 8.0 * first.scale, rtol=1e-12)


def first_guarantee():
    return PrivacyGuarantee(1.0, 1e-6)


@pytest.mark.parametrize(
    "weights", [np.linspace(1.0, 100.0, 14), np.ones((3, 14)) * [[1], [2], [4]]]
)
def test_weights_and_coordinates_that_nobody_moves(weights):
    sensitivity = SensitivityProfile(np.r_[0.0, PROFILES["spread"][1:]])
    n_releases = weights.shape[0] if weights.ndim == 2 else 1
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    found = calibrate("auto", sensitivity, guarantee, n_releases=n_releases, weights=weights, p=1.0)
    assert found.own_loss().delta(1.0) <= guarantee.delta
    assert np.asarray(found.scale)[..., 0].max() == 0.0


def settings():
    """Yield requests for which there is a proposal: no single family is about as good."""
    for proposal in (quick_shape, quick_mixture):
        for profile in ("equal", "spread", "one large", "three large"):
            for epsilon, delta in ((0.05, 1e-3), (1.0, 1e-9), (8.0, 1e-5)):
                for n_releases in (1, 30):
                    sensitivity = SensitivityProfile(PROFILES[profile])
                    target = PrivacyGuarantee(epsilon, delta)
                    request = Request(sensitivity, n_releases, None, 2.0, target)
                    with suppress(ValueError):
                        proposal(request)
                        yield proposal, request


def test_there_are_proposals_of_both_kinds():
    kinds = [proposal for proposal, _ in settings()]
    assert min(kinds.count(quick_shape), kinds.count(quick_mixture)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("proposal", "request_"), list(settings()))
def test_settled_proposals_spend_what_is_allowed_and_no_more(proposal, request_):
    proposed, n_releases = proposal(request_), request_.n_releases
    epsilon, delta = request_.target.epsilon, request_.target.delta
    for size in (0.4, 1.0, 2.5):  # however far off a proposal is
        mechanism = AdditiveMechanism(
            "inid_mixture" if proposal is quick_mixture else "inid_subbotin",
            size * proposed.scale,
            24,
            proposed.sensitivity,
            n_releases,
            proposed.families,
        )
        loss = settled(mechanism, request_).own_loss()
        assert loss.delta(epsilon) <= delta
        assert 0.995 * epsilon <= loss.epsilon(delta) <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("said", [(1.0, math.inf), (1.0, 0.0), (1.0, 2.0), (1.0, 1e-300)])
def test_without_a_quick_bound_that_holds_scales_are_raised_until_the_loss_meets(said, monkeypatch):
    sensitivity, target = SensitivityProfile(PROFILES["spread"]), PrivacyGuarantee(2.0, 1e-6)
    request = Request(sensitivity, 1, None, 2.0, target)
    start = calibrate("inid_subbotin", sensitivity, target)
    monkeypatch.setattr(NumericLoss, "bounds_near", lambda loss, epsilon, delta: said)
    asked = []

    def raised(mechanism, wanted):
        asked.append(wanted)
        return mechanism

    monkeypatch.setattr(_auto, "raised", raised)
    assert np.isfinite(settled(start, request).scale).all()
    assert asked == [target]


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("profile", PROFILES)
def test_auto_is_close_to_a_search(profile, epsilon):
    sensitivity, guarantee = SensitivityProfile(PROFILES[profile]), PrivacyGuarantee(epsilon, 1e-6)
    auto = calibrate("auto", sensitivity, guarantee).expected_error()
    search = calibrate("search", sensitivity, guarantee).expected_error()
    assert search <= auto * (1.0 + 1e-9)
    assert auto <= 1.06 * search


# Profile, ε and δ, and the noise that a few large numbers among many small ones should get.
DOMINATED = [
    (np.r_[np.full(9, 60.0), np.ones(100)], 1.5, 1e-8, "inid_subbotin"),
    (np.r_[300.0, np.ones(25)], 6.5, 1e-8, "inid_staircase"),
    (np.r_[300.0, np.ones(30)], 5.0, 1e-6, "inid_staircase"),
]


@pytest.mark.parametrize(("profile", "epsilon", "delta", "noise"), DOMINATED)
def test_auto_sees_that_a_few_numbers_dominate_many(profile, epsilon, delta, noise):
    found = calibrate("auto", SensitivityProfile(profile), PrivacyGuarantee(epsilon, delta))
    assert found.noise == noise
    assert found.own_loss().delta(epsilon) <= delta


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "epsilon", "delta", "noise"), DOMINATED)
def test_auto_is_close_to_a_search_where_a_few_dominate(profile, epsilon, delta, noise):
    sensitivity, guarantee = SensitivityProfile(profile), PrivacyGuarantee(epsilon, delta)
    auto = calibrate("auto", sensitivity, guarantee).expected_error()
    assert auto <= 1.06 * calibrate("search", sensitivity, guarantee).expected_error()
