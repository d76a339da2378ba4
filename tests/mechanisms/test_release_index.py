"""Releases one by one: each gets its own noise, and together they spend what was promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.mechanisms import bounded_counts, calibrate, correlated_sum, k_norm, l1_staircase
from skdpnoise.noises.gaussian import Gaussian
from skdpnoise.noises.laplace import Laplace
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile

PROFILE = SensitivityProfile([1.0, 3.0])
WEIGHTS = np.geomspace(1e6, 1.0, 5)[:, np.newaxis] * np.array([1.0, 2.0])
UNEQUAL = {
    "gaussian": calibrate(
        "inid_gaussian", PROFILE, GaussianLoss(0.5), n_releases=5, weights=WEIGHTS
    ),
    "laplace": calibrate("inid_laplace", PROFILE, PureLoss(1.0), n_releases=5, weights=WEIGHTS),
}
EQUAL = {
    "additive": calibrate("inid_laplace", PROFILE, PureLoss(1.0), n_releases=3),
    "k_norm": k_norm(2, 1.0, 2, PureLoss(1.0), n_releases=3),
    "l1_staircase": l1_staircase(2, 1.0, PureLoss(3.0), n_releases=3),
    "bounded_counts": bounded_counts(2, 1, GaussianLoss(1.0), n_releases=3),
    "correlated_sum": correlated_sum([1.0], GaussianLoss(1.0), n_releases=3),
}


def one_quantum(family, words, size, bits):
    """Stands in for a sampler: a draw of one noise scale, which shows what the scale was."""
    return np.full(size, 1 << bits, dtype=np.int64)


@pytest.mark.parametrize("kind", UNEQUAL)
def test_single_adaptive_releases_spend_together_what_is_promised(kind, monkeypatch):
    mechanism = UNEQUAL[kind]
    family = Gaussian if kind == "gaussian" else Laplace
    monkeypatch.setattr(family, "sample_rounded", one_quantum)
    scales = np.array([mechanism.release(np.zeros(2), first=t) for t in range(5)])
    assert (scales == mechanism.scale).all()
    shifts = PROFILE.per_coordinate / scales
    spent = math.sqrt((shifts**2).sum()) if kind == "gaussian" else shifts.sum()
    promised = 0.5 if kind == "gaussian" else 1.0
    assert 0.999 * promised < spent <= promised
    # The scales of the first release alone would have spent far more: the test is not idle.
    first = PROFILE.per_coordinate / scales[:1] * np.ones((5, 1))
    wrong = math.sqrt((first**2).sum()) if kind == "gaussian" else first.sum()
    assert wrong > 1.5 * promised


@pytest.mark.parametrize("kind", UNEQUAL)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_without_an_index_nothing_is_guessed(kind, count):
    mechanism = UNEQUAL[kind]
    with pytest.raises(ValueError, match=rf"'first'.*makes {count} of n_releases=5.*first=0"):
        mechanism.release(np.zeros((count, 2)))
    with pytest.raises(ValueError, match=rf"'first'.*makes {count} of n_releases=5"):
        mechanism.sample(SeededWords(0), count)
    assert mechanism.release(np.zeros((5, 2)), 0).shape == (5, 2)


@pytest.mark.parametrize("kind", UNEQUAL)
def test_consecutive_releases_have_the_noise_of_their_rows(kind):
    mechanism = UNEQUAL[kind]
    for first, count in ((0, 2), (1, 3), (3, 2)):
        drawn = mechanism.sample(SeededWords(1), count, first=first)
        assert drawn.shape == (count, 2)
        expected = drawn * mechanism.grid_size[first : first + count]
        released = mechanism.release(np.zeros((count, 2)), SeededWords(1), first=first)
        assert (released == expected).all()
    assert mechanism.sample(SeededWords(1), first=2).shape == (3, 2)


@pytest.mark.usefixtures("the_same_words")
def test_a_row_without_noise_stays_with_its_own_release():
    profile = SensitivityProfile([1.0, 0.0])
    weights = np.array([[1.0, 1.0], [9.0, 1.0]])
    mechanism = calibrate(
        "inid_gaussian", profile, GaussianLoss(1.0), n_releases=2, weights=weights
    )
    for t in range(2):
        assert mechanism.release([0.0, 0.1], first=t)[1] == 0.1


@pytest.mark.parametrize("name", EQUAL)
def test_every_mechanism_takes_an_index_and_checks_it(name):
    mechanism = EQUAL[name]
    for first in (None, 0, 2):
        assert mechanism.release(np.zeros(2), 0, first=first).shape == (2,)
        assert mechanism.sample(SeededWords(0), 1, first=first).shape == (1, 2)
    assert mechanism.sample(SeededWords(0), first=1).shape == (2, 2)
    with pytest.raises(ValueError, match=r"'first'.*at most 2"):
        mechanism.release(np.zeros(2), first=3)
    with pytest.raises(ValueError, match=r"'first'.*at most 1, so that 2 releases"):
        mechanism.release(np.zeros((2, 2)), first=2)
    with pytest.raises(ValueError, match=r"'first'.*at most 1"):
        mechanism.sample(SeededWords(0), 2, first=2)
    with pytest.raises(ValueError, match=r"'first'"):
        mechanism.sample(SeededWords(0), first=3)


@pytest.mark.parametrize("name", EQUAL)
def test_a_refusal_names_the_mechanism_that_was_called(name):
    mechanism = EQUAL[name]
    kind = type(mechanism).__name__
    for call, method in (
        (lambda: mechanism.sample(SeededWords(0), 4), "sample"),
        (lambda: mechanism.sample(SeededWords(0), first=3), "sample"),
        (lambda: mechanism.release(np.zeros((4, 2))), "release"),
        (lambda: mechanism.release(np.zeros(2), first=3), "release"),
        (lambda: mechanism.release([np.nan, 0.0]), "release"),
        (lambda: mechanism.expected_error(-1.0), "expected_error"),
    ):
        with pytest.raises(ValueError, match=rf"parameter of {kind}\.{method} "):
            call()


@pytest.mark.parametrize("name", EQUAL)
def test_weights_of_one_release_make_up_the_error_of_all(name):
    mechanism = EQUAL[name]
    size = 1 if name == "correlated_sum" else 2  # errors are those of the sums
    weights = np.arange(1.0, 3.0 * size + 1.0).reshape(3, size)
    each = [mechanism.expected_error(1.0, np.arange(3.0)[:, np.newaxis] == t) for t in range(3)]
    assert each == pytest.approx([mechanism.expected_error(1.0) / 3.0] * 3)
    assert mechanism.expected_error(2.0, weights) == pytest.approx(
        sum(mechanism.expected_error(2.0, row) / 3.0 for row in weights)
    )
