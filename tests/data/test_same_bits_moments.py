"""Fits of moments, quantiles and scalers: the same bits in memory, in files and in dask."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCovariance,
    DPKBinsDiscretizer,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
)
from skdpnoise.data import scan_batches
from skdpnoise.data.computed import reading
from skdpnoise.data.local import LocalRunner
from skdpnoise.decomposition import _budget
from tests._cases import each_value
from tests._same_bits import COUNTS, differing, fitted, in_parts, source_of

pytestmark = pytest.mark.usefixtures("the_same_words")  # by which labels of groups are compared

N = 1200
NAMES = ["far", "tiny", "wide", "flag"]


def table(dtype=float, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([1e4, -2e-5, 3.0, 0.0], [5.0, 1e-6, 40.0, 1.0], size=(N, 4))
    X[:, 2] += 25.0 * X[:, 3]
    X[:, 3] = X[:, 3] > 0.0
    return X.astype(dtype)


BOUNDS = ([9e3, -1e-4, -500.0, 0.0], [11e3, 1e-4, 500.0, 1.0])
ONE_OPEN = ([9e3, -np.inf, -500.0, 0.0], [11e3, np.inf, np.inf, 1.0])
ESTIMATORS = {
    "components": DPPCA(2),
    "components about the origin": DPPCA("auto", center=False, whiten=True, n_jobs=2),
    "components in bounds": DPPCA(feature_bounds=BOUNDS),
    "covariance": DPCovariance(),
    "covariance of known norm": DPCovariance(row_norm=1e3, feature_bounds=ONE_OPEN),
    "standard": DPStandardScaler(),
    "standard, mean": DPStandardScaler(with_std=False, feature_bounds=ONE_OPEN),
    "robust": DPRobustScaler(),
    "ends": DPMinMaxScaler(),
    "ends, one open": DPMinMaxScaler(feature_bounds=ONE_OPEN),
    "ends, public": DPMinMaxScaler(feature_bounds=BOUNDS),
    "quantiles": DPQuantileTransformer(20, output_distribution="normal"),
    "bins": DPKBinsDiscretizer(4),
    "widths": DPKBinsDiscretizer(4, strategy="uniform", feature_bounds=BOUNDS),
    "means": DPSimpleImputer(),
    "modes": DPSimpleImputer(strategy="most_frequent", feature_bounds=BOUNDS),
    "a constant": DPSimpleImputer(strategy="constant"),
}
# Without pairs of rows, and without a subset of large data, nothing knows their order.
ORDERLESS = [
    *("components", "components in bounds", "covariance of known norm", "ends, public"),
    *("modes", "widths"),
]


def prepared(name, **settings):
    # So that everything is found and the code for what is found runs.
    return clone(ESTIMATORS[name]).set_params(epsilon=20.0, random_state=7, **settings)


class Charges:
    """A ledger that keeps what it is told."""

    def __init__(self):
        self.seen = []

    def charge(self, label, cost, **facts):
        self.seen.append((label, cost, sorted(facts.items(), key=str)))

    def __deepcopy__(self, memo):
        return self


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_any_number_of_parts_gives_the_same_bits(name, delta, adjacency):
    X, bills = table(), []
    whole = prepared(name, delta=delta, adjacency=adjacency)
    for rows in (X, *(in_parts(X, n_parts) for n_parts in COUNTS)):
        model = clone(whole)
        model.ledger = Charges()
        model.fit(rows)
        bills.append(model.ledger.seen)
        if rows is X:
            whole = model
        assert differing(whole, model) == []
    assert all(bill == bills[0] for bill in bills)
    assert bool(bills[0]) == bool(whole.privacy_.releases)


@pytest.mark.parametrize("name", ["components", "standard", "quantiles", "means"])
def test_float32_stays_float32_in_parts(name):
    X = table(np.float32)
    whole = prepared(name).fit(X)
    assert differing(whole, prepared(name).fit(in_parts(X, 7))) == []
    mixed = source_of([X[:500], X[500:].astype(float)])
    assert differing(prepared(name).fit(X.astype(float)), prepared(name).fit(mixed)) == []


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERLESS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_shuffled_rows_give_the_same_bits_where_no_order_is_used(name, adjacency):
    X, rng = table(), np.random.default_rng(1)
    whole = prepared(name, adjacency=adjacency).fit(X)
    for n_parts in COUNTS:
        rows = in_parts(X[rng.permutation(N)], n_parts, order=rng.permutation(n_parts))
        assert differing(whole, prepared(name, adjacency=adjacency).fit(rows)) == []


# Groups


def crowd():
    """A frame with the people that own its rows, each with one to five of them."""
    frame = pd.DataFrame(table(), columns=NAMES)
    frame["person"] = np.sort(np.random.default_rng(2).integers(0, N // 3, N))
    return frame


def parts_of_people(frame, n_parts):
    """Return parts that cut no person into two."""
    people = frame["person"].to_numpy() * n_parts // (frame["person"].max() + 1)
    return [frame[people == k] for k in range(n_parts)]


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*ESTIMATORS][::2])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_groups_in_parts_keep_the_same_rows(name, adjacency):
    frame = crowd()
    settings = {"rows_per_group": 2, "adjacency": adjacency}
    whole = prepared(name, **settings).fit(frame[NAMES], groups=frame["person"])
    for n_parts in COUNTS:
        rows = source_of(parts_of_people(frame, n_parts))
        model = prepared(name, **settings).fit(rows[NAMES], groups=rows["person"])
        assert differing(whole, model) == []


@pytest.mark.parametrize("name", ["components", "standard", "means"])
def test_a_person_in_two_parts_is_refused_before_the_charge(name):
    frame = crowd()
    rows = source_of([frame[::2], frame[1::2]])
    ledger = Charges()
    model = prepared(name, ledger=ledger)
    with pytest.raises(ValueError, match="Bring all rows of a group into one part"):
        model.fit(rows[NAMES], groups=rows["person"])
    assert ledger.seen == []
    assert fitted(model) == {}


def test_labels_and_rows_of_different_sources_are_refused():
    frame = crowd()
    one, other = source_of([frame]), source_of([frame])
    with pytest.raises(ValueError, match="columns of one source"):
        prepared("standard").fit(one[NAMES], groups=other["person"])
    with pytest.raises(TypeError, match="same parts"):
        prepared("standard").fit(one[NAMES], groups=frame["person"])
    with pytest.raises(TypeError, match="same parts"):
        prepared("standard").fit(frame[NAMES], groups=one["person"])


# Values


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["means", "modes", "a constant"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_missing_values_stay_missing_in_parts(name, adjacency):
    X = table()
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X[:40] = np.nan  # a whole part
    whole = prepared(name, adjacency=adjacency).fit(X)
    for n_parts in COUNTS:
        model = prepared(name, adjacency=adjacency).fit(in_parts(X, n_parts))
        assert differing(whole, model) == []
    if name != "a constant":
        assert (np.abs(whole.n_present_ / N - 0.68) < 0.05).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Float64", "object"])
def test_columns_of_other_types_are_read_as_whole_ones_are(kind):
    frame = pd.DataFrame(table(), columns=NAMES)
    frame.iloc[::7, 1] = np.nan
    frame = frame.astype(kind)
    whole = prepared("means").fit(frame)
    assert differing(whole, prepared("means").fit(in_parts(frame, 7))) == []


@pytest.mark.parametrize("name", ["components", "covariance", "standard", "ends", "bins"])
def test_a_value_in_a_part_is_refused_without_being_shown(name):
    X = table()
    X[700, 1] = np.nan
    X[700, 2] = 987654321.0
    ledger = Charges()
    with pytest.raises(ValueError, match="contains NaN") as caught:
        prepared(name, ledger=ledger).fit(in_parts(X, 7))
    assert "987654321" not in str(caught.value)
    assert ledger.seen == []


@pytest.mark.parametrize("name", ["components", "covariance", "standard", "quantiles", "means"])
def test_what_a_step_computed_is_replaced_in_parts_as_in_memory(name):
    X = table()
    X[::9, 0], X[1::9, 1], X[2::9, 2], X[3::9, 3] = np.nan, np.inf, -1e300, 1e-310
    models = []
    for rows in (X, in_parts(X, 2), in_parts(X, 7)):
        with reading({"X"}):
            models.append(prepared(name).fit(rows))
        assert differing(models[0], models[-1]) == []


def test_a_fit_of_one_row_in_parts_is_refused():
    with pytest.raises(ValueError, match="a minimum of 2"):
        prepared("standard").fit(scan_batches(lambda: [table()[:1]]))


# Large data


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["components", "covariance"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_subset_of_large_data_has_the_same_rows_in_parts(name, adjacency, monkeypatch):
    monkeypatch.setattr(_budget, "rows_needed", lambda total, n_columns: 200)
    X = table()
    whole = prepared(name, adjacency=adjacency).fit(X)
    for n_parts in COUNTS:
        model = prepared(name, adjacency=adjacency).fit(in_parts(X, n_parts))
        assert differing(whole, model) == []
    frame = crowd()
    settings = {"rows_per_group": 2, "adjacency": adjacency}
    whole = prepared(name, **settings).fit(frame[NAMES], groups=frame["person"])
    rows = source_of(parts_of_people(frame, 7))
    model = prepared(name, **settings).fit(rows[NAMES], groups=rows["person"])
    assert differing(whole, model) == []
    # Which rows are taken has an effect at all.
    monkeypatch.setattr(_budget, "_FEWEST_ROWS", N)
    assert "row_norm_" in differing(whole, prepared(name, adjacency=adjacency).fit(X))


# Pipelines


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("n_parts", [2, 7])
def test_each_step_of_a_pipeline_is_fitted_to_the_same_rows(framed, n_parts):
    X = pd.DataFrame(table(), columns=NAMES) if framed else table()

    def pipeline():
        steps = [
            *(BoundsClipper(BOUNDS), prepared("standard"), DPPCA(3, 20.0, random_state=1)),
            *(prepared("quantiles"), DPCovariance(20.0, random_state=2)),
        ]
        made = make_pipeline(*steps)
        return made.set_output(transform="pandas") if framed else made

    whole = pipeline().fit(X)
    model = pipeline().fit(in_parts(X, n_parts))
    for one, other in zip(whole, model, strict=True):
        assert differing(one, other) == []
    if framed:
        assert model[-1].feature_names_in_.tolist() == ["dppca0", "dppca1", "dppca2"]


# What travels


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_public_facts_and_no_randomness_travel_to_the_rows(name, monkeypatch):
    sent = []
    run, collect = LocalRunner.run, LocalRunner.collect

    def passed(jobs):
        return [
            cloudpickle.loads(sent.append(text) or text) for text in map(cloudpickle.dumps, jobs)
        ]

    def run_copies(self, jobs, label):
        return run(self, passed(jobs), label)

    def collect_copies(self, jobs, finish, label):
        return collect(self, passed(jobs), cloudpickle.loads(cloudpickle.dumps(finish)), label)

    monkeypatch.setattr(LocalRunner, "run", run_copies)
    monkeypatch.setattr(LocalRunner, "collect", collect_copies)
    X = table()
    model = prepared(name).fit(in_parts(X, 2))
    assert differing(prepared(name).fit(X), model) == []
    for word in (b"SeededWords", b"SystemWords", b"Account", b"Ledger", b"Mechanism", b"random_st"):
        assert not any(word in text for text in sent), word
    assert b"SeededWords" in cloudpickle.dumps(sent_words())
    assert bool(sent) == (name not in ("ends, public", "widths", "a constant"))


def sent_words():
    from skdpnoise.sampling import SeededWords

    return SeededWords(0)
