"""Every statement about a fit with a step that was declared public says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.compose import register_public
from skdpnoise.inspection import audit

X = np.random.default_rng(0).normal(size=(80, 2))
Y = X[:, 0] > 0.0
LINE = "declared public by the user"

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]


def pipeline():
    steps = [("known", MaxAbsScaler()), ("model", DPLogisticCD(n_passes=1, classes=[False, True]))]
    return DPPipeline(steps, public=["known"])


def search():
    model = Pipeline(pipeline().steps)
    return DPGridSearchCV(model, {"model__alpha": [0.0, 0.1]}, public=["known"])


def search_of_pipelines():
    return DPGridSearchCV(pipeline(), {"model__alpha": [0.0, 0.1]})


def set_of_names():
    return pipeline().set_params(public={"known"})


MODELS = {
    "pipeline": pipeline,
    "search": search,
    "search of pipelines": search_of_pipelines,
    "set of names": set_of_names,
}


class Columns(TransformerMixin, BaseEstimator):
    """A step of somebody else, with a parameter of the same name."""

    def __init__(self, public=()):
        self.public = public

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def classifier():
    return DPLogisticCD(n_passes=1, classes=[False, True])


def nested():
    steps = [("known", MaxAbsScaler()), ("scale", DPStandardScaler(feature_bounds=(-9, 9)))]
    return DPPipeline([("inner", DPPipeline(steps, public=["known"])), ("model", classifier())])


def nested_twice():
    return DPPipeline([("outer", nested()[:1]), ("model", classifier())])


def search_of_nested():
    return DPGridSearchCV(nested(), {"model__alpha": [0.0, 0.1]})


def in_a_grid():
    model = Pipeline([("model", classifier())])
    return DPGridSearchCV(model, {"model": [classifier(), pipeline()]})


def very_many():
    steps = [(f"known{k}", MaxAbsScaler()) for k in range(140)]
    return DPPipeline([*steps, ("model", classifier())], public=[name for name, _ in steps])


FURTHER = {
    nested: {"inner__known"},
    nested_twice: {"outer__inner__known"},
    search_of_nested: {"inner__known"},
    in_a_grid: {"model__known"},
    very_many: {f"known{k}" for k in range(140)},
}


@pytest.mark.slow
@pytest.mark.parametrize("make", FURTHER, ids=lambda make: make.__name__)
def test_it_is_listed_wherever_it_stands_and_however_many_there_are(make):
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage="memory")
    model = make().set_params(ledger=ledger).fit(X, Y)
    (charge,) = ledger.charges()
    for declared in (model.privacy_.declared, charge.declared, ledger.total().declared):
        assert set(declared) == FURTHER[make]
    chosen = getattr(model, "best_estimator_", model)
    in_the_model = make is not in_a_grid or isinstance(chosen.named_steps["model"], DPPipeline)
    assert not in_the_model or FURTHER[make] <= set(total_guarantee(model).declared)


@pytest.mark.slow
@pytest.mark.parametrize("make", [in_a_grid, nested, very_many], ids=lambda make: make.__name__)
def test_an_audit_lists_it_wherever_it_stands(make):
    report = audit(make(), X[:20], Y[:20], method="replay", n_replays=1, random_state=0)
    assert {name.rpartition("__")[2] for name in FURTHER[make]} == set(report.declared)


def test_a_part_lists_the_steps_that_it_holds_and_each_once():
    model = nested().fit(X, Y)
    assert total_guarantee(model).declared == ("inner__known",)
    assert total_guarantee(model[:1]).declared == ("inner__known",)
    assert total_guarantee(model["inner"]).declared == ("known",)
    assert total_guarantee(model["inner"][1:]).declared == ()


@pytest.mark.parametrize("name", ["clip", "alpha", "n_passes"])
def test_a_slice_does_not_take_a_parameter_of_its_steps_for_one_of_them(name):
    model = DPPipeline([(name, MaxAbsScaler()), ("model", classifier())], public=[name]).fit(X, Y)
    rest = model[1:]
    assert rest.public == rest._declared == total_guarantee(rest).declared == ()
    assert clone(rest).fit(X, Y).privacy_.declared == ()


def test_a_parameter_of_another_estimator_with_this_name_declares_nothing():
    register_public(Columns, lambda step: None)
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage="memory")
    steps = [("columns", Columns(public=("age",))), ("model", classifier())]
    model = DPPipeline(steps, ledger=ledger).fit(X, Y)
    statements = model.privacy_, ledger.charges()[0], ledger.total()
    assert [statement.declared for statement in statements] == [(), (), ()]


@pytest.fixture(params=MODELS)
def fitted(request, tmp_path):
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage=f"sqlite:///{tmp_path}/budget.db")
    return MODELS[request.param]().set_params(ledger=ledger).fit(X, Y)


@pytest.mark.slow
def test_reports_totals_and_ledgers_list_it(fitted):
    again = PrivacyLedger.open("rows", fitted.ledger.storage)
    for ledger in (fitted.ledger, again):
        (charge,) = ledger.charges()
        assert charge.declared == ledger.total().declared == ("known",)
        statements = [charge, ledger, ledger.total(), fitted.privacy_, total_guarantee(fitted)]
        for statement in statements:
            assert f"{LINE}: known" in " ".join(str(statement).split())
        for shown in (ledger, ledger.total(), fitted.privacy_, total_guarantee(fitted)):
            assert LINE in shown._repr_html_()


def test_a_ledger_without_such_a_step_says_nothing_of_it():
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage="memory")
    DPLogisticCD(classes=[False, True], n_passes=1, ledger=ledger).fit(X, Y)
    assert ledger.total().declared == ledger.charges()[0].declared == ()
    assert LINE not in str(ledger) + str(ledger.charges()[0]) + ledger._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
def test_an_audit_lists_it_and_finds_what_it_learns(make):
    report = audit(make(), X[:20], Y[:20], method="replay", n_replays=1, random_state=0)
    assert report.declared == ("known",)
    assert f"{LINE}: known" in str(report)
    assert LINE in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["declared"] == ["known"]
