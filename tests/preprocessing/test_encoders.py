"""Encoders: categories that are given cost nothing, others are found privately."""

from __future__ import annotations

import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from skdpnoise import (
    DPLogisticCD,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPPipeline,
    DPTableVectorizer,
)
from skdpnoise.accounting.approximate import ChanceBudget
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee
from skdpnoise.queries.categories import category_mechanism
from tests._cases import each_value
from tests.contracts._register import Forbidden, Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
N = 4000
COLOURS = rng.choice(["blue", "green", "red"], N).astype(object)
SIZES = rng.choice([1, 2], N)
FRAME = pd.DataFrame({"colour": COLOURS, "size": SIZES})
GIVEN = [["red", "blue"], [2, 3]]
ENCODERS = [DPOneHotEncoder, DPOrdinalEncoder]


@each_value(1)
@pytest.mark.parametrize("make", ENCODERS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_frequent_categories_are_found_and_rare_ones_are_not(make, adjacency):
    frame = FRAME.copy()
    frame.loc[7, "colour"] = "Ann's own"
    encoder = make(adjacency=adjacency, random_state=0).fit(frame)
    assert [one.tolist() for one in encoder.categories_] == [["blue", "green", "red"], [1, 2]]
    assert encoder.privacy_.total.delta(1.0) <= 1e-6


@pytest.mark.parametrize("make", ENCODERS)
def test_what_is_given_costs_nothing_and_is_as_in_scikit_learn(make):
    encoder = make(categories=GIVEN, ledger=Forbidden(), delta=0.0).fit(FRAME)
    assert not encoder.privacy_.releases
    if make is DPOrdinalEncoder:
        known = OrdinalEncoder(
            categories=GIVEN, handle_unknown="use_encoded_value", unknown_value=-1
        )
        np.testing.assert_array_equal(encoder.transform(FRAME), known.fit_transform(FRAME))
        return
    known = OneHotEncoder(categories=GIVEN, handle_unknown="ignore", sparse_output=False)
    expected, found = known.fit_transform(FRAME), encoder.transform(FRAME)
    np.testing.assert_array_equal(found[:, [0, 1, 3, 4]], expected)
    np.testing.assert_array_equal(found[:, :3].sum(axis=1), 1.0)
    np.testing.assert_array_equal(found[:, 3:].sum(axis=1), 1.0)


@pytest.mark.parametrize("make", ENCODERS)
def test_some_columns_may_be_given_by_place_or_by_name(make):
    named = make(categories={"size": [2, 1]}, random_state=0).fit(FRAME)
    placed = make(categories=["auto", [2, 1]], random_state=0).fit(FRAME)
    for encoder in (named, placed):
        assert [one.tolist() for one in encoder.categories_] == [["blue", "green", "red"], [2, 1]]
        (release,) = encoder.privacy_.releases
        assert (release.of, release.n_coordinates) == ("columns", 1)
        assert "1 column that many" in encoder.privacy_.statement()
    with pytest.raises(ValueError, match=r"'categories'.*not that of a column"):
        make(categories={"shape": ["a"]}, ledger=Forbidden()).fit(FRAME)
    with pytest.raises(ValueError, match=r"'categories'.*1 entries for 2 columns"):
        make(categories=[["a"]], ledger=Forbidden()).fit(FRAME)
    for wrong in ([["a", "a"], "auto"], [[], "auto"], [[None], "auto"], [[float("nan")], "auto"]):
        with pytest.raises(ValueError, match="'categories'"):
            make(categories=wrong, ledger=Forbidden()).fit(FRAME)


def test_pure_privacy_needs_public_categories():
    with pytest.raises(ValueError, match=r"'delta'.*public"):
        DPOneHotEncoder(delta=0.0, ledger=Forbidden()).fit(FRAME)


@each_value(1)
@pytest.mark.parametrize("noise", ["auto", "iid_gaussian", "iid_laplace"])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_the_charge_is_the_loss_of_the_mechanism_and_within_the_guarantee(noise, rows):
    ledger = Notebook()
    groups = None if rows is None else np.arange(N) // 4
    encoder = DPOneHotEncoder(2.0, 1e-5, noise=noise, rows_per_group=rows or 1, ledger=ledger)
    report = encoder.fit(FRAME, groups=groups).privacy_
    made = category_mechanism("x", noise, 2, "replace_one", report.guarantee, rows or 1)
    assert report.total.delta(2.0) == pytest.approx(made.privacy_loss().delta(2.0))
    assert report.total.delta(2.0) <= 1e-5
    assert report.total.delta(1.9) > 1e-6
    (charge,) = ledger.charges
    assert charge["guarantee"] == (2.0, 1e-5)
    assert charge["unit"] == ("record" if rows is None else "group")


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("noise", ["iid_gaussian", "iid_laplace"])
def test_a_category_of_one_group_alone_is_shown_as_rarely_as_half_of_delta_allows(rows, noise):
    delta = 0.2  # so large that chances can be counted
    made = category_mechanism("x", noise, 1, "add_remove", PrivacyGuarantee(1.0, delta), rows)
    assert rows * made.chance(rows) <= 0.5 * delta
    label = [["own"]] * rows
    shown = 0
    for seed in range(600):
        encoder = DPOneHotEncoder(
            1.0, delta, noise=noise, adjacency="add_remove", rows_per_group=rows, random_state=seed
        )
        encoder.fit([["x"]] * rows + label, groups=[0] * rows + [1] * rows)
        shown += "own" in encoder.categories_[0].tolist()
    # five standard deviations above what is promised
    promised = made.chance(rows)
    assert shown <= 600 * promised + 5.0 * np.sqrt(600 * promised)
    assert shown >= 600 * promised - 5.0 * np.sqrt(600 * promised)


def test_missing_values_are_other_ones_or_get_a_column():
    column = np.array([["a"], [None], [np.nan], [pd.NA], ["z"]], dtype=object)
    plain = DPOneHotEncoder(categories=[["a"]]).fit(column)
    np.testing.assert_array_equal(plain.transform(column), [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
    shown = DPOneHotEncoder(categories=[["a"]], handle_missing="indicator").fit(column)
    expected = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(shown.transform(column), expected)
    assert shown.get_feature_names_out().tolist() == ["x0_a", "x0_missing", "x0_other"]
    number = DPOrdinalEncoder(categories=[["a"]], unknown_value=5, encoded_missing_value=9)
    np.testing.assert_array_equal(number.fit_transform(column).ravel(), [0, 9, 9, 9, 5])


@pytest.mark.parametrize("make", ENCODERS)
def test_equal_values_are_one_category_text_is_another_and_names_are_unique(make):
    column = np.array([[1], [1.0], [True], ["1"], ["other"]], dtype=object)
    encoder = make(categories=[[1.0, "1", "other"]]).fit(column)
    found = encoder.transform(column)
    assert [*map(tuple, found)][:2] == [tuple(found[2])] * 2
    assert len({tuple(row) for row in found}) == 3
    names = encoder.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    assert encoder.inverse_transform(found)[:, 0].tolist() == [1, 1, 1, "1", "other"]
    with pytest.raises(ValueError, match="different public categories"):
        make(categories=[[1, True]]).fit([[1], [2]])


@pytest.mark.slow
@pytest.mark.parametrize("make", ENCODERS)
def test_frames_of_all_kinds_are_read_alike(make):
    kinds = {
        "pandas": FRAME,
        "strings": FRAME.astype({"colour": "string"}),
        "categories": FRAME.astype({"colour": "category"}),
        "nullable": FRAME.astype({"size": "Int64"}).astype({"size": "float64"}),
        "polars": pl.from_pandas(FRAME),
        "array": FRAME.to_numpy(dtype=object),
        "list": FRAME.to_numpy(dtype=object).tolist(),
    }
    tables = {}
    for name, table in kinds.items():
        encoder = make(random_state=0).fit(table)
        tables[name] = encoder.transform(table)
    for name, table in tables.items():
        np.testing.assert_array_equal(table, tables["pandas"], err_msg=name)


@each_value(1)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("make", ENCODERS)
def test_frames_come_out_with_names(make, kind):
    encoder = make(categories=GIVEN).set_output(transform=kind)
    found = encoder.fit_transform(FRAME)
    assert list(found.columns) == encoder.get_feature_names_out().tolist()
    assert type(found).__module__.startswith(kind)


@pytest.mark.parametrize("make", ENCODERS)
def test_public_output_holds_for_every_row(make):
    encoder = make(random_state=0).fit(FRAME)
    rows = pd.DataFrame({"colour": ["red", "mauve", None], "size": [1, 77, 2]})
    found, public = encoder.transform(rows), encoder.public_output_
    assert (found >= public.low).all()
    assert (found <= public.high).all()
    for group in public.column_groups:
        np.testing.assert_array_equal(found[:, list(group)].sum(axis=1), 1.0)


@pytest.mark.parametrize("make", ENCODERS)
def test_copies_pickles_and_seeds(make):
    encoder = make(random_state=0).fit(FRAME)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(FRAME), encoder.transform(FRAME))
    shuffled = clone(encoder).fit(FRAME.sample(frac=1.0, random_state=1))
    assert [a.tolist() for a in shuffled.categories_] == [a.tolist() for a in encoder.categories_]


@pytest.mark.slow
def test_one_record_changes_no_other_row_and_no_error_quotes_it():
    class Hostile(str):
        def __hash__(self):
            raise RuntimeError("secret")

        def __eq__(self, other):
            raise RuntimeError("secret")

    odd = [Hostile("secret"), ["secret"], {"secret": 1}, b"secret", 1j, None, 10**400]
    base = DPOneHotEncoder(categories=[["a", "b"]]).fit([["a"], ["b"], ["a"]])
    for value in odd:
        column = np.empty((3, 1), dtype=object)
        column[:, 0] = ["a", "b", None]
        column[2, 0] = value
        try:
            np.testing.assert_array_equal(base.transform(column), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        except TypeError as error:
            assert "secret" not in str(error)
        together = np.vstack([FRAME[["colour"]], column])
        if not (value is None or isinstance(value, str)):
            with pytest.raises(ValueError, match=r"column 'x0' of X has (both|objects)") as caught:
                DPOneHotEncoder(ledger=Forbidden()).fit(together)
            assert "secret" not in str(caught.value)
            continue
        fitted = DPOneHotEncoder(random_state=0).fit(together)
        assert fitted.categories_[0].tolist() == ["blue", "green", "red"]


def test_a_column_without_categories_is_named():
    with pytest.warns(match="no category of 'name'"):
        DPOneHotEncoder().fit(pd.DataFrame({"name": [f"person {k}" for k in range(500)]}))


@each_value(1)
@pytest.mark.parametrize("make", [*ENCODERS, DPTableVectorizer])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_of_a_group_no_more_rows_count_than_are_paid_for(make, adjacency):
    # Fifty rows of one person: with two of them kept, what only this person has stays hidden.
    frame = pd.DataFrame({"kind": ["common"] * 2000 + ["own"] * 50})
    groups = np.append(np.arange(2000), np.full(50, 2000))
    asked = {"adjacency": adjacency, "rows_per_group": 2, "random_state": 0}
    alone = np.arange(len(frame))  # were they fifty people, all of them would count
    whole = make(epsilon=8.0, delta=1e-3, **asked).fit(frame, groups=alone)
    shown = make(epsilon=8.0, delta=1e-3, **asked).fit(frame, groups=groups)
    assert "kind_own" in _names(whole)
    assert "kind_own" not in _names(shown)


def _names(fitted):
    if hasattr(fitted, "categories_"):
        return [f"kind_{one}" for one in fitted.categories_[0]]
    return fitted.get_feature_names_out().tolist()


@each_value(1)
@pytest.mark.parametrize("noise", ["iid_gaussian", "iid_laplace"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", [1.0, 30.0])
def test_a_group_pays_for_every_cell_that_it_may_have_alone(noise, adjacency, rows, epsilon):
    made = category_mechanism("x", noise, 2, adjacency, PrivacyGuarantee(epsilon, 1e-4), rows)
    cells = 2 * (2 if adjacency == "replace_one" else 1)
    loss = made.privacy_loss()
    # All ways in which m rows of each column and direction lie in cells of their own.
    chances = [_most_shown(made, rows) for _ in range(cells)]
    nothing = 1.0 - np.prod([1.0 - chance for chance in chances])
    assert loss.delta(200.0) >= nothing * (1.0 - 1e-9)
    # and the noise on cells that others have too: at least that of one cell which all rows move
    shift = rows / float(made.scale[0])
    at = 0.3
    if noise == "iid_laplace":
        moved = 1.0 - np.exp((at - shift) / 2.0) if at < shift else 0.0
    else:
        moved = GaussianLoss(np.sqrt(cells) * shift).delta(at)
    assert loss.delta(at) >= moved * (1.0 - 1e-9)


def _most_shown(made, rows):
    """Return the largest chance, over all partitions, that a cell of so many rows is shown."""
    best = [0.0] * (rows + 1)
    for total in range(1, rows + 1):
        best[total] = max(
            1.0 - (1.0 - made.chance(first)) * (1.0 - best[total - first])
            for first in range(1, total + 1)
        )
    return best[rows]


@each_value(1)
@pytest.mark.parametrize("make", ENCODERS)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_public_categories_stand_in_any_pipeline(make, delta):
    y = (FRAME["colour"] == "red").to_numpy().astype(int)
    for categories in ([["blue", "green", "red"]], {"colour": ["blue", "green", "red"]}):
        steps = [("kinds", make(categories=categories)), ("model", DPLogisticCD(classes=[0, 1]))]
        ledger = Notebook()
        model = DPPipeline(steps, epsilon=5.0, delta=delta, ledger=ledger).fit(FRAME[["colour"]], y)
        assert len(ledger.charges) == 1
        if make is DPOneHotEncoder:
            assert model.score(FRAME[["colour"]], y) > 0.9


def test_whole_numbers_match_as_what_a_column_holds_them_as():
    for column in (
        pd.DataFrame({"n": pd.array([1, 2, None, 2], dtype="Int64")}),
        pd.DataFrame({"n": pd.Series([1, 2, np.nan, 2]).astype("category")}),
        pl.DataFrame({"n": [1, 2, None, 2]}),
        np.array([[1.0], [2.0], [np.nan], [2.0]]),
    ):
        found = DPOneHotEncoder(categories=[[1, 2]]).fit_transform(column)
        np.testing.assert_array_equal(found, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_two_encoders_share_the_chance_of_a_pipeline():
    beside = ColumnTransformer(
        [("one", DPOneHotEncoder(), ["colour"]), ("two", DPOrdinalEncoder(), ["size"])]
    )
    y = (FRAME["colour"] == "red").to_numpy().astype(int)
    model = DPPipeline([("both", beside), ("model", DPLogisticCD())], epsilon=5.0)
    report = model.fit(FRAME, y).privacy_
    found = [one.loss for one in report.releases if one.of == "columns"]
    chances = [ChanceBudget.spent(loss).chance for loss in found]
    assert len(chances) == 2
    assert sum(chances) <= ChanceBudget.of(report.guarantee).chance
    assert sum(chances) > 0.9 * ChanceBudget.of(report.guarantee).chance


def test_the_largest_whole_numbers_are_categories_where_no_missing_value_rounds_them():
    largest = pd.array([2**64 - 1] * 400, dtype="UInt64")
    encoder = DPOneHotEncoder(random_state=0).fit(pd.DataFrame({"a": largest}))
    assert encoder.categories_[0].tolist() == [2**64 - 1]
    odd = np.array([[2**64 - 1], [2**64]], dtype=object)
    np.testing.assert_array_equal(encoder.transform(odd), [[1, 0], [0, 1]])
    with pytest.raises(ValueError, match=r"2\*\*53.*column 'x0'.*Int64"):
        DPOneHotEncoder(ledger=Forbidden()).fit(np.full((400, 1), 2**53, dtype=np.uint64))
    for value in (-(2**53), -(2**60)):
        with pytest.raises(ValueError, match=r"below 2\*\*53"):
            DPOneHotEncoder(ledger=Forbidden()).fit(np.full((400, 1), value))


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "float64[pyarrow]", "polars"])
def test_floats_of_any_size_are_categories_and_one_of_them_refuses_nothing(dtype):
    values = [2.0**53, 1e30, 5.0] * 300 + [-1e37]
    table = (
        pl.DataFrame({"a": values})
        if dtype == "polars"
        else pd.DataFrame({"a": values}, dtype=dtype)
    )
    encoder = DPOneHotEncoder(epsilon=5.0, random_state=0).fit(table)
    np.testing.assert_allclose(encoder.categories_[0], [5.0, 2.0**53, 1e30])


def test_decimal_numbers_that_doubles_would_merge_are_no_categories():
    values = [decimal.Decimal(2**53), decimal.Decimal(2**53 + 1)] * 200
    long = pa.decimal128(20, 0)
    for table in (
        pd.DataFrame({"a": pd.array(values, dtype=pd.ArrowDtype(long))}),
        pl.DataFrame({"a": values}, schema={"a": pl.Decimal(20, 0)}),
    ):
        for encoder in (DPOneHotEncoder, DPOrdinalEncoder, DPTableVectorizer):
            schema = {"schema": {"a": "category"}} if encoder is DPTableVectorizer else {}
            with pytest.raises(ValueError, match=r"below 2\*\*53.*'a'"):
                encoder(ledger=Forbidden(), **schema).fit(table)
