"""The page for people: what it says is what the report holds, and no value of the data."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.preprocessing import FunctionTransformer

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
)
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.reporting.statement import shares, stages
from tests._cases import quick
from tests.contracts._register import PRIVATE, each, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
SECRET = 77777.125


def report(loss, guarantee=None, **facts):
    guarantee = guarantee or PrivacyGuarantee(1.0, 1e-6)
    release = Release("counts", "iid_laplace", 2, 10, (2.0, 3.0), loss)
    return PrivacyReport("Example", guarantee, (release,), loss, **{"secure": True, **facts})


def whole(made):
    return " ".join(made.statement().split())


@each(ways(PRIVATE))
def test_every_report_is_a_page_without_a_value_of_the_data(entry):
    data = X.copy()
    data[7, 1] = SECRET
    model = entry.estimator().fit(data, entry.y(data))
    page, facts = model.privacy_.statement(), model.privacy_.to_dict()
    assert str(SECRET) not in page + model.privacy_._repr_html_()
    assert str(SECRET) not in json.dumps(facts)
    assert max(map(len, page.splitlines())) <= 100
    assert len(page.splitlines()) < 100
    for release in model.privacy_.releases:
        assert release.label in " ".join(page.split())
    assert facts["epsilon"] == 1.0
    assert [one["label"] for one in facts["releases"]] == [
        release.label for release in model.privacy_.releases
    ]
    for one in facts["profile"]:
        least = model.privacy_.allowed.delta(one["epsilon"])
        assert least * (1.0 - 1e-9) <= one["delta"] <= least
        assert one["epsilon"] < 1.0 or one["delta"] <= 1e-6


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 3.0])
def test_the_bet_is_that_of_the_best_test_between_two_data_sets(mu):
    loss = GaussianLoss(mu)
    right = norm.cdf(mu / 2.0)  # of two normal numbers that lie so far apart
    page = whole(report(loss, PrivacyGuarantee(mu, loss.delta(mu))))
    said = float(page.split("probability of ")[1].split("%")[0]) / 100.0
    assert right <= said <= right + 0.001
    said = float(page.split("-Gaussian")[0].split("whole is ")[1])
    assert mu <= said <= 1.001 * mu


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_of_pure_privacy_it_is_that_of_a_coin(epsilon):
    page = whole(report(PureLoss(epsilon), PrivacyGuarantee(epsilon)))
    right = 1.0 / (1.0 + math.exp(-epsilon))
    said = float(page.split("probability of ")[1].split("%")[0]) / 100.0
    assert right <= said <= right + 0.001
    assert "apart from" not in page
    factor = float(page.split(" = ")[3].split(" at most")[0])
    assert math.exp(epsilon) <= factor <= 1.01 * math.exp(epsilon)


def bet_of(made):
    return float(whole(made).split("probability of ")[1].split("%")[0])


def test_what_was_left_unspent_by_looking_is_not_claimed():
    # How much a fit leaves may depend on what it saw: two data sets may be told apart by more.
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    most = gdp_mu(1.0, 1e-6)
    half = report(GaussianLoss(most / 2.0), guarantee)
    full = report(GaussianLoss(most), guarantee)
    assert half.allowed == full.allowed == GaussianLoss(most)
    assert half.to_dict()["profile"] == full.to_dict()["profile"]
    assert bet_of(half) == bet_of(full)
    assert "not spent: 75% of the budget" in whole(half)
    assert "not spent" not in whole(full)
    model = DPCoordinateDescentRegressor().fit(X, X[:, 0])
    assert model.privacy_.total.mu < model.privacy_.to_dict()["mu"] == most


@quick(
    "DPRandomizedSearchCV DPPoissonRegressor",
    "DPOneHotEncoder",
    "DPCoordinateDescentRegressor",
    "DPGridSearchCV DPCoordinateDescentRegressor",
    "DPPoissonRegressor 2",
)
@each(ways(PRIVATE))
def test_what_is_claimed_hangs_on_public_facts_alone(entry):
    wide = 1e3 * rng.standard_cauchy(size=X.shape)
    claims = []
    for data in (X, wide, np.zeros_like(X)):
        model = entry.estimator().fit(data, entry.y(X))  # with both labels
        facts = model.privacy_.to_dict()
        claims.append((model.privacy_.allowed, facts["profile"], facts["mu"], facts["allowed"]))
        assert model.privacy_.allowed.delta(1.0) <= 1e-6
    assert claims[0] == claims[1] == claims[2]


def test_of_losses_that_were_chosen_by_looking_only_the_guarantee_is_claimed():
    loss = PureLoss(0.5) + GaussianLoss(0.05)
    more = PureLoss(0.5) + GaussianLoss(0.06)
    looked = report(loss, PrivacyGuarantee(1.0, 1e-2))
    planned = report(loss, PrivacyGuarantee(1.0, 1e-2), planned=more)
    assert planned.allowed == more
    assert looked.allowed.delta(0.5) > loss.delta(0.5)
    assert looked.allowed.delta(1.0) == pytest.approx(1e-2, rel=1e-6)
    assert bet_of(planned) < bet_of(looked)
    assert "δ(1) = 0.01, δ(2) = 0.01" in whole(looked)  # as was promised, and not a digit more
    coin = (math.e - 1.0 + 2e-2) / (math.e + 1.0)  # the most of any (1, .01)-private release
    assert 0.5 + coin / 2.0 <= bet_of(looked) / 100.0 <= 0.5 + coin / 2.0 + 0.001


@pytest.mark.parametrize("epsilon", [0.1, 1.0 / 3.0, 1.23456789, 1e-3, 12.0])
def test_numbers_are_never_rounded_to_less(epsilon):
    page = whole(report(PureLoss(epsilon), PrivacyGuarantee(epsilon, 1e-7 / 3.0)))
    pair = page.split("(ε = ")[1].split(")")[0]
    said, delta = (float(one) for one in pair.split(", δ = "))
    assert epsilon <= said <= epsilon * (1.0 + 1e-5)
    assert 1e-7 / 3.0 <= delta <= 1.0001e-7 / 3.0
    one_in = float(page.split("(1 in ")[1].split(")")[0].replace(",", ""))
    assert 3e7 - 1.0 <= one_in <= 3e7
    profile = re.findall(r"δ\(([\d.]+)\) = ([\d.e-]+\d)", page.split("at other ε:")[1])
    assert profile
    for at, least in profile:
        assert PureLoss(epsilon).delta(float(at)) <= float(least)


def test_a_large_epsilon_is_called_what_it_is():
    assert "hardly a promise" in whole(report(PureLoss(8.0), PrivacyGuarantee(8.0)))
    assert "hardly a promise" not in whole(report(PureLoss(1.0)))


@pytest.mark.slow
def test_searches_and_choices_are_not_called_numbers():
    search = DPGridSearchCV(DPLogisticCD(), {"alpha": [0.0, 0.1, 1.0]}).fit(X, X[:, 0] > 0)
    page = whole(search.privacy_)
    assert "3 candidates; normal noise of scale" in page
    assert "3 numbers" not in page
    assert "1 choice by the exponential mechanism" in whole(DPPCA().fit(X).privacy_)


def test_shares_are_of_what_adds_up_and_stages_begin_alike():
    half = GaussianLoss(math.sqrt(0.5) * gdp_mu(1.0, 1e-6))
    releases = tuple(
        Release(label, "iid_gaussian", 1, 1, (2.0, 2.0), half)
        for label in ("scale: means", "scale: spreads")
    )
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    made = PrivacyReport("Example", guarantee, releases, half + half, True)
    assert shares(made) == pytest.approx([0.5, 0.5], rel=1e-9)
    assert stages(made) == pytest.approx({"scale": 1.0}, rel=1e-9)
    mixed = replace(releases[1], loss=PureLoss(0.2))
    made = replace(made, releases=(releases[0], mixed), total=half + PureLoss(0.2))
    first, second = shares(made)
    assert first == pytest.approx(0.5, rel=1e-6)  # of what (1, 1e-6) allows
    assert 0.0 < second < 0.5


def test_what_was_asked_for_is_said_in_words():
    page = whole(report(PureLoss(0.5)))
    assert "apart from a chance of 1e-06 (1 in 1,000,000) at most" in page
    assert "whatever any one record" in page
    assert "how many rows there are" in page
    line = "counts: 20 numbers with Laplace noise of scale 2 to 3; 0.5-DP, 50% of the budget"
    assert line in whole(report(PureLoss(0.5), PrivacyGuarantee(1.0)))
    added = whole(
        report(PureLoss(0.5), PrivacyGuarantee(1.0, 1e-6, "add_remove"), n_records=1234.4)
    )
    assert "whether or not any one record" in added
    assert "how many rows there are" not in added
    assert "1,234" in added
    grouped = whole(report(PureLoss(0.5), rows_per_group=3))
    assert "at most 3 rows were used" in grouped
    assert "which of them belong together" in grouped
    assert "several rows is protected less" not in grouped


def test_what_breaks_it_stands_at_the_top():
    for facts, said in (({"secure": False}, "random_state"), ({"observed": True}, "an audit")):
        second = report(PureLoss(0.5), **facts).statement().splitlines()[1]
        assert "NOT PRIVATE" in second
        assert said in second
    assert "from an audit" in whole(report(PureLoss(0.5), observed=True, secure=False))
    assert "from a known seed" in whole(report(PureLoss(0.5), secure=False))
    assert "NOT PRIVATE" not in report(PureLoss(0.5)).statement()


def test_what_many_releases_of_few_stages_paid_is_said_by_stage():
    few = PureLoss(0.125)
    labels = ("scale: means", "scale: spreads", "scale: counts", "model: a", "model: b", "model: c")
    releases = tuple(Release(label, "iid_laplace", 1, 1, (2.0, 2.0), few) for label in labels)
    facts = {"guarantee": PrivacyGuarantee(1.0), "total": PureLoss(0.75), "releases": releases}
    made = replace(report(PureLoss(0.5)), **facts)
    assert "by stage: scale 38%, model 38%, not spent 25% of the budget" in whole(made)
    facts = {"total": PureLoss(0.625), "releases": releases[:5]}
    assert "by stage" not in whole(replace(made, **facts))


def test_what_a_user_declared_is_named():
    doubled = FunctionTransformer(lambda X: 2.0 * X)
    steps = [("double", doubled), ("scale", DPStandardScaler()), ("model", DPLogisticCD())]
    model = DPPipeline(steps, public=["double"]).fit(X, (X[:, 0] > 0).astype(int))
    page = whole(model.privacy_)
    assert "these are public, or learn nothing private: double" in page
    assert model.privacy_.to_dict()["declared_public"] == ["double", "labels of y"]


def test_a_fit_that_needed_nothing_says_so():
    scaler = DPStandardScaler(with_mean=False, with_std=False).fit(X)
    page = whole(scaler.privacy_)
    assert "Nothing was measured in the rows: all that the fit needed was public." in page
    assert "nothing of it was spent" in page
    assert "As a bet" not in page
