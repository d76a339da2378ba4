"""Linear models, encoders and pipelines: the same bits in memory, in files and in dask."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import Binarizer, FunctionTransformer, OneHotEncoder

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLassoPath,
    DPLinearSVC,
    DPLogisticCD,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPPipeline,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyLedger,
)
from skdpnoise.base.partitioned import _applied
from skdpnoise.data import scan_batches, table
from skdpnoise.data.partition_cache import cache
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.reading import AnyColumns, _Scan
from tests._cases import each_value
from tests._same_bits import COUNTS, by_way, cut, differing, in_parts, source_of

pytestmark = pytest.mark.usefixtures("the_same_words")  # by which labels of groups are compared

N, NAMES = 3000, ["far", "tiny", "wide"]


def made(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([1e4, -2e-5, 3.0], [5.0, 1e-6, 40.0], size=(N, 3))
    score = ((X - X.mean(axis=0)) / X.std(axis=0)) @ [1.0, -0.5, 0.3]
    frame = pd.DataFrame(X, columns=NAMES)
    frame["number"] = 100.0 + score + rng.normal(size=N)
    frame["label"] = (score + rng.logistic(size=N) > 0.0).astype(int)
    frame["text"] = np.array(["few", "some", "many"])[np.digitize(score, [-0.5, 0.5])]
    frame["count"] = rng.poisson(np.exp(0.3 * score)).astype(float)
    frame["person"] = np.arange(N) // 3
    return frame


FRAME = made()
BOUNDS = ([9e3, -1e-4, -500.0], [11e3, 1e-4, 500.0])
FEW = {"n_passes": 3}
MODELS = {
    "moments": (DPCoordinateDescentRegressor(), "number"),
    "coordinates": (DPCoordinateDescentRegressor(solver="gradient", **FEW), "number"),
    "whole gradients": (DPCoordinateDescentRegressor(solver="joint", **FEW), "number"),
    "within bounds": (DPRidge(feature_bounds=BOUNDS, target_bounds=(0.0, 200.0)), "number"),
    "coordinates within bounds": (
        DPCoordinateDescentRegressor(
            solver="gradient", feature_bounds=BOUNDS, target_bounds=(0.0, 200.0), **FEW
        ),
        "number",
    ),
    "pure": (DPCoordinateDescentRegressor(delta=0.0, solver="gradient", **FEW), "number"),
    "ridge": (DPRidge(), "number"),
    "lasso": (DPLasso(), "number"),
    "elastic net": (DPElasticNet(), "number"),
    "path": (DPLassoPath(), "number"),
    "huber": (DPHuberRegressor(**FEW), "number"),
    "quantile": (DPQuantileRegressor(**FEW), "number"),
    "two classes": (DPLogisticCD(**FEW), "label"),
    "two classes within bounds": (DPLogisticCD(feature_bounds=BOUNDS, **FEW), "label"),
    "two classes, coordinates": (DPLogisticCD(solver="coordinate", **FEW), "label"),
    "two classes, coordinates within bounds": (
        DPLogisticCD(solver="coordinate", feature_bounds=BOUNDS, **FEW),
        "label",
    ),
    "three classes": (DPLogisticCD(class_weight="balanced", **FEW), "text"),
    "three classes, coordinates": (DPLogisticCD(solver="coordinate", **FEW), "text"),
    "machine": (DPLinearSVC(**FEW), "label"),
    "counts": (DPPoissonRegressor(**FEW), "count"),
    "counts, coordinates": (DPPoissonRegressor(solver="coordinate", **FEW), "count"),
}
# Of those whose rows go the same way to the same sums, one: others differ in what is made of these.
WAYS = [
    *("moments", "coordinates", "coordinates within bounds", "whole gradients", "huber"),
    *("two classes within bounds", "three classes", "three classes, coordinates", "counts"),
]
# Within public bounds nothing knows the order of the rows.
ORDERLESS = ["within bounds", "two classes within bounds"]


def prepared(name, **settings):
    model, target = MODELS[name]
    return clone(model).set_params(epsilon=8.0, random_state=3, **settings), target


def in_memory(name, frame=FRAME, *, grouped=False, **settings):
    model, target = prepared(name, **settings)
    return model.fit(frame[NAMES], frame[target], groups=frame["person"] if grouped else None)


def over(name, rows, *, grouped=False, **settings):
    model, target = prepared(name, **settings)
    return model.fit(rows[NAMES], rows[target], groups=rows["person"] if grouped else None)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_to_parts_has_the_bits_of_one_in_memory(name):
    assert differing(in_memory(name), over(name, in_parts(FRAME, 7))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_any_number_of_parts_gives_the_bits_of_memory(name):
    whole = in_memory(name)
    for n_parts in COUNTS:
        assert differing(whole, over(name, in_parts(FRAME, n_parts))) == [], n_parts


def test_rare_values_within_bounds_are_held_alike_in_parts():
    frame = FRAME.assign(wide=(np.arange(N) % 200 == 0).astype(float))  # 1 is many units away
    facts = {"feature_bounds": ([9e3, -1e-4, 0.0], [11e3, 1e-4, 1.0])}
    whole = in_memory("coordinates within bounds", frame, **facts)
    parts = over("coordinates within bounds", in_parts(frame, 3), **facts)
    assert differing(whole, parts) == []


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["moments", "coordinates", "three classes", "counts"])
def test_groups_keep_the_same_rows(name, adjacency):
    settings = {"grouped": True, "rows_per_group": 2, "adjacency": adjacency}
    parts = [FRAME[FRAME["person"] < 300], FRAME[FRAME["person"] >= 300]]
    whole = in_memory(name, **settings)
    assert differing(whole, over(name, source_of(parts), **settings)) == []


@pytest.mark.parametrize("name", ORDERLESS)
def test_no_order_of_rows_matters_where_none_is_needed(name):
    shuffled = FRAME.sample(frac=1.0, random_state=1)
    whole = in_memory(name)
    assert differing(whole, in_memory(name, shuffled)) == []
    assert differing(whole, over(name, in_parts(shuffled, 7, order=[3, 1, 6, 0, 2, 5, 4]))) == []


def test_a_person_in_two_parts_is_refused_before_the_charge():
    ledger = PrivacyLedger("people in parts", 20.0, 1e-5, storage="memory")
    rows = source_of([FRAME[:100], FRAME[100:]])  # person 33 has rows 99 to 101
    with pytest.raises(ValueError, match="several parts"):
        over("ridge", rows, grouped=True, ledger=ledger)
    assert not ledger.charges()


LABELS = {
    "floats": lambda person: person * 1.0,
    "booleans": lambda person: person > 300,
    "missing": lambda person: person.where(person < 999),
    "objects": lambda person: person.astype(object),
    "dates": lambda person: pd.to_datetime(person, unit="D"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_labels_that_parts_cannot_compare_are_refused_before_the_charge(labels):
    ledger = PrivacyLedger("labels in parts", 20.0, 1e-5, storage="memory")
    rows = source_of([FRAME[:1500], FRAME[1500:].assign(person=labels(FRAME["person"][1500:]))])
    for fit in (
        lambda: over("ridge", rows, grouped=True, ledger=ledger),
        lambda: DPOneHotEncoder(ledger=ledger).fit(rows[["text"]], groups=rows["person"]),
    ):
        with pytest.raises((TypeError, ValueError), match="'groups' parameter"):
            fit()
    assert not ledger.charges()


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_a_person_in_two_parts_is_refused_whatever_types_labels_have(kind):
    other = {np.int64: np.uint64, np.uint64: np.int64}[kind]
    batches = [
        FRAME[begin : begin + 50].astype({"person": one})
        for begin, one in ((0, kind), (50, other), (100, kind))
    ]
    rows = scan_batches([lambda: batches[:2], lambda: batches[2:]])  # person 33 in both
    with pytest.raises(ValueError, match="several parts"):
        over("ridge", rows, grouped=True)


@pytest.mark.slow
def test_batches_may_come_in_the_memory_of_those_before():
    columns = [*NAMES, "number", "person"]
    table = FRAME[columns].to_numpy()

    def batches():
        memory = np.empty((100, len(columns)))
        for begin in range(0, N, 100):
            memory[:] = table[begin : begin + 100]
            yield memory
        memory[:] = np.nan

    rows = scan_batches(batches)
    settings = {"rows_per_group": 2}
    model, _ = prepared("moments", **settings)
    # Labels as they lie in that memory: bits of floats are whole numbers, too.
    parts = rows.map(_first_three, 3), rows.map(_number)
    found = model.fit(*parts, groups=rows.map(_bits_of_person))
    whole = clone(found).fit(table[:, :3], table[:, 3], groups=table[:, 4].view(np.int64))
    assert differing(whole, found) == []


def _first_three(rows):
    return rows[:, :3]


def _number(rows):
    return rows[:, 3]


def _bits_of_person(rows):
    return rows[:, 4].view(np.int64)


@pytest.mark.slow
def test_a_state_that_is_lost_is_made_anew(monkeypatch):
    whole = in_memory("coordinates")
    lost = 0

    def forgetful(token, name, make):
        nonlocal lost
        lost += 1
        if lost % 3 == 0:
            cache.fits.clear()
        return kept(token, name, make)

    kept = cache.state
    monkeypatch.setattr(cache, "state", forgetful)
    assert differing(whole, over("coordinates", in_parts(FRAME, 7))) == []
    assert lost > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_sums_that_leave_64_bits_are_used_alike(name, monkeypatch):
    # As if there were so many rows: sums come as integers of Python, of the same values.
    whole, limbs = in_memory(name), table.from_limbs
    monkeypatch.setattr(table, "from_limbs", lambda found: limbs(found).astype(object))
    assert differing(whole, over(name, in_parts(FRAME, 3))) == []


@pytest.mark.parametrize("estimator", [DPPCA(2), DPStandardScaler()], ids=["PCA", "scaler"])
def test_moments_that_leave_64_bits_are_used_alike(estimator, monkeypatch):
    estimator, limbs = clone(estimator).set_params(epsilon=8.0, random_state=1), table.from_limbs
    whole = clone(estimator).fit(FRAME[NAMES])
    monkeypatch.setattr(table, "from_limbs", lambda found: limbs(found).astype(object))
    assert differing(whole, clone(estimator).fit(in_parts(FRAME, 3)[NAMES])) == []


def test_nothing_is_kept_of_a_fit_that_is_over():
    over("coordinates", in_parts(FRAME, 2))
    assert not cache.fits


def test_rows_that_change_between_passes_end_the_fit_after_one_charge():
    ledger, calls = PrivacyLedger("rows that change", 20.0, 1e-5, storage="memory"), 0

    def changing():
        nonlocal calls
        calls += 1
        frame = FRAME.copy()
        if calls > 5:
            frame.loc[7, "wide"] += 1.0
        return [frame[:1000], frame[1000:]]

    with pytest.raises(SpreadError, match="changed"):
        over("two classes", scan_batches(changing), ledger=ledger)
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize("name", ORDERLESS)
def test_a_target_may_be_a_table_of_one_column(name):
    model, target = prepared(name)
    rows = in_parts(FRAME, 3)
    found = model.fit(rows[NAMES], rows[[target]])
    assert differing(in_memory(name), found) == []


def test_a_first_look_holds_no_rows():
    rows = np.ones((4, 2))
    known = weakref.ref(rows)
    schema = _Scan(DPOrdinalEncoder, AnyColumns(), frozenset())({"X": rows})
    del rows
    assert schema.columns == ("x0", "x1")
    assert known() is None


def mixed(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 9.0, N),
            "town": rng.choice(["a", "b", "c", None], N),
            "kind": rng.integers(0, 4, N),
            "gap": rng.normal(size=N),
            "day": pd.to_datetime("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "flag": rng.random(N) < 0.3,
        }
    )
    frame.loc[rng.random(N) < 0.1, "gap"] = np.nan
    frame["label"] = (frame["age"] > 41.0).astype(int)
    return frame


MIXED = mixed()
COLUMNS = ["age", "town", "kind", "gap", "day", "flag"]
TABLES = {
    "table": (DPTableVectorizer(), COLUMNS),
    "table, private number": (
        DPTableVectorizer({"kind": "category"}, adjacency="add_remove", n_bins=4),
        COLUMNS,
    ),
    "one-hot": (DPOneHotEncoder(), ["town", "kind", "flag"]),
    "ordinal": (DPOrdinalEncoder(), ["town", "kind"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_encoded_alike(name, tmp_path):
    encoder, columns = TABLES[name]
    encoder = clone(encoder).set_params(epsilon=4.0, random_state=5)
    whole = clone(encoder).fit(MIXED[columns])
    MIXED.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    for rows in (in_parts(MIXED, 7), by_way("parquet", MIXED, tmp_path)):
        found = clone(encoder).fit(rows[columns])
        assert str(found.privacy_) == str(whole.privacy_)
        encoded = [*found.transform(rows[columns]).batches()]
        np.testing.assert_array_equal(np.concatenate(encoded), whole.transform(MIXED[columns]))


HOT = OneHotEncoder(categories=[[0, 1, 2, 3]], sparse_output=False, handle_unknown="ignore")
PIPELINES = {
    "scaled": [("scale", DPStandardScaler()), ("model", DPLogisticCD(**FEW))],
    "public step": [
        ("bend", FunctionTransformer(np.arctan)),
        ("scale", DPStandardScaler()),
        ("model", DPLogisticCD(**FEW)),
    ],
    "components": [
        ("scale", DPStandardScaler()),
        ("components", DPPCA(2)),
        ("model", DPLogisticCD(**FEW)),
    ],
    "public columns": [
        (
            "columns",
            ColumnTransformer(
                [
                    (
                        "hot",
                        HOT,
                        ["kind"],
                    ),
                    ("rest", "passthrough", ["age"]),
                ]
            ),
        ),
        ("model", DPLogisticCD(**FEW)),
    ],
    "table": [("table", DPTableVectorizer()), ("model", DPLogisticCD(**FEW))],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_over_parts_have_the_same_bits(name):
    columns = COLUMNS if name == "table" else ["age", "kind"]
    pipeline = DPPipeline(PIPELINES[name], epsilon=4.0, random_state=2)
    whole = clone(pipeline).fit(MIXED[columns], MIXED["label"])
    rows = in_parts(MIXED, 7)
    found = clone(pipeline).fit(rows[columns], rows["label"])
    assert str(found.privacy_) == str(whole.privacy_)
    np.testing.assert_array_equal(found.steps_[-1][1].coef_, whole.steps_[-1][1].coef_)
    predicted = np.concatenate([*found.predict_proba(rows[columns]).batches()])
    np.testing.assert_array_equal(predicted, whole.predict_proba(MIXED[columns]))


def test_a_composition_with_private_steps_inside_needs_whole_tables():
    columns = ColumnTransformer([("scale", DPStandardScaler(), ["age"])])
    pipeline = DPPipeline([("columns", columns), ("model", DPLogisticCD())])
    rows = in_parts(MIXED, 2)
    with pytest.raises(TypeError, match="private steps beside others"):
        pipeline.fit(rows[COLUMNS], rows["label"])


def test_public_steps_are_applied_under_the_settings_of_who_asked():
    # A thread of a cluster has settings of its own, by which a step would refuse what a private
    # step computed.
    rows = in_parts(pd.DataFrame({"a": [1.0, np.inf, 3.0]}), 1)
    with config_context(assume_finite=True):
        applied = _applied(Binarizer().fit([[1.0]]), "transform", rows)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: np.concatenate([*applied.batches()])).result()
    assert found.ravel().tolist() == [1.0, 1.0, 1.0]


def test_cut_parts_are_all_rows():
    assert sum(map(len, cut(FRAME, 64))) == N
