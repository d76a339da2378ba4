"""Tables of any columns as numbers: by schema and type, never by values."""

from __future__ import annotations

import datetime
import decimal
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from skdpnoise import (
    DPLogisticCD,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPPipeline,
    DPSimpleImputer,
    DPTableVectorizer,
    PrivacyWarning,
)
from skdpnoise.inspection.auditing._costs import TOLERANCE
from skdpnoise.preprocessing import _number_facts
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import Forbidden, Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
N = 6000
START = np.datetime64("2021-01-04")  # a Monday
TABLE = pd.DataFrame(
    {
        "age": rng.integers(17, 91, N),
        "income": np.where(rng.random(N) < 0.2, np.nan, np.exp(rng.normal(10.0, 1.0, N))),
        "town": rng.choice(["A", "B", "C"], N, p=[0.6, 0.3, 0.1]),
        "size": rng.choice(["S", "M", "L"], N),
        "seen": START + rng.integers(0, 700, N).astype("timedelta64[D]"),
        "member": rng.random(N) < 0.5,
    }
)
SCHEMA = {
    "age": (17, 90),
    "income": "log",
    "size": {"kind": "ordinal", "categories": ["S", "M", "L"]},
}
Y = (TABLE["town"] == "A").to_numpy().astype(int)


@pytest.fixture(scope="module")
def fitted():
    return DPTableVectorizer(SCHEMA, 3.0, random_state=0).fit(TABLE)


def test_every_column_becomes_what_its_schema_or_type_says(fitted):
    said = str(fitted.columns_).splitlines()
    kinds = {line.partition(":")[0]: line.partition(": ")[2] for line in said}
    assert kinds["age"].startswith("number, median 5")
    assert kinds["income"].startswith("log of number, median 10")
    assert kinds["town"] == "category, 3 found -> 5 columns"
    assert kinds["size"] == "ordinal, 3 given -> 2 columns"
    assert kinds["seen"].startswith("date")
    assert kinds["member"].startswith("number")
    assert "<table" in fitted.columns_._repr_html_()


def test_rows_are_finite_within_public_bounds_and_have_one_unit_in_each_group(fitted):
    odd = TABLE.head(4).copy()
    odd["town"] = ["A", "Atlantis", None, "B"]
    odd["income"] = [1e300, -1e300, np.nan, 0.0]
    odd["seen"] = pd.to_datetime(["1700-01-01", None, "2200-12-31", "2021-01-04"])
    for rows in (TABLE, odd):
        found, public = fitted.transform(rows), fitted.public_output_
        assert np.isfinite(found).all()
        assert (found >= public.low).all()
        assert (found <= public.high).all()
        assert found.shape[1] == len(fitted.get_feature_names_out())
        for group in public.column_groups:
            sums = found[:, list(group)].sum(axis=1)
            assert set(np.unique(sums)) <= {0.0, 1.0}
    names = fitted.get_feature_names_out().tolist()
    towns = [k for k, name in enumerate(names) if name.startswith("town_")]
    np.testing.assert_array_equal(fitted.transform(odd)[:, towns].sum(axis=1), 1.0)


def test_numbers_are_scaled_by_their_bulk_and_cut_at_quantiles(fitted):
    names = fitted.get_feature_names_out().tolist()
    found = fitted.transform(TABLE)
    age = found[:, names.index("age")]
    assert abs(np.median(age)) < 0.1
    bins = [k for k, name in enumerate(names) if name.startswith("income_bin")]
    present = ~TABLE["income"].isna().to_numpy()
    assert len(bins) == 8
    assert np.abs(found[present][:, bins].mean(axis=0) - 0.125).max() < 0.06
    np.testing.assert_array_equal(found[:, names.index("income_missing")], ~present)
    assert (found[~present][:, names.index("income")] == 0.0).all()


def test_what_is_beyond_two_scales_has_a_column_of_its_own(fitted):
    names = fitted.get_feature_names_out().tolist()
    assert "size_beyond" not in names and "town_beyond" not in names
    wide = DPTableVectorizer({"income": "number"}, 3.0, random_state=0).fit(TABLE[["income"]])
    (block,) = wide.columns_.blocks
    facts, at = block.facts, np.array([1.0, -3.0, 16.0, 100.0])
    rows = pd.DataFrame({"income": facts.center + at * facts.scale})
    found = wide.transform(rows)
    np.testing.assert_allclose(found[:, 0], [1.0, -2.0, 2.0, 2.0])
    np.testing.assert_allclose(found[:, 1], np.array([0.0, -1.0, 14.0, 28.0]) / 28.0, atol=1e-12)
    assert wide.get_feature_names_out()[:2].tolist() == ["income", "income_beyond"]
    assert wide.public_output_.low[:2].tolist() == [-2.0, -1.0]
    assert wide.public_output_.high[:2].tolist() == [2.0, 1.0]


