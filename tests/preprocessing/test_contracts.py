"""The scalers in scikit-learn's company: its common checks, pipelines, frames, clones, pickles."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdpnoise import (
    BoundsClipper,
    DPLogisticCD,
    DPMinMaxScaler,
    DPRobustScaler,
    DPStandardScaler,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

SCALERS = [DPStandardScaler(), DPRobustScaler(), DPMinMaxScaler()]
CLIPPERS = [BoundsClipper(), BoundsClipper((-1.0, 1.0))]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return rng.normal([10.0, -3.0, 0.0], [2.0, 0.5, 1.0], size=(3000, 3))


ALL = [*SCALERS, BoundsClipper(([0.0, -4.0, -1.0], [12.0, -2.0, 1.0]))]


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_frames_of_pandas_and_polars_are_kept(estimator, table):
    plain = _seeded(estimator).fit(table).transform(table)
    for kind, frame in (
        ("pandas", pd.DataFrame(table, columns=list("abc"))),
        ("polars", pl.DataFrame(table, schema=list("abc"))),
    ):
        scaler = _seeded(estimator).set_output(transform=kind)
        for result in (scaler.fit_transform(frame), scaler.transform(frame)):
            assert type(result) is type(frame)
            assert list(result.columns) == list("abc")
            np.testing.assert_allclose(result.to_numpy(), plain, rtol=1e-12)
        assert list(scaler.get_feature_names_out()) == list("abc")


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
class TestCompany:
    def test_frames_are_kept_in_a_column_transformer_within_a_pipeline(self, estimator, table):
        frame = pd.DataFrame(table, columns=list("abc")).assign(kind="x")
        encoder = OneHotEncoder(categories=[["x", "z"]], sparse_output=False)
        transform = ColumnTransformer(
            [("numbers", _seeded(estimator), list("abc")), ("kind", encoder, ["kind"])],
            verbose_feature_names_out=False,
        )
        result = make_pipeline(transform).set_output(transform="pandas").fit_transform(frame)
        assert list(result.columns) == ["a", "b", "c", "kind_x", "kind_z"]
        assert isinstance(result, pd.DataFrame)
        assert result.index.equals(frame.index)

    def test_a_pickle_transforms_the_same_and_a_clone_is_unfitted(self, estimator, table):
        scaler = _seeded(estimator).fit(table)
        copy = pickle.loads(pickle.dumps(scaler))
        np.testing.assert_array_equal(copy.transform(table), scaler.transform(table))
        assert clone(scaler).get_params().keys() == scaler.get_params().keys()
        assert not hasattr(clone(scaler), "n_features_in_")

    @pytest.mark.slow
    def test_a_grid_search_over_the_pipeline_runs(self, estimator, table):
        y = table[:, 0] > 10.0
        pipeline = make_pipeline(_seeded(estimator), DPLogisticCD(20.0, random_state=0))
        search = GridSearchCV(pipeline, {"dplogisticcd__alpha": [0.0, 100.0]}, cv=2).fit(table, y)
        assert search.best_params_ == {"dplogisticcd__alpha": 0.0}
        assert search.best_score_ > 0.9


def _seeded(estimator):
    copy = clone(estimator)
    return copy.set_params(random_state=0) if "random_state" in copy.get_params() else copy


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("estimator", SCALERS, ids=lambda e: type(e).__name__)
def test_noise_is_fresh_without_a_random_state_and_the_report_says_so(estimator, table):
    first, second = (clone(estimator).fit(table) for _ in range(2))
    assert (first.scale_ != second.scale_).any()
    assert "cryptographic" in str(first.privacy_)
    assert "known seed" in str(_seeded(estimator).fit(table).privacy_)


@pytest.mark.parametrize("estimator", SCALERS, ids=lambda e: type(e).__name__)
def test_single_precision_and_memory_order_hardly_matter(estimator, table):
    double = _seeded(estimator).fit(table)
    for other in (table.astype(np.float32), np.asfortranarray(table)):
        scaler = _seeded(estimator).fit(other)
        np.testing.assert_allclose(scaler.scale_, double.scale_, rtol=1e-3)
        result = scaler.transform(other)
        assert result.dtype == other.dtype
        np.testing.assert_allclose(scaler.inverse_transform(result), table, atol=1e-4)
