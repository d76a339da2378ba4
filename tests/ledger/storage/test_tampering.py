"""What was changed in a storage by something else than a charge is found before more is charged."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

from skdpnoise.ledger import LedgerError, LedgerStorageError, LedgerWarning, PrivacyLedger
from skdpnoise.ledger.storage.base import Row, StoredBudget
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PureLoss
from tests._cases import each_value, quick

DELTA = 1e-6
SUMS = ("pure", "normal", "squares", "basic_epsilon", "basic_delta")


def filled(dataset, database, n=70):
    """A ledger with a summary of its first charges."""
    ledger = PrivacyLedger(dataset, 3.0, DELTA, database)
    rng, laplace = np.random.default_rng(0), get_noise("laplace")
    for k in range(n):
        shift = float(rng.uniform(0.005, 0.02))
        cost = (PureLoss(shift), GaussianLoss(shift), NumericLoss(((laplace, shift, 1),)))[k % 3]
        ledger.charge("fit", cost, guarantee=(shift, 1e-9))
    return ledger


def run(database, query, **values):
    engine = sa.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        found = connection.execute(sa.text(query), values)
        rows = found.fetchall() if found.returns_rows else []
    engine.dispose()
    return rows


def summary_of(dataset, database):
    ((text,),) = run(
        database, "SELECT summary FROM skdpnoise_datasets WHERE name = :name", name=dataset
    )
    number, token, time, sums, _ = json.loads(text)
    return number, token, time, json.loads(sums)


def rewrite(dataset, database, number, token, time, sums):
    query = "SELECT summary FROM skdpnoise_datasets WHERE name = :name"
    ((before,),) = run(database, query, name=dataset)
    text = json.dumps([number, token, time, json.dumps(sums), json.loads(before)[4]])
    query = "UPDATE skdpnoise_datasets SET summary = :text WHERE name = :name"
    run(database, query, text=text, name=dataset)


def assert_found(dataset, database):
    """A newcomer refuses to charge and to tell a total, and still shows what is there."""
    ledger = PrivacyLedger.open(dataset, database)
    before = len(ledger.charges())
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match=r"not those that.*Nothing was charged"):
            work()
    assert len(ledger.charges()) == before


@pytest.mark.slow
def test_an_honest_summary_is_believed(database, dataset):
    ledger = filled(dataset, database)
    assert summary_of(dataset, database)[0] >= 64
    opened = PrivacyLedger.open(dataset, database)
    assert opened.total().epsilon == pytest.approx(ledger.total().epsilon, rel=1e-9)
    opened.charge("fit", PureLoss(1e-6))


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("factor", [0.0, 0.999999, 1.000001])
def test_a_summary_with_other_sums_is_found(dataset, sqlite, name, factor):
    filled(dataset, sqlite)
    *head, sums = summary_of(dataset, sqlite)
    changed = "0" if factor == 0.0 else str(float(sums[name]) * factor)
    if sums[name] in ("0", "Infinity"):
        changed = "0.1"
    rewrite(dataset, sqlite, *head, {**sums, name: changed})
    assert_found(dataset, sqlite)


@pytest.mark.slow
def test_a_rewritten_summary_is_found_in_a_database_of_a_team(database, dataset):
    filled(dataset, database)
    *head, sums = summary_of(dataset, database)
    rewrite(dataset, database, *head, {**sums, "squares": "0", "normal": "0", "terms": []})
    assert_found(dataset, database)


@pytest.mark.slow
@pytest.mark.parametrize("sums", [{}, {"count": 0}, [], "nonsense", None])
def test_a_summary_that_is_none_is_found(dataset, sqlite, sums):
    filled(dataset, sqlite)
    rewrite(dataset, sqlite, *summary_of(dataset, sqlite)[:3], sums)
    assert_found(dataset, sqlite)


@pytest.mark.slow
def test_a_bound_that_a_summary_claims_lets_nothing_through(sqlite, dataset):
    ledger = filled(dataset, sqlite)
    *head, sums = summary_of(dataset, sqlite)
    # Slack without end: whatever is charged would seem to fit.
    rewrite(dataset, sqlite, *head, {**sums, "anchor": ["1000000", "1000000"]})
    opened = PrivacyLedger.open(dataset, sqlite)
    assert opened.total().epsilon == pytest.approx(ledger.total().epsilon, rel=1e-9)
    with pytest.raises(ValueError, match="asks for"):
        opened.charge("fit", NumericLoss(((get_noise("laplace"), 5.0, 1),)))
    # Nor do shifts, which the summary may not be asked for.
    rewrite(dataset, sqlite, *head, {**sums, "terms": []})
    assert PrivacyLedger.open(dataset, sqlite).total().epsilon == pytest.approx(
        ledger.total().epsilon, rel=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM skdpnoise_charges WHERE number = 3",
        "DELETE FROM skdpnoise_charges WHERE number > 5",
        'UPDATE skdpnoise_charges SET loss = \'{"kind": "pure", "epsilon": 0.0}\' WHERE number = 7',
        "UPDATE skdpnoise_charges SET epsilon = 0.0 WHERE number = 8",
        'UPDATE skdpnoise_charges SET loss = \'{"kind": "gaussian", "mu": 0.0}\' WHERE number = 2',
        "DELETE FROM skdpnoise_charges",
    ],
)
def test_charges_that_were_changed_or_removed_are_found(sqlite, dataset, change):
    filled(dataset, sqlite)
    run(sqlite, change)
    assert_found(dataset, sqlite)


def test_a_charge_that_cost_nothing_is_missed_too(sqlite, dataset):
    ledger = PrivacyLedger(dataset, 3.0, DELTA, sqlite)
    free = ledger.charge("free", PureLoss(0.0))
    for _ in range(70):
        ledger.charge("fit", PureLoss(0.01))
    run(sqlite, "DELETE FROM skdpnoise_charges WHERE number = :number", number=free.number)
    with pytest.raises(LedgerStorageError, match="up to number"):  # before all are read
        PrivacyLedger.open(dataset, sqlite).charge("fit", PureLoss(0.01))


@pytest.mark.slow
def test_a_summary_that_nobody_wrote_is_found(dataset, sqlite):
    filled(dataset, sqlite)
    texts = [
        "",
        "x",
        "[1]",
        "{}",
        "5",
        '[64, "t"]',
        '["64", "", "", "", ""]',
        '[0, "", "", "", ""]',
    ]
    texts += [f'[{n}, "", "", "{{}}", ""]' for n in (-1, 2**31, 10**30, "1e2", "NaN", "true")]
    for text in [*texts, "[" * 10_000]:
        run(sqlite, "UPDATE skdpnoise_datasets SET summary = :text", text=text)
        assert_found(dataset, sqlite)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM skdpnoise_charges WHERE number = 1",
        "DELETE FROM skdpnoise_charges WHERE number IN (3, 4)",
        "DELETE FROM skdpnoise_charges WHERE number < 9",
        "UPDATE skdpnoise_charges SET number = 12 WHERE number = 9",
    ],
)
def test_gaps_before_the_first_summary_are_found(sqlite, dataset, change):
    filled(dataset, sqlite, 10)
    run(sqlite, change)
    assert_found(dataset, sqlite)


@pytest.mark.slow
@pytest.mark.parametrize("summarised", [True, False])
def test_gaps_are_found_with_and_without_a_summary(sqlite, dataset, summarised):
    filled(dataset, sqlite, 70)
    if not summarised:
        run(sqlite, "UPDATE skdpnoise_datasets SET summary = NULL")
    run(sqlite, "DELETE FROM skdpnoise_charges WHERE number = 66")
    assert_found(dataset, sqlite)


@pytest.mark.slow
def test_a_summary_of_charges_to_come_is_found(sqlite, dataset):
    filled(dataset, sqlite)
    number, token, time, sums = summary_of(dataset, sqlite)
    rewrite(dataset, sqlite, number + 1000, token, time, sums)
    assert_found(dataset, sqlite)


CHANGES = {
    "number": "number + 1000",
    "token": "'other'",
    "time": "'2026-01-01T00:00:00.000000+00:00'",
    "label": "'other'",
    "mechanism": "'other'",
    "estimator": "'other'",
    "loss": '\'{"kind": "pure", "epsilon": 0.0}\'',
    "epsilon": "epsilon / 2",
    "delta": "delta / 2",
    "who": "'other'",
    "parameters": "'{\"other\": 1}'",
    "returned": "number - 1",
}


@each_value(1)
@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("column", CHANGES)
def test_every_change_of_a_charge_is_found_before_there_is_a_summary(
    sqlite, dataset, column, number
):
    ledger = PrivacyLedger(dataset, 3.0, DELTA, sqlite)
    for _ in range(5):
        ledger.charge("fit", PureLoss(0.01), guarantee=(0.01, 1e-9))
    assert set(CHANGES) == set(Row._fields)
    change = f"UPDATE skdpnoise_charges SET {column} = {CHANGES[column]} WHERE number = :number"
    run(sqlite, change, number=number)
    assert_found(dataset, sqlite)


@each_value(1)
@pytest.mark.parametrize("n", [5, 70])
@pytest.mark.parametrize("last", [1, 4, 5])
def test_the_last_charges_cannot_be_removed_unseen(sqlite, dataset, n, last):
    filled(dataset, sqlite, n)
    run(sqlite, "DELETE FROM skdpnoise_charges WHERE number > :number", number=n - last)
    assert_found(dataset, sqlite)


def test_removed_charges_are_found_in_a_database_of_a_team(database, dataset):
    filled(dataset, database, 5)
    query = (
        "DELETE FROM skdpnoise_charges WHERE number = 5 AND dataset = "
        "(SELECT id FROM skdpnoise_datasets WHERE name = :name)"
    )
    run(database, query, name=dataset)
    assert_found(dataset, database)


@pytest.mark.slow
@pytest.mark.parametrize("column", sorted(set(CHANGES) - {"number"}))
def test_a_change_of_an_old_charge_is_found_by_the_total(sqlite, dataset, column):
    filled(dataset, sqlite)
    run(sqlite, f"UPDATE skdpnoise_charges SET {column} = {CHANGES[column]} WHERE number = 2")
    with pytest.raises(LedgerStorageError, match="not those that"):
        PrivacyLedger.open(dataset, sqlite).total()


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 70])
def test_a_charge_by_hand_is_found_by_newcomers_and_by_who_was_there(sqlite, dataset, n):
    ledger = filled(dataset, sqlite, n)
    run(
        sqlite,
        "INSERT INTO skdpnoise_charges SELECT dataset, number + 1, 'by hand', time, label, "
        "mechanism, estimator, loss, epsilon, delta, who, parameters, returned "
        "FROM skdpnoise_charges WHERE number = :number",
        number=n,
    )
    assert_found(dataset, sqlite)
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match="not those that"):
            work()


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 70])
@pytest.mark.parametrize("number", [0, -1, -(2**31), 1000, 2**40])
def test_a_charge_of_any_number_that_nobody_gave_is_found(sqlite, dataset, n, number):
    filled(dataset, sqlite, n)
    run(
        sqlite,
        "INSERT INTO skdpnoise_charges SELECT dataset, :number, 'by hand', time, label, mechanism, "
        "estimator, loss, epsilon, delta, who, parameters, returned FROM skdpnoise_charges "
        "WHERE number = 1",
        number=number,
    )
    assert_found(dataset, sqlite)
    assert number in [charge.number for charge in PrivacyLedger.open(dataset, sqlite).charges()]


BUDGETS = {
    "epsilon": ["300.0", "0.0001", "'x'"],
    "delta": ["0.5", "0.0", "'x'"],
    "adjacency": ["'add_remove'", "'x'"],
    "unit": ["'group'", "'x'"],
    "adaptive": ["1", "'x'"],
}


@quick("delta-0.0")
@pytest.mark.parametrize(("column", "value"), [(c, v) for c in BUDGETS for v in BUDGETS[c]])
def test_who_has_a_ledger_open_charges_no_budget_but_the_one_that_is_stored(
    sqlite, dataset, column, value
):
    ledger = filled(dataset, sqlite, 3)
    ledger.total()
    run(sqlite, f"UPDATE skdpnoise_datasets SET {column} = {value}")
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match=r"budget of .* is no longer the one"):
            work()
    assert len(ledger.charges()) == 3


@quick("delta-0.5-5")
@each_value(1)
@pytest.mark.parametrize("n", [0, 1, 5, pytest.param(70, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("column", "value"), [(c, v) for c in BUDGETS for v in BUDGETS[c] if v != "'x'"]
)
def test_who_opens_a_ledger_charges_no_budget_but_the_one_that_was_set(
    sqlite, dataset, column, value, n
):
    filled(dataset, sqlite, n)
    run(sqlite, f"UPDATE skdpnoise_datasets SET {column} = {value}")
    ledger = PrivacyLedger.open(dataset, sqlite)
    for work in (
        ledger.total,
        lambda: ledger.charge("fit", PureLoss(1e-6)),
        lambda: ledger.covers(PureLoss(1e-6)),
    ):
        with pytest.raises(LedgerStorageError, match=r"The budget of .* is not the one.*Nothing"):
            work()
    assert len(ledger.charges()) == len(ledger.history()) == n


@each_value(1)
@pytest.mark.parametrize("seal", ["NULL", "''", "7", "the digest of the new budget"])
@pytest.mark.parametrize("n", [0, 5, pytest.param(70, marks=pytest.mark.slow)])
def test_a_seal_that_is_written_to_match_does_not_match_the_charges(sqlite, dataset, n, seal):
    filled(dataset, sqlite, n)
    if seal.startswith("the"):
        seal = f"'{StoredBudget(300.0, DELTA).seal(dataset)}'"
    run(sqlite, f"UPDATE skdpnoise_datasets SET epsilon = 300, seal = {seal}")
    for work in (PrivacyLedger.total, lambda ledger: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match=r"not the one that|not those that"):
            work(PrivacyLedger.open(dataset, sqlite))


@pytest.mark.parametrize("n", [0, 5])
def test_a_budget_that_changed_its_name_is_found(database, dataset, n):
    filled(dataset, database, n)
    query = "UPDATE skdpnoise_datasets SET name = :other WHERE name = :name"
    run(database, query, other=f"{dataset} too", name=dataset)
    with pytest.raises(LedgerStorageError, match="not the one that"):
        PrivacyLedger.open(f"{dataset} too", database).charge("fit", PureLoss(1e-6))


@pytest.mark.parametrize(
    ("version", "said"), [(2, "not a whole number from 3 on"), (3, "newer than the version")]
)
def test_a_version_that_was_set_back_hides_no_other_budget(database, dataset, version, said):
    filled(dataset, database, 3)
    budget = "UPDATE skdpnoise_datasets SET epsilon = :epsilon, head = :head WHERE name = :name"
    ((head,),) = run(
        database, "SELECT head FROM skdpnoise_datasets WHERE name = :name", name=dataset
    )
    try:
        run(database, budget, epsilon=300.0, head='[0, ""]', name=dataset)
        run(database, "UPDATE skdpnoise_schema SET version = :version", version=version)
        for given in ((), (300.0, DELTA)):
            with pytest.raises(LedgerStorageError, match=rf"{said}.*Nothing was"):
                PrivacyLedger(dataset, *given, storage=database)
    finally:  # others use the server
        run(database, "UPDATE skdpnoise_schema SET version = 5")
        run(database, budget, epsilon=3.0, head=head, name=dataset)
    assert PrivacyLedger.open(dataset, database).total().n_charges == 3


def test_a_version_that_was_set_back_with_its_columns_is_told(sqlite, dataset):
    filled(dataset, sqlite, 3)
    run(sqlite, "UPDATE skdpnoise_datasets SET epsilon = 300")
    run(sqlite, "UPDATE skdpnoise_schema SET version = 3")
    run(sqlite, "ALTER TABLE skdpnoise_datasets DROP COLUMN seal")
    run(sqlite, "ALTER TABLE skdpnoise_datasets DROP COLUMN most_returned")
    run(sqlite, "ALTER TABLE skdpnoise_charges DROP COLUMN returned")
    with pytest.warns(LedgerWarning, match=r"had schema version 3.*compare the budgets"):
        ledger = PrivacyLedger.open(dataset, sqlite)
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match="not those that"):
            work()


SHUFFLES = {
    "charges of another data set": ["UPDATE skdpnoise_charges SET dataset = 2 WHERE number > 2"],
    "data sets that change places": [
        "UPDATE skdpnoise_charges SET dataset = 3 WHERE dataset = 1",
        "UPDATE skdpnoise_charges SET dataset = 1 WHERE dataset = 2",
        "UPDATE skdpnoise_charges SET dataset = 2 WHERE dataset = 3",
    ],
    "another number of the data set": ["UPDATE skdpnoise_datasets SET id = 9 WHERE id = 1"],
    "a charge twice": [
        "CREATE TABLE x AS SELECT * FROM skdpnoise_charges",
        "INSERT INTO x SELECT * FROM x WHERE number = 3 AND dataset = 1",
        "DROP TABLE skdpnoise_charges",
        "ALTER TABLE x RENAME TO skdpnoise_charges",
    ],
    "a view of some charges": [
        "ALTER TABLE skdpnoise_charges RENAME TO x",
        "CREATE VIEW skdpnoise_charges AS SELECT * FROM x WHERE number < 3",
    ],
    "no charges": ["DROP TABLE skdpnoise_charges"],
    "charges of another name": ["ALTER TABLE skdpnoise_charges RENAME TO x"],
    "data sets of another name": ["ALTER TABLE skdpnoise_datasets RENAME TO x"],
    "no version": ["DROP TABLE skdpnoise_schema"],
    "a column of another name": ["ALTER TABLE skdpnoise_charges RENAME COLUMN loss TO x"],
    "a head of another name": ["ALTER TABLE skdpnoise_datasets RENAME COLUMN head TO x"],
    "version 3 with a seal": ["UPDATE skdpnoise_schema SET version = 3"],
    "a seal of another name": ["ALTER TABLE skdpnoise_datasets RENAME COLUMN seal TO x"],
    "version 2 with a head": ["UPDATE skdpnoise_schema SET version = 2"],
    "version 1": ["UPDATE skdpnoise_schema SET version = 1"],
    "version 4 with lines that return": ["UPDATE skdpnoise_schema SET version = 4"],
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 70])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_tables_that_were_rearranged_are_refused_by_a_newcomer_and_nothing_stays_locked(
    sqlite, dataset, shuffle, n
):
    filled(dataset, sqlite, n)
    PrivacyLedger("others", 9.0, DELTA, sqlite).charge("fit", PureLoss(0.5))
    path = sqlite.removeprefix("sqlite:///")
    connection = sqlite3.connect(path)
    with connection:  # without the foreign keys that a ledger asks for
        for query in SHUFFLES[shuffle]:
            connection.execute(query)
    for work in (PrivacyLedger.total, lambda ledger: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerError) as caught:
            work(PrivacyLedger.open(dataset, sqlite))
        assert "0.01" not in str(caught.value)  # of losses, nothing
        connection.execute("BEGIN EXCLUSIVE")
        connection.rollback()
    connection.close()


@quick("NULL")
@pytest.mark.parametrize("head", ["NULL", "''", "'[0, \"\"]'", "'[5, \"\"]'", "7", "'[5, []]'"])
def test_a_head_that_nobody_wrote_is_found(sqlite, dataset, head):
    filled(dataset, sqlite, 5)
    run(sqlite, f"UPDATE skdpnoise_datasets SET head = {head}")
    assert_found(dataset, sqlite)