def test_dates_become_calendars(fitted):
    names = fitted.get_feature_names_out().tolist()
    row = TABLE.head(1).copy()
    row["seen"] = pd.to_datetime(["2021-03-07 15:00"])  # a Sunday
    found = dict(zip(names, fitted.transform(row)[0], strict=True))
    assert found["seen_month2"] == found["seen_weekday6"] == found["seen_hour15"] == 1.0
    assert sum(found[name] for name in names if name.startswith("seen_weekday")) == 1.0


@quick("inid_laplace-3-add_remove-0.0")
@each_value(1)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("noise", ["auto", "inid_laplace"])
def test_all_is_within_the_guarantee_and_charged_once_before_a_draw(delta, adjacency, rows, noise):
    schema = SCHEMA | ({"town": ["A", "B"]} if delta == 0.0 else {})
    ledger = Notebook()
    groups = None if rows is None else np.arange(N) // 3
    made = DPTableVectorizer(
        schema, 2.0, delta, adjacency=adjacency, rows_per_group=rows or 1, noise=noise
    )
    report = made.set_params(ledger=ledger).fit(TABLE, groups=groups).privacy_
    (charge,) = ledger.charges
    assert charge["guarantee"] == (2.0, delta)
    assert report.total.delta(2.0) <= delta
    assert charge["cost"]  # the text of a loss
    assert report.unit == ("record" if rows is None else "group")
    assert "names and types of columns" in report.declared


def test_what_is_all_public_costs_nothing():
    schema = {"town": ["A", "B"], "size": {"buckets": 4}, "age": "drop", "income": "drop"}
    table = TABLE[["town", "size", "age", "income"]]
    made = DPTableVectorizer(schema, delta=0.0, ledger=Forbidden()).fit(table)
    assert not made.privacy_.releases
    assert made.transform(table).shape == (N, 4 + 5)
    np.testing.assert_array_equal(made.transform(table)[:, 4:].sum(axis=1), 1.0)


def test_pure_privacy_needs_categories_that_are_given_or_hashed():
    with pytest.raises(ValueError, match=r"'delta'.*public"):
        DPTableVectorizer(SCHEMA, delta=0.0, ledger=Forbidden()).fit(TABLE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"age": (5, 1)},
        {"age": (1.0, np.nan)},
        {"age": "years"},
        {"age": {"kind": "number", "colour": 1}},
        {"seen": {"kind": "date", "bounds": (0, 1)}},
        {"town": ["A", "A"]},
        {"town": []},
        {"town": {"buckets": -1}},
        {"town": {"buckets": True}},
        {"size": {"kind": "ordinal"}},
        {"size": {"kind": "category", "nullable": "yes"}},
        {"nobody": "number"},
        {7: "number"},
    ],
    ids=str,
)
def test_a_wrong_schema_is_refused_and_named(wrong):
    with pytest.raises(ValueError, match="'schema'"):
        DPTableVectorizer(wrong, ledger=Forbidden()).fit(TABLE)


