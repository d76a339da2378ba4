"""Few passes of pure noise: rows are clipped, scores are found, and many classes may be guessed."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from skdpnoise import DPLogisticRegression
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._scaling import row_moments


def counts_of_words(n, seed, share=0.3, p=50):
    """Rows far from zero in one direction, whose lengths differ, and labels of unequal sizes."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(1.0, 0.4, size=p)
    y = (rng.random(n) < share).astype(int)
    shift = np.exp(np.random.default_rng(1).normal(0.0, 0.6, size=p))
    X = rng.poisson(np.outer(rng.gamma(2.0, 0.5, size=n), rates) * np.where(y[:, None], shift, 1.0))
    return np.minimum(X, 10.0), y


def measured(epsilon, n=4000, adjacency="replace_one"):
    found = []
    for seed in range(5):
        X, y = counts_of_words(n + 2000, seed)
        model = DPLogisticRegression(
            epsilon,
            delta=0.0,
            feature_bounds=(0.0, 10.0),
            classes=[0, 1],
            adjacency=adjacency,
            random_state=seed,
        ).fit(X[:n], y[:n])
        X, y = X[n:], y[n:]
        constant = log_loss(y, np.full(len(y), y.mean()))
        more = model.score(X, y) - max(y.mean(), 1.0 - y.mean())
        excess = log_loss(y, model.predict_proba(X)) - constant
        found.append((roc_auc_score(y, model.decision_function(X)), more, excess))
    return np.median(found, axis=0), model


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_pass_subtracts_what_classes_have_in_common(adjacency):
    (auc, more, excess), model = measured(0.5, adjacency=adjacency)
    assert model.n_passes_ <= 4
    assert auc > 0.8
    assert more > 0.0
    assert excess < -0.05


def test_what_is_next_to_nothing_is_about_a_constant():
    (_, more, excess), model = measured(0.05)
    assert model.n_passes_ == 1
    assert more > -0.05
    assert excess < 0.05


def test_passes_follow_the_budget_for_each_slope():
    found = [tuned.pure_passes("auto", one, by_rows=True) for one in (0.1, 20.0, 60.0, 200.0, 1e9)]
    assert found == [1, 1, 3, 10, tuned.GRADIENT.fewest_passes]
    assert tuned.pure_passes("auto", 0.1, by_rows=False) == 2
    assert tuned.pure_passes(7, 0.1, by_rows=True) == 7


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("groups", [[NO_GROUP] * 6, [NO_GROUP] * 3 + [0] * 3, [0] * 6])
def test_no_row_is_beyond_the_norm_of_its_moments_and_some_come_close(pooled, groups):
    groups = np.array(groups)
    rng = np.random.default_rng(0)
    query = row_moments(np.full(6, 3.0), np.full(6, 2.0), groups, pooled=pooled)
    X = 3.0 + 2.0 * rng.choice([-1.0, -0.99, 0.0, 0.5, 1.0, 40.0], size=(2000, 6))
    X[0], X[1] = 5.0, 1.0
    for grouped in (groups == 0,) if (groups == 0).any() else ():
        X[:, grouped] = 3.0
        X[:, np.flatnonzero(grouped)[0]] = 5.0
    sums = np.vstack([*query.contributions(X)])
    norms = np.linalg.norm(sums, axis=1)
    assert norms.max() <= query.bounds.norm * (1.0 + 1e-12)
    assert norms.max() > 0.999 * query.bounds.norm
    assert (np.abs(sums).max(axis=0) <= query.bounds.columns * (1.0 + 1e-12)).all()
    alone = groups == NO_GROUP
    n_squares = min(1, alone.sum()) if pooled else alone.sum()
    assert sums.shape[1] == 6 + n_squares
    z = np.clip((X - 3.0) / 2.0, -1.0, 1.0)
    if pooled and alone.any():
        mean = sums[:, -1] / np.sqrt(alone.sum()) + 0.5
        np.testing.assert_allclose(mean, (z[:, alone] ** 2).mean(axis=1), atol=1e-12)


@pytest.mark.parametrize(("shares", "asked"), [([0.1] * 10, False), ([0.8, 0.1, 0.1], True)])
def test_labels_are_compared_with_the_largest_class_where_a_guess_would_lose(shares, asked):
    rng = np.random.default_rng(0)
    X, y = rng.random((1500, 40)), rng.choice(len(shares), 1500, p=shares)
    facts = {"delta": 0.0, "feature_bounds": (0.0, 1.0), "classes": [*range(len(shares))]}
    model = DPLogisticRegression(0.5, random_state=0, **facts).fit(X, y)
    labels = [release.label for release in model.privacy_.releases]
    assert ("gain over the largest class" in labels) == asked
    total = sum(release.loss.pure_epsilon for release in model.privacy_.releases)
    assert 0.98 * 0.5 < total <= 0.5 * (1.0 + 1e-9)
