"""Missing values that are skipped: how they are read, and what one record can do then."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chi2

from skdpnoise.data import scan_parquet
from skdpnoise.data.missing import is_missing, present
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_count, private_mean, private_quantiles, private_sum
from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.observer import observed
from tests._cases import each_value, quick
from tests._same_bits import COUNTS, in_parts
from tests._statistics import FALSE_ALARM
from tests.contracts._register import Notebook

pytestmark = pytest.mark.usefixtures("the_same_words")


RELATIONS = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
SKIP = {"missing": "skip", "noise": "inid_laplace"}
NUMBERS = [1.25, None, 3.0, 2.5, None, 0.5] * 20
WHOLE = [1, None, 3, 2, None, 0] * 20
TRUTHS = [True, None, False, True] * 30
LOW, HIGH = np.array([-1.0, 0.0, 5.0]), np.array([2.0, 0.3, 105.0])


def floats(values):
    return np.array([np.nan if value is None else float(value) for value in values])


def objects(values, missing):
    found = np.empty(len(values), dtype=object)
    found[:] = [missing if value is None else value for value in values]
    return found


READERS = {
    "list": list,
    "array of None": lambda v: objects(v, None),
    "array of NaN": lambda v: objects(v, np.nan),
    "array of NA": lambda v: objects(v, pd.NA),
    "masked array": lambda v: np.ma.masked_invalid(floats(v)),
    "series of objects": lambda v: pd.Series(v, dtype=object),
    "series": lambda v: pd.Series(floats(v)),
    "polars": pl.Series,
    "polars of objects": lambda v: pl.Series(v, dtype=pl.Object),
    "arrow": pa.array,
    "arrow in chunks": lambda v: pa.chunked_array([v[:50], v[50:]]),
}
NULLABLE = {
    "numbers": (NUMBERS, ["Float64", "double[pyarrow]"]),
    "whole numbers": (WHOLE, ["Int64", "Float64", "int64[pyarrow]"]),
    "truth values": (TRUTHS, ["boolean", "bool[pyarrow]"]),
}
FORMS = [
    pytest.param(values, read(values), id=f"{kind}: {name}")
    for (name, read), (kind, (values, _)) in zip(
        READERS.items(), itertools.cycle(NULLABLE.items()), strict=False
    )
] + [
    pytest.param(values, pd.Series(values, dtype=dtype), id=f"{kind}: {dtype}")
    for kind, (values, dtypes) in NULLABLE.items()
    for dtype in dtypes
]
DECIMALS = [None if value is None else Decimal(value) for value in NUMBERS]
EXACT = [
    pytest.param(NUMBERS, pd.Series(DECIMALS, dtype=object), id="numbers: objects of Decimal"),
    pytest.param(NUMBERS, pl.Series(NUMBERS).cast(pl.Decimal(10, 2)), id="numbers: Decimal"),
]
if hasattr(pl, "Int128"):
    EXACT += [pytest.param(WHOLE, pl.Series(WHOLE, dtype=pl.Int128), id="whole numbers: Int128")]
# Of columns of truth values, which may be masks, see below.
COUNTED = [one for one in FORMS if "truth values" not in str(one.id)][:13] + EXACT
FORMS += EXACT


@each_value(1)
@RELATIONS
@pytest.mark.parametrize(("values", "form"), FORMS)
def test_every_reader_skips_the_same_values(values, form, adjacency):
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    for way in (private_mean, private_sum):
        expected = way(floats(values), 0.0, 4.0, guarantee, **SKIP, random_state=0)
        found = way(form, 0.0, 4.0, guarantee, **SKIP, random_state=0)
        assert (found.value, found.standard_error) == (expected.value, expected.standard_error)


@pytest.mark.parametrize(("values", "form"), COUNTED)
def test_every_reader_counts_the_same_values(values, form):
    guarantee = PrivacyGuarantee(1.0)
    expected = private_count(floats(values), guarantee, **SKIP, random_state=0).value
    assert private_count(form, guarantee, **SKIP, random_state=0).value == expected


DAY = datetime.date(2020, 2, 3)


@pytest.mark.parametrize(
    "column",
    [
        ["a", None, "b"],
        np.array(["a", "b"]),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        pl.Series(["a", None, "b"]),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pa.array(["a", None, "b"]),
        [DAY, None, DAY],
        np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[D]"),
        pd.to_datetime(pd.Series([DAY, None, DAY])),
        pd.to_datetime(pd.Series([DAY, None, DAY])).dt.tz_localize("UTC"),
        pl.Series([DAY, None, DAY]),
        pd.Series([1, None, 2], dtype="category"),
        np.array([3, 4]),
        pd.Series([pd.NA, pd.NaT, None, 1.0, "x"], dtype=object),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_of_any_type_has_its_values_counted(column):
    assert private_count(column, PrivacyGuarantee(1e4), **SKIP).value == 2


def tables(nullable):
    rng = np.random.default_rng(3)
    X = rng.normal(1.0, 2.0, size=(300, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b"])
    return X, frame.astype("Float64") if nullable else frame


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("nullable", [False, True])
def test_parts_give_the_same_bits_and_need_not_have_missing_values(nullable, adjacency, tmp_path):
    guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency=adjacency)
    X, frame = tables(nullable)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=40)
    sources = [in_parts(frame, n_parts) for n_parts in COUNTS]
    sources.append(scan_parquet(tmp_path / "rows.parquet", batch_rows=17))
    for way in (private_mean, private_sum):
        expected = way(X, -1.0, 4.0, guarantee, missing="skip", random_state=0)
        for source in sources:
            found = way(source, -1.0, 4.0, guarantee, missing="skip", random_state=0)
            assert found.value.tolist() == expected.value.tolist()
            assert np.array_equal(found.count, expected.count)
    for source in sources:
        found = private_count(source["a"], guarantee, missing="skip", random_state=0)
        expected = private_count(X[:, 0], guarantee, missing="skip", random_state=0)
        assert found.value == expected.value


class Integers:
    """Sees the integers that meet noise."""

    def __init__(self):
        self.seen = []

    def rng(self):
        return SeededWords(0)

    def sum(self, mechanism, integers, noise):
        self.seen.append(np.array(integers, dtype=object))
        return integers + noise

    def charge(self, label, mechanism):
        pass


def integers_of(way, table, *args, **options):
    """Return the integers of a whole query, before their noise, and its mechanism."""
    watcher = Integers()
    found = observed(watcher, way, table, *args, **options)
    (integers,) = watcher.seen
    return integers.astype(np.float64), found.mechanism


def moves(table, adjacency, rng):
    """Yield neighbours: present to missing, missing to present, value to value, all columns."""
    extremes = [
        np.array(one) for one in itertools.product(*zip(LOW, HIGH, [np.nan] * 3, strict=True))
    ]
    some = [
        np.where(rng.random(3) < 0.6, rng.uniform(LOW - 5, HIGH + 5), np.nan) for _ in range(40)
    ]
    for row, record in itertools.product(range(3), extremes + some):
        if adjacency == "replace_one":
            other = table.copy()
            other[row] = record
            yield other
        else:
            yield np.vstack([table, record])
            yield np.delete(table, row, axis=0)


@quick("private_mean-0.0-replace_one")
@each_value(1)
@RELATIONS
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("way", [private_mean, private_sum])
def test_no_record_moves_what_is_released_further_than_stated(way, delta, adjacency):
    rng = np.random.default_rng(0)
    table = rng.uniform(LOW - 1, HIGH + 1, size=(12, 3))
    table[:4] = [LOW, HIGH, [np.nan] * 3, [np.nan, HIGH[1], LOW[2]]]
    guarantee = PrivacyGuarantee(1.0, delta, adjacency=adjacency)
    noise = "inid_gaussian" if delta else "inid_laplace"
    options = {"missing": "skip", "noise": noise, "random_state": 0}
    args = LOW, HIGH, guarantee
    before, mechanism = integers_of(way, table, *args, **options)
    profile, step = mechanism.sensitivity, mechanism.grid_size
    worst, l1, l2 = np.zeros(step.size), 0.0, 0.0
    for other in moves(table, adjacency, rng):
        after, _ = integers_of(way, other, *args, **options)
        moved = np.abs(after - before)
        assert (moved <= profile.per_coordinate / step + 1).all()
        least = np.maximum(moved - 1, 0) * step  # rounding of the sum is charged for by itself
        l1, l2 = max(l1, least.sum()), max(l2, float(np.linalg.norm(least)))
        worst = np.maximum(worst, moved)
    assert (worst >= profile.per_coordinate / step - 2).all()
    for reached, stated in ((l1, profile.l1), (l2, profile.l2)):
        assert stated is None or (1 - 1e-6) * stated <= reached <= stated
    assert (profile.l1 is not None) == (way is private_mean and adjacency == "replace_one")


@RELATIONS
def test_a_value_that_goes_missing_moves_a_count_by_one(adjacency):
    column = np.array([3.0, np.nan, 5.0])
    options = {"missing": "skip", "noise": "inid_laplace"}
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    before, mechanism = integers_of(private_count, column, guarantee, **options)
    one = 1.0 / mechanism.grid_size
    for other, moved in (
        ([3.0, np.nan, np.nan], -1),
        ([3.0, 4.0, 5.0], 1),
        ([9.0, np.nan, 5.0], 0),
        ([3.0, np.nan, 5.0, np.nan], 0),
        ([3.0, np.nan], -1),
    ):
        after, _ = integers_of(private_count, np.array(other), guarantee, **options)
        assert after - before == pytest.approx(moved * one, abs=1)
        assert abs(after - before) <= one + 1


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("way", [private_mean, private_sum])
def test_the_noise_does_not_depend_on_what_is_missing(way, adjacency):
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    X = np.random.default_rng(1).uniform(0.0, 1.0, size=(50, 3))
    some = np.where(np.random.default_rng(2).random(X.shape) < 0.5, np.nan, X)
    scales = [
        way(table, LOW, HIGH, guarantee, **SKIP).mechanism.scale.tolist()
        for table in (X, some, np.full((50, 3), np.nan))
    ]
    assert scales[0] == scales[1] == scales[2]


@pytest.mark.parametrize(
    ("noise", "delta", "ratio"), [("laplace", 0.0, 1.0), ("gaussian", 1e-6, 3.0)]
)
def test_where_records_are_replaced_the_count_costs_nothing_beside_the_sum(noise, delta, ratio):
    guarantee = PrivacyGuarantee(1.0, delta)
    X = np.full((100, 3), 0.5)
    plain = private_mean(X, 0.0, 1.0, guarantee, noise=f"inid_{noise}").mechanism
    found = private_mean(X, 0.0, 1.0, guarantee, missing="skip", noise=f"inid_{noise}").mechanism
    shares, counts = np.split(found.standard_deviation, 2)
    # In half widths: the sum has twice the units.
    assert shares == pytest.approx(2.0 * plain.standard_deviation, rel=0.002)
    step = found.sensitivity.per_coordinate[-1]
    assert (shares / (counts / step)) ** 2 == pytest.approx(ratio, rel=0.01)


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("way", ["mean", "sum", "count"])
def test_errors_are_those_that_are_stated(way, adjacency):
    rng = np.random.default_rng(5)
    values = rng.uniform(2.0, 9.0, size=4000)
    values[rng.random(values.size) < 0.3] = np.nan
    there = values[~np.isnan(values)]
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    ask = {
        "mean": lambda k: private_mean(values, 0.0, 10.0, guarantee, **SKIP, random_state=k),
        "sum": lambda k: private_sum(values, 0.0, 10.0, guarantee, **SKIP, random_state=k),
        "count": lambda k: private_count(values, guarantee, **SKIP, random_state=k),
    }[way]
    truth = {"mean": there.mean(), "sum": there.sum(), "count": there.size}[way]
    found = [ask(k) for k in range(300)]
    errors = np.array([(one.value - truth) / one.standard_error for one in found])
    # Laplace noise has a kurtosis of 6: squares are as variable as those of 300 · 2/5 normal ones.
    freedom = errors.size * 0.4
    statistic = float((errors**2).mean()) * freedom
    p = 2 * min(chi2.sf(statistic, freedom), chi2.cdf(statistic, freedom))
    assert p > FALSE_ALARM
    assert abs(errors.mean()) < 6.0 / np.sqrt(errors.size)
    if way == "mean":
        counts = np.array([one.count for one in found])
        assert abs(counts.mean() - there.size) < 6.0 * counts.std() / np.sqrt(counts.size)


def test_a_table_has_a_count_of_each_column_and_prints_them():
    X = np.full((1000, 2), 0.5)
    X[:400, 1] = np.nan
    found = private_mean(X, 0.0, 1.0, PrivacyGuarantee(50.0), missing="skip", random_state=0)
    assert found.count == pytest.approx([1000, 600], abs=2)
    assert "count [1000" in str(found).replace("999.9", "1000.")


@RELATIONS
def test_a_skipped_sum_is_that_of_clipped_values_with_zero_for_what_is_missing(adjacency):
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    values = np.array([3.0, np.nan, 9.0, 1.0] * 30)
    filled = np.where(np.isnan(values), 0.0, np.clip(values, 2.0, 5.0))
    found = private_sum(values, 2.0, 5.0, guarantee, **SKIP, random_state=0)
    expected = private_sum(filled, 0.0, 5.0, guarantee, noise="inid_laplace", random_state=0)
    assert (found.value, found.standard_error) == (expected.value, expected.standard_error)


def test_nothing_that_is_there_gives_a_mean_within_the_bounds_and_an_error_that_says_so():
    for adjacency in ("replace_one", "add_remove"):
        guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
        found = private_mean([None] * 50, 2.0, 6.0, guarantee, **SKIP)
        assert 2.0 <= found.value <= 6.0
        assert found.standard_error >= 0.5


def test_the_default_refuses_what_is_missing_and_names_what_works():
    guarantee = PrivacyGuarantee(1.0)
    for values in (floats(NUMBERS), pd.Series(NUMBERS, dtype="Float64"), pa.array(NUMBERS)):
        for way in (private_mean, private_sum):
            with pytest.raises(ValueError, match=f"'values' parameter of {way.__name__}") as caught:
                way(values, 0.0, 1.0, guarantee, noise="inid_laplace")
            assert "missing='skip'" in str(caught.value)
            way(values, 0.0, 1.0, guarantee, **SKIP)
        with pytest.raises(ValueError, match="'values' parameter of private_quantiles") as caught:
            private_quantiles(values, 0.5, guarantee)
        assert "'skip'" not in str(caught.value)
    masks = (pd.Series(TRUTHS, dtype="boolean"), pl.Series(TRUTHS), pa.array(TRUTHS))
    for mask in masks:
        for missing in ("error", "skip"):
            with pytest.raises(TypeError, match="fill") as caught:
                private_count(mask, guarantee, missing=missing)
            assert "False" in str(caught.value)
    assert private_count(masks[0].fillna(False), PrivacyGuarantee(1e4)).value == 60
    assert private_count(masks[1].fill_null(False), PrivacyGuarantee(1e4)).value == 60


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: private_mean([1.0], 0, 1, PureLoss(1.0), missing="drop", **k), "'missing'"),
        (lambda k: private_count([1.0], PureLoss(1.0), missing="drop", **k), "'missing'"),
        (lambda k: private_count(3, PureLoss(1.0), missing="skip", **k), "'records'"),
        (lambda k: private_count([[1.0]], PureLoss(1.0), missing="skip", **k), "'records'"),
        (lambda k: private_count([True, None], PureLoss(1.0), missing="skip", **k), "'records'"),
        (lambda k: private_sum(["123.25", None], 0, 1, PureLoss(1.0), **SKIP, **k), "'values'"),
        (
            lambda k: private_sum(pd.Series(["123.25"]), 0, 1, PureLoss(1.0), **SKIP, **k),
            "'values'",
        ),
        (lambda k: private_sum([123.25, np.inf], 0, 1, PureLoss(1.0), **SKIP, **k), "infinity"),
        (lambda k: private_sum([1j, None], 0, 1, PureLoss(1.0), **SKIP, **k), "'values'"),
        (lambda k: private_mean(np.empty((0, 1)), 0, 1, PureLoss(1.0), **SKIP, **k), "empty"),
        (
            lambda k: private_mean(np.ma.masked_equal([123.25], 1), 0, 1, PureLoss(1.0), **k),
            "masked",
        ),
    ],
)
def test_what_is_refused_is_neither_charged_nor_quoted(call, message):
    book = Notebook()
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        call({"adjacency": "replace_one", "ledger": book})
    assert "123.25" not in str(caught.value)
    assert book.charges == []


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("way", [private_mean, private_sum, private_count])
def test_a_ledger_is_charged_once_for_the_mechanism_that_drew(way, adjacency):
    bounds = () if way is private_count else (0.0, 1.0)
    book, guarantee = Notebook(), PrivacyGuarantee(0.5, adjacency=adjacency)
    found = way([0.5, None], *bounds, guarantee, **SKIP, ledger=book)
    (charge,) = book.charges
    assert charge["label"] == way.__name__
    assert charge["adjacency"] == adjacency
    assert charge["cost"] == str(found.mechanism.own_loss())
    assert PureLoss(0.5).pure_epsilon == found.mechanism.privacy_loss().pure_epsilon


@pytest.mark.parametrize("way", [private_mean, private_sum, private_quantiles, private_count])
def test_a_lazy_frame_is_to_be_collected(way):
    frame = pl.DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"LazyFrame.*\.collect\(\)"):
        args = (0.5,) if way is private_quantiles else (0.0, 3.0)
        args = () if way is private_count else args
        way(frame.lazy(), *args, guarantee=PrivacyGuarantee(1.0))


def test_what_stands_for_no_value_is_told_from_values_of_any_type():
    gone = [None, np.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
    assert all(map(is_missing, [*gone, pa.scalar(None, pa.float64())]))
    there = [0.0, np.inf, "", "nan", (), False, Decimal(1), pa.scalar(0.0), datetime.date.min]
    assert not any(map(is_missing, there))
    entries = np.empty(len(gone) + 2, dtype=object)
    entries[:] = [1.0, *gone, "text"]
    assert present(entries).tolist() == [True, *[False] * len(gone), True]