def test_no_value_decides_what_a_column_is():
    # What could be guessed from values, and is not: numbers as text, few different numbers, text in
    # which all values are dates, a single value of another kind.
    tables = []
    for last in ("1", "x", None, 2.5, True):
        column = pd.Series(["1"] * (N - 1) + [last], dtype=object)
        frame = pd.DataFrame({"a": column, "b": [0, 1] * (N // 2)})
        made = DPTableVectorizer(random_state=0, epsilon=3.0)
        if isinstance(last, str | None):
            tables.append(made.fit(frame).get_feature_names_out().tolist())
            continue
        with pytest.raises(ValueError, match="cannot tell what column 'a' of X is"):
            made.set_params(ledger=Forbidden()).fit(frame)
    assert all(names == tables[0] for names in tables)


def test_frames_of_all_kinds_are_read_alike():
    plain = TABLE.drop(columns="seen")
    kinds = {
        "pandas": plain,
        "polars": pl.from_pandas(plain),
        "categories": plain.astype({"town": "category", "size": "string"}),
        "nullable": plain.astype({"income": "Float64", "member": "boolean"}),
    }
    tables = {}
    for name, table in kinds.items():
        schema = SCHEMA | {"member": {"kind": "number", "bounds": (0, 1), "nullable": False}}
        schema |= {"age": {"bounds": (17, 90), "nullable": False}}
        tables[name] = DPTableVectorizer(schema, random_state=0).fit(table).transform(table)
    for name, table in tables.items():
        np.testing.assert_allclose(table, tables["pandas"], err_msg=name)


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_dates_of_polars_and_pandas_are_read_alike(zone):
    frame = TABLE[["seen"]].assign(seen=lambda one: one["seen"].dt.tz_localize(zone))
    first = DPTableVectorizer(random_state=0).fit(frame)
    second = DPTableVectorizer(random_state=0).fit(pl.from_pandas(frame))
    np.testing.assert_allclose(
        first.transform(frame), second.transform(pl.from_pandas(frame)), rtol=1e-12
    )


def test_that_types_are_public_is_said_by_the_report_and_by_no_warning():
    frame = TABLE[["income", "town"]].astype({"town": object})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = DPTableVectorizer(epsilon=3.0).fit(frame)
    assert made.privacy_.declared == ("names and types of columns",)


@pytest.mark.parametrize(
    ("n_rows", "cause"),
    [(100, "'c': the noise at epsilon=1 hides"), (20_000, "'c': each is constant")],
)
def test_warnings_say_why_a_column_is_not_found(n_rows, cause):
    columns = {"c": np.ones(n_rows, dtype=int), "d": [f"{k}" for k in range(n_rows)]}
    with pytest.warns(PrivacyWarning, match="leaves out") as caught:
        made = DPTableVectorizer().fit(pd.DataFrame(columns))
    (text,) = (str(one.message) for one in caught if "leaves out" in str(one.message))
    assert cause in text
    assert "'d': each is too rare, as no category reaches" in text
    assert np.isfinite(made.transform(pd.DataFrame(columns))).all()


def test_warnings_that_are_errors_come_when_a_fit_is_stored():
    frame = TABLE[["income"]].assign(constant=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* predicts one label")  # it comes first
        steps = [("table", DPTableVectorizer()), ("model", DPLogisticRegression(classes=[0, 1]))]
        model = DPPipeline(steps, epsilon=3.0)
        with pytest.raises(PrivacyWarning, match="leaves out 'constant'"):
            model.fit(frame, Y)
    assert len(model.predict(frame)) == N  # paid for, and stored


def test_infinite_numbers_are_refused_before_the_charge():
    table = TABLE.copy()
    table.loc[3, "income"] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        DPTableVectorizer(SCHEMA, ledger=Forbidden()).fit(table)


@pytest.mark.slow
def test_five_lines_make_a_model():
    model = DPPipeline(
        [("table", DPTableVectorizer(SCHEMA)), ("model", DPLogisticRegression(classes=[0, 1]))],
        epsilon=2.0,
        random_state=0,
    ).fit(TABLE, Y)
    assert model.score(TABLE, Y) > 0.95
    assert model.privacy_.total.delta(2.0) <= 1e-6
    shares = {"table": 0.0, "model": 0.0}
    for release in model.privacy_.releases:
        step = release.label.partition(":")[0]
        shares[step] += release.loss.mu**2 if hasattr(release.loss, "mu") else 0.0
    assert 0.1 < shares["table"] / shares["model"] < 0.3  # a quarter, beside a model
    unseen = TABLE.head(3).assign(town=["Z", None, "A"], income=np.nan)
    assert len(model.predict(unseen)) == 3


def test_copies_pickles_and_orders_of_records(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(TABLE), fitted.transform(TABLE))
    assert clone(fitted).get_params()["schema"] == SCHEMA
    other = clone(fitted).fit(TABLE.iloc[::-1])
    names = [fitted.get_feature_names_out().tolist(), other.get_feature_names_out().tolist()]
    assert names[0] == names[1]


@pytest.mark.slow
def test_no_value_decides_what_is_charged():
    seen = []
    for values in (["a", "b"] * 3000, [f"own {k}" for k in range(6000)]):
        ledger = Notebook()
        frame = pd.DataFrame({"kind": values})
        model = DPPipeline(
            [("table", DPTableVectorizer()), ("model", DPLogisticRegression(classes=[0, 1]))],
            ledger=ledger,
        ).fit(frame, Y)
        seen.append([str(charge["cost"]) for charge in ledger.charges])
        assert model.privacy_.guarantee == PrivacyGuarantee(1.0, 1e-6)
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_a_plan_takes_a_schema_and_names_what_would_be_hidden():
    schema = {"age": (17, 90), "job": "category", "town": ["a", "b"]}
    steps = [("table", DPTableVectorizer(schema)), ("model", DPLogisticRegression())]
    few = {"n_fits": 2, "epsilons": ()}
    assert DPPipeline(steps, epsilon=1.0).plan(20_000, schema, **few).hidden == ()
    hidden = dict(DPPipeline(steps, epsilon=0.1).plan(300, schema, **few).hidden)
    assert hidden["job"] == 1.0
    assert "town" not in hidden


def test_without_indicators_there_are_none_and_missing_ones_are_the_median_or_other():
    made = DPTableVectorizer(SCHEMA, 3.0, add_indicator=False, random_state=0).fit(TABLE)
    names = made.get_feature_names_out().tolist()
    assert not [name for name in names if name.endswith("_missing")]
    empty = pd.DataFrame(dict.fromkeys(TABLE.columns, [None] * 2)).astype(TABLE.dtypes[["income"]])
    empty["age"], empty["member"] = 40, True
    empty["seen"] = pd.to_datetime(empty["seen"])
    found = dict(zip(names, made.transform(empty)[0], strict=True))
    assert found["income"] == 0.0
    assert found["town_other"] == 1.0


def test_the_chance_of_a_category_is_stated(fitted):
    assert 0.0 < fitted.category_mechanism_.chance(1) <= 0.5e-6
    assert fitted.category_mechanism_.chance(1000) > 0.999
    given = DPTableVectorizer({"town": ["A"]}).fit(TABLE[["town"]])
    assert given.category_mechanism_ is None


class Hostile(float):
    """A number that speaks where it is compared."""

    def __ne__(self, other):
        raise RuntimeError("secret 7")

    __hash__ = float.__hash__


class HostileDate(datetime.datetime):
    """A date that speaks where it is copied."""

    def replace(self, *args, **kwargs):
        raise RuntimeError("secret 8")


@pytest.mark.parametrize(
    ("schema", "usual", "odd"),
    [
        ({"c": "date"}, pd.Timestamp("2020-01-01"), pd.NaT),
        ({"c": "date"}, pd.Timestamp("2020-01-01"), HostileDate(2020, 1, 1)),
        ({"c": "date"}, pd.Timestamp("2020-01-01"), datetime.date(1, 1, 1)),
        ({"c": {"buckets": 4}}, "a", 10**5000),
        ({"c": "category"}, "a", 10**5000),
        ({"c": "category"}, "a", Hostile(1.0)),
        ({"c": "number"}, 1.0, Hostile(1.0)),
        ({"c": "number"}, 1.0, 10**400),
    ],
    ids=range(8),
)
def test_one_odd_value_ends_no_fit_and_changes_no_column(schema, usual, odd):
    names = []
    if schema["c"] in ("category", {"buckets": 4}) and type(odd) in (int, Hostile):
        with pytest.raises(ValueError, match=r"column 'c' of X has (both|others)"):
            DPTableVectorizer(schema, ledger=Forbidden()).fit(
                pd.DataFrame({"c": np.array([usual, odd], dtype=object)})
            )
        return
    for last in (usual, odd):
        column = np.empty(600, dtype=object)
        column[:] = [usual] * 599 + [last]
        ledger = Notebook()
        made = DPTableVectorizer(schema, 3.0, random_state=0, ledger=ledger)
        made.fit(pd.DataFrame({"c": pd.Series(column, dtype=object)}))
        assert np.isfinite(made.transform(pd.DataFrame({"c": column}))).all()
        names.append((made.get_feature_names_out().tolist(), [str(c) for c in ledger.charges]))
    assert names[0] == names[1]


@pytest.mark.parametrize("odd", [1, 0.0, None])
def test_what_objects_hold_is_no_fact_of_a_column(odd):
    schema = {"c": {"kind": "category", "categories": [True, False]}}
    made = []
    for last in (True, odd):
        column = pd.Series([True, False] * 50 + [last], dtype=object)
        made.append(DPTableVectorizer(schema).fit(pd.DataFrame({"c": column})).columns_)
    assert made[0].blocks[0].column == made[1].blocks[0].column


def test_dates_are_no_categories():
    with pytest.raises(ValueError, match=r"'schema'.*'date' or 'drop'"):
        DPTableVectorizer({"seen": "category"}, ledger=Forbidden()).fit(TABLE)


def test_missing_values_that_pass_by_are_left_to_an_imputer_behind():
    frame = TABLE[["income", "age"]]
    passing = ColumnTransformer([("all", "passthrough", ["income", "age"])])
    steps = [
        ("pass", passing),
        ("fill", DPSimpleImputer()),
        ("model", DPLogisticCD(classes=[0, 1])),
    ]
    model = DPPipeline(steps, epsilon=3.0).fit(frame, Y)
    assert len(model.predict(frame)) == N


USUAL = {"truth": [True, False], "whole": [1, 2], "wide": [2**53, 2**53 + 1], "text": ["a", "b"]}


@each_value(1)
@pytest.mark.parametrize("usual", USUAL)
@pytest.mark.parametrize("odd", ["a", 1.5, True, 2**53 + 1, None, decimal.Decimal(1)])
@pytest.mark.parametrize("make", [DPTableVectorizer, DPOneHotEncoder])
def test_one_value_renames_no_categories_of_a_column_of_labels(make, usual, odd):
    names = []
    for last in ([], [odd]):
        frame = pd.DataFrame({"c": pd.Series(USUAL[usual] * 300 + last).astype("category")})
        try:
            names.append(make(epsilon=5.0, random_state=0).fit(frame).get_feature_names_out())
        except ValueError as error:
            assert "column 'c'" in str(error)
            return
    assert names[0].tolist() == names[1].tolist()


VALUES = {
    "number": [decimal.Decimal("1.5"), decimal.Decimal("2.5"), decimal.Decimal("4.5")],
    "date": [pd.Period(month, "M") for month in ("2020-01", "2021-05", "2022-07")],
}


@pytest.mark.parametrize("kind", VALUES)
def test_objects_that_stand_for_numbers_or_dates_are_read_as_these_are(kind):
    objects = pd.DataFrame({"c": pd.Series(VALUES[kind] * 300, dtype=object)})
    decimals = pd.ArrowDtype(pa.decimal128(5, 2))
    declared = objects.astype(decimals if kind == "number" else "period[M]")
    tables = []
    for frame in (objects, declared):
        made = DPTableVectorizer({"c": kind}, 5.0, n_bins=0, random_state=0).fit(frame)
        tables += [made.transform(objects)[:, 0], made.transform(declared)[:, 0]]
    assert np.ptp(tables[0]) > 0.0
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])


def test_decimal_numbers_are_the_categories_that_equal_floats_are():
    objects = pd.DataFrame({"c": pd.Series(VALUES["number"] * 300, dtype=object)})
    made = DPOneHotEncoder(epsilon=5.0, random_state=0).fit(objects)
    assert made.categories_[0].tolist() == [1.5, 2.5, 4.5]
    np.testing.assert_array_equal(made.transform(objects), made.transform(objects.astype(float)))


@pytest.mark.parametrize("make", [DPTableVectorizer, DPOneHotEncoder])
def test_a_table_of_arrow_is_read_as_a_frame_of_its_types(make):
    table = pa.table({"c": ["a", None, "b"] * 300})
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    made = [make(epsilon=5.0, random_state=0).fit(one) for one in (table, frame)]
    np.testing.assert_array_equal(made[0].transform(table), made[1].transform(frame))
    chunks = pa.concat_tables([table[:7], table[7:]])
    np.testing.assert_array_equal(made[0].transform(chunks), made[1].transform(frame))


def test_wide_whole_numbers_of_a_dictionary_of_arrow_stay_apart():
    column = pa.array(USUAL["wide"] * 300).dictionary_encode()
    frame = pa.table({"c": column}).to_pandas(types_mapper=pd.ArrowDtype)
    made = DPOneHotEncoder(epsilon=5.0, random_state=0).fit(frame)
    assert made.categories_[0].tolist() == USUAL["wide"]


PLAIN = pd.DataFrame(np.round(rng.normal(60.0, 12.0, (630, 4)), 1), columns=list("abcd"))


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_table_of_few_records_is_scaled_by_what_its_columns_share_and_has_no_bins(
    adjacency, delta
):
    frame = PLAIN.assign(b=np.where(rng.random(len(PLAIN)) < 0.3, np.nan, PLAIN["b"]))
    ledger, epsilon = Notebook(), 1.0 if delta else 0.3
    terms = {"adjacency": adjacency, "random_state": 1, "ledger": ledger}
    made = DPTableVectorizer(None, epsilon, delta, **terms).fit(frame)
    facts = [block.facts for block in made.columns_.blocks]
    assert all(fact.edges.size == 0 for fact in facts)
    near = [abs(fact.center - 60.0) < 30.0 and 4.0 < fact.scale < 40.0 for fact in facts]
    assert all(near) or delta == 0.0
    names = " ".join(f"{name} {name}_beyond {name}_missing" for name in "abcd")
    assert " ".join(made.get_feature_names_out()) == names
    assert made.transform(frame).shape == (len(frame), 12)
    assert made.privacy_.total.delta(epsilon) <= delta
    assert len(ledger.charges) == 1
    many = DPTableVectorizer(None, epsilon, delta, **terms).fit(pd.concat([frame] * 60))
    assert all(block.facts.edges.size for block in many.columns_.blocks)


@pytest.mark.parametrize("few", [0.0, 100.5])
def test_a_private_number_of_records_decides_by_what_is_released_of_it(few, monkeypatch):
    # By 100 or 101 records, were they counted, there would be bins, or not; also of sums over them.
    monkeypatch.setattr(_number_facts, "_noise", lambda *_: few / _number_facts._FEW)
    made = DPTableVectorizer(None, 3.0, adjacency="add_remove")
    frame, bins = PLAIN.iloc[:101], set()
    for seed in range(3):
        model = clone(made).set_params(random_state=seed)
        runs = two_runs(model.fit, (frame,), (frame.iloc[:-1],), seed)
        runs.check_same()
        assert all(one.share <= TOLERANCE for one in runs.moved)
        bins.add(runs.first.columns_.blocks[0].facts.edges.size > 0)
    assert bins == ({True, False} if few else {True})


def test_what_is_missing_moves_no_location_and_no_scale():
    frame = pd.DataFrame({"a": [np.nan] * 500 + [3.0, 5.0] * 250})
    bounds = {"a": (0.0, 16.0)}
    made = DPTableVectorizer(bounds, 0.3, random_state=0).fit(frame)
    (block,) = made.columns_.blocks
    assert block.facts.edges.size == 0
    assert 2.0 < block.facts.center < 9.0
    full = pd.DataFrame({"a": [np.nan] * 1000})
    (block,) = DPTableVectorizer(bounds, 0.3, random_state=0).fit(full).columns_.blocks
    assert abs(block.facts.center - 8.0) < 1.0
    assert 1.0 < block.facts.scale < 4.0


@pytest.mark.slow
@pytest.mark.parametrize(("share", "epsilon"), [(0.09, 1.0), (0.03, 1.0), (0.065, 1 / 3)])
def test_a_column_that_is_mostly_empty_is_found_by_the_records_that_have_a_value(share, epsilon):
    n, found = 47_000, []
    for seed in range(5):
        draw = np.random.default_rng(seed)
        values = np.where(draw.random(n) < share, draw.normal(20.0, 3.0, n), np.nan)
        frame = pd.DataFrame({"rare": values, "usual": draw.normal(size=n)})
        steps = [("table", DPTableVectorizer()), ("model", DPLogisticRegression(classes=[0, 1]))]
        model = DPPipeline(steps, epsilon=epsilon, random_state=seed)
        model.fit(frame, (draw.random(n) < 0.5).astype(int))
        facts = model[0].columns_.blocks[0].facts
        found.append(1.5 < facts.scale < 7.5 and abs(facts.center - 20.0) < 5.0)
    assert all(found)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_scale_of_few_values_comes_from_ranks_that_noise_leaves(delta):
    n, share = 47_000, 0.0215 if delta else 0.065
    for seed in range(5):
        draw = np.random.default_rng(seed)
        values = np.where(draw.random(n) < share, draw.normal(20.0, 3.0, n), np.nan)
        frame = pd.DataFrame({"rare": values, "usual": draw.normal(size=n)})
        made = DPTableVectorizer(delta=delta, random_state=seed).fit(frame)
        rare, usual = (block.facts for block in made.columns_.blocks)
        assert 2.0 < rare.scale < 4.5
        assert 0.8 < usual.scale < 1.25
