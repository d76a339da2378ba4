"""What the benchmark of principal components measures by."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._pca_data import captured, load
from benchmarks._pca_references import bingham, exponential_eigenvectors
from benchmarks._pca_subspaces import rows_around_a_subspace


def test_the_best_components_capture_everything_and_others_less():
    X = load("breast cancer", None)
    assert np.abs(X).max() == 1.0
    covariance = np.cov(X.T)
    vectors = np.linalg.eigh(covariance)[1].T
    assert captured(vectors[-3:], covariance) == pytest.approx(1.0)
    assert captured(vectors[:3], covariance) < 0.01


@pytest.mark.slow
def test_the_reference_draws_from_the_bingham_law():
    matrix = np.array([[2.0, 0.5], [0.5, -1.0]])
    rng = np.random.default_rng(0)
    draws = np.array([bingham(matrix, rng) for _ in range(20_000)])
    angle = np.linspace(0.0, 2.0 * np.pi, 4001)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)])
    weight = np.exp(np.einsum("ik,ij,jk->k", circle, matrix, circle))
    moments = (circle * weight) @ circle.T / weight.sum()
    # six standard errors of entries of standard deviation at most 1/2
    np.testing.assert_allclose(draws.T @ draws / len(draws), moments, atol=6 * 0.5 / 20_000**0.5)
    frame = exponential_eigenvectors(100.0 * np.diag([3.0, 2.0, 1.0]), 2, 1.0, 50.0, rng)
    np.testing.assert_allclose(frame @ frame.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(np.abs(frame), np.eye(3)[:2], atol=0.3)


def test_rows_lie_near_a_subspace_of_the_rank():
    rows = rows_around_a_subspace(500, 20, 3)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    values = np.linalg.eigvalsh(rows.T @ rows)[::-1]
    assert values[2] > 50.0 * values[3]
