"""Counts of labels by score: what a row adds hangs on it alone, and chances are right."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from skdpnoise.accounting.session import Released
from skdpnoise.neural_network import DPMLPClassifier, DPMLPRegressor, DPNeuralClassifier
from skdpnoise.neural_network import _calibration as calibration
from skdpnoise.neural_network._calibration import COUNTS, EDGES, SCORES, ScoresAlone

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

nn = torch.nn
PUBLIC = {"feature_bounds": (-4.0, 4.0), "random_state": 0}
N_BINS = len(SCORES)


def labels_of(model):
    return [release.label for release in model.privacy_.releases]


class Random(nn.Module):
    """Adds random numbers, whether it is trained or not."""

    def forward(self, rows):
        return rows + torch.randn(rows.shape)


@pytest.mark.parametrize("width", [8, 9])
@pytest.mark.parametrize("between", [nn.Tanh, Random])
def test_a_row_is_counted_alike_whoever_else_is_there(width, between):
    rng = np.random.default_rng(0)
    module = nn.Sequential(nn.Linear(7, width), between(), nn.Linear(width, 2)).eval()
    rows = (10.0 * rng.normal(size=(40, 7))).astype(np.float32)
    rows[3], rows[4] = np.inf, np.nan
    targets = rng.integers(2, size=40)
    scores = ScoresAlone(torch, module, torch.zeros((1, 7)), 5)
    query = calibration.labels_by_score(scores, lambda leaf: (leaf["X"], leaf["y"]))

    def counts(some):
        return query.step(np.ones(2 * N_BINS))({"X": rows[some], "y": targets[some]})

    everyone = np.arange(40)
    whole = scores(rows)
    for some in (everyone[1:], everyone[::-1], everyone[[3, 4, 17]]):
        assert np.array_equal(scores(rows[some]), whole[some], equal_nan=True)
    stated = COUNTS.sensitivity("add_remove")
    for one in everyone:
        moved = np.abs(counts(everyone) - counts(np.delete(everyone, one)))
        assert moved.sum() == moved.max() == 1.0 == stated.l1


def test_bins_hold_their_scores():
    assert np.searchsorted(EDGES, SCORES).tolist() == list(range(N_BINS))
    assert 0.0 in EDGES  # where labels change
    np.testing.assert_array_equal(SCORES, -SCORES[::-1])


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.1, -2.0), (2.0, 1.0)])
def test_log_odds_are_found(slope, intercept):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200_000) * 2.0 / slope
    second = rng.random(200_000) < 1.0 / (1.0 + np.exp(-slope * scores - intercept))
    codes = np.searchsorted(EDGES, scores) + N_BINS * second
    counts = np.bincount(codes, minlength=2 * N_BINS).astype(float)

    class Mechanism:
        standard_deviation = np.full(2 * N_BINS, 10.0)

    found = calibration.log_odds(Released(counts, Mechanism))
    np.testing.assert_allclose(found, [slope, intercept], rtol=0.15, atol=0.15)


def made(n, signal, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 3000, 4))
    f = signal * (np.abs(X[:, 0]) + X[:, 1]) + rng.logistic(size=len(X))
    y = np.where(f > np.quantile(f, 0.7), "rare", "usual")
    return X[:n], y[:n], X[n:], y[n:]


def test_chances_are_better_than_those_of_the_outputs_and_labels_no_worse():
    X, y, others, labels = made(6000, 2.0, 0)
    model = DPMLPClassifier(16, epsilon=1.0, **PUBLIC).fit(X, y)
    right, score = model.predict_proba(others), model.score(others, labels)
    assert np.allclose(np.log(right), model.predict_log_proba(others))
    assert (model.classes_[right.argmax(axis=1)] == model.predict(others)).all()
    model.calibration_ = calibration.AS_THEY_ARE
    assert log_loss(labels, right) < log_loss(labels, model.predict_proba(others)) - 0.02
    assert score > model.score(others, labels) - 0.01


def test_a_network_that_finds_nothing_is_about_a_constant():
    X, y, others, labels = made(1500, 0.0, 1)
    model = DPMLPClassifier(16, epsilon=0.5, **PUBLIC).fit(X, y)
    share = np.mean(labels == "usual")
    constant = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert log_loss(labels, model.predict_proba(others)) < constant + 0.02
    assert model.score(others, labels) > share - 0.01


def test_only_two_classes_are_counted():
    X, y, _, _ = made(300, 2.0, 0)
    quick = {"max_iter": 1, "batch_size": 0.5, **PUBLIC}
    two = DPMLPClassifier(4, **quick).fit(X, y)
    assert labels_of(two) == ["number of records", "gradients", "labels by score"]
    three = DPMLPClassifier(4, classes=["rare", "usual", "more"], **quick).fit(X, y)
    assert labels_of(three) == ["number of records", "gradients"]
    assert three.calibration_.tolist() == [1.0, 0.0]
    assert "labels by score" not in labels_of(DPMLPRegressor(4, **quick).fit(X, X[:, 0]))


def test_rows_of_people_are_paid_for():
    X, y, _, _ = made(600, 2.0, 0)
    model = DPMLPClassifier(4, rows_per_group=3, max_iter=1, batch_size=0.5, **PUBLIC)
    report = model.fit(X, y, groups=np.arange(600) // 3).privacy_
    assert report.total.delta(1.0) <= 1e-6
    counts = report.releases[-1]
    assert counts.label == "labels by score"
    whole = DPMLPClassifier(4, max_iter=1, batch_size=0.5, **PUBLIC).fit(X, y).privacy_.releases[-1]
    assert counts.scale[0] == pytest.approx(3.0 * whole.scale[0], rel=1e-3)


class Remembers(nn.Module):
    """Counts what passes through it when it is not trained any more."""

    def __init__(self):
        super().__init__()
        self.inner, self.seen = nn.Linear(4, 2), 0

    def forward(self, rows):
        if not self.training:
            self.seen += 1
        return self.inner(rows)


def test_a_network_that_keeps_something_once_it_is_trained_is_refused():
    X, y, _, _ = made(100, 2.0, 0)
    with pytest.raises(ValueError, match="'seen'"):
        DPNeuralClassifier(Remembers, max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize("bounds", [(0.0, 8.0), (-1.0, 3.0), (2.0, 6.0), (-1e100, 1e90)])
def test_zero_within_bounds_stays_zero_and_values_stay_within_them(bounds):
    low, high = bounds
    values = np.array([-np.inf, low, 0.0, 0.5 * low + 0.5 * high, high, np.inf])[:, np.newaxis]
    X = np.clip(np.random.default_rng(0).normal(size=(50, 1)), low, high)
    model = DPMLPRegressor(4, max_iter=1, feature_bounds=bounds, random_state=0).fit(X, X[:, 0])
    found = model._scalings[0](values)[:, 0].astype(float)
    half = 0.5 * high - 0.5 * low
    zero = 0.0 if low <= 0.0 <= high else 0.5 * low + 0.5 * high
    np.testing.assert_allclose(found, (np.clip(values[:, 0], low, high) - zero) / half, atol=1e-6)
