"""Private radii: the sensitivity by force, the guarantee exactly, and what comes out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries.norm_quantile import (
    _LOWEST,
    NormQuantileMechanism,
    _counts,
    _rank_utilities,
    _window_utilities,
    private_norm_quantile,
)
from skdpnoise.sampling import SeededWords
from tests._cases import each_value

LOSS = GaussianLoss(0.5)


def utilities_of(norms, monkeypatch, **settings):
    """All utilities that are compared, with the choices fixed."""
    seen = []

    def select(self, utilities, words):
        seen.append((self, np.array(utilities)))
        return len(utilities) // 2

    with monkeypatch.context() as patch:
        patch.setattr(NormQuantileMechanism, "select", select)
        private_norm_quantile(norms, guarantee=LOSS, **settings)
    return seen


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("limits", [None, (1e-3, 1e3), (2.0, 5.0)])
def test_one_record_moves_every_utility_by_at_most_one(adjacency, limits, monkeypatch):
    rng, largest = np.random.default_rng(0), []
    extreme = np.array(
        [0.0, 1e-320, 1e-80, 0.5, 1.0, 2.0**0.25, 7.9, 8.0, 64.0, 1e90, 1e308, np.inf]
    )
    for _ in range(300):
        norms = rng.choice(extreme, 9) if rng.random() < 0.3 else rng.lognormal(0.0, 4.0, 9)
        other = norms.copy()
        other[-1] = rng.choice(extreme)
        if adjacency == "add_remove":
            other = other[:-1]
        level = float(rng.uniform(0.05, 0.95))
        settings = {"level": level, "limits": limits, "adjacency": adjacency, "n_samples": 9.3}
        pairs = zip(
            utilities_of(norms, monkeypatch, **settings),
            utilities_of(other, monkeypatch, **settings),
            strict=True,
        )
        for step, ((mechanism, here), (_, there)) in enumerate(pairs):
            change = here - there
            assert np.abs(change).max() <= mechanism.selection.sensitivity * (1.0 + 1e-9)
            if mechanism.selection.monotonic:
                assert (change >= -1e-9).all() or (change <= 1e-9).all()
            largest.append((step, np.abs(change).max()))
    for step in {step for step, _ in largest}:
        assert max(size for s, size in largest if s == step) >= 0.999


def test_counts_are_exact_functions_of_one_norm():
    rng = np.random.default_rng(1)
    candidates = np.arange(-40, 41)
    radii = np.exp2(candidates / 4.0)
    whole = np.exp2(np.arange(-10.0, 11.0))
    norms = np.concatenate([rng.lognormal(0.0, 3.0, 500), whole, np.nextafter(whole, 0.0), [0.0]])
    expected = (norms[:, None] <= radii).sum(axis=0)
    np.testing.assert_array_equal(_counts(400, norms)[candidates - _LOWEST], expected)


@each_value(1)
@pytest.mark.parametrize("loss", [GaussianLoss(0.3), PureLoss(0.7)])
@pytest.mark.parametrize("monotonic", [False, True])
def test_a_choice_is_charged_within_its_budget_and_nearly_uses_it(loss, monotonic):
    mechanism = NormQuantileMechanism.within(loss, monotonic=monotonic)
    charged = mechanism.privacy_loss()
    assert type(charged) is type(loss)
    used, given = (getattr(x, "mu", None) or x.pure_epsilon for x in (charged, loss))
    assert 0.9999 * given <= used <= given
    # the law itself: utilities that differ by one in the worst direction
    here, there = np.array([5.0, 5.0, 3.0]), np.array([6.0, 4.0 if not monotonic else 5.0, 3.0])
    odds = np.log(
        mechanism.selection.probabilities(here) / mechanism.selection.probabilities(there)
    )
    size = np.ptp(odds) if mechanism.bounded_range else np.abs(odds).max()
    assert size <= mechanism.selection.epsilon * (1.0 + 1e-9)
    assert mechanism.noise in {"exponential_mechanism", "permute_and_flip"}
    assert (mechanism.n_releases, mechanism.sensitivity.n_coordinates) == (1, 1)


@each_value(1)
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0), PrivacyGuarantee(1.0, 1e-6)])
@pytest.mark.parametrize("size", [1e-60, 1e-3, 1.0, 3e7, 1e80])
def test_radii_of_any_size_are_found_without_limits(guarantee, size):
    norms = size * np.random.default_rng(0).chisquare(10, 3000)
    charged = []
    radius = private_norm_quantile(
        norms, 0.8, guarantee, random_state=0, charge=lambda label, m: charged.append((label, m))
    )
    assert 0.5 < np.mean(norms <= radius) <= 1.0
    assert radius < 2.0 * norms.max()
    assert [label for label, _ in charged] == ["magnitude of norms", "norm quantile"]
    total = charged[0][1].privacy_loss() + charged[1][1].privacy_loss()
    assert total.delta(1.0) <= guarantee.delta


def test_limits_hold_and_a_smaller_radius_is_taken_where_it_holds_as_many():
    norms = np.full(20_000, 3.0)
    for limits, expected in (((1.0, 64.0), 2.0**1.75), ((0.1, 2.0), 2.0), ((8.0, 64.0), 8.0)):
        found = private_norm_quantile(norms, 0.6, LOSS, limits=limits, random_state=0)
        assert found == pytest.approx(expected)


def test_rows_of_zeros_and_no_budget_give_some_radius():
    for norms in (np.zeros(50), np.array([1e300, 0.0]), np.full(3, np.inf)):
        for epsilon in (1e-6, 1.0):
            radius = private_norm_quantile(norms, 0.5, PrivacyGuarantee(epsilon), random_state=0)
            assert 0.0 < radius < 1e110


def test_the_randomness_is_that_of_the_words():
    norms = np.random.default_rng(0).lognormal(size=100)
    draws = [
        private_norm_quantile(norms, 0.5, PureLoss(0.05), random_state=state)
        for state in (3, SeededWords(3), 4, 5, 6)
    ]
    assert draws[0] == draws[1]
    assert len(set(draws)) > 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 1.5}, "level"),
        ({"limits": (2.0, 1.0)}, "limits"),
        ({"limits": (0.0, 1.0)}, "limits"),
        ({"norms": np.array([-1.0])}, "norms"),
        ({"norms": np.array([np.nan])}, "norms"),
        ({"adjacency": "add_remove"}, "n_samples"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    arguments = {"norms": np.ones(5), "level": 0.5, "guarantee": LOSS, **settings}
    with pytest.raises(ValueError, match=message):
        private_norm_quantile(**arguments)


COUNTS = st.one_of(
    st.integers(0, 2**39),
    st.builds(lambda k, i: max(0, 2**k + i), st.integers(0, 39), st.integers(-3, 3)),
)
PUBLIC = st.one_of(
    st.floats(-1e300, 1e300),
    st.floats(0.0, 1e7),
    st.builds(lambda k, x: 2.0**k * (1.0 + x), st.integers(-60, 60), st.floats(-1e-9, 1e-9)),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(count=COUNTS, rank=PUBLIC, price=PUBLIC)
@example(count=2**20, rank=0.9 * (2**21 + 1), price=0.3)
@example(count=2**33, rank=0.1, price=1.0 / 3.0)
def test_one_record_moves_a_computed_utility_by_one_at_most(count, rank, price):
    """Across powers of two too, where the spacing of doubles changes: exactly, in fractions."""
    counts = np.array([count, count + 1])
    for utilities in (
        _rank_utilities(counts, rank, np.full(2, price)),
        _window_utilities(counts, np.full(2, -price)),
    ):
        one, other = (Fraction(value) for value in utilities.tolist())
        assert abs(one - other) <= 1
    wide = _window_utilities(counts, np.full(2, price))
    assert wide[1] - wide[0] == 1.0


def test_the_public_part_of_utilities_is_as_documented():
    counts = np.arange(0, 1000, 7)
    price = np.linspace(0.0, 50.0, counts.size)
    plain = -np.abs(counts - 333.3) - price
    assert np.abs(_rank_utilities(counts, 333.3, price) - plain).max() <= 2.0**-10
    assert np.abs(_window_utilities(counts, price) - counts - price).max() <= 2.0**-11


def test_a_number_of_records_that_is_not_one_is_refused():
    for wrong in (math.nan, "10", None):
        with pytest.raises((TypeError, ValueError), match="n_samples"):
            private_norm_quantile(
                np.ones(5), 0.9, GaussianLoss(0.5), n_samples=wrong, adjacency="add_remove"
            )
