"""A plan says what a fit would release, hide and reach, and what a ledger still covers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPQuantileRegressor,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyLedger,
)
from skdpnoise.inspection import plan
from skdpnoise.ledger import Account
from skdpnoise.mechanisms import calibrate
from skdpnoise.planning.plan_fits import _stages
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value

QUICK = {"epsilons": (), "n_fits": 1}
SCHEMA = {"age": (17, 90), "hours": (0, 100), "job": ["clerk", "nurse", "cook"]}


def table_model(**settings):
    encoder = OneHotEncoder(
        categories=[SCHEMA["job"]], sparse_output=False, handle_unknown="ignore"
    )
    columns = ColumnTransformer(
        [
            ("numbers", DPStandardScaler(feature_bounds=([17, 0], [90, 100])), ["age", "hours"]),
            ("job", encoder, ["job"]),
        ],
        sparse_threshold=0,
    )
    steps = [("columns", columns), ("model", DPLogisticCD(feature_bounds=(-9, 9), **settings))]
    return DPPipeline(steps, epsilon=2.0)


@pytest.mark.usefixtures("the_same_words")
def test_stages_are_those_of_a_fit_to_so_many_rows():
    model = DPLogisticCD(epsilon=0.5, feature_bounds=(-3, 3), n_passes=4, solver="coordinate")
    found = model.plan(2_000, 3, **QUICK)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2_000, 3))
    model.fit(X, (X[:, 0] > 0).astype(int))
    first, *_ = found.stages
    released = model.privacy_.releases
    assert first.release == released[0]  # nothing released comes before
    assert [stage.release.label for stage in found.stages] == [one.label for one in released]
    squares = np.array([stage.release.loss.mu**2 for stage in found.stages])
    np.testing.assert_allclose([s.share for s in found.stages], squares / squares.sum())
    assert found.share_of == "μ²"


@each_value(1)
@pytest.mark.parametrize("n_releases", [1, 5])
@pytest.mark.parametrize("noise", ["iid_laplace", "iid_gaussian"])
def test_noise_in_records_is_the_scale_over_what_a_record_changes(noise, n_releases):
    guarantee = PrivacyGuarantee(0.5, 0.0 if noise == "iid_laplace" else 1e-6)
    one = SensitivityProfile([3.0])
    account = Account(guarantee)
    account.charge("sums", calibrate(noise, one, guarantee, n_releases=n_releases))
    ((stage,), _) = _stages(account.report("Example", secure=True))
    # Calibration leaves room for rounding to grid steps.
    assert stage.n_records == pytest.approx(stage.release.scale[0] / 3.0, rel=1e-3)


def test_columns_drown_where_there_are_few_rows():
    model = DPCoordinateDescentRegressor(epsilon=0.1)
    few, many = (model.plan(n, ["a", "b"], epsilons=(), n_fits=2) for n in (300, 50_000))
    assert dict(few.hidden) == {"a": 1.0, "b": 1.0}
    assert any("leaves out 2 of 2 columns" in text for text in few.warnings)
    assert (many.hidden, many.warnings) == ((), ())
    assert few.score.median < 0.1 < 0.4 < many.score.median < 0.55
    assert "hidden by noise: a (100 %), b (100 %), in that share of 2 fits" in str(few)


def test_columns_that_a_step_made_have_its_names_and_targets_are_no_columns():
    steps = [("scale", DPStandardScaler()), ("model", DPCoordinateDescentRegressor())]
    found = DPPipeline(steps, epsilon=0.05).plan(200, ["a", "b"], **QUICK)
    assert set(dict(found.hidden)) <= {"a", "b", "the target"}
    assert {"a", "b"} <= set(dict(found.hidden))
    encoded = table_model().set_params(model__feature_bounds=None, epsilon=0.05)
    names = set(dict(encoded.plan(150, SCHEMA, **QUICK).hidden))
    assert "job__job_nurse" in names


@pytest.mark.slow
def test_score_rises_to_the_best_one_and_epsilon_for_finds_where():
    found = DPLogisticCD(epsilon=1.0).plan(5_000, 4, n_fits=3)
    assert [one.epsilon for one in found.scores] == [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    assert all(len(one.values) == 3 for one in found.scores)
    assert found.scores[0].median < 0.6 < 0.73 < found.score.median
    assert found.best == pytest.approx(0.75, abs=0.01)
    assert found.score_name == "accuracy"
    assert 0.03 < found.epsilon_for(score=0.7) < 1.0


@pytest.mark.slow
def test_models_of_tables_and_searches_are_planned():
    found = table_model().plan(3_000, SCHEMA, epsilons=(), n_fits=2)
    assert found.guarantee == PrivacyGuarantee(2.0, 1e-6)
    assert found.score.median > 0.7
    assert {stage.release.label.split(": ")[0] for stage in found.stages} >= {"model"}
    search = DPGridSearchCV(table_model(), {"model__alpha": [0.0, 0.1]}, epsilon=3.0)
    assert search.plan(3_000, SCHEMA, **QUICK).score.median > 0.7


def test_a_score_by_name_is_asked_for_or_that_of_a_search():
    model = DPLogisticCD(feature_bounds=(-3, 3))
    found = model.plan(3_000, 3, scoring="roc_auc", **QUICK)
    assert (found.score_name, found.best) == ("roc_auc", None)
    assert 0.8 < found.score.median < 0.87  # 5/6 is the most
    search = DPGridSearchCV(model, {"alpha": [0.0]}, scoring="neg_log_loss")
    assert search.plan(3_000, 3, **QUICK).score_name == "neg_log_loss"
    quantile = DPQuantileRegressor(quantile=0.9).plan(3_000, 2, **QUICK)
    assert (quantile.score_name, quantile.best) == ("score", None)


def test_groups_cost_more():
    model = DPLogisticCD(feature_bounds=(-3, 3), rows_per_group=4)
    alone = model.set_params(rows_per_group=1).plan(2_000, 2, **QUICK)
    people = model.set_params(rows_per_group=4).plan(2_000, 2, n_groups=500, **QUICK)
    assert people.stages[0].release.scale[0] > 3.0 * alone.stages[0].release.scale[0]
    ledger = PrivacyLedger("trips", 0.5, 1e-6, storage="memory", unit="group")
    found = model.plan(2_000, 2, n_groups=500, ledger=ledger, **QUICK)
    assert found.affordable == 0.5
    with pytest.raises(ValueError, match="'unit' parameter of PrivacyLedger"):
        model.set_params(rows_per_group=1).plan(2_000, 2, ledger=ledger, **QUICK)


def test_no_ledger_is_charged_wherever_it_is_held():
    ledger = PrivacyLedger("trips", 0.5, 1e-6, storage="memory")
    scaler = DPStandardScaler(feature_bounds=(-3, 3), ledger=ledger)
    pipeline = DPPipeline([("s", scaler), ("m", DPLogisticCD(ledger=ledger))], ledger=ledger)
    assert pipeline.plan(500, 2, **QUICK).affordable == 0.5

    class Charging(DPStandardScaler):
        def fit(self, X, y=None):
            ledger.charge("by another name", PureLoss(0.1))
            return super().fit(X)

    Charging(feature_bounds=(-3, 3)).plan(500, 2, **QUICK)
    assert ledger.charges() == ()
    assert pipeline.ledger is scaler.ledger is ledger


@pytest.mark.slow
def test_hidden_columns_are_seen_in_searches_that_would_use_several_processes():
    search = DPGridSearchCV(DPLogisticCD(), {"alpha": [0.0, 0.1]}, epsilon=0.1, n_jobs=2)
    assert dict(search.plan(200, ["a", "b"], **QUICK).hidden) == {"a": 1.0, "b": 1.0}


@pytest.mark.slow
def test_a_ledger_that_is_spent_covers_nothing_and_a_rich_one_more_than_is_asked():
    model = DPStandardScaler(epsilon=1.0, delta=0.0, feature_bounds=(-3, 3))

    def affordable(ledger, **settings):
        return model.set_params(**settings).plan(500, 2, ledger=ledger, **QUICK).affordable

    pure = PrivacyLedger("pure", 0.7, 0.0, storage="memory")
    assert affordable(pure) == 0.7
    assert affordable(pure, delta=1e-6, noise="iid_gaussian") == 0.0
    rich = PrivacyLedger("rich", 3.0, 1e-2, storage="memory")
    assert affordable(rich) > 3.0
    pure.charge("all of it", PureLoss(0.7))
    assert affordable(pure, delta=0.0, noise="auto") == 0.0
    assert len(pure.charges()) == 1
    model.set_params(ledger=pure)
    assert affordable(None) == 0.0  # its own
    with pytest.raises(ValueError, match="'adjacency' parameter of PrivacyLedger"):
        affordable(PrivacyLedger("other", 1.0, 0.0, storage="memory", adjacency="add_remove"))
    with pytest.raises(TypeError, match="'ledger' parameter of plan must be a PrivacyLedger"):
        affordable(object())


def test_what_releases_nothing_has_no_stages_and_costs_nothing():
    ledger = PrivacyLedger("trips", 0.5, 1e-6, storage="memory")
    found = DPMinMaxScaler(feature_bounds=(-3, 3)).plan(500, 2, ledger=ledger, **QUICK)
    assert (found.stages, found.affordable, found.scores) == ((), None, ())


@pytest.mark.parametrize(
    "estimator",
    [
        BoundsClipper((-1.0, 1.0)),
        StandardScaler(),
        make_pipeline(StandardScaler(), DPLogisticCD()),
        Pipeline([("s", DPStandardScaler())]),
        DPLogisticCD,
        None,
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_spends_nothing_has_no_plan(estimator):
    with pytest.raises(TypeError, match="'estimator' parameter of plan must be an estimator"):
        plan(estimator, 100, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_samples": 1}, "'n_samples' parameter of plan"),
        ({"n_fits": 0}, "'n_fits' parameter of plan"),
        ({"n_groups": 200}, "'n_groups' parameter of plan"),
        ({"epsilons": [0.0]}, "'epsilons' parameter of plan"),
        ({"random_state": -1}, "'random_state' parameter of plan"),
        ({"scoring": "best"}, "scor"),
    ],
)
def test_other_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        plan(DPLogisticCD(), **{"n_samples": 100, "features": 2, **options})


def test_a_fit_that_fails_says_that_a_plan_made_it():
    model = DPLogisticCD(feature_bounds=([0.0] * 7, [1.0] * 7))
    with pytest.raises(ValueError, match="'feature_bounds' parameter of DPLogisticCD") as caught:
        model.plan(100, 3)
    assert caught.value.__notes__ == ["A plan fitted DPLogisticCD at epsilon=0.01."]


OF_A_TABLE = {
    "age": (17, 90),
    "job": "category",
    "town": {"buckets": 8},
    "day": "date",
    "money": "log",
    "grade": {"kind": "ordinal", "categories": ["low", "high"]},
    "note": "drop",
    "seen": {"kind": "number", "log": True},
}


def a_table_model(schema):
    return DPPipeline([("table", DPTableVectorizer(schema=schema)), ("model", DPLogisticCD())])


def test_a_plan_takes_the_columns_from_the_pipelines_own_schema():
    found = plan(a_table_model(OF_A_TABLE), 5_000, epsilons=[1.0], n_fits=1)
    assert found.n_columns == len(OF_A_TABLE)
    assert found.hidden == ()
    (score,) = found.scores
    assert np.mean(score.values) > 0.95 * found.best


@pytest.mark.parametrize("features", [["age", "job"], {"age": None, "job": None}])
def test_what_a_plan_is_told_of_columns_is_completed_by_the_schema(features):
    schema = {name: OF_A_TABLE[name] for name in features}
    told = plan(a_table_model(schema), 2_000, features, epsilons=[1.0], n_fits=1)
    own = plan(a_table_model(schema), 2_000, epsilons=[1.0], n_fits=1)
    assert [stage.release for stage in told.stages] == [stage.release for stage in own.stages]
    assert told.scores == own.scores


def test_a_plan_without_columns_needs_a_schema():
    with pytest.raises(TypeError, match="'features' parameter of plan must be given where no step"):
        plan(DPLogisticCD(), 2_000)
    assert DPLogisticCD().plan(2_000, 3, n_fits=1).n_columns == 3
    assert a_table_model({"age": (17, 90)}).plan(2_000, n_fits=1).n_columns == 1
