"""A pipeline with one guarantee refuses, before the charge, whatever can be known to fail."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMLPClassifier,
    DPPipeline,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise.compose import UnpaidStepError
from skdpnoise.neural_network import _network
from tests._cases import each_value
from tests.compose._pipelines import Notebook, X, Y, private_pipeline, rng, two_steps

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

# What is refused before the charge


def test_steps_that_are_known_to_be_safe_only_in_another_form_are_refused():
    ledger = Notebook()
    kinds = ColumnTransformer(
        [("kind", OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore"), [0])]
    )
    vouched = ColumnTransformer([("known", StandardScaler(), [0])])
    with pytest.raises(UnpaidStepError, match="sparse_threshold=0"):
        DPPipeline([("s", vouched), ("m", DPLogisticCD())], public=["known"]).fit(X, Y)
    vouched.set_params(sparse_threshold=0)
    DPPipeline([("s", vouched), ("m", DPLogisticCD())], public=["known"]).fit(X, Y)
    by_function = ColumnTransformer([("all", "passthrough", lambda X: [0])])
    cached = Pipeline([("scale", DPStandardScaler())], memory="folder")
    warned = TransformedTargetRegressor(DPCoordinateDescentRegressor(), func=np.log)
    lambdas = TransformedTargetRegressor(
        DPCoordinateDescentRegressor(),
        func=lambda y: y - y.mean(),
        inverse_func=lambda y: y,
        check_inverse=False,
    )
    for step, remedy in (
        (kinds, "sparse_threshold=0"),
        (by_function, "must name its columns"),
        (cached, "memory=None"),
        (warned, "check_inverse=False"),
        (lambdas, "func may be None or one of numpy's"),
        (TransformedTargetRegressor(check_inverse=False), "must have a private regressor="),
    ):
        with pytest.raises(UnpaidStepError, match=remedy):
            DPPipeline([("step", step), ("model", DPLogisticCD())], ledger=ledger).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize(
    ("steps", "settings", "message"),
    [
        ([("s", DPStandardScaler(ledger=Notebook()))], {}, "'s__ledger'.*None"),
        (
            [("s", DPStandardScaler(adjacency="add_remove"))],
            {"adjacency": "replace_one"},
            "'adjacency' parameter",
        ),
        (
            [
                ("s", DPPipeline([("t", DPStandardScaler())], adjacency="replace_one")),
                ("m", DPLogisticCD(adjacency="add_remove")),
            ],
            {},
            "'adjacency' parameter of DPPipeline.*s__adjacency='replace_one'",
        ),
        ([("s", DPStandardScaler(rows_per_group=3))], {}, "'rows_per_group' parameter"),
        ([("s", DPGridSearchCV(DPLogisticCD(), {"alpha": [0.0]}))], {}, "around a pipeline"),
        ([("s", StandardScaler)], {}, "is a class"),
        ([("s__t", DPStandardScaler())], {}, "must hold|must have unlike names"),
        ([("s", DPStandardScaler()), ("s", DPLogisticCD())], {}, "unlike names"),
        ([], {}, "list of names and steps"),
        ([("s", DPStandardScaler())], {"epsilon": 0.0}, "'epsilon' parameter"),
        ([("s", DPStandardScaler())], {"public": "s"}, "'public' parameter"),
        ([("s", DPStandardScaler(with_mean="no"))], {}, "'with_mean' parameter"),
    ],
)
def test_wrong_parameters_are_refused_before_the_charge(steps, settings, message):
    ledger = Notebook()
    with pytest.raises(ValueError, match=message):
        DPPipeline(steps, ledger=ledger, **settings).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize("searched", [False, True])
def test_networks_without_torch_are_refused_before_the_charge(searched, monkeypatch):
    def missing(owner):
        raise ImportError(f"{owner} needs torch")

    monkeypatch.setattr(_network, "load_torch", missing)
    ledger = Notebook()
    model = DPPipeline([("scale", DPStandardScaler()), ("last", DPMLPClassifier())])
    if searched:
        terms = {"adjacency": "add_remove", "ledger": ledger}
        model = DPGridSearchCV(model, {"last__alpha": [0.0, 0.1]}, **terms)
    with pytest.raises(ImportError, match="DPMLPClassifier needs torch"):
        model.set_params(ledger=ledger).fit(X, Y)
    assert ledger.charges == []


@each_value(1)
@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("value", [Fraction(1, 2), True, "1", Decimal("0.5"), None])
def test_numbers_of_other_kinds_are_refused_by_name(name, value):
    with pytest.raises((TypeError, ValueError), match=f"'{name}' parameter of DPPipeline must be"):
        private_pipeline(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    "steps",
    [
        [("first", DPLogisticCD()), ("second", DPLogisticCD())],
        [("first", "drop"), ("second", DPLogisticCD())],
    ],
)
def test_steps_that_cannot_follow_each_other_are_refused_before_the_charge(steps):
    ledger = Notebook()
    with pytest.raises(TypeError, match="intermediate steps should be transformers"):
        DPPipeline(steps, ledger=ledger).fit(X, Y)
    assert ledger.charges == []


def test_a_pipeline_without_private_steps_is_refused():
    with pytest.raises(TypeError, match="must hold a private estimator"):
        DPPipeline([("clip", BoundsClipper())]).fit(X, Y)


def _late(index):
    table = X.copy()
    table[index, 1] = np.nan
    return table


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (_late(3), Y, "NaN"),
        (X, np.where(np.arange(2000) == 7, np.nan, Y.astype(float)), "NaN"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, None, "requires y"),
        (X[:1], Y[:1], "minimum of 2"),
        (X[:, 0], Y, "Expected 2D array"),
    ],
    ids=["missing value", "missing label", "lengths", "no labels", "one row", "one dimension"],
)
def test_bad_data_are_refused_before_the_charge_by_whatever_step(data, target, message):
    """The last step too looks at the data before the first one draws."""
    ledger = Notebook()
    steps = [
        ("scale", DPStandardScaler()),
        ("union", FeatureUnion([("pca", DPPCA(2)), ("rest", "passthrough")])),
        ("model", DPLogisticCD()),
    ]
    with pytest.raises(ValueError, match=message):
        DPPipeline(steps, ledger=ledger).fit(data, target)
    assert ledger.charges == []


def test_sample_weights_masks_and_sparse_data_are_refused():
    steps = {f"{name}__sample_weight": None for name, _ in private_pipeline().steps}
    private_pipeline().fit(X, Y, sample_weight=None, **steps)
    for other in ({"model__sample_weight": np.ones(2000)}, {"model__weights": None}):
        with pytest.raises(TypeError, match=f"Got '{next(iter(other))}'"):
            private_pipeline().fit(X, Y, **other)
    with pytest.raises(TypeError, match="masked arrays"):
        steps = [("square", PolynomialFeatures(2)), ("model", DPLogisticCD())]
        DPPipeline(steps).fit(np.ma.array(X, mask=X > 7.0), Y)
    for more in ({}, {"model__sample_weight": None}):
        with pytest.raises(TypeError, match="'sample_weight'"):
            private_pipeline().fit(X, Y, sample_weight=np.ones(2000), **more)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data"):
        private_pipeline().fit(sparse.csr_matrix(X), Y)


def test_a_message_of_a_public_step_that_quotes_a_value_is_not_shown():
    table = X.astype(object)
    table[3, 1] = "a secret"
    ledger = Notebook()
    steps = [("square", PolynomialFeatures(2)), ("model", DPLogisticCD())]
    with pytest.raises(ValueError, match="PolynomialFeatures, a step of DPPipeline") as caught:
        DPPipeline(steps, ledger=ledger).fit(table, Y)
    assert ledger.charges == []
    error = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__


def test_warnings_of_overflow_do_not_leave_a_fit_and_ours_do():
    table = np.where(rng.random((200, 2)) < 0.5, 1e60, -1e60)
    steps = [("cube", PolynomialFeatures(6)), ("model", DPLogisticCD())]
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        DPPipeline(steps).fit(table, Y[:200])
    small = rng.normal(size=(40, 2))
    with pytest.warns(PrivacyWarning, match="leaves out"):
        private_pipeline(epsilon=0.01).fit(small, np.arange(40) % 2)


def test_parameters_are_changed_between_the_check_and_the_fit_in_vain(monkeypatch):
    """What was checked is what is fitted: a copy that nobody else holds."""
    steps = two_steps()

    class Swapping(Notebook):
        def charge(self, label, cost, **facts):
            steps[1] = ("model", LogisticRegression())
            steps[0][1].set_params(epsilon=1e6)
            super().charge(label, cost, **facts)

    model = DPPipeline(steps, ledger=Swapping()).fit(X, Y)
    assert isinstance(model[-1], DPLogisticCD)
    assert model[0].epsilon < 1.0


@each_value(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("first", [DPStandardScaler(), DPPCA(2, whiten=True)], ids=str)
def test_no_value_makes_a_later_step_fail_after_the_charge(first, dtype):
    """Scaled by what was released, a record may leave every limit: the fit goes on all the same."""
    usual = 1e-3 * rng.normal(size=(300, 2))
    for value in (1e100, -1e99, 1e-300, 3e38, 1e-37):
        table = np.append(usual, [[value, -value]], axis=0)
        if np.isfinite(table.astype(dtype)).all() and (table.astype(dtype) != 0.0).all():
            steps = [("first", clone(first)), ("model", DPLogisticCD(classes=[0, 1]))]
            DPPipeline(steps).fit(table.astype(dtype), np.arange(301) % 2)
