"""Ledgers in SQLite or PostgreSQL."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from skdpnoise._utils.checks import needed, with_type
from skdpnoise.ledger.errors import (
    LedgerError,
    LedgerStorageError,
    LedgerWarning,
    UnknownDatasetError,
)
from skdpnoise.ledger.storage import base, reading
from skdpnoise.ledger.storage._schema import SEALED, VERSION, bring_up_to_date, tables, version_of
from skdpnoise.ledger.storage.base import Alike, Head, Row, StoredBudget, Summary

T = TypeVar("T")

_BUSY_SECONDS = 60.0
_ATTEMPTS = 6
# Any number that no other program takes for its own locks.
_LOCK = 0x5D9_1ED6E
# PostgreSQL: serialisation failure, deadlock, shut down and starting up, too many connections.
_PASSING = {"40001", "40P01", "57P01", "57P02", "57P03", "53300", "55P03"}
_SETTINGS = ("journal_mode = PERSIST", "synchronous = EXTRA", "foreign_keys = ON")
_MODES = ("ro", "rw", "rwc")  # read; write; the same, or make the file
_AT_ONCE = 1000  # rows of many that are fetched at once


def _parsed(sa: Any, storage: object, name: str) -> Any:
    def refusal(got: str) -> str:
        return (
            f"{name} must be None, 'memory', or a URL of SQLAlchemy, such as 'sqlite:///budget.db' "
            f"or 'postgresql+psycopg://user@host/database'. Got {got}."
        )

    if not isinstance(storage, str):
        raise TypeError(refusal(f"{with_type(storage)} instead"))
    if "\0" in unquote(storage) or any("\ud800" <= c <= "\udfff" for c in storage):
        raise LedgerStorageError(refusal("one with a NUL, or with half of a surrogate pair"))
    try:
        url = sa.make_url(storage)
        url.get_dialect()
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ValueError) as error:
        shown = "one with a password" if "@" in storage else repr(storage)
        raise LedgerStorageError(refusal(f"{shown} instead")) from error
    if url.get_backend_name() != "sqlite":
        driver = {"postgresql": "postgresql+psycopg"}.get(url.drivername, url.drivername)
        return url.set(drivername=driver)
    strange = sorted(set(url.query) - {"uri", "mode"})
    if strange:  # some switch off the locks by which charges wait for one another
        raise LedgerStorageError(refusal(f"one of SQLite with the option {strange[0]!r}"))
    database = url.database or ""
    if database in ("", ":memory:") or "mode=memory" in storage or ":memory:" in database:
        empty = "which every connection would find empty: storage='memory' keeps a ledger in memory"
        raise LedgerStorageError(refusal(f"{storage!r} instead, {empty}"))
    mode = url.query.get("mode", "rwc")
    if mode not in _MODES:
        raise LedgerStorageError(refusal(f"one whose mode is not among {list(_MODES)}"))
    path = _path_in(database)
    if mode == "rwc" and "?" not in path:
        return url.set(database=path, query={})
    # SQLite heeds a mode in a URI only.
    return url.set(database=f"file:{quote(path)}", query={"mode": mode, "uri": "true"})


def _path_in(database: str) -> str:
    if database.startswith("file:"):
        database = unquote(database.removeprefix("file:"))
        if database.startswith("//"):  # file:///path and file://localhost/path
            database = "/" + database[2:].partition("/")[2]
    return os.path.abspath(Path(database).expanduser())


class DatabaseStorage:
    def __init__(
        self, storage: object, name: str = "The 'storage' parameter of PrivacyLedger"
    ) -> None:
        self.sa = needed("sqlalchemy", "A ledger with another storage than 'memory'", "ledger")
        self._url = _parsed(self.sa, storage, name)
        self.shown: str = self._url.render_as_string(hide_password=True)
        self.address: str = self._url.render_as_string(hide_password=False)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        self.file = Path(_path_in(self._url.database)) if self._sqlite else None
        self._engines: dict[int, Any] = {}
        self.datasets, self.charges = tables()

    def open(self, dataset: str, wanted: dict[str, Any]) -> StoredBudget:
        return self.attempt(lambda _: self._open(dataset, wanted))

    def _open(self, dataset: str, wanted: dict[str, Any]) -> StoredBudget:
        if wanted.get("epsilon") is None:
            self._check_file()
        # Nothing is locked or written where everything is there already.
        with self._connected(write=False) as connection:
            version = version_of(connection, self.shown)
            current = version == VERSION
            stored, known = self._stored(connection, dataset) if current else (None, [])
        only_opened = wanted.get("epsilon") is None and (current or version == 0)
        if stored is not None or only_opened:
            return base.settled(dataset, stored, wanted, known)
        with self._connected(write=True) as connection:
            if self._url.get_backend_name() == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            version = version_of(connection, self.shown)
            if version != VERSION:
                bring_up_to_date(connection, version)
            stored, known = self._stored(connection, dataset)
            budget = base.settled(dataset, stored, wanted, known)
            if stored is None:
                seal = budget.seal(dataset)
                values = {**vars(budget), "adaptive": int(budget.adaptive), "seal": seal}
                head = json.dumps(Head(0, base.digest_of(seal, seal)))
                values |= {"name": dataset, "created": base.now(), "head": head}
                connection.execute(self.datasets.insert(), values)
        if 0 < version < VERSION:
            unsealed = (
                "Before, nothing showed whether a budget had been changed: compare the budgets "
                "with what was agreed. "
            )
            warnings.warn(
                f"The ledger in {self.shown} had schema version {version}, and was brought up to "
                f"version {VERSION}. {unsealed if version < SEALED else ''}If a newer version of "
                "skdpnoise made this ledger, somebody set it back.",
                LedgerWarning,
                stacklevel=6,
            )
        return budget

    def names(self) -> list[str]:
        self._check_file()  # opening it would make it

        def read(_: int) -> list[str]:
            with self._connected(write=False) as connection:
                return sorted(self._names(connection)) if version_of(connection, self.shown) else []

        return self.attempt(read)

    @contextmanager
    def transaction(self, dataset: str, *, write: bool) -> Iterator[_Transaction]:
        with self._connected(write=write) as connection:
            row = self._row(connection, dataset, write=write)
            if row is None:
                raise UnknownDatasetError(
                    f"The data set {dataset!r} is no longer in {self.shown}: the storage was "
                    "replaced or emptied while the ledger was open. Nothing was charged."
                )
            yield _Transaction(self, connection, row)

    def attempt(self, work: Callable[[int], T]) -> T:
        start = time.monotonic()
        for number in range(_ATTEMPTS):
            try:
                return work(number)
            except (self.sa.exc.SQLAlchemyError, sqlite3.Error) as error:
                late = number + 1 == _ATTEMPTS or time.monotonic() - start > _BUSY_SECONDS
                if late or not self._passes(error):
                    raise _explained(error, self.shown) from error
                time.sleep(random.uniform(0.5, 1.0) * 0.05 * 2.0**number)
        raise AssertionError("the last attempt returns or raises")

    def _engine(self) -> Any:
        """Return the engine of this process; a connection must not cross a fork."""
        process = os.getpid()
        if process not in self._engines:
            for engine in self._engines.values():
                engine.dispose(close=False)
            engine = self._new_engine()
            weakref.finalize(self, _close, engine, process)
            self._engines = {process: engine}
        return self._engines[process]

    def _new_engine(self) -> Any:
        sa = self.sa
        if self._sqlite:
            # A new connection for each transaction: no file stays open that may be moved away.
            options = {"poolclass": sa.pool.NullPool, "connect_args": {"timeout": _BUSY_SECONDS}}
        else:
            psycopg = self._url.get_driver_name().startswith("psycopg")
            options = {"pool_size": 1, "pool_pre_ping": True}
            options["isolation_level"] = "READ COMMITTED"  # what is read under a lock is the newest
            options["connect_args"] = {"client_encoding": "utf8"} if psycopg else {}
        try:
            engine = sa.create_engine(self._url, **options)
        except ImportError as error:
            raise ImportError(
                f"The driver of {self._url.drivername} is not installed: pip install "
                "skdpnoise[ledger] has the one for PostgreSQL, 'postgresql+psycopg://...'."
            ) from error

        shown = self.shown  # a listener that held the storage would keep its connection open

        def explain(context: Any) -> Any:
            """Return a ledger error for an error of a codec or the driver."""
            error, known = context.original_exception, context.sqlalchemy_exception
            foreign = known is None and isinstance(error, Exception)
            return _explained(error, shown) if foreign else None

        sa.event.listen(engine, "handle_error", explain)
        if self._sqlite:
            self._configure(engine)
        return engine

    def _configure(self, engine: Any) -> None:
        shown = self.shown

        def configure(connection: Any, _: Any) -> None:
            # The transactions are begun below, as they must: with the lock of a writer.
            connection.isolation_level = None
            # A rollback journal, not WAL: at rest the file holds everything and may be copied, and
            # it may lie on a network drive. PERSIST overwrites the journal's head instead of
            # deleting the journal, which spares changes of the folder. With synchronous FULL or
            # EXTRA that is waited for as well: no power failure undoes a charge whose noise was
            # drawn.
            try:
                for setting in _SETTINGS:
                    connection.execute(f"PRAGMA {setting}")
            except sqlite3.Error:
                raise  # some pass
            except Exception as error:
                raise _explained(error, shown) from error

        def begin(connection: Any) -> None:
            write = connection.get_execution_options().get("skdpnoise_write", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        self.sa.event.listen(engine, "connect", configure)
        self.sa.event.listen(engine, "begin", begin)

    def _connected(self, *, write: bool) -> Any:
        engine = self._engine().execution_options(skdpnoise_write=write)
        if not (write or self._sqlite):  # all that is read is of one moment
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        return engine.begin()

    def _stored(self, connection: Any, dataset: str) -> tuple[StoredBudget | None, list[str]]:
        row = self._row(connection, dataset)
        if row is None:
            return None, self._names(connection)
        budget = reading.budget_in(row)
        with reading.readable("The budget", f"the data set {dataset!r} in {self.shown}"):
            budget.check()
        return budget, []

    def _names(self, connection: Any) -> list[str]:
        names = connection.execute(self.sa.select(self.datasets.c.name)).scalars().all()
        with reading.readable("The names", self.shown):
            return [base.checked_name("dataset", name) for name in names]

    def _row(self, connection: Any, dataset: str, *, write: bool = False) -> Any:
        """Return the row of a data set, which a writer locks."""
        columns = [column for column in self.datasets.c if column.name != "summary"]  # it is long
        query = self.sa.select(*columns).where(self.datasets.c.name == dataset)
        return connection.execute(query.with_for_update() if write else query).first()

    def _check_file(self) -> None:
        if self.file is not None and not self.file.exists():
            raise UnknownDatasetError(
                f"The data set is unknown: there is no file {self.file} yet. To create both: "
                "PrivacyLedger(dataset, epsilon=..., delta=..., storage=...)."
            )

    def _passes(self, error: Any) -> bool:
        if isinstance(error, self.sa.exc.IntegrityError):
            return True  # somebody else was first
        if not isinstance(error, self.sa.exc.DBAPIError):
            return False
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        text = str(error.orig)
        return error.connection_invalidated or code in _PASSING or "database is locked" in text


_SET_BACK = (
    "The tables are newer than the version beside them says: find out who can write to the "
    "storage, and restore it from a copy."
)
_DAMAGED = "The file is damaged: restore it from a copy."
_NO_SUMMARY = Summary(0, "", "", "", "")
_REMEDIES = {
    "readonly": "The file can be read but not written: make it writable to charge, or to bring an "
    "older ledger up to date.",
    "is full": "Free some space; what was charged before is kept.",
    "not a database": "Name another file; this one was written by something else.",
    "unable to open": "Its folder must exist and be writable; with a mode, the file must exist.",
    "database is locked": "Another program holds the file for long: end it, and try again.",
    "malformed": _DAMAGED,
    "codec can't decode": _DAMAGED,
    "Could not decode": _DAMAGED,
    "duplicate column": _SET_BACK,
    "already exists": _SET_BACK,
    "permission denied": "The page about ledgers in a database lists what a role needs.",
    "must be owner": "A newer version needs other tables: let their owner open the ledger once.",
}


def _explained(error: Any, shown: str) -> LedgerError:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    remedies = [f"{remedy} " for sign, remedy in _REMEDIES.items() if sign in text]
    return LedgerStorageError(
        f"The ledger in {shown} cannot be used: {text}. {''.join(remedies[-1:])}"
        "Nothing was changed."
    )


def _close(engine: Any, process: int) -> None:
    engine.dispose(close=os.getpid() == process)


def _summary_in(text: str) -> Summary:
    """Return a stored summary; if it cannot be read, one that agrees with no charges."""
    try:
        found = Summary(*json.loads(text))
    except (TypeError, ValueError, RecursionError):
        return _NO_SUMMARY
    # A larger number does not fit the column of the charges'.
    wellformed = type(found.number) is int and 0 < found.number < 2**31
    return found if wellformed and all(type(part) is str for part in found[1:]) else _NO_SUMMARY


class _Transaction:
    def __init__(self, storage: DatabaseStorage, connection: Any, row: Any) -> None:
        self._storage, self._connection, self._key = storage, connection, row.id
        self.head, self.seal = reading.head_in(row.head), row.seal
        self.budget = reading.budget_in(row)

    def summarised(self) -> tuple[Summary, list[Alike]] | None:
        sa, datasets, charges = self._storage.sa, self._storage.datasets.c, self._storage.charges.c
        query = sa.select(datasets.summary).where(datasets.id == self._key)
        text = self._connection.execute(query).scalar()
        if text is None:
            return None
        summary = _summary_in(text)
        alike, first = (charges.loss, charges.epsilon, charges.delta), sa.func.min(charges.number)
        returned = sa.func.count(charges.returned)
        count = sa.func.count() - 2 * returned  # neither the line that returns, nor what it does
        query = sa.select(*alike, count, first, returned).where(
            charges.dataset == self._key, charges.number <= summary.number
        )
        found = self._connection.execute(query.group_by(*alike).order_by(first))
        return summary, [Alike(*row) for row in found]

    def rows(self, after: int | None = None) -> Iterator[Row]:
        charges, options = self._storage.charges.c, {"yield_per": _AT_ONCE}
        query = self._all().where(charges.dataset == self._key).order_by(charges.number)
        query = query if after is None else query.where(charges.number > after)
        return map(Row._make, self._connection.execute(query, execution_options=options))

    def find(self, token: str) -> Row | None:
        query = self._all().where(self._storage.charges.c.token == token)
        found = self._connection.execute(query).first()
        return None if found is None else Row._make(found)

    def _all(self) -> Any:
        return self._storage.sa.select(*(self._storage.charges.c[name] for name in Row._fields))

    def write(self, row: Row, digest: str, summary: Summary | None) -> None:
        values = {"dataset": self._key, **row._asdict()}
        self._connection.execute(self._storage.charges.insert(), values)
        changed = {"head": json.dumps(Head(row.number, digest))}
        if summary is not None:
            changed["summary"] = json.dumps(summary)
        datasets = self._storage.datasets
        query = datasets.update().where(datasets.c.id == self._key)
        self._connection.execute(query.values(**changed))
