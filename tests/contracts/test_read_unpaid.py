"""Facts that a fit reads without paying are listed: in its report, its charge, and statement.

Neighbouring data sets differ in one such thing: a label of one record, the name of a column, its
type. Where a public attribute then differs with certainty, under the same seed, the report lists
what differed.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise import (
    DPGridSearchCV,
    DPLinearSVC,
    DPLogisticCD,
    DPPipeline,
    DPTableVectorizer,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.accounting.declared import COLUMNS, LABELS
from skdpnoise.ledger import model_card, report_from_json, report_to_json
from skdpnoise.model_selection import dp_cross_validate
from tests._cases import each_value
from tests.contracts._register import ENTRIES, PRIVATE, each, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(240, 2))
LINE = "declared public by the user"


def frame(names=("a", "b")):
    return pd.DataFrame(X, columns=list(names))


def structure(value):
    """Return what is certain of an attribute: names, shapes and types, and no number."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUSb":
        return str(value.dtype), structure(value.tolist())
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    if isinstance(value, list | tuple):
        return [structure(one) for one in value]
    if isinstance(value, str | bool | int):
        return value
    return type(value).__name__


def certain(model):
    """Return the public attributes of a fitted model, as far as they are certain."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names |= {"classes_", "n_features_in_", "feature_names_in_", "coef_"}
    found = {name: structure(getattr(model, name, None)) for name in names - {"privacy_"}}
    if hasattr(model, "transform"):
        found["output"] = list(model.get_feature_names_out())
    return found


def fitted(entry, table, y, **parameters):
    made = entry.estimator(random_state=0, **parameters)
    return made.fit(table, y)


LABELLED = [entry for entry in PRIVATE if entry.target == "labels"]
CHANGES = {
    "name": lambda table: table.rename(columns={"b": "c"}),
    "type": lambda table: table.astype({"b": np.float32}),
    "nullable type": lambda table: table.astype({"b": "Float64"}),
    "library": pl.from_pandas,
    "no names": lambda table: table.to_numpy(),
}


@each_value(1)
@pytest.mark.slow
@each(ways(PRIVATE))
@pytest.mark.parametrize("change", CHANGES)
def test_what_follows_from_a_name_or_a_type_is_listed(entry, change):
    y, names = entry.y(X), frame()
    other = CHANGES[change](names)
    one, two = (fitted(entry, table, y) for table in (names, other))
    listed = [COLUMNS in model.privacy_.declared for model in (one, two)]
    assert listed[0]
    assert certain(one) == certain(two) or any(listed)
    if hasattr(two, "feature_names_in_"):
        assert listed[1]


@pytest.mark.slow
@each(LABELLED)
def test_a_label_that_only_one_record_has_is_listed(entry):
    y = entry.y(X)
    other = y.copy()
    other[-1] = 2
    one, two = (fitted(entry, X, labels) for labels in (y, other))
    assert certain(one) != certain(two)
    assert LABELS in one.privacy_.declared
    assert LABELS in two.privacy_.declared


@pytest.mark.slow
@each(LABELLED)
def test_labels_that_are_given_are_not_read_and_not_listed(entry):
    one = fitted(entry, X, entry.y(X), classes=[0, 1, 2])
    two = fitted(entry, X, np.zeros(len(X), int), classes=[0, 1, 2])
    assert certain(one) == certain(two)
    assert LABELS not in one.privacy_.declared


@each(ways([entry for entry in PRIVATE if entry.reads == "numbers"]))
def test_of_an_array_without_labels_nothing_is_listed(entry):
    given = {"classes": [0, 1]} if entry.target == "labels" else {}
    assert fitted(entry, X, entry.y(X), **given).privacy_.declared == ()


@pytest.mark.slow
@each(ways(PRIVATE))
def test_the_charge_lists_what_the_report_lists(entry):
    adjacency = entry.estimator().adjacency
    ledger = PrivacyLedger("rows", 50.0, 1e-2, adjacency=adjacency, storage="memory")
    model = fitted(entry, frame(), entry.y(X), ledger=ledger)
    for charge in ledger.charges():
        assert charge.declared == model.privacy_.declared
    if ledger.charges():
        assert set(ledger.total().declared) == set(model.privacy_.declared)


@each([entry for entry in ENTRIES if not entry.spends])
def test_what_spends_nothing_reads_nothing_but_names(entry):
    one, two = (entry.estimator().fit(frame(names)) for names in ("ab", "ac"))
    differ = {name for name, known in certain(one).items() if certain(two)[name] != known}
    assert differ == {"feature_names_in_", "output"}


@pytest.mark.parametrize("make", [DPLogisticCD, DPLinearSVC])
def test_all_that_is_stated_of_a_fit_says_so(make):
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage="memory")
    y = (X[:, 0] > 0.0).astype(int)
    model = make(feature_bounds=(-1.0, 1.0), n_passes=1, ledger=ledger).fit(frame(), y)
    report, text = model.privacy_, f"{LABELS}, {COLUMNS}"
    assert f"{LINE}: {text}" in str(report)
    assert text in " ".join(report.statement().split())
    assert text in report._repr_html_()
    assert report_from_json(report_to_json(report)).declared == report.declared
    assert json.loads(report_to_json(report))["declared_public"] == [LABELS, COLUMNS]
    assert text in " ".join(model_card(model).split())
    assert f"{LINE}: {text}" in str(ledger.charges()[0])
    assert f"{LINE}: {text}" in str(ledger.total())
    assert f"{LINE}: {text}" in str(total_guarantee(model))


def table():
    return pd.DataFrame({"a": X[:, 0], "t": np.where(X[:, 1] > 0.0, "x", "y")})


def steps():
    return [("table", DPTableVectorizer({"t": ["x", "y"]})), ("model", DPLogisticCD(n_passes=1))]


COMPOSITIONS = {
    "pipeline": lambda **k: DPPipeline(steps(), **k),
    "pipeline in a pipeline": lambda **k: DPPipeline(
        [("first", DPPipeline(steps()[:1])), steps()[1]], **k
    ),
    "search": lambda **k: DPGridSearchCV(DPPipeline(steps()), {"model__alpha": [0.0, 0.1]}, **k),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_composition_lists_facts_once_and_steps_by_their_names(name):
    ledger = PrivacyLedger("rows", 10.0, 1e-6, storage="memory")
    model = COMPOSITIONS[name](ledger=ledger).fit(table(), X[:, 0] > 0.0)
    label = "first__table__schema" if "in a" in name else "table__schema"
    (charge,) = ledger.charges()
    for declared in (model.privacy_.declared, charge.declared, total_guarantee(model).declared):
        assert set(declared) == {label, LABELS, COLUMNS}
        assert len(declared) == 3
    assert model.privacy_.declared[0] == label


@pytest.mark.slow
def test_a_cross_validation_lists_them_too():
    found = dp_cross_validate(DPPipeline(steps()), table(), X[:, 0] > 0.0, cv=2)
    assert set(found.privacy.declared) == {"table__schema", LABELS, COLUMNS}
    assert {LABELS, COLUMNS} <= set(total_guarantee(found).declared)
