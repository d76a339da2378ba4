"""No model is a constant without a word, nor loses most of its columns: alone or behind others."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPElasticNet,
    DPGridSearchCV,
    DPHuberRegressor,
    DPLasso,
    DPLassoPath,
    DPLinearSVC,
    DPLogisticCD,
    DPPipeline,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyWarning,
)
from skdpnoise.linear_model._constant_models import has_one_label
from skdpnoise.linear_model._standard_units import plain_units
from tests._cases import each_value, quick
from tests._storage import in_batches

MODELS = {
    "descent": (DPCoordinateDescentRegressor, {"solver": "gradient"}),
    "moments": (DPCoordinateDescentRegressor, {"solver": "gram"}),
    "rows": (DPCoordinateDescentRegressor, {"solver": "joint"}),
    "ridge": (DPRidge, {}),
    "lasso": (DPLasso, {}),
    "net": (DPElasticNet, {}),
    "path": (DPLassoPath, {}),
    "huber": (DPHuberRegressor, {}),
    "quantile": (DPQuantileRegressor, {"quantile": 0.9}),
    "counts": (DPPoissonRegressor, {}),
    "counts by column": (DPPoissonRegressor, {"solver": "coordinate"}),
    "labels": (DPLogisticCD, {"classes": [0, 1]}),
    "labels by column": (DPLogisticCD, {"classes": [0, 1], "solver": "coordinate"}),
    "three labels": (DPLogisticCD, {"classes": [0, 1, 2]}),
    "margins": (DPLinearSVC, {"classes": [0, 1]}),
}
BOUNDS = {"feature_bounds": (-3.0, 3.0)}
CONSTANT = "predicts (one|0)|tells nothing of the target"


def made(name, n, kind, seed=0):
    """Columns, and a target of them: it may be noise, nearly always zero, or well told."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X[["b", "c", "d"]] *= 0.0 if kind == "empty columns" else 1.0
    signal = X["a"].to_numpy() + 0.5 * rng.normal(size=n)
    y = rng.normal(size=n) if kind == "noise" else signal
    if kind == "rare":
        y = np.where(rng.random(n) < 0.02, np.abs(y) + 1.0, 0.0)
    if "labels" in name or name == "margins":
        cut = 0.0 if kind == "rare" else float(np.median(y))
        return X, (y > cut).astype(int) + (y > 1.5) * ("three" in name)
    if "counts" in name:
        y = np.floor(np.abs(y))
    return X, y


def fitted(model, X, y):
    """Return a fitted copy and what it warned of, but for seeds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    found = [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning)]
    return model, [text for text in found if not text.startswith("NOT PRIVATE")]


def check(last, predictions, said, epsilon):
    """Check what is told of a model."""
    constant = not last.coef_.any() or np.ptp(predictions) == 0.0
    told = [place for place, text in enumerate(said) if re.search(CONSTANT, text)]
    assert bool(told) >= constant, said
    if not last.coef_.any():
        assert told[0] == 0
        assert f"epsilon={epsilon:g}" in said[0] or "each is constant" in said[0]
        assert "would help" in said[0]
    used = last._standardised[0].used
    if used.mean() < 0.5:
        text = next(one for one in said if f"leaves out {np.sum(~used)} of" in one)
        assert "would help" in text
        assert f"epsilon={epsilon:g}" in text or "each is constant" in text
    return constant


@quick("descent", "lasso", "three labels")
@each_value(3)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["noise", "rare", "told", "empty columns"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("bounds", [{}, BOUNDS], ids=["open", "bounded"])
def test_a_constant_is_never_silent(name, kind, adjacency, delta, bounds, tmp_path):
    estimator, settings = MODELS[name]
    terms = {"delta": delta, "adjacency": adjacency} | settings | bounds
    constants = 0
    for seed, (n, epsilon) in enumerate([(40, 0.3), (300, 0.1), (300, 1.0), (3000, 0.5)]):
        if delta == 0.0 and name == "margins" and epsilon < 0.2:
            continue
        X, y = made(name, n, kind, seed)
        model = estimator(epsilon, random_state=seed, **terms)
        model, said = fitted(model, X, y)
        points = np.random.default_rng(9).normal(size=(20_000, 4))
        points = pd.DataFrame(points, columns=X.columns)
        constants += check(model, model.predict(points), said, epsilon)
        rows = in_batches(X.assign(y=y), tmp_path)
        model = estimator(epsilon, random_state=seed, **terms)
        _, same = fitted(model, rows[list("abcd")], rows["y"])
        assert same == said
    assert constants or kind != "noise" or "path" not in name


@quick("lasso", "labels")
@each_value(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["noise", "rare", "told", "empty columns"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("first", ["table", "scaler", "search"])
def test_what_a_composition_tells_is_in_its_own_epsilon(name, kind, adjacency, first):
    estimator, settings = MODELS[name]
    step = DPStandardScaler() if first == "scaler" else DPTableVectorizer()
    for seed, (n, epsilon) in enumerate([(60, 0.3), (300, 1.25), (3000, 0.5)]):
        X, y = made(name, n, kind, seed)
        steps = [("first", step), ("last", estimator(**settings))]
        model = DPPipeline(steps, epsilon=epsilon, adjacency=adjacency, random_state=seed)
        if first == "search":
            given = {"epsilon": epsilon, "adjacency": adjacency, "random_state": seed}
            grid = {"last__fit_intercept": [True, False]}
            bounds = {} if "labels" in name or name == "margins" else {"target_bounds": (-9, 9)}
            model = DPGridSearchCV(DPPipeline(steps, adjacency=adjacency), grid, **given, **bounds)
        try:
            model, said = fitted(model, X, y)
        except ValueError as error:  # of a search in too few records
            assert first == "search" and "n_samples" in str(error)
            continue
        pipeline = model.best_estimator_ if first == "search" else model
        points = np.random.default_rng(9).normal(size=(20_000, 4))
        points = pd.DataFrame(points, columns=X.columns)
        check(pipeline[-1], pipeline.predict(points), said, epsilon)
        for text in said:
            for stated in re.findall(r"epsilon=([0-9.e-]+[0-9])", text):
                assert float(stated) == epsilon, text
        if first == "table":
            blocks = pipeline[0].columns_.blocks
            lost = sum(block.facts.scale == 0.0 for block in blocks)
            if 2 * lost > len(blocks):
                text = next(one for one in said if one.startswith("DPTableVectorizer leaves out"))
                assert "would help" in text


def test_an_outcome_leads_by_more_than_scores_spread():
    features = plain_units(2)
    assert has_one_label(features, np.array([[0.3, 0.4, 1.1]]))
    assert has_one_label(features, np.array([[0.3, 0.4, -1.1]]))
    assert not has_one_label(features, np.array([[0.3, 0.4, 0.9]]))
    three = np.array([[0.3, 0.0, 2.0], [0.0, 0.4, 0.4], [0.0, 0.0, 0.0]])
    assert has_one_label(features, three)
    assert not has_one_label(features, three * [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0]])


def test_columns_that_noise_hides_are_named_by_their_places_among_all():
    rng = np.random.default_rng(0)
    pairs = np.eye(2)[rng.integers(2, size=3000)]
    X = np.column_stack([pairs, np.zeros(3000), rng.normal(size=3000)])
    y = X[:, 0] + X[:, 3]
    model = DPRidge(2.0, column_groups=[[0, 1]], random_state=0)
    _, said = fitted(model, X, y)
    assert any("leaves out 1 of 4 columns (2)" in text for text in said), said
