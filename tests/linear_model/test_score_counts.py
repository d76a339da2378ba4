"""Counts of labels by score: what a record moves, log-odds that are right, and a floor."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skdpnoise import DPLinearSVC, DPLogisticRegression
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._records import Rows
from skdpnoise.linear_model._standard_units import plain_units
from skdpnoise.linear_model.solvers.score_counts import CalibrateScores

N_BINS = tuned.FINAL.bins


def a_step(deviation=1e-3, log_odds=True, penalised=False, n_bins=N_BINS):
    query = GroupedSum(2 * n_bins, np.asarray)
    mechanism = SimpleNamespace(standard_deviation=np.full(2 * n_bins, deviation))
    return CalibrateScores(query, mechanism, log_odds, penalised)


def a_plan(n_samples=1000, n_columns=1):
    problem = SimpleNamespace(features=plain_units(n_columns))
    return SimpleNamespace(
        problem=problem,
        n_samples=n_samples,
        n_slopes=n_columns,
        average=lambda path: path.mean(axis=0),
    )


def counts(step, path, plan, X, y):
    return step.asked(path, plan).step(np.ones(step.query.n_groups))(Rows(X, y))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_moves_counts_by_what_is_stated_at_most(adjacency):
    rng = np.random.default_rng(0)
    stated = a_step().query.sensitivity(adjacency)
    largest = 0.0
    for _ in range(300):
        path, plan = rng.normal(size=(3, 1, 3)) * 10.0 ** rng.integers(-3, 4), a_plan(20, 2)
        X, y = rng.normal(size=(20, 2)), rng.integers(2, size=20)
        others = X.copy(), y.copy()
        others[0][0], others[1][0] = rng.choice([-1e300, 0.0, 2.0, 1e300], 2), rng.integers(2)
        if adjacency == "add_remove":
            others = X[1:], y[1:]
        before, after = (counts(a_step(), path, plan, *rows) for rows in ((X, y), others))
        assert before.sum() == 20
        change = np.abs(before - after)
        assert change.max() <= stated.per_coordinate.max()
        assert change.sum() <= stated.l1
        assert np.linalg.norm(change) <= stated.l2
        largest = max(largest, np.linalg.norm(change))
    assert largest == pytest.approx(stated.l2)


@pytest.mark.parametrize("intercept", [-40.0, -1.3, 0.0, 0.4, 1e6])
def test_labels_change_at_an_edge_of_bins_if_they_change_among_scores(intercept):
    path = np.array([[[0.7, intercept]]])
    edges = a_step().edges(path, a_plan())
    assert len(edges) == N_BINS - 1
    np.testing.assert_allclose(np.diff(edges), 0.7, rtol=1e-6)
    assert abs(edges.mean() - intercept) <= 0.35 * (1.0 + 1e-6)
    assert (0.0 in edges) == (abs(intercept) < 2.0)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.5, -2.0), (2.5, 1.0), (1.5, -4.0)])
def test_log_odds_are_found_whatever_the_scores_were(slope, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 1))
    y = (rng.random(200_000) < 1.0 / (1.0 + np.exp(-slope * X[:, 0] - intercept))).astype(int)
    plan = a_plan(len(X))
    for path in (np.array([[[0.2, 0.1]]]), np.array([[[3.0, -1.0]]])):
        step = a_step()
        found = step(path, plan, counts(step, path, plan, X, y).astype(float))[0, 0]
        np.testing.assert_allclose(found, [slope, intercept], rtol=0.12, atol=0.13)
        only_moved = a_step(log_odds=False)
        moved = only_moved(path, plan, counts(step, path, plan, X, y).astype(float))[0, 0]
        assert moved[0] == path[0, 0, 0]
        assert moved[1] / moved[0] == pytest.approx(intercept / slope, rel=0.12, abs=0.2)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_scores_far_from_the_intercept_are_found_by_more_bins(size):
    # Columns that go together make them wider than they are thought to be; most bins hold noise.
    rng, path, plan = np.random.default_rng(0), np.full((1, 1, 10), size), a_plan(20_000, 9)
    path[..., -1] = 0.0
    for center, width in ((2.0, 0.3), (-1.0, 0.6)):
        common = rng.normal(size=(20_000, 1))
        X = np.broadcast_to(center + width * common, (20_000, 9))
        y = (common[:, 0] + rng.logistic(size=20_000) > 0.3).astype(int)
        step = a_step(60.0, n_bins=4 * N_BINS)
        noisy = counts(step, path, plan, X, y) + rng.normal(0.0, 60.0, size=8 * N_BINS)
        found = step(path, plan, noisy)[0, 0]
        assert found[:-1].sum() * width == pytest.approx(1.0, rel=0.4)
        assert -found[-1] / found[:-1].sum() == pytest.approx(center + 0.3 * width, abs=width)


def test_a_user_s_penalty_is_respected():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 1))
    y = (rng.random(50_000) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))).astype(int)
    path, plan = np.array([[[0.2, 0.0]]]), a_plan(len(X))
    for penalised, slope in ((True, 0.2), (False, 2.0)):
        step = a_step(penalised=penalised)
        found = step(path, plan, counts(step, path, plan, X, y).astype(float))
        assert found[0, 0, 0] == pytest.approx(slope, rel=0.1)


def test_counts_that_noise_hides_give_about_a_constant():
    rng = np.random.default_rng(0)
    path, plan, step = np.array([[[2.0, 3.0]]]), a_plan(), a_step(500.0)
    for _ in range(50):
        found = step(path, plan, rng.normal(0.0, 500.0, size=2 * N_BINS))[0, 0]
        assert np.isfinite(found).all()
        assert 0.0 < found[0] < 1.0
        assert abs(found[1]) < 3.0


def test_what_is_needed_depends_on_how_costs_add():
    strengths = (50.0, 100.0, 5e3, 1e6, 1e9)
    for order, most in ((1.0, 0.2), (2.0, 0.1)):
        shares = [tuned.share_of_scores(strength, order, 1000) for strength in strengths]
        assert shares[:2] == [0.0, pytest.approx(most)]
        assert most > shares[2] > shares[3] == 0.01
        assert shares[4] == 0.0


def made(n, p, share, seed, signal=2.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 4000, p))
    scores = X @ rng.normal(size=p) * signal / math.sqrt(p) + rng.logistic(size=len(X))
    y = (scores > np.quantile(scores, 1.0 - share)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def test_chances_of_a_rare_class_are_not_flat():
    excess = []
    for seed in range(5):
        X, y, others, labels = made(5000, 8, 0.1, seed)
        private = DPLogisticRegression(epsilon=1.0, random_state=seed).fit(X, y)
        plain = LogisticRegression().fit(X, y)
        losses = (log_loss(labels, one.predict_proba(others)) for one in (private, plain))
        excess.append(next(losses) - next(losses))
    assert np.median(excess) < 0.03


@pytest.mark.parametrize("model", [DPLogisticRegression, DPLinearSVC])
def test_a_classifier_that_finds_nothing_is_as_good_as_the_largest_class(model):
    gains = []
    for seed in range(8):
        X, y, others, labels = made(3000, 10, 0.2, seed, signal=0.0)
        fitted = model(epsilon=0.5, feature_bounds=(-4.0, 4.0), random_state=seed).fit(X, y)
        assert fitted.privacy_.releases[-1].label == "labels by score"
        gains.append(fitted.score(others, labels) - np.mean(labels == 0))
    assert np.median(gains) >= -0.005
    assert min(gains) >= -0.05


@pytest.mark.parametrize("model", [DPLogisticRegression, DPLinearSVC])
def test_only_two_classes_with_an_intercept_are_counted(model):
    X, y, _, _ = made(2000, 3, 0.5, 0)
    settings = {"feature_bounds": (-4.0, 4.0), "random_state": 0}
    three = y + (X[:, 0] > 1.0)
    others = [({"fit_intercept": False}, y), ({}, three)]
    if model is DPLogisticRegression:
        others.append(({"class_weight": {0: 1.0, 1: 2.0}}, y))
    for more, labels in [({}, y), *others]:
        report = model(1.0, **settings, **more).fit(X, labels).privacy_
        counted = "labels by score" in [release.label for release in report.releases]
        assert counted == (more == {} and labels is y)
