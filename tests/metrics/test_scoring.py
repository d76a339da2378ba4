"""One record moves a score by at most what it is charged for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer

from skdpnoise.metrics.scoring import BITS, SCORINGS, choose_scoring
from skdpnoise.model_selection._runs import divide, noisy_mean
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords

ONE = 1 << BITS


class Echo(BaseEstimator):
    """Predicts its only column, whatever the value."""

    def predict(self, X):
        return np.asarray(X)[:, 0]


class Certain(BaseEstimator):
    """A classifier that gives the probabilities in its columns."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (np.asarray(X)[:, 1] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.asarray(X)


@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error"])
def test_no_residual_leaves_the_range_however_wild(name):
    predicted = np.array([0.0, 1e300, -1e300, np.inf, np.nan, 2.0, 1.0])
    losses = SCORINGS[name].losses(Echo(), predicted[:, None], np.zeros(7), 1.0)
    assert losses.min() >= 0
    assert losses.max() == ONE
    np.testing.assert_array_equal(losses[[0, 5, 6]], [0, ONE, ONE // 4])


def test_losses_of_classifiers_stay_in_their_range():
    chances = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [np.nan, np.nan]])
    for y in ([0, 0, 0, 0], [1, 1, 1, 1], [7, 7, 7, 7]):  # a label that the model does not know
        for name in ("accuracy", "neg_log_loss"):
            losses = SCORINGS[name].losses(Certain(), chances, np.array(y), 1.0)
            assert losses.min() >= 0
            assert losses.max() <= ONE
    losses = SCORINGS["neg_log_loss"].losses(Certain(), chances[:3], np.zeros(3, int), 1.0)
    np.testing.assert_allclose(losses / ONE * 4.0, [0.0, 4.0, np.log(2.0)], atol=1e-6)


@pytest.mark.parametrize("name", ["accuracy", "neg_log_loss"])
def test_without_clipping_a_score_is_that_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    y = np.where(X[:, 0] + rng.normal(size=9000) > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    scoring = SCORINGS[name]
    mean = scoring.losses(model, X, y, 1.0).mean() / ONE * scoring.limit
    expected = get_scorer(name)(model, X, y)
    # log-losses beyond 4 are clipped: a handful
    assert scoring.score(mean, 1.0, 1.0) == pytest.approx(expected, abs=2e-3)


def test_r2_and_squared_error_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.uniform(10.0, 20.0, size=5000)
    X = (y + rng.uniform(-2, 2, size=5000))[:, None]
    scale = 5.0
    variance = np.mean(((y - y.mean()) / scale) ** 2)
    for name in ("r2", "neg_mean_squared_error"):
        scoring = SCORINGS[name]
        mean = scoring.losses(Echo(), X, y, scale).mean() / ONE * scoring.limit
        expected = get_scorer("r2" if name == "r2" else name)._score_func(y, X[:, 0])
        sign = 1.0 if name == "r2" else -1.0
        assert scoring.score(mean, scale, variance) == pytest.approx(sign * expected, rel=1e-5)


@pytest.mark.parametrize("n_more", [1, 2, 5])
def test_a_record_added_in_front_changes_the_loss_of_no_other(n_more):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5003, 7)) * 10.0 ** rng.integers(-3, 3, size=7)
    y = rng.integers(2, size=5003)
    model = LogisticRegression(max_iter=5000).fit(X[:500], y[:500])
    scoring = SCORINGS["neg_log_loss"]
    few = scoring.losses(model, X[n_more:], y[n_more:], 1.0)
    many = scoring.losses(model, X, y, 1.0)
    np.testing.assert_array_equal(many[n_more:], few)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("budget", [GaussianLoss(0.2), PureLoss(0.5)])
def test_a_noisy_mean_is_near_the_mean(budget, adjacency):
    losses = np.full(20_000, ONE // 4)
    found = [noisy_mean(losses, budget, adjacency, SeededWords(seed)) for seed in range(20)]
    assert np.ptp(found) > 0.0
    np.testing.assert_allclose(found, 0.25, atol=0.01)


class Picky(Echo):
    """Raises if any record has a negative value."""

    def predict(self, X):
        if (np.asarray(X) < 0.0).any():
            raise ValueError("a negative value")
        return super().predict(X)


@pytest.mark.parametrize("name", ["accuracy", "r2"])
def test_a_record_that_cannot_be_scored_counts_for_itself_alone(name):
    X = np.linspace(0.0, 1.0, 9).reshape(-1, 1)
    y = X[:, 0].copy()
    y[::2] += 0.5
    scoring = SCORINGS[name]
    whole = scoring.losses(Picky(), X, y, 1.0)
    X[4] = -1.0
    found = scoring.losses(Picky(), X, y, 1.0)
    assert found[4] == ONE
    np.testing.assert_array_equal(np.delete(found, 4), np.delete(whole, 4))


def test_a_scoring_that_does_not_suit_the_estimator_is_refused():
    with pytest.raises(ValueError, match="must be None or one of"):
        choose_scoring("Search", "r2", [LogisticRegression()])
    assert choose_scoring("Search", None, [LogisticRegression()]).name == "accuracy"


class TestDivision:
    def test_parts_are_disjoint_and_complete_and_of_the_stated_size(self):
        parts = divide(1000, 0.1, 0.05, "replace_one", SeededWords(0))
        sizes = [part.size for part in (parts.train, parts.validation, parts.reference)]
        assert sizes == [850, 100, 50]
        together = np.concatenate([parts.train, parts.validation, parts.reference])
        np.testing.assert_array_equal(np.sort(together), np.arange(1000))

    def test_with_the_same_coins_a_record_more_changes_one_part_only(self):
        few = divide(999, 0.2, 0.1, "add_remove", SeededWords(3))
        many = divide(1000, 0.2, 0.1, "add_remove", SeededWords(3))
        changed = [
            name
            for name in ("train", "validation", "reference")
            if getattr(few, name).size != getattr(many, name).size
        ]
        assert len(changed) == 1
        for name in ("train", "validation", "reference"):
            np.testing.assert_array_equal(
                getattr(many, name)[: getattr(few, name).size], getattr(few, name)
            )

    def test_a_group_is_never_torn_apart(self):
        groups = np.random.default_rng(0).integers(50, size=1000)
        parts = divide(1000, 0.2, 0.0, "replace_one", SeededWords(1), groups)
        assert not set(groups[parts.train]) & set(groups[parts.validation])
        assert 0 < parts.validation.size < 500
