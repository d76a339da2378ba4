"""A pipeline with one guarantee in scikit-learn's company."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPLogisticCD,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
)
from skdpnoise.compose import UnpaidStepError, register_private
from tests.compose._pipelines import X, Y, private_pipeline, two_steps

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

# scikit-learn's company


def test_mixed_columns_frames_and_names():
    table = pd.DataFrame({"age": X[:, 0], "pay": X[:, 1], "kind": np.where(Y, "a", "b")})
    encoder = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(DPRobustScaler(), BoundsClipper((-3, 3))), ["age", "pay"]),
            ("kinds", encoder, ["kind"]),
        ]
    )
    steps = [("columns", columns), ("model", DPLogisticCD(classes=[0, 1]))]
    model = DPPipeline(steps, random_state=0)
    model.set_output(transform="pandas").fit(table, Y)
    assert list(model.feature_names_in_) == ["age", "pay", "kind"]
    assert model.score(table, Y) > 0.9
    names = ["numbers__age", "numbers__pay", "kinds__kind_a", "kinds__kind_b"]
    assert list(model[:-1].transform(table).columns) == names
    assert list(model[:-1].get_feature_names_out()) == names
    assert list(model.classes_) == [0, 1]
    assert "columns__numbers__dprobustscaler" in str(model.privacy_)


def test_slices_indices_copies_and_pickles():
    model = private_pipeline(weights={"scale": 1, "model": 2}, public=(), random_state=0).fit(X, Y)
    assert len(model) == 2
    assert model["scale"] is model[0] is model.named_steps.scale
    part = model[:1]
    assert type(part) is DPPipeline
    assert part.weights == {"scale": 1}
    assert part.privacy_ is model.privacy_
    np.testing.assert_array_equal(part.transform(X), model[0].transform(X))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "steps_")
    assert not hasattr(model, "transform")
    assert hasattr(part, "fit_transform")
    assert "DPPipeline" in model._repr_html_()
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict_proba(X), model.predict_proba(X))


@pytest.mark.usefixtures("the_same_words")
def test_pipelines_within_pipelines_share_what_the_outer_one_gives():
    inner = DPPipeline(two_steps(), epsilon=100.0)
    outer = DPPipeline([("clip", BoundsClipper()), ("inner", inner)], delta=0.0).fit(X, Y)
    shares = [step.epsilon for _, step in outer["inner"].steps_]
    assert shares == pytest.approx([0.5, 0.5], rel=1e-4)
    assert sum(shares) <= 1.0
    assert {r.label.split(":")[0] for r in outer.privacy_.releases} == {"inner"}
    pickle.dumps(outer)
    assert outer["inner"]["model"].ledger is None
    refused = DPPipeline([("inner", DPPipeline([("s", StandardScaler()), *two_steps()]))])
    with pytest.raises(UnpaidStepError, match=r"'inner__s' \(StandardScaler\)"):
        refused.fit(X, Y)
    vouched = DPPipeline([("s", StandardScaler()), *two_steps()], public=["s"])
    model = DPPipeline([("inner", vouched)]).fit(X, Y)
    assert model.privacy_.declared == ("inner__s", "labels of y")


class _NoShare(BaseEstimator):
    def fit(self, X, y=None):
        return self


def test_a_private_step_that_cannot_take_a_share_says_which_parameters_it_lacks():
    register_private(_NoShare)
    with pytest.raises(ValueError, match=r"_NoShare\) without the parameters epsilon"):
        DPPipeline([("scale", DPStandardScaler()), ("last", _NoShare())]).fit(X, Y)
