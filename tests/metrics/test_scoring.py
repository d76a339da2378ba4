"""One record moves a score by at most what it is charged for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score

from skdpnoise.accounting.session import Session
from skdpnoise.metrics.scoring import (
    BITS,
    SCORINGS,
    LabelShares,
    choose_scoring,
    pair_losses,
    pair_share,
)
from skdpnoise.model_selection._runs import released_mean
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from tests._cases import each_value, quick

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


@quick("2")
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


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("budget", [GaussianLoss(0.2), PureLoss(0.5)])
def test_a_noisy_mean_is_near_the_mean(budget, adjacency):
    loss = 20_000 * (ONE // 4), 20_000
    sessions = [Session(SeededWords(seed), adjacency) for seed in range(20)]
    found = [released_mean(loss, budget, session)[0] for session in sessions]
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


ODD = [np.nan, np.inf, -np.inf, 0.0, 0.25, 0.5, 1.0]


def test_one_record_moves_the_sum_of_all_pairs_by_at_most_one_unit():
    # Every replacement of every record, among scores with ties, infinities and NaN.
    rng = np.random.default_rng(0)
    largest = 0
    for n in (2, 3, 5, 9):
        for _ in range(20):
            scores, positive = rng.choice(ODD, size=n), rng.random(n) < 0.5
            whole = pair_losses(scores, positive).sum()
            for place in range(n):
                for other in ODD:
                    for label in (False, True):
                        changed, labels = scores.copy(), positive.copy()
                        changed[place], labels[place] = other, label
                        moved = abs(int(pair_losses(changed, labels).sum()) - int(whole))
                        largest = max(largest, moved)
                        assert moved <= ONE
    assert largest >= ONE - 2 * 9  # and the bound is sharp, but for whole units


def test_pairs_are_those_of_the_area_under_the_curve(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.random(5000) < 0.3
    scores = np.round(rng.normal(size=5000) + y, 1)
    share = pair_share(y.mean(), y.size)
    lost = pair_losses(scores, y).sum() / ONE / y.size / share
    assert 1.0 - lost == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    # Of more records than can be told apart in integers the first ones count.
    monkeypatch.setattr("skdpnoise.metrics.scoring.MOST", 1000)
    lost = pair_losses(scores, y).sum() / ONE / y.size / pair_share(y[:1000].mean(), y.size)
    assert 1.0 - lost == pytest.approx(roc_auc_score(y[:1000], scores[:1000]), abs=1e-12)
    assert not pair_losses(scores, y)[1000:].any()


def test_a_record_without_a_score_loses_all_its_pairs():
    for place, label in ((0, True), (1, False)):
        scores, positive = np.array([0.9, 0.1, 0.8, 0.2]), np.array([True, False, True, False])
        assert pair_losses(scores, positive).sum() == 0
        scores[place] = np.nan
        assert positive[place] == label
        assert pair_losses(scores, positive).sum() == 2 * 2 * (ONE // 6)


def test_weights_make_of_accuracy_the_balanced_one():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], p=[0.7, 0.25, 0.05], size=4000)
    X = rng.normal(size=(4000, 2)) + (y == "b")[:, None]
    model = LogisticRegression().fit(X, y)
    shares = np.array([np.mean(y == label) for label in "abc"])
    units = LabelShares(np.array(["a", "b", "c"]), shares)
    scoring = SCORINGS["balanced_accuracy"]
    losses = scoring.losses(model, X, y, units)
    found = scoring.score(losses.mean() / ONE, 1.0, 3 * shares.min())
    assert found == pytest.approx(get_scorer("balanced_accuracy")(model, X, y), abs=1e-6)
    assert losses.max() == ONE
    odd = scoring.losses(model, X[:2], np.array(["a", "?"]), units)
    assert odd[1] == ONE  # of a label that is none


@pytest.mark.parametrize("name", ["neg_mean_absolute_error", "neg_root_mean_squared_error"])
def test_other_errors_are_those_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    y = rng.uniform(10.0, 20.0, size=5000)
    X = (y + rng.uniform(-2, 2, size=5000))[:, None]
    scoring = SCORINGS[name]
    losses = scoring.losses(Echo(), X, y, 5.0)
    found = scoring.score(losses.mean() / ONE * scoring.limit, 5.0, 1.0)
    assert found == pytest.approx(-get_scorer(name)._score_func(y, X[:, 0]), rel=1e-5)
    wild = scoring.losses(Echo(), np.array([[np.nan], [np.inf], [-1e300]]), np.zeros(3), 5.0)
    assert wild.tolist() == [ONE] * 3


def test_a_scoring_that_does_not_suit_the_estimator_is_refused():
    with pytest.raises(ValueError, match="must be None or one of"):
        choose_scoring("Search", "r2", [LogisticRegression()])
    assert choose_scoring("Search", None, [LogisticRegression()]).name == "accuracy"
