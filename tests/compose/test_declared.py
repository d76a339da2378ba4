"""Every statement about a fit with a step that was declared public says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from skdpnoise import DPGridSearchCV, DPLogisticCD, DPPipeline, PrivacyLedger, total_guarantee
from skdpnoise.inspection import audit

X = np.random.default_rng(0).normal(size=(80, 2))
Y = X[:, 0] > 0.0
LINE = "declared public by the user"

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def pipeline():
    steps = [("known", MaxAbsScaler()), ("model", DPLogisticCD(n_passes=1, classes=[False, True]))]
    return DPPipeline(steps, public=["known"])


def search():
    model = Pipeline(pipeline().steps)
    return DPGridSearchCV(model, {"model__alpha": [0.0, 0.1]}, public=["known"])


def search_of_pipelines():
    return DPGridSearchCV(pipeline(), {"model__alpha": [0.0, 0.1]})


MODELS = {"pipeline": pipeline, "search": search, "search of pipelines": search_of_pipelines}


@pytest.fixture(params=MODELS)
def fitted(request, tmp_path):
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage=f"sqlite:///{tmp_path}/budget.db")
    return MODELS[request.param]().set_params(ledger=ledger).fit(X, Y)


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


@pytest.mark.quick(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
def test_an_audit_lists_it_and_finds_what_it_learns(make):
    report = audit(make(), X[:20], Y[:20], method="replay", n_replays=1, random_state=0)
    assert report.declared == ("known",)
    assert f"{LINE}: known" in str(report)
    assert LINE in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["declared"] == ["known"]
