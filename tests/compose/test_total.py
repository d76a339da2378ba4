"""Several fits together: sums, tight composition, and no total that would not be true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPLogisticCD,
    DPMinMaxScaler,
    DPRobustScaler,
    DPStandardScaler,
    total_guarantee,
)
from skdpnoise.compose import UnpaidStepError, register_private
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PureLoss, gdp_mu

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 3))
Y = X[:, 0] > 0.0


def _report(epsilon=1.0, delta=0.0, total=None, adjacency="replace_one", secure=True, rows=None):
    total = PureLoss(epsilon) if total is None else total
    release = Release("counts", "iid_laplace", 1, 1, (1.0, 1.0), total)
    guarantee = PrivacyGuarantee(epsilon, delta, adjacency)
    return PrivacyReport("Test", guarantee, (release,), total, secure, rows)


@register_private
class _Fitted(BaseEstimator):
    def __init__(self, report=None):
        self.report = report
        self.privacy_ = report

    def fit(self, X, y=None):
        return self


def _gaussian(epsilon, delta=1e-6, **settings):
    return _Fitted(_report(epsilon, delta, GaussianLoss(gdp_mu(epsilon, delta)), **settings))


def test_of_losses_that_were_chosen_by_looking_only_their_guarantees_add():
    small = PureLoss(0.25) + GaussianLoss(0.01)
    looked = _report(1.0, 1e-6, small)
    planned = replace(looked, planned=small)
    tight, basic = (total_guarantee(_Fitted(one), _Fitted(one)) for one in (planned, looked))
    assert tight.epsilon < 0.6
    assert basic.epsilon == 2.0
    assert basic.loss.delta(1.5) > 0.2  # as two (1, 1e-6)-private releases may have


def test_epsilons_and_deltas_add_and_tight_composition_is_that_of_the_losses():
    total = total_guarantee(_gaussian(0.3), _gaussian(0.8))
    assert (total.basic.epsilon, total.basic.delta) == (1.1, 2e-6)
    mu = np.hypot(gdp_mu(0.3, 1e-6), gdp_mu(0.8, 1e-6))
    assert total.loss.mu == pytest.approx(mu, rel=1e-9)
    assert total.epsilon == pytest.approx(GaussianLoss(mu).epsilon(2e-6), rel=1e-9)
    assert total.epsilon < 0.9


def test_pure_losses_add_and_stay_pure():
    total = total_guarantee(_Fitted(_report(0.3)), _Fitted(_report(0.8)))
    assert total.loss == PureLoss(1.1)
    assert (total.basic.epsilon, total.epsilon, total.delta) == (1.1, 1.1, 0.0)


def test_losses_of_two_kinds_make_a_numeric_one_between_the_simple_answers():
    total = total_guarantee(_Fitted(_report(0.3)), _gaussian(0.8))
    assert isinstance(total.loss, NumericLoss)
    assert 0.8 < total.epsilon < 1.1
    assert total.delta == 1e-6


def test_tight_composition_can_be_asked_for_at_another_delta():
    fits = _gaussian(0.3), _gaussian(0.8)
    at = [total_guarantee(*fits, delta=delta).epsilon for delta in (1e-8, 1e-6, 1e-4)]
    assert at[0] > at[1] > at[2]
    with pytest.raises(ValueError, match="'delta' parameter of total_guarantee"):
        total_guarantee(*fits, delta=1.0)


def test_a_fit_counts_with_its_whole_budget_even_if_it_left_some():
    """What is left over may depend on the data: only the budget was known in advance."""
    thrifty = _Fitted(_report(1.0, 1e-6, GaussianLoss(0.01)))
    assert total_guarantee(thrifty).epsilon == pytest.approx(1.0, rel=1e-6)
    assert total_guarantee(_Fitted(_report(1.0, 0.0, PureLoss(0.1)))).epsilon == 1.0


def test_a_fit_that_released_nothing_counts_nothing():
    scaler = DPMinMaxScaler(feature_bounds=(-5.0, 5.0)).fit(X)
    assert scaler.privacy_.releases == ()
    total = total_guarantee(scaler)
    assert (total.epsilon, total.delta, total.basic) == (0.0, 0.0, None)
    assert "nothing was released" in str(total)
    both = total_guarantee(scaler, _gaussian(0.8))
    assert both.epsilon == pytest.approx(0.8, rel=1e-6)
    assert both.basic.delta == 1e-6


def test_a_pipeline_with_a_column_transformer_is_taken_apart():
    encoder = OneHotEncoder(categories=[[0.0, 1.0]], sparse_output=False, handle_unknown="ignore")
    union = FeatureUnion([("robust", DPRobustScaler(0.2)), ("plain", "passthrough")])
    transform = ColumnTransformer(
        [
            ("both", make_pipeline(union, BoundsClipper((-3.0, 3.0))), [0, 1]),
            ("mean", DPStandardScaler(0.1), [2]),
            ("kind", encoder, [3]),
            ("gone", "drop", [3]),
        ],
        remainder="passthrough",
    )
    table = np.column_stack([X, rng.integers(0, 2, len(X)), X[:, 0]])
    pipeline = make_pipeline(transform, FunctionTransformer(), DPLogisticCD(0.7, random_state=0))
    total = total_guarantee(pipeline.fit(table, Y))
    assert [name for name, _ in total.steps] == [
        "columntransformer__both__featureunion__robust",
        "columntransformer__mean",
        "dplogisticcd",
    ]
    assert total.basic.epsilon == pytest.approx(1.0)
    assert total.basic.delta == pytest.approx(3e-6)
    assert total.epsilon < 0.8
    assert not total.secure
    free = " ".join(total.free)
    for name in ("plain", "boundsclipper", "kind", "gone", "functiontransformer"):
        assert name in free


def test_text_and_html_hold_both_compositions_and_escape_names():
    pipeline = make_pipeline(DPRobustScaler(0.1), DPLogisticCD(0.9)).fit(X, Y)
    total = total_guarantee(pipeline)
    text, html = str(total), total._repr_html_()
    for expected in (
        "basic composition: (epsilon=1, delta=2e-06)",
        "tight composition: (epsilon=0.8",
        "dprobustscaler: DPRobustScaler, (epsilon=0.1, delta=1e-06), 0.02",
        "adjacency: replace_one",
        "cryptographic",
    ):
        assert expected in text
    assert html.count("<tr") == 3
    assert "basic composition" in html
    assert "<TotalReport of 2 private fits" in repr(total)
    named = total_guarantee(make_pipeline(_report_step("<b>x</b>")))._repr_html_()
    assert "<b>x</b>" not in named.replace("&lt;b&gt;", "")


def _report_step(name):
    scaler = DPRobustScaler(0.1).fit(X)
    report = scaler.privacy_
    scaler.privacy_ = PrivacyReport(
        name, report.guarantee, report.releases, report.total, report.secure
    )
    return scaler


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), OneHotEncoder(handle_unknown="ignore")],
    ids=lambda step: type(step).__name__,
)
def test_a_step_that_reads_the_data_unpaid_is_named(step):
    pipeline = make_pipeline(step, DPLogisticCD())
    with pytest.raises(UnpaidStepError, match=f"Refused.*{type(step).__name__}"):
        total_guarantee(pipeline)


def test_a_step_that_is_not_fitted_is_named():
    with pytest.raises(ValueError, match=r"dprobustscaler-1 \(DPRobustScaler\).*fit first"):
        total_guarantee(make_pipeline(DPRobustScaler(), _report_step("A")))


def test_frequencies_of_an_encoder_are_read_from_the_data():
    encoder = OneHotEncoder(categories=[[0, 1]], min_frequency=5)
    with pytest.raises(ValueError, match="OneHotEncoder"):
        total_guarantee(make_pipeline(encoder, _report_step("A")))


def test_a_step_for_which_a_person_vouches_is_listed_as_such():
    model = DPLogisticCD(0.5, classes=[False, True])
    pipeline = make_pipeline(make_pipeline(StandardScaler()), model).fit(X, Y)
    for name in ("standardscaler", "pipeline__standardscaler"):
        total = total_guarantee(pipeline, public=[name])
        assert (total.free, total.declared) == ((), ("pipeline__standardscaler",))
        listed = "declared public by the user: pipeline__standardscaler"
        assert listed in str(total)
        assert "declared public by the user:</b> pipeline__standardscaler" in total._repr_html_()
    with pytest.raises(ValueError, match="'StandardScaler', which is none of"):
        total_guarantee(pipeline, public=["StandardScaler"])


def test_different_neighbours_and_nothing_private_are_refused():
    with pytest.raises(ValueError, match=r"one adjacency.*1: 'replace_one', 2: 'add_remove'"):
        total_guarantee(_gaussian(0.5), _gaussian(0.5, adjacency="add_remove"))
    with pytest.raises(ValueError, match="must hold a fitted private estimator"):
        total_guarantee(BoundsClipper())
    with pytest.raises(ValueError, match="must hold a fitted private estimator"):
        total_guarantee()


def test_fits_for_groups_make_a_total_for_groups_and_with_others_one_for_records():
    groups, other = _Fitted(_report(0.3, rows=2)), _Fitted(_report(0.4, rows=5))
    record = _Fitted(_report(0.5))
    total = total_guarantee(groups, other)
    assert total.unit == "group"
    assert total.epsilon == pytest.approx(0.7)
    assert "unit: a group of rows (if all fits were given the same groups)" in str(total)
    assert "rows of one group" in str(total)
    mixed = total_guarantee(groups, record)
    assert mixed.unit == "record"
    assert mixed.epsilon == pytest.approx(0.8)
    assert "unit: a record (fits whose unit is a group protect each of its records too)" in str(
        mixed
    )
    assert "one group" not in str(mixed)
    assert "unit: a record (one row)" in str(total_guarantee(record, record))


def test_records_and_groups_that_come_and_go_do_not_mix():
    groups = _Fitted(_report(0.3, adjacency="add_remove", rows=1))
    record = _Fitted(_report(0.5, adjacency="add_remove"))
    with pytest.raises(ValueError, match=r"1: a group, 2: a record. Pass the same groups="):
        total_guarantee(groups, record)
    assert total_guarantee(groups, groups).unit == "group"
    # A fit that released nothing has nothing to mix.
    scaler = DPMinMaxScaler(feature_bounds=(-5.0, 5.0), adjacency="add_remove").fit(X)
    assert total_guarantee(groups, scaler).unit == "group"
    assert total_guarantee(scaler).unit == "record"
