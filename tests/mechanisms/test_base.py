"""One base for all that is released and charged for."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil

import numpy as np
import pytest

import skdpnoise
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import (
    ExponentialMechanism,
    Mechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    bounded_counts,
    calibrate,
    calibrate_sampled,
    calibrate_second_moments,
    correlated_sum,
    k_norm,
    l1_staircase,
)
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries.categories import category_mechanism
from skdpnoise.queries.norm_quantile import NormQuantileMechanism
from skdpnoise.sensitivity import GroupedProfile, RowBounds, SensitivityProfile

ADDED = PrivacyGuarantee(1.0, 1e-6, "add_remove")
MADE = {
    "additive": calibrate("inid_laplace", SensitivityProfile([1.0, 4.0]), PrivacyGuarantee(1.0)),
    "l2 ball": k_norm(2, 1.5, 3, PureLoss(0.5)),
    "box": k_norm(np.inf, 1.5, 3, PureLoss(0.5)),
    "l1 staircase": l1_staircase(2, 1.0, PureLoss(2.0)),
    "counts": bounded_counts(20, 5, ADDED),
    "sums": correlated_sum(np.ones(4), ADDED),
    "matrix": calibrate_second_moments("auto", RowBounds(3, 1.0), PureLoss(0.5)),
    "sampled": calibrate_sampled(
        "inid_gaussian", GroupedProfile([1.0], [0, 0]), ADDED, rate=0.1, n_releases=9
    ),
    "exponential": ExponentialMechanism(2.0, 0.5),
    "permute and flip": PermuteAndFlip(2.0, 0.5, monotonic=True),
    "noisy max": ReportNoisyMax(2.0, 0.5, noise="laplace"),
    "norm quantile": NormQuantileMechanism.within(GaussianLoss(0.1)),
    "categories": category_mechanism("test", "auto", 2, "add_remove", ADDED),
}
SIZES = {"additive": 2, "l2 ball": 3, "box": 3, "l1 staircase": 2, "counts": 20, "sums": 5}
SIZES |= {"matrix": 6, "sampled": 2, "exponential": 1, "permute and flip": 1, "noisy max": 1}


def classes():
    """Every class of the package."""
    for found in pkgutil.walk_packages(skdpnoise.__path__, "skdpnoise."):
        if found.name != "skdpnoise.__main__":
            for _, thing in inspect.getmembers(
                importlib.import_module(found.name), inspect.isclass
            ):
                if thing.__module__ == found.name:
                    yield thing


@pytest.mark.slow
def test_what_states_the_loss_of_its_noise_inherits_from_mechanism():
    stating = {one for one in classes() if hasattr(one, "privacy_loss") and hasattr(one, "noise")}
    assert stating >= {type(one) for one in MADE.values()}
    assert all(issubclass(one, Mechanism) for one in stating)


@pytest.mark.parametrize("name", MADE)
def test_an_account_and_its_report_know_all_of_a_mechanism(name):
    mechanism = MADE[name]
    account = Account(PrivacyGuarantee(3.0, 1e-5, "add_remove"))
    account.charge("test", mechanism)
    (release,) = account.report("Test", secure=True).releases
    assert (release.noise, release.n_releases) == (mechanism.noise, mechanism.n_releases)
    assert release.loss == mechanism.privacy_loss()
    assert 0.0 < release.scale[0] <= release.scale[1] < np.inf
    assert release.of == ("columns" if name == "categories" else "numbers")
    assert release.n_coordinates == SIZES.get(name, release.n_coordinates)


@pytest.mark.parametrize("name", MADE)
def test_the_noise_loses_no_more_than_what_is_charged(name):
    mechanism = MADE[name]
    own, charged = mechanism.own_loss(), mechanism.privacy_loss()
    assert own.delta(0.5) <= charged.delta(0.5)


@pytest.mark.parametrize("name", MADE)
def test_grid_steps_are_fine_beside_the_noise_and_copies_are_the_same(name):
    mechanism = MADE[name]
    assert (np.asarray(mechanism.grid_size) > 0.0).all()
    assert np.max(mechanism.grid_size) < 0.01 * np.max(mechanism.scale)
    again = pickle.loads(pickle.dumps(mechanism))
    assert type(again) is type(mechanism)
    assert again.privacy_loss() == mechanism.privacy_loss()


def test_bounds_of_balls_are_those_of_their_radius():
    ball, box, staircase = (MADE[name].sensitivity for name in ("l2 ball", "box", "l1 staircase"))
    assert (ball.per_coordinate.max(), ball.l1, ball.l2) == (1.5, None, 1.5)
    assert (box.per_coordinate.max(), box.l1, box.l2) == (1.5, None, None)
    assert (staircase.per_coordinate.max(), staircase.l1, staircase.l2) == (1.0, 1.0, None)


def test_scales_of_choices_and_staircases_are_those_of_laplace_noise():
    laplace = calibrate("iid_laplace", SensitivityProfile([1.0, 1.0], l1=1.0), PureLoss(2.0))
    assert MADE["l1 staircase"].scale == pytest.approx(laplace.scale[0], rel=1e-6)
    # So much more utility makes a candidate e times as likely.
    choice = MADE["exponential"]
    first, second = choice.probabilities([0.0, choice.scale])
    assert second / first == pytest.approx(np.e, rel=1e-6)


@pytest.mark.parametrize("missing", ["noise", "sensitivity", "scale", "grid_size", "privacy_loss"])
def test_a_mechanism_that_leaves_something_out_cannot_be_made(missing):
    facts = dict.fromkeys(("noise", "sensitivity", "scale", "grid_size", "privacy_loss"))
    del facts[missing]
    with pytest.raises(TypeError, match=missing):
        type("Lacking", (Mechanism,), facts)()
