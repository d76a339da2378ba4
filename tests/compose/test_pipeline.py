"""A pipeline with one guarantee: what it charges, divides, refuses, and what it leaves alone."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
    PrivacyWarning,
    total_guarantee,
)
from skdpnoise.compose import UnpaidStepError, register_private
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

rng = np.random.default_rng(0)
X = rng.normal([5.0, -100.0, 0.0], [2.0, 30.0, 1.0], size=(2000, 3))
Y = (X[:, 0] > 5.0).astype(int)
PEOPLE = np.repeat(np.arange(1000), 2)


def _steps(**settings):
    return [("scale", DPStandardScaler(**settings)), ("model", DPLogisticCD(**settings))]


def _pipeline(**settings):
    return DPPipeline(_steps(), **settings)


class Notebook:
    def __init__(self):
        self.charges = []

    def charge(self, label, cost, **facts):
        self.charges.append({"label": label, "cost": cost, **facts})


# What is charged and stated


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_whole_budget_is_charged_once_before_anything_is_drawn(delta, adjacency):
    ledger = Notebook()
    model = _pipeline(epsilon=0.8, delta=delta, adjacency=adjacency, ledger=ledger).fit(X, Y)
    (charge,) = ledger.charges
    budget = GaussianLoss(gdp_mu(0.8, delta)) if delta else PureLoss(0.8)
    assert charge["cost"] == budget
    assert (charge["label"], charge["guarantee"]) == ("DPPipeline.fit", (0.8, delta))
    assert (charge["adjacency"], charge["unit"]) == (adjacency, "record")
    report = model.privacy_
    assert (report.estimator, report.guarantee.epsilon) == ("DPPipeline", 0.8)
    assert report.guarantee.adjacency == adjacency
    assert report.total.delta(0.8) <= delta
    assert {release.label.partition(":")[0] for release in report.releases} == {"scale", "model"}
    assert total_guarantee(model).epsilon == pytest.approx(0.8, rel=1e-9)


def test_a_refused_charge_fits_nothing_and_an_earlier_fit_stays(monkeypatch):
    ledger = PrivacyLedger("patients", 1.5, 1e-5)
    model = _pipeline(epsilon=1.0, ledger=ledger).fit(X, Y)
    before = model.steps_
    drawn = []
    monkeypatch.setattr("skdpnoise.compose._pipeline.fit_steps", lambda *a: drawn.append(a))
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=2.0).fit(X, Y)
    assert model.steps_ is before
    assert drawn == []
    assert ledger.total().n_charges == 1


def test_what_the_ledger_writes_down_holds_no_seed_and_no_estimator():
    ledger = Notebook()
    steps = [("scale", DPStandardScaler(random_state=4321)), ("model", DPLogisticCD())]
    DPPipeline(steps, random_state=1234, ledger=ledger).fit(X, Y)
    parameters = ledger.charges[0]["parameters"]
    assert parameters["scale"] == "DPStandardScaler"
    assert parameters["model__alpha"] == 0.0
    assert "1234" not in str(parameters)
    assert "4321" not in str(parameters)
    assert not any(hasattr(value, "fit") for value in parameters.values())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_weights_divide_epsilon_or_squared_mu_and_stay_within_the_whole(delta):
    weights = {"scale": 1, "model": 3}
    model = _pipeline(delta=delta, weights=weights).fit(X, Y)
    parts = [step for _, step in model.steps_]
    if delta:
        spent = [gdp_mu(part.epsilon, part.delta) ** 2 for part in parts]
        whole = gdp_mu(1.0, delta) ** 2
    else:
        spent, whole = [part.epsilon for part in parts], 1.0
    assert sum(spent) <= whole
    np.testing.assert_allclose(np.array(spent) / whole, [0.25, 0.75], rtol=1e-4)


def test_steps_get_equal_shares_whatever_they_say_of_epsilon_themselves():
    steps = [("scale", DPStandardScaler(100.0)), ("model", DPLogisticCD(0.001))]
    model = DPPipeline(steps, delta=0.0).fit(X, Y)
    assert [step.epsilon for _, step in model.steps_] == pytest.approx([0.5, 0.5], rel=1e-5)
    assert [step.epsilon for _, step in model.steps] == [100.0, 0.001]


def test_parallel_steps_charge_the_one_budget_in_threads():
    union = FeatureUnion([("a", DPStandardScaler()), ("b", DPRobustScaler())], n_jobs=2)
    model = DPPipeline([("both", union)], delta=0.0).fit(X)
    assert {r.label.split(":")[0] for r in model.privacy_.releases} == {"both__a", "both__b"}
    assert model.steps[0][1].n_jobs == model["both"].n_jobs == 2


def test_a_weight_of_a_composition_is_divided_equally_within():
    union = FeatureUnion([("a", DPStandardScaler()), ("b", DPRobustScaler())])
    steps = [("both", union), ("model", DPLogisticCD())]
    model = DPPipeline(steps, delta=0.0, weights={"both": 2, "model": 2}).fit(X, Y)
    inner = [step.epsilon for _, step in model.named_steps["both"].transformer_list]
    assert inner == pytest.approx([0.25, 0.25], rel=1e-5)


@pytest.mark.parametrize(
    "weights",
    [
        {"scale": 1},
        {"scale": 1, "model": 0},
        {"scale": 1, "model": 1, "other": 1},
        {"scale": 1, "model": np.nan},
        {"scale": 1, "model": "1"},
        {},
    ],
    ids=str,
)
def test_weights_must_name_every_private_step(weights):
    with pytest.raises(ValueError, match=r"'weights' parameter of DPPipeline.*scale.*model"):
        _pipeline(weights=weights).fit(X, Y)


def test_groups_reach_every_private_step_and_are_the_unit():
    union = FeatureUnion([("a", DPStandardScaler()), ("b", "passthrough")])
    inner = DPPipeline([("scale", DPRobustScaler()), ("model", DPLogisticCD())])
    model = DPPipeline([("both", union), ("inner", inner)], rows_per_group=2)
    ledger = Notebook()
    model.set_params(ledger=ledger).fit(X, Y, groups=PEOPLE)
    assert (model.privacy_.unit, model.privacy_.rows_per_group) == ("group", 2)
    assert ledger.charges[0]["unit"] == "group"
    assert not sklearn.get_config()["enable_metadata_routing"]
    with pytest.raises(ValueError, match="rows_per_group"):
        model.fit(X, Y)


def test_groups_that_do_not_reach_a_step_are_refused_before_the_charge():
    ledger = Notebook()
    regressor = TransformedTargetRegressor(
        DPCoordinateDescentRegressor(), transformer=DPStandardScaler(), check_inverse=False
    )
    model = DPPipeline([("target", regressor)], ledger=ledger)
    with pytest.raises(ValueError, match=r"do not reach its step 'target__transformer'"):
        model.fit(X, X[:, 0], groups=PEOPLE)
    assert ledger.charges == []
    assert model.fit(X, X[:, 0]).predict(X).shape == (2000,)


def test_a_step_for_which_a_person_vouches_is_named_in_every_statement():
    steps = [("known", StandardScaler()), ("model", DPLogisticCD())]
    model = DPPipeline(steps, public=["known"]).fit(X, Y)
    assert model.privacy_.declared == ("known",)
    assert "declared public by the user: known" in str(model.privacy_)
    assert "declared public by the user" in model.privacy_._repr_html_()
    around = make_pipeline(BoundsClipper(), model).fit(X, Y)
    assert total_guarantee(around).declared == ("dppipeline__known",)
    with pytest.raises(ValueError, match=r"'public' parameter.*'unknown', which is none of"):
        DPPipeline(steps, public=["known", "unknown"]).fit(X, Y)
    private = DPPipeline(_steps(), public=["scale"]).fit(X, Y)
    assert private.privacy_.declared == ()
    assert any(release.label.startswith("scale") for release in private.privacy_.releases)


# What is left alone, and what cannot slip in between


def test_constructor_parameters_and_the_users_steps_are_as_they_were():
    model = DPPipeline(_steps(), epsilon=0.5, delta=0.0)
    before = str(model.get_params())
    steps = list(model.steps)
    model.fit(X, Y)
    assert str(model.get_params()) == before
    assert model.steps == steps
    assert not any(hasattr(step, "privacy_") for _, step in model.steps)


def test_what_is_set_after_a_fit_does_not_change_what_was_fitted():
    model = _pipeline(random_state=0).fit(X, Y)
    expected = model.predict_proba(X)
    ordinary = LogisticRegression().fit(X, Y)
    model.set_params(model=ordinary, scale="passthrough")
    model.steps.append(("more", ordinary))
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert isinstance(model[-1], DPLogisticCD)
    assert isinstance(model.named_steps["model"], DPLogisticCD)
    with pytest.raises(UnpaidStepError, match="LogisticRegression"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_one_instance_in_two_places_is_two_steps_that_both_pay():
    scaler = DPStandardScaler()
    model = DPPipeline([("a", scaler), ("b", scaler), ("c", DPLogisticCD())], delta=0.0)
    model.fit(X, Y)
    assert len({release.label.partition(":")[0] for release in model.privacy_.releases}) == 3
    assert model.privacy_.total.pure_epsilon <= 1.0


def test_fitted_steps_state_the_whole_and_charge_when_they_are_fitted_again():
    ledger = PrivacyLedger("patients", 50.0, 1e-3)
    model = _pipeline(ledger=ledger).fit(X, Y)
    scaled = model[:-1].transform(X)
    for step in (model["model"], clone(model["model"]), model[1:], clone(model)):
        if hasattr(step, "privacy_"):
            assert step.privacy_ is model.privacy_
        count = ledger.total().n_charges
        step.fit(scaled, Y)
        assert ledger.total().n_charges == count + 1


class _Twice(DPStandardScaler):
    """Fits itself twice, and reports once."""

    def fit(self, X, y=None, groups=None, **unpaid):
        super().fit(X, y, groups)
        return super().fit(X, y, groups)


class _Unpaid(DPStandardScaler):
    """Leaves the ledger aside."""

    def fit(self, X, y=None, groups=None, **unpaid):
        ledger, self.ledger = self.ledger, None
        super().fit(X, y, groups)
        self.ledger = ledger
        return self


@pytest.mark.parametrize("cls", [_Twice, _Unpaid])
def test_a_step_that_reports_other_than_it_charges_makes_no_guarantee(cls):
    register_private(cls)
    model = DPPipeline([("bad", cls()), ("model", DPLogisticCD())])
    with pytest.raises((RuntimeError, BudgetExceededError)):
        model.fit(X, Y)
    assert not hasattr(model, "steps_")


def test_a_subclass_by_somebody_else_is_refused_until_its_author_registers_it():
    class Derived(DPStandardScaler):
        pass

    with pytest.raises(UnpaidStepError, match=r"Derived\): is a subclass of DPStandardScaler"):
        DPPipeline([("scale", Derived()), ("model", DPLogisticCD())]).fit(X, Y)


def test_methods_replaced_on_an_instance_do_not_survive_and_callbacks_are_refused():
    seen = []
    scaler = DPStandardScaler()
    scaler.transform = lambda X: seen.append(X) or X
    DPPipeline([("scale", scaler), ("model", DPLogisticCD())]).fit(X, Y)
    assert seen == []
    with pytest.raises(UnpaidStepError, match="'transform' replaced on the instance"):
        total_guarantee(scaler)


def test_callbacks_that_see_the_data_are_refused_and_a_progress_bar_is_not():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    inner = DPLogisticCD().set_callbacks(monitor)
    with pytest.raises(UnpaidStepError, match="ScoringMonitor"):
        DPPipeline([("scale", DPStandardScaler()), ("model", inner)]).fit(X, Y)
    model = _pipeline().set_callbacks(monitor)
    with pytest.raises(ValueError, match="ScoringMonitor"):
        model.fit(X, Y)
    pytest.importorskip("rich")
    ledger = Notebook()
    model.set_callbacks(callback.ProgressBar()).set_params(ledger=ledger).fit(X, Y)
    assert len(ledger.charges) == 1


# What is refused before the charge


def test_steps_that_are_known_to_be_safe_only_in_another_form_are_refused():
    ledger = Notebook()
    kinds = ColumnTransformer(
        [("kind", OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore"), [0])]
    )
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
        ([("s", DPStandardScaler(adjacency="add_remove"))], {}, "'adjacency' parameter"),
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


def test_sample_weights_and_sparse_data_are_refused():
    with pytest.raises(TypeError, match="'sample_weight'"):
        _pipeline().fit(X, Y, sample_weight=np.ones(2000))
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data"):
        _pipeline().fit(sparse.csr_matrix(X), Y)


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
        with pytest.raises(ValueError, match=r"infinity|beyond"):
            DPPipeline(steps).fit(table, Y[:200])
    small = rng.normal(size=(40, 2))
    with pytest.warns(PrivacyWarning, match="leaves out"):
        _pipeline(epsilon=0.01).fit(small, np.arange(40) % 2)


def test_parameters_are_changed_between_the_check_and_the_fit_in_vain(monkeypatch):
    """What was checked is what is fitted: a copy that nobody else holds."""
    steps = _steps()

    class Swapping(Notebook):
        def charge(self, label, cost, **facts):
            steps[1] = ("model", LogisticRegression())
            steps[0][1].set_params(epsilon=1e6)
            super().charge(label, cost, **facts)

    model = DPPipeline(steps, ledger=Swapping()).fit(X, Y)
    assert isinstance(model[-1], DPLogisticCD)
    assert model[0].epsilon < 1.0


# scikit-learn's company


@parametrize_with_checks(
    [
        _pipeline(),
        DPPipeline([("scale", DPStandardScaler()), ("model", DPCoordinateDescentRegressor())]),
        DPPipeline([("scale", DPStandardScaler())]),
    ]
)
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


def test_mixed_columns_frames_and_names():
    table = pd.DataFrame({"age": X[:, 0], "pay": X[:, 1], "kind": np.where(Y, "a", "b")})
    encoder = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(DPRobustScaler(), BoundsClipper((-3, 3))), ["age", "pay"]),
            ("kinds", encoder, ["kind"]),
        ]
    )
    model = DPPipeline([("columns", columns), ("model", DPLogisticCD(classes=[0, 1]))])
    model.set_output(transform="pandas").fit(table, Y)
    assert list(model.feature_names_in_) == ["age", "pay", "kind"]
    assert model.score(table, Y) > 0.9
    names = ["numbers__age", "numbers__pay", "kinds__kind_a", "kinds__kind_b"]
    assert list(model[:-1].transform(table).columns) == names
    assert list(model[:-1].get_feature_names_out()) == names
    assert list(model.classes_) == [0, 1]
    assert "columns__numbers__dprobustscaler" in str(model.privacy_)


def test_slices_indices_copies_and_pickles():
    model = _pipeline(weights={"scale": 1, "model": 2}, public=(), random_state=0).fit(X, Y)
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


def test_pipelines_within_pipelines_share_what_the_outer_one_gives():
    inner = DPPipeline(_steps(), epsilon=100.0)
    outer = DPPipeline([("clip", BoundsClipper()), ("inner", inner)], delta=0.0).fit(X, Y)
    shares = [step.epsilon for _, step in outer["inner"].steps_]
    assert shares == pytest.approx([0.5, 0.5], rel=1e-4)
    assert sum(shares) <= 1.0
    assert {r.label.split(":")[0] for r in outer.privacy_.releases} == {"inner"}
    pickle.dumps(outer)
    assert outer["inner"]["model"].ledger is None
    refused = DPPipeline([("inner", DPPipeline([("s", StandardScaler()), *_steps()]))])
    with pytest.raises(UnpaidStepError, match=r"'inner__s' \(StandardScaler\)"):
        refused.fit(X, Y)
    vouched = DPPipeline([("s", StandardScaler()), *_steps()], public=["s"])
    model = DPPipeline([("inner", vouched)]).fit(X, Y)
    assert model.privacy_.declared == ("inner__s",)


class _NoShare(BaseEstimator):
    def fit(self, X, y=None):
        return self


def test_a_private_step_that_cannot_take_a_share_says_which_parameters_it_lacks():
    register_private(_NoShare)
    with pytest.raises(ValueError, match=r"_NoShare\) without the parameters epsilon"):
        DPPipeline([("scale", DPStandardScaler()), ("last", _NoShare())]).fit(X, Y)
