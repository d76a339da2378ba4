"""Missing numbers, replaced by what is public or released."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

from skdpnoise import DPLogisticCD, DPPipeline, DPSimpleImputer
from tests._cases import each_value
from tests.contracts._register import Forbidden

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

rng = np.random.default_rng(0)
FULL = np.column_stack(
    [rng.normal(50.0, 5.0, 20_000), rng.exponential(2.0, 20_000), rng.choice([1.0, 2, 7], 20_000)]
)
FULL[:, 2] = np.where(rng.random(20_000) < 0.6, 2.0, FULL[:, 2])
X = np.where(rng.random(FULL.shape) < [0.5, 0.1, 0.3], np.nan, FULL)


@each_value(1)
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
@pytest.mark.parametrize("bounds", [None, (0.0, 100.0)])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_statistics_are_near_those_of_the_values_that_are_there(strategy, bounds, delta):
    imputer = DPSimpleImputer(
        3.0, delta, strategy=strategy, feature_bounds=bounds, random_state=0
    ).fit(X)
    exact = SimpleImputer(strategy=strategy).fit(X).statistics_
    if strategy == "most_frequent":  # of continuous columns there is none
        assert abs(imputer.statistics_[2] - 2.0) < 0.5
    else:
        assert np.all(np.abs(imputer.statistics_ - exact) < [0.5, 0.5, 0.6])
    share = np.count_nonzero(~np.isnan(X), axis=0)
    assert imputer.n_present_ == pytest.approx(share, rel=0.05)
    filled = imputer.transform(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(filled).all()


def test_a_constant_costs_nothing():
    imputer = DPSimpleImputer(strategy="constant", fill_value=-1, ledger=Forbidden()).fit(X)
    assert not imputer.privacy_.releases
    assert (imputer.transform(X)[np.isnan(X)] == -1.0).all()


@pytest.mark.usefixtures("the_same_words")
def test_indicators_are_there_for_every_column_whatever_is_missing():
    imputer = DPSimpleImputer(add_indicator=True, random_state=0).fit(FULL)
    frame = pd.DataFrame(X, columns=list("abc"))
    named = DPSimpleImputer(add_indicator=True, random_state=0).fit(frame)
    for fitted, table in ((imputer, X), (named, frame)):
        found = fitted.transform(table)
        np.testing.assert_array_equal(found[:, 3:], np.isnan(X))
        np.testing.assert_array_equal(fitted.inverse_transform(found)[np.isnan(X)], np.nan)
    assert named.get_feature_names_out().tolist() == [
        *("a", "b", "c", "missingindicator_a", "missingindicator_b", "missingindicator_c")
    ]
    with pytest.raises(ValueError, match="add_indicator"):
        DPSimpleImputer().fit(X).inverse_transform(X)


@pytest.mark.usefixtures("the_same_words")
def test_a_column_that_is_hidden_gets_the_public_constant():
    few = X[:50].copy()
    with pytest.warns(match="puts 4 for what is missing in 3 of 3 columns"):
        imputer = DPSimpleImputer(0.01, fill_value=4).fit(few)
    np.testing.assert_array_equal(imputer.statistics_, 4.0)


@pytest.mark.parametrize("fill", [np.nan, np.inf, 1e200])
def test_the_constant_is_finite(fill):
    with pytest.raises(ValueError, match="'fill_value'"):
        DPSimpleImputer(fill_value=fill, ledger=Forbidden()).fit(X)


def test_infinite_values_are_refused_and_missing_ones_are_not_in_a_pipeline():
    y = (FULL[:, 0] > 50.0).astype(int)
    steps = [("fill", DPSimpleImputer()), ("model", DPLogisticCD(classes=[0, 1]))]
    model = DPPipeline(steps, epsilon=3.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    wrong = X.copy()
    wrong[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        DPPipeline(steps, ledger=Forbidden()).fit(wrong, y)
