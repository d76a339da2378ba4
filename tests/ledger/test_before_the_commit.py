"""All that a charge may raise is raised before it is spent, and says what to change."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdpnoise.ledger import LedgerWarning, PrivacyLedger
from skdpnoise.ledger import charge as charge_module
from skdpnoise.ledger.charge import Charge
from skdpnoise.privacy import PureLoss
from tests._cases import each_value

LOSS = PureLoss(0.1)
TEXTS = ("dataset", "who", "label", "mechanism", "estimator")


@pytest.fixture
def ledger(storage, dataset):
    """A ledger in each kind of storage, with one charge."""
    ledger = PrivacyLedger(dataset, 3.0, 1e-6, storage or "memory")
    ledger.charge("fit", LOSS)
    return ledger


def test_a_warning_that_is_an_error_spends_nothing(ledger, monkeypatch):
    monkeypatch.setattr(
        "skdpnoise.ledger.storage.base.now", lambda: "2020-01-01T00:00:00.000000+00:00"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LedgerWarning, match="behind the last charge"):
            ledger.charge("fit", LOSS)
    assert len(ledger.charges()) == ledger.total().n_charges == 1
    with pytest.warns(LedgerWarning):
        assert ledger.charge("fit", LOSS).number == 2


def test_an_answer_that_cannot_be_given_spends_nothing(ledger, monkeypatch):
    def fails(row):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Charge, "of", fails)
        with pytest.raises(MemoryError):
            ledger.charge("fit", LOSS)
    assert len(ledger.charges()) == ledger.total().n_charges == 1


@each_value(1)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("a\ud800", ValueError, "UTF-8.*surrogate pair at position 1"),
        ("b\0c", ValueError, "NUL at position 1"),
        (3, TypeError, "Got 3 of type int"),
        (b"a", TypeError, "of type bytes"),
    ],
)
def test_a_text_that_no_storage_keeps_is_refused_by_its_name(name, value, error, message):
    ledger = PrivacyLedger("trips", 3.0, 1e-6, "memory")
    with pytest.raises(error, match=rf"'{name}' parameter of PrivacyLedger.*{message}"):
        if name in ("dataset", "who"):
            PrivacyLedger(**{"dataset": "trips", "epsilon": 1.0, "delta": 0.0, name: value})
        else:
            ledger.charge(**{"label": "fit", "cost": LOSS, name: value})
    assert ledger.charges() == ()


def odd_values():
    """Values that have no end, no size, or no JSON."""
    cycle: list[object] = []
    cycle.append(cycle)
    table: dict[object, object] = {}
    table["again"] = table
    array = np.empty((), dtype=object)
    array[()] = array
    return {
        "cycle": cycle,
        "table": table,
        "array": array,
        "longdouble": np.longdouble(0.5),
        "complex": np.complex128(1j),
        "date": np.datetime64("2026-01-01"),
        "record": np.zeros((), dtype=[("a", float)])[()],
        "huge": 10**5000,
        "surrogate": "a\ud800",
        "keys": {(1, 2): 3, None: 4, 1.5: 5},
        "type": np.float64,
        "work": json.dumps,
        "set": {1},
        "bool": np.True_,
    }


def test_every_parameter_can_be_written_down():
    ledger = PrivacyLedger("trips", 3.0, 1e-6, "memory")
    stored = ledger.charge("fit", LOSS, parameters=odd_values()).parameters
    assert stored == ledger.charges()[0].parameters
    assert stored["longdouble"] == 0.5
    assert stored["huge"] == "int of 16610 bits"
    assert stored["complex"] == "complex128"
    assert stored["keys"] == {"tuple": 3, "None": 4, "1.5": 5}
    assert (stored["type"], stored["set"], stored["bool"]) == ("float64", [1], True)
    assert len(json.dumps(stored)) < 2000


class Model(BaseEstimator):
    """An estimator whose repr has its parameters."""

    def __init__(self, random_state=None, inner=None):
        self.random_state = random_state
        self.inner = inner


class Record:
    """An object whose repr has data."""

    def __repr__(self):
        return "a record of 4711"


@each_value(1)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: [x],
        lambda x: (("name", x),),
        lambda x: {"a": {"b": [x]}},
        lambda x: {x: 1},
        lambda x: np.array([x], dtype=object),
        lambda x: Model(inner=x),
    ],
    ids=["plain", "list", "steps", "dict", "key", "array", "estimator"],
)
@pytest.mark.parametrize("value", [Model(4711), Record()], ids=["estimator", "object"])
def test_no_repr_of_an_object_is_written_down(wrap, value):
    text = charge_module.stored_parameters({"it": wrap(value)})
    assert "4711" not in text
    json.loads(text)


@pytest.mark.parametrize("name", ["random_state", "model__random_state"])
def test_a_seed_is_never_written_down_however_deep_its_name(name):
    seeds = {"grid": [{name: [4711], "alpha": [0.1]}], name: 4711}
    text = charge_module.stored_parameters(seeds)
    assert "4711" not in text
    assert "0.1" in text


@pytest.mark.parametrize("seeds", [{"model__random_state": 1}, {"grid": [{"random_state": 1}]}])
def test_a_charge_says_of_every_seed_that_there_is_one_as_the_total_does(seeds):
    ledger = PrivacyLedger("trips", 1.0, 0.0, "memory")
    charge = ledger.charge("fit", PureLoss(0.1), parameters=seeds)
    assert not charge.secure
    assert not ledger.total().secure
    assert "NOT PRIVATE" in str(charge)
    assert ledger.charge("fit", PureLoss(0.1), parameters={"random_state": None}).secure
