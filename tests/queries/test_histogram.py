"""Noisy histograms: shapes, bounds, and the fullest bin."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import noisy_histogram
from skdpnoise.sensitivity import paired_histogram
from tests._cases import each_value

COUNTS = np.array([[500, 20, 3, 0], [1, 2, 3, 900]])


@each_value(1)
@pytest.mark.parametrize("counts", [COUNTS, COUNTS[0], COUNTS.astype(float)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_fullest_bin_of_each_column_is_found_at_an_ordinary_budget(counts, delta):
    noisy, mechanism = noisy_histogram(counts, PrivacyGuarantee(1.0, delta), random_state=0)
    assert noisy.shape == counts.shape
    assert (noisy.argmax(axis=-1) == counts.argmax(axis=-1)).all()
    assert mechanism.privacy_loss().epsilon(delta) <= 1.0
    quanta = np.rint(noisy.ravel() / mechanism.grid_size)
    assert (quanta * mechanism.grid_size == noisy.ravel()).all()


@pytest.mark.parametrize(("adjacency", "scale"), [("replace_one", 4.0), ("add_remove", 2.0)])
def test_pure_noise_has_the_scale_of_the_joint_bound(adjacency, scale):
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    _, mechanism = noisy_histogram(COUNTS, guarantee, random_state=0)
    assert mechanism.scale == pytest.approx(np.full(8, scale), rel=1e-6)
    with_loss, other = noisy_histogram(
        COUNTS, PureLoss(1.0), adjacency=adjacency, noise=mechanism.noise, random_state=0
    )
    assert other.scale == pytest.approx(mechanism.scale)
    assert with_loss.shape == COUNTS.shape


def test_another_bound_may_be_given():
    _, mechanism = noisy_histogram(
        COUNTS,
        GaussianLoss(0.5),
        sensitivity=paired_histogram(4, n_columns=2),
        noise="inid_gaussian",
        random_state=0,
    )
    assert mechanism.scale == pytest.approx(np.full(8, 2 / 0.5), rel=1e-6)


@pytest.mark.parametrize("counts", [[], 3, [[[1]]], ["a"], [1j], [-1, 2], [np.nan, 1], [np.inf]])
def test_what_is_not_a_histogram_is_refused(counts):
    with pytest.raises(ValueError, match="'counts' parameter of noisy_histogram"):
        noisy_histogram(counts, PrivacyGuarantee(1.0))


def test_the_neighbouring_relation_must_be_given_once():
    with pytest.raises(ValueError, match=r"'adjacency'.*must be given"):
        noisy_histogram(COUNTS, GaussianLoss(1.0))
    with pytest.raises(ValueError, match=r"'adjacency'.*must be None"):
        noisy_histogram(
            COUNTS,
            GaussianLoss(1.0),
            adjacency="replace_one",
            sensitivity=paired_histogram(4, n_columns=2),
        )
