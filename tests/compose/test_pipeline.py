"""A pipeline with one guarantee: what it charges, divides, and leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.compose import UnpaidStepError, register_private
from skdpnoise.inspection.auditing._claims import claimed
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu
from tests._cases import each_value
from tests.compose._pipelines import PEOPLE, Notebook, X, Y, private_pipeline, two_steps

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

# What is charged and stated


@pytest.mark.parametrize("asked", [None, "add_remove"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_pipeline_takes_the_relation_that_a_step_asks_for(asked, nested):
    last = DPLogisticCD(**({"adjacency": asked} if asked else {}))
    steps = [("scale", DPStandardScaler()), ("last", make_pipeline(last) if nested else last)]
    ledger, relation = Notebook(), asked or "replace_one"
    model = DPPipeline(steps, ledger=ledger).fit(X, Y)
    assert model.privacy_.guarantee.adjacency == relation
    assert [charge["adjacency"] for charge in ledger.charges] == [relation]
    assert model.named_steps["scale"].adjacency == relation
    assert claimed(model, None, None, None).adjacency == relation


def test_a_search_gives_its_relation_to_a_pipeline_that_has_none():
    def search(relation, **own):
        steps = [("scale", DPStandardScaler()), ("last", DPLogisticCD(**own))]
        made = DPGridSearchCV(DPPipeline(steps), {"last__n_passes": [2, 3]}, adjacency=relation)
        return made.fit(X, Y).privacy_.guarantee.adjacency

    for adjacency in ("replace_one", "add_remove"):
        assert search(adjacency) == adjacency
    assert search("add_remove", adjacency="add_remove") == "add_remove"
    with pytest.raises(ValueError, match="'adjacency' parameter of DPGridSearchCV"):
        search("replace_one", adjacency="add_remove")


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_whole_budget_is_charged_once_before_anything_is_drawn(delta, adjacency):
    ledger = Notebook()
    model = private_pipeline(epsilon=0.8, delta=delta, adjacency=adjacency, ledger=ledger).fit(X, Y)
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
    model = private_pipeline(epsilon=1.0, ledger=ledger).fit(X, Y)
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
    model = private_pipeline(delta=delta, weights=weights).fit(X, Y)
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


def test_parallel_steps_charge_the_one_budget_here_and_not_in_other_processes():
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
        private_pipeline(weights=weights).fit(X, Y)


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
    steps = [("known", StandardScaler()), ("model", DPLogisticCD(classes=[False, True]))]
    model = DPPipeline(steps, public=["known"]).fit(X, Y)
    assert model.privacy_.declared == ("known",)
    assert "declared public by the user: known" in str(model.privacy_)
    assert "declared public by the user" in model.privacy_._repr_html_()
    around = make_pipeline(BoundsClipper(), model).fit(X, Y)
    assert total_guarantee(model).declared == ("known",)
    assert total_guarantee(around).declared == ("dppipeline__known",)
    with pytest.raises(ValueError, match=r"'public' parameter.*'unknown', which is none of"):
        DPPipeline(steps, public=["known", "unknown"]).fit(X, Y)
    private = DPPipeline(two_steps(), public=["scale"]).fit(X, Y)
    assert private.privacy_.declared == ("labels of y",)
    assert any(release.label.startswith("scale") for release in private.privacy_.releases)


# What is left alone, and what cannot slip in between


def test_constructor_parameters_and_the_users_steps_are_as_they_were():
    model = DPPipeline(two_steps(), epsilon=0.5, delta=0.0)
    before = str(model.get_params())
    steps = list(model.steps)
    model.fit(X, Y)
    assert str(model.get_params()) == before
    assert model.steps == steps
    assert not any(hasattr(step, "privacy_") for _, step in model.steps)


def test_what_is_set_after_a_fit_does_not_change_what_was_fitted():
    model = private_pipeline(random_state=0).fit(X, Y)
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
    model = private_pipeline(ledger=ledger).fit(X, Y)
    scaled = model[:-1].transform(X)
    for step in (model["model"], clone(model["model"]), model[1:], clone(model)):
        if hasattr(step, "privacy_"):
            assert step.privacy_ == model.privacy_
        count = ledger.total().n_charges
        step.fit(scaled, Y)
        assert ledger.total().n_charges == count + 1


def test_a_total_counts_steps_that_were_fitted_again_and_refuses_those_that_were_swapped():
    model = private_pipeline().fit(X, Y)
    assert len(total_guarantee(model).steps) == 1
    model["model"].set_params(epsilon=0.3).fit(model[:-1].transform(X), Y)
    again = total_guarantee(make_pipeline(BoundsClipper(), model))
    assert [name for name, _ in again.steps] == ["dppipeline", "dppipeline__model"]
    assert again.basic.epsilon == pytest.approx(1.3)
    model.steps_[0] = ("scale", StandardScaler().fit(X))
    with pytest.raises(UnpaidStepError, match=r"'scale' \(StandardScaler\)"):
        total_guarantee(model)


@pytest.mark.parametrize("refits_inner", [False, True])
def test_a_total_counts_steps_at_any_depth_that_were_fitted_again(refits_inner):
    model = DPPipeline([("outer", DPPipeline([("inner", private_pipeline())]))]).fit(X, Y)
    assert len(total_guarantee(model).steps) == 1
    inner = model["outer"]["inner"]
    if refits_inner:
        inner.fit(X, Y)
    inner["model"].set_params(epsilon=5.0).fit(inner[:-1].transform(X), Y)
    total = total_guarantee(model)
    assert [name for name, _ in total.steps][-1] == "outer__inner__model"
    assert len(total.steps) == 2 + refits_inner
    assert total.basic.epsilon == pytest.approx(6.0 + refits_inner)


def test_the_class_that_an_object_claims_is_not_believed():
    class Liar(StandardScaler):
        __class__ = DPStandardScaler

    # scikit-learn's clone believes it, and makes a private step of it: then that is what is fitted.
    model = DPPipeline([("scale", Liar()), ("model", DPLogisticCD())]).fit(X, Y)
    assert type(model["scale"]) is DPStandardScaler
    with pytest.raises(UnpaidStepError, match="Liar"):
        total_guarantee(Liar().fit(X))


class _Twice(DPStandardScaler):
    """Fits itself twice, and reports once."""

    def fit(self, X, y=None, groups=None, **params):
        super().fit(X, y, groups)
        return super().fit(X, y, groups)


class _Unpaid(DPStandardScaler):
    """Leaves the ledger aside."""

    def fit(self, X, y=None, groups=None, **params):
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
    model = private_pipeline().set_callbacks(monitor)
    with pytest.raises(ValueError, match="ScoringMonitor"):
        model.fit(X, Y)
    pytest.importorskip("rich")
    ledger = Notebook()
    model.set_callbacks(callback.ProgressBar()).set_params(ledger=ledger).fit(X, Y)
    assert len(ledger.charges) == 1
