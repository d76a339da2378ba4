"""The page for people: what it says is what the report holds, and no value of the data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.preprocessing import FunctionTransformer

from skdpnoise import DPLogisticCD, DPPipeline, DPStandardScaler
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from tests.contracts._register import every_private_estimator

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
SECRET = 77777.125


def report(loss, guarantee=None, **facts):
    guarantee = guarantee or PrivacyGuarantee(1.0, 1e-6)
    release = Release("counts", "iid_laplace", 2, 10, (2.0, 3.0), loss)
    return PrivacyReport("Example", guarantee, (release,), loss, **{"secure": True, **facts})


def whole(made):
    return " ".join(made.statement().split())


@every_private_estimator
def test_every_report_is_a_page_without_a_value_of_the_data(entry):
    data = X.copy()
    data[7, 1] = SECRET
    model = entry.estimator().fit(data, entry.y(data))
    page, facts = model.privacy_.statement(), model.privacy_.to_dict()
    assert str(SECRET) not in page
    assert str(SECRET) not in json.dumps(facts)
    assert max(map(len, page.splitlines())) <= 100
    assert len(page.splitlines()) < 90
    for release in model.privacy_.releases:
        assert release.label in " ".join(page.split())
    assert facts["epsilon"] == 1.0
    assert [one["label"] for one in facts["releases"]] == [
        release.label for release in model.privacy_.releases
    ]
    assert all(
        one["delta"] == model.privacy_.total.delta(one["epsilon"]) for one in facts["profile"]
    )


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 3.0])
def test_the_bet_is_that_of_the_best_test_between_two_data_sets(mu):
    guarantee = PrivacyGuarantee(50.0, 0.5)
    right = norm.cdf(mu / 2.0)  # of two normal numbers that lie so far apart
    page = whole(report(GaussianLoss(mu), guarantee))
    said = float(page.split("probability of ")[1].split(" %")[0]) / 100.0
    assert right <= said <= right + 0.001
    assert f"{mu:.4g}-Gaussian" in page


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_of_pure_privacy_it_is_that_of_a_coin(epsilon):
    page = whole(report(PureLoss(epsilon), PrivacyGuarantee(epsilon)))
    right = 1.0 / (1.0 + math.exp(-epsilon))
    said = float(page.split("probability of ")[1].split(" %")[0]) / 100.0
    assert right <= said <= right + 0.001
    assert "apart from" not in page
    assert f"{math.exp(epsilon):.3g} at most" in page


def test_what_was_asked_for_is_said_in_words():
    page = whole(report(PureLoss(0.5)))
    assert "apart from a chance of 1e-06 (1 in 1,000,000) at most" in page
    assert "whatever any one record" in page
    assert "how many rows there are" in page
    assert "counts: 20 numbers with iid_laplace noise of scale 2 to 3, 0.5-DP" in page
    added = whole(
        report(PureLoss(0.5), PrivacyGuarantee(1.0, 1e-6, "add_remove"), n_records=1234.4)
    )
    assert "whether or not any one record" in added
    assert "how many rows there are" not in added
    assert "1,234" in added
    grouped = whole(report(PureLoss(0.5), rows_per_group=3))
    assert "at most 3 were used" in grouped
    assert "which of them belong together" in grouped
    assert "several rows is protected less" not in grouped


def test_what_breaks_it_stands_at_the_top():
    for facts, said in (({"secure": False}, "random_state"), ({"observed": True}, "an audit")):
        second = report(PureLoss(0.5), **facts).statement().splitlines()[1]
        assert "NOT PRIVATE" in second
        assert said in second
    assert "NOT PRIVATE" not in report(PureLoss(0.5)).statement()


def test_what_a_user_declared_is_named():
    doubled = FunctionTransformer(lambda X: 2.0 * X)
    steps = [("double", doubled), ("scale", DPStandardScaler()), ("model", DPLogisticCD())]
    model = DPPipeline(steps, public=["double"]).fit(X, (X[:, 0] > 0).astype(int))
    assert "these learn nothing private: double" in whole(model.privacy_)
    assert model.privacy_.to_dict()["declared_public"] == ["double"]


def test_a_fit_that_needed_nothing_says_so():
    scaler = DPStandardScaler(with_mean=False, with_std=False).fit(X)
    assert "Nothing: all that the fit needed was public." in whole(scaler.privacy_)
