"""A ledger charges, refuses, remembers and explains itself, wherever it is kept."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sqlite3
import tracemalloc
import warnings
import weakref
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

import skdpnoise
from skdpnoise.accounting import composition
from skdpnoise.ledger import BudgetExceededError, LedgerWarning, PrivacyLedger
from skdpnoise.ledger.charge import Charge, columns_of, history_columns
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import quick

DELTA = 1e-6


@pytest.fixture
def ledger(storage, dataset) -> PrivacyLedger:
    return PrivacyLedger(dataset, 1.0, DELTA, storage, who="someone")


class Holder(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


def test_the_ledger_is_at_the_front_door():
    assert skdpnoise.PrivacyLedger is PrivacyLedger


def test_a_charge_says_everything_and_is_kept(ledger):
    before = datetime.now(UTC)
    charge = ledger.charge(
        "a fit",
        PureLoss(0.25),
        guarantee=(0.5, 1e-7),
        mechanism="iid_laplace",
        estimator="DPSomething",
        parameters={"alpha": 0.1},
    )
    assert (charge.number, charge.label, charge.estimator) == (1, "a fit", "DPSomething")
    assert (charge.mechanism, charge.who) == ("iid_laplace", "someone")
    assert (charge.loss, charge.guarantee) == (PureLoss(0.25), (0.5, 1e-7))
    assert charge.parameters == {"alpha": 0.1}
    assert before <= charge.time <= datetime.now(UTC)
    assert str(charge) == "1. a fit (DPSomething): 0.25-DP"
    assert ledger.charges() == (charge,)
    assert ledger.charge("another", PureLoss(0.25)).token != charge.token


def test_a_new_ledger_has_spent_nothing(ledger):
    total = ledger.total()
    assert (total.n_charges, total.epsilon, total.basic, total.left) == (0, 0.0, (0.0, 0.0), 1.0)
    assert total.loss == PureLoss(0.0)
    assert ledger.charges() == ()
    assert ledger.history().empty
    assert "budget" in ledger._repr_html_()


@pytest.mark.slow
def test_a_refused_charge_spends_nothing_and_says_what_was_asked_spent_and_left(ledger):
    ledger.charge("first", PureLoss(0.75))
    with pytest.raises(
        BudgetExceededError,
        match=r"'second' asks for 0.5-DP, with which the total would be epsilon=1.25 at "
        r"delta=1e-06: 1 charge spent 0.75 of the budget epsilon=1, and 0.25.* is left. Nothing "
        "was charged",
    ):
        ledger.charge("second", PureLoss(0.5))
    assert ledger.total().n_charges == 1
    with pytest.raises(BudgetExceededError, match="'third' asks"):  # remembered, but not the name
        ledger.charge("third", PureLoss(0.5))
    ledger.charge("smaller", PureLoss(0.25))
    with pytest.raises(BudgetExceededError, match="2 charges spent 1 of"):
        ledger.charge("fourth", PureLoss(0.5))


def test_a_mechanism_is_charged_for_by_what_its_noise_discloses(ledger):
    mechanism = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.05))
    charge = ledger.charge("fit", mechanism)
    assert charge.loss == mechanism.own_loss()
    assert charge.mechanism == "iid_laplace"
    assert charge.guarantee == (mechanism.own_loss().pure_epsilon, 0.0)

    class Promise:
        noise = "some_noise"

        def privacy_loss(self):
            return GaussianLoss(0.1)

    charge = ledger.charge("fit", Promise())
    assert (charge.loss, charge.mechanism) == (GaussianLoss(0.1), "some_noise")
    assert charge.guarantee == (pytest.approx(GaussianLoss(0.1).epsilon(DELTA)), DELTA)


@quick("iid_laplace")
@pytest.mark.parametrize("noise", [f"iid_{name}" for name in noise_names()])
def test_one_fit_may_spend_the_whole_budget(noise):
    guarantee = PrivacyGuarantee(1.0, DELTA)
    mechanism = calibrate(noise, SensitivityProfile([1.0, 3.0, 2.0]), guarantee)
    ledger = PrivacyLedger("whole", 1.0, DELTA)
    ledger.charge("fit", mechanism, guarantee=guarantee)
    assert 0.9 < ledger.total().epsilon <= 1.0
    with pytest.raises(BudgetExceededError):
        ledger.charge("fit", mechanism, guarantee=guarantee)


@pytest.mark.slow
def test_a_fit_with_many_terms_may_spend_the_whole_budget_too():
    # Written down in the short form, which is larger, it would not fit.
    profile = SensitivityProfile(np.linspace(1.0, 5.0, 500))
    mechanism = calibrate("spr_laplace", profile, PrivacyGuarantee(1.0, DELTA))
    loss = mechanism.own_loss()
    if len(loss.terms) <= 200:
        laplace = get_noise("laplace")
        loss = NumericLoss(tuple((laplace, 0.005 + 1e-6 * k, 1) for k in range(500)))
    budget = loss.epsilon(DELTA) * (1.0 + 1e-9)
    ledger = PrivacyLedger("whole", budget, DELTA)
    charge = ledger.charge("fit", loss)
    assert charge.loss == loss
    roomy = PrivacyLedger("whole", 2.0 * budget, DELTA)
    assert len(roomy.charge("fit", loss).loss.terms) <= 200


@pytest.mark.parametrize("cost", [PureLoss(0.0), GaussianLoss(0.0), NumericLoss(())])
def test_a_loss_of_zero_is_written_down_and_costs_nothing(ledger, cost):
    ledger.charge("nothing", cost)
    total = ledger.total()
    assert (total.n_charges, total.epsilon, total.basic) == (1, 0.0, (0.0, 0.0))


def test_an_infinite_loss_is_refused():
    ledger = PrivacyLedger("pure", 1.0, 0.0)
    with pytest.raises(ValueError, match="finite epsilon at the delta=0 of the budget"):
        ledger.charge("fit", GaussianLoss(0.1))
    with pytest.raises(BudgetExceededError, match="epsilon=inf"):
        ledger.charge("fit", GaussianLoss(0.1), guarantee=(0.5, 1e-6))
    ledger = PrivacyLedger("approximate", 50.0, DELTA)
    often = NumericLoss(((get_noise("truncated_laplace", 5.0), 0.5, 3),))
    with pytest.raises(ValueError, match="finite epsilon"):
        ledger.charge("fit", often)
    assert ledger.total().n_charges == 0


@pytest.mark.slow
def test_an_adaptive_ledger_takes_what_holds_however_losses_were_chosen(storage, dataset):
    ledger = PrivacyLedger(dataset, 5.0, DELTA, storage, adaptive=True)
    count = 0
    with pytest.raises(BudgetExceededError, match=r"would be epsilon=5\.0"):
        while True:
            ledger.charge("fit", PureLoss(0.05))
            count += 1
    total = ledger.total()
    assert total.adaptive
    assert 100 < count < 300
    assert total.epsilon < total.adaptive_epsilon == total.spent <= 5.0
    assert total.left == 5.0 - total.adaptive_epsilon
    with pytest.raises(BudgetExceededError, match="adaptive=False"):
        ledger.charge("fit", NumericLoss(((get_noise("subbotin"), 1e-4, 1),)))


def test_a_cost_for_other_neighbours_is_refused(ledger):
    with pytest.raises(ValueError, match=r"'adjacency'.* must be 'replace_one'.*'add_remove'"):
        ledger.charge("fit", PureLoss(0.1), adjacency="add_remove")
    ledger.charge("fit", PureLoss(0.1), adjacency="replace_one", unit="record")
    ledger.charge("fit", PureLoss(0.1), unit="group")  # more than was promised
    with pytest.raises(ValueError, match=r"'unit'.*'record', 'group'.*'city'"):
        ledger.charge("fit", PureLoss(0.1), unit="city")
    assert ledger.total().n_charges == 2


def test_a_cost_for_groups_that_come_and_go_says_nothing_of_single_records():
    ledger = PrivacyLedger("trips", 1.0, DELTA, adjacency="add_remove")
    with pytest.raises(ValueError, match=r"push another out.*unit='group'"):
        ledger.charge("fit", PureLoss(0.1), unit="group")
    assert ledger.total().n_charges == 0


def test_a_ledger_of_groups_refuses_a_cost_for_records(storage, dataset):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, storage, unit="group", adjacency="add_remove")
    assert (ledger.unit, ledger.guarantee.adjacency) == ("group", "add_remove")
    with pytest.raises(ValueError, match=r"protects all records of a group.*groups="):
        ledger.charge("fit", PureLoss(0.1), unit="record")
    ledger.charge("fit", PureLoss(0.1), unit="group", adjacency="add_remove")
    assert ledger.total().n_charges == 1


def test_parameters_are_written_down_without_data_and_seeds(ledger):
    parameters = {
        "alpha": 0.5,
        "bounds": np.array([0.0, 1.0]),
        "many": np.arange(1000.0),
        "frame": pd.DataFrame({"secret": [1.0, 2.0]}),
        "rows": list(range(100)),
        "random_state": 12345,
        "scaler__random_state": np.random.RandomState(0),
        "ledger": ledger,
        "scale": np.float64(2.0),
        "limit": math.inf,
        "text": "x" * 1000,
        "none": None,
        "nested": {"a": (1, 2)},
        "estimator": Holder(),
    }
    stored = ledger.charge("fit", PureLoss(0.1), parameters=parameters).parameters
    assert stored == ledger.charges()[0].parameters
    assert stored["alpha"] == 0.5
    assert stored["bounds"] == [0.0, 1.0]
    assert stored["many"] == "ndarray of shape (1000,), float64"
    assert stored["frame"] == "DataFrame of shape (2, 1)"
    assert stored["rows"] == "list of 100"
    assert stored["scale"] == 2.0
    assert stored["limit"] == "inf"
    assert len(stored["text"]) == 300
    assert stored["none"] is None
    assert stored["nested"] == {"a": [1, 2]}
    assert stored["estimator"] == "Holder"
    text = json.dumps(stored)
    assert "ledger" not in stored
    assert "12345" not in text
    assert "RandomState" not in text
    assert "secret" not in text


def test_copies_and_clones_are_the_ledger_itself(ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger
    estimator = Holder(ledger=ledger)
    assert clone(estimator).ledger is ledger
    assert clone(ledger, safe=False) is ledger


def test_references_to_one_data_set_are_equal(storage, dataset):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, storage)
    assert ledger == ledger
    assert ledger != "ledger"
    other = PrivacyLedger(dataset, 1.0, DELTA, storage)
    assert (ledger == other) == (storage is not None)
    assert len({ledger, other}) == (2 if storage is None else 1)
    assert ledger != PrivacyLedger(f"{dataset} too", 1.0, DELTA, storage)


def test_a_pickle_opens_the_same_data_set(database, dataset):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, database, who="someone")
    ledger.charge("fit", PureLoss(0.5))
    again = pickle.loads(pickle.dumps(ledger))
    assert again == ledger
    assert again.who == "someone"
    assert again.charge("fit", PureLoss(0.25)).number == 2
    assert ledger.charge("fit", PureLoss(0.25)).number == 3
    assert again.total() == ledger.total()


def test_what_one_object_charges_the_other_sees(database, dataset):
    one = PrivacyLedger(dataset, 1.0, DELTA, database)
    two = PrivacyLedger.open(dataset, database)
    one.charge("fit", PureLoss(0.7))
    with pytest.raises(BudgetExceededError):
        two.charge("fit", PureLoss(0.7))
    two.charge("fit", PureLoss(0.2))
    with pytest.raises(BudgetExceededError):
        one.charge("fit", PureLoss(0.2))
    assert one.total() == two.total()


def test_data_sets_in_one_storage_do_not_touch(database, dataset):
    one = PrivacyLedger(f"{dataset} one", 1.0, DELTA, database)
    two = PrivacyLedger(f"{dataset} two", 2.0, 0.0, database, adjacency="add_remove")
    one.charge("fit", PureLoss(1.0))
    two.charge("fit", PureLoss(1.5))
    assert [ledger.total().n_charges for ledger in (one, two)] == [1, 1]
    assert two.guarantee == PrivacyGuarantee(2.0, 0.0, "add_remove")


def test_the_history_is_a_frame_with_what_had_been_spent(ledger):
    costs = [PureLoss(0.2), GaussianLoss(0.1), PureLoss(0.1)]
    for cost in costs:
        ledger.charge("fit", cost, mechanism="some_noise", parameters={"alpha": 1})
    history = ledger.history()
    assert list(history["number"]) == [1, 2, 3]
    assert list(history["loss"]) == ["0.2-DP", "0.1-GDP", "0.1-DP"]
    assert str(history["time"].dt.tz) == "UTC"
    assert history["time"].is_monotonic_increasing
    assert history["spent"].is_monotonic_increasing
    assert history["spent"].iloc[-1] == pytest.approx(ledger.total().epsilon, rel=1e-5)
    assert history["spent"].iloc[0] == pytest.approx(PureLoss(0.2).epsilon(DELTA))
    assert list(history["parameters"]) == [{"alpha": 1}] * 3
    columns = "number time label estimator mechanism epsilon delta loss spent who parameters"
    assert list(history.columns) == [*columns.split(), "returned"]


@pytest.mark.slow
def test_a_long_history_never_says_less_than_was_spent():
    ledger = PrivacyLedger("long", 10.0, DELTA)
    for _ in range(450):
        ledger.charge("fit", PureLoss(0.02))
    spent = ledger.history()["spent"]
    assert spent.is_monotonic_increasing
    assert spent.nunique() == 200
    for count in (1, 100, 449, 450):
        true = PureLoss(0.02).numeric().compose(count).epsilon(DELTA)
        assert true * (1.0 - 1e-6) <= spent[count - 1] <= 1.05 * true + 0.05


def test_a_ledger_shows_itself(ledger, storage, dataset):
    ledger.charge("<b>fit</b>", PureLoss(0.25))
    assert repr(ledger).startswith(f"<PrivacyLedger of {dataset!r}, epsilon=1, delta=1e-06, in ")
    assert "\n" not in repr(ledger)
    assert "tight composition: epsilon=0.25, left 0.75" in str(ledger)
    html = ledger._repr_html_()
    assert "&lt;b&gt;fit" in html
    assert "<b>fit" not in html
    assert 'aria-label="25% spent"' in html
    assert "one record" in html
    total = ledger.total()._repr_html_()
    assert 'aria-label="25% spent"' in total
    if storage is not None and "@" in storage:
        password = storage.partition(":tester")[0]
        assert "***" in repr(ledger)
        assert ledger.storage in repr(ledger)
        assert password not in html


def test_a_clock_that_goes_backwards_is_reported_and_the_charge_kept(ledger, monkeypatch):
    first = ledger.charge("fit", PureLoss(0.1))
    monkeypatch.setattr(
        "skdpnoise.ledger.storage.base.now", lambda: "2020-01-01T00:00:00.000000+00:00"
    )
    with pytest.warns(LedgerWarning, match="behind the last charge.*does not depend on") as seen:
        second = ledger.charge("fit", PureLoss(0.1))
    assert seen[0].filename == __file__
    assert second.time == first.time
    assert [charge.number for charge in ledger.charges()] == [1, 2]


@pytest.mark.slow
def test_whatever_clocks_say_charges_keep_their_order_and_count(storage, dataset, monkeypatch):
    ledger = PrivacyLedger(dataset, 1.0, 0.0, storage)
    clocks = [2026, 2025, 2030, 1970, 1, 9999, 2026, 9999]
    latest = 0
    for number, year in enumerate(clocks, 1):
        text = f"{year:04}-06-01T12:00:00.000000+00:00"
        monkeypatch.setattr("skdpnoise.ledger.storage.base.now", lambda text=text: text)
        if storage is not None:  # a newcomer knows the last time from what is stored
            ledger = PrivacyLedger.open(dataset, storage)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            charge = ledger.charge("fit", PureLoss(0.1))
        assert [w.category for w in heard] == [LedgerWarning] * (year < latest)
        latest = max(latest, year)
        assert (charge.number, charge.time.year) == (number, latest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # before the commit: nothing is charged then
        monkeypatch.setattr(
            "skdpnoise.ledger.storage.base.now", lambda: "2026-01-01T00:00:00+00:00"
        )
        with pytest.raises(LedgerWarning):
            ledger.charge("fit", PureLoss(0.1))
    assert [charge.number for charge in ledger.charges()] == list(range(1, len(clocks) + 1))
    assert ledger.total().basic == (0.8, 0.0)
    assert ledger.history()["time"].is_monotonic_increasing
    with pytest.raises(BudgetExceededError), pytest.warns(LedgerWarning):
        for _ in range(3):
            ledger.charge("fit", PureLoss(0.1))


@pytest.mark.slow
def test_a_total_is_computed_once_for_what_is_charged(ledger, monkeypatch):
    computed = []
    real = composition._smallest_epsilon

    def counted(*given):
        computed.append(given)
        return real(*given)

    monkeypatch.setattr(composition, "_smallest_epsilon", counted)
    for shape in (50.0, 80.0):
        noise = get_noise("discrete_laplace", shape)
        ledger.charge("fit", NumericLoss(((noise, 1.0, 1),)), guarantee=(1.0, 0.0))
    assert ledger.total().epsilon == ledger.total().epsilon
    assert len(computed) == 1
    ledger.charge("fit", NumericLoss(((noise, 1.0, 1),)), guarantee=(1.0, 0.0))
    later = ledger.total()
    assert len(computed) == 2
    assert str(later) == str(ledger.total())
    assert len(computed) == 2


def test_the_end_of_a_history_is_what_was_spent_however_many_charges_are_alike():
    ledger = PrivacyLedger("pure", 100.0, 0.0)
    for k in range(450):  # more than the points at which it is computed
        ledger.charge("fit", PureLoss(0.01 * (1 + k // 100)))
    spent = ledger.history()["spent"]
    assert spent.iloc[-1] == ledger.total().epsilon
    sums = np.cumsum([0.01 * (1 + k // 100) for k in range(450)])
    assert (spent > sums - 1e-9).all()


def test_a_history_holds_one_charge_at_a_time(ledger, monkeypatch):
    for k in range(12):
        ledger.charge(f"fit {k}", PureLoss(0.01), parameters={"alpha": [k]})
    alive, most = set(), []
    real = Charge.shown.__func__

    def shown(cls, row):
        charge = real(cls, row)
        alive.add(row.number)
        weakref.finalize(charge, alive.discard, row.number)
        most.append(len(alive))
        return charge

    expected = pd.DataFrame(history_columns(ledger.charges(), DELTA))
    monkeypatch.setattr(Charge, "shown", classmethod(shown))
    frame = ledger.history()
    assert max(most) <= 2
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    frame["parameters"][0]["alpha"].append("mine")
    assert ledger.charges()[0].parameters == {"alpha": [0]}


@pytest.mark.slow
def test_a_long_history_is_read_in_little_more_memory_than_it_takes(sqlite, dataset):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, sqlite)
    ledger.charge("fit", PureLoss(0.01), parameters={"alpha": 0.1, "bounds": [-4, 4]})
    connection = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    with connection:
        connection.execute(
            "WITH RECURSIVE k(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < 10000) "
            "INSERT INTO skdpnoise_charges SELECT dataset, n, 'token ' || n, time, label, "
            "mechanism, estimator, loss, epsilon, delta, who, parameters, returned "
            "FROM skdpnoise_charges, k WHERE number = 1"
        )
    connection.close()
    ledger._over_charges(columns_of)  # what is imported, and compiled
    tracemalloc.start()
    try:
        columns, losses = ledger._over_charges(columns_of)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(columns["number"]) == len(losses) == 10_000
    assert peak < 1.5 * kept  # all rows and all charges at once needed more than twice as much


def test_clocks_that_differ_by_seconds_are_no_news(ledger, monkeypatch, recwarn):
    first = ledger.charge("fit", PureLoss(0.1))
    earlier = (first.time - pd.Timedelta(seconds=5)).isoformat(timespec="microseconds")
    monkeypatch.setattr("skdpnoise.ledger.storage.base.now", lambda: earlier)
    assert ledger.charge("fit", PureLoss(0.1)).time == first.time
    assert not [warning for warning in recwarn if warning.category is LedgerWarning]


@pytest.mark.slow
def test_many_charges_are_summed_up_and_the_sum_is_that_of_all(database, dataset):
    ledger = PrivacyLedger(dataset, 3.0, DELTA, database)
    rng = np.random.default_rng(0)
    laplace = get_noise("laplace")
    for k in range(150):
        shift = float(rng.uniform(0.005, 0.05))
        cost = (PureLoss(shift), GaussianLoss(shift), NumericLoss(((laplace, shift, 1),)))[k % 3]
        ledger.charge("fit", cost, guarantee=(shift, 1e-9))
    with ledger._storage.transaction(dataset, write=False) as transaction:
        summary, _ = transaction.summarised()
        assert summary.number >= 64
        assert len([*transaction.rows(summary.number)]) <= 64
        assert next(transaction.rows(summary.number - 1)).token == summary.token
    # By the summary, and by every single charge.
    alone = PrivacyLedger("alone", 3.0, DELTA)
    for charge in ledger.charges():
        alone.charge("fit", charge.loss, guarantee=charge.guarantee)
    opened, counted = PrivacyLedger.open(dataset, database).total(), alone.total()
    assert opened.n_charges == counted.n_charges == 150
    assert opened.epsilon == pytest.approx(counted.epsilon, rel=1e-9)
    assert opened.basic == counted.basic
    assert opened.adaptive_epsilon == counted.adaptive_epsilon
