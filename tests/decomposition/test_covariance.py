"""The private covariance: scikit-learn's conventions, the limit without noise, hard data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance

from skdpnoise.decomposition import DPCovariance
from skdpnoise.mechanisms import SymmetricMatrixMechanism
from skdpnoise.mechanisms.vectors import VectorMechanism
from tests._cases import each_value


def problem(n=20_000, p=3):
    rng = np.random.default_rng(0)
    mix = np.tril(np.ones((p, p)))
    return rng.normal(size=(n, p)) @ mix.T + np.arange(p) * 10.0


@pytest.mark.parametrize("skewed", [False, True])
def test_defaults_keep_most_of_the_variance(skewed):
    X = problem(20_000)
    if skewed:
        X[:, 0] = np.exp(X[:, 0])  # the variance of a heavy tail is in few rows
    exact = np.cov(X.T, bias=True)
    found = DPCovariance(random_state=0).fit(X).covariance_
    assert np.linalg.norm(found - exact) < (0.5 if skewed else 0.06) * np.linalg.norm(exact)


@pytest.mark.parametrize("centered", [True, False])
def test_without_noise_it_is_scikit_learns(centered, monkeypatch):
    for owner in (SymmetricMatrixMechanism, VectorMechanism):
        sample = owner.sample
        monkeypatch.setattr(owner, "sample", lambda self, words, f=sample: 0 * f(self, words))
    seen = []
    sample = SymmetricMatrixMechanism.sample

    def noted(self, words):
        seen.append(self.row_grid_size)
        return sample(self, words)

    monkeypatch.setattr(SymmetricMatrixMechanism, "sample", noted)
    rows = np.concatenate([problem(200), -problem(200)])
    settings = {"epsilon": 1e7, "row_norm": 64.0, "assume_centered": centered, "random_state": 0}
    DPCovariance(**settings).fit(rows)
    X = np.rint(rows / seen[0]) * seen[0]  # whole grid steps are not rounded
    private = DPCovariance(**settings).fit(X)
    public = EmpiricalCovariance(assume_centered=centered).fit(X)
    assert np.array_equal(seen[0], seen[1])
    np.testing.assert_allclose(private.covariance_, public.covariance_, rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(private.location_, public.location_, atol=1e-7)
    np.testing.assert_allclose(private.precision_, public.precision_, rtol=1e-6, atol=1e-8)
    assert private.score(X) == pytest.approx(public.score(X), rel=1e-8)
    np.testing.assert_allclose(private.mahalanobis(X), public.mahalanobis(X), rtol=1e-6)
    assert private.error_norm(public.covariance_) < 1e-6


@each_value(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_it_is_close_where_there_is_enough_budget(delta, adjacency):
    X = problem()
    settings = {"row_norm": 12.0, "adjacency": adjacency, "random_state": 0}
    private = DPCovariance(5.0, delta, **settings).fit(X)
    truth = np.cov(X.T)
    assert private.error_norm(truth, norm="spectral") < 0.15 * np.linalg.norm(truth, 2)
    assert np.linalg.norm(private.location_ - X.mean(axis=0)) < 0.2
    assert private.score(X) > EmpiricalCovariance().fit(X).score(X) - 0.2
    assert private.privacy_.total.delta(5.0) <= delta


@each_value(1)
@pytest.mark.parametrize(
    "X", [np.zeros((9, 2)), np.full((9, 2), 5.0), problem(5, 20), 1e60 * problem(5), problem(7, 1)]
)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_hard_data_give_a_positive_definite_matrix(X, epsilon):
    for delta in (0.0, 1e-6):
        model = DPCovariance(epsilon, delta, random_state=0).fit(X)
        assert np.isfinite(model.precision_).all()
        assert (np.linalg.eigvalsh(model.covariance_) > 0.0).all()
        assert np.isfinite(model.score(X))
        np.testing.assert_array_equal(model.covariance_, model.covariance_.T)


@pytest.mark.slow
def test_precision_is_kept_or_computed():
    X = problem(500)
    stored = DPCovariance(random_state=0).fit(X)
    computed = DPCovariance(random_state=0, store_precision=False).fit(X)
    assert computed.precision_ is None
    np.testing.assert_allclose(computed.get_precision(), stored.precision_, rtol=1e-9)
    unit = stored.covariance_ @ stored.get_precision()
    np.testing.assert_allclose(unit, np.eye(3), atol=1e-6)


def test_weights_are_refused():
    with pytest.raises(TypeError, match="sample_weight"):
        DPCovariance().fit(problem(9), sample_weight=np.ones(9))
