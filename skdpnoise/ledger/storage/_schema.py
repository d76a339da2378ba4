"""The tables of a ledger in a database, and migrations from older versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from skdpnoise.ledger.errors import LedgerSchemaError
from skdpnoise.ledger.storage import reading
from skdpnoise.ledger.storage.base import Row, digest_of

VERSION, SEALED, FIRST = 5, 4, 3  # since the second a digest shows whether a budget was changed


@cache
def tables() -> Any:
    import sqlalchemy as sa

    metadata = sa.MetaData()
    sa.Table("skdpnoise_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
    datasets = sa.Table(
        "skdpnoise_datasets",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("adjacency", sa.String(32), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("unit", sa.String(32), nullable=False, server_default="record"),
        sa.Column("adaptive", sa.Integer, nullable=False, server_default="0"),
        sa.Column("summary", sa.Text),
        sa.Column("head", sa.Text),
        # Since version 4:
        sa.Column("seal", sa.Text),
        # Since version 5:
        sa.Column("most_returned", sa.Integer),
    )
    charges = sa.Table(
        "skdpnoise_charges",
        metadata,
        sa.Column("dataset", sa.ForeignKey("skdpnoise_datasets.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("token", sa.String(32), nullable=False, unique=True),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("mechanism", sa.Text),
        sa.Column("estimator", sa.Text),
        sa.Column("loss", sa.Text, nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("who", sa.Text),
        sa.Column("parameters", sa.Text, nullable=False),
        # Since version 5:
        sa.Column("returned", sa.Integer),
    )
    return datasets, charges


def _to_4(connection: Any) -> None:
    """Add a digest of the name and the budget, with which that of the charges begins."""
    # Whoever sets the version of a newer ledger back, to have another budget believed, has the
    # column there already, and this raises. Where it was removed, the digests must be those of
    # version 3: what is not stays as it is, and is found by whoever reads it.
    connection.exec_driver_sql("ALTER TABLE skdpnoise_datasets ADD COLUMN seal TEXT")
    for found in connection.exec_driver_sql("SELECT * FROM skdpnoise_datasets").all():
        seal, head, summary = reading.budget_in(found).seal(found.name), found.head, found.summary
        before, after = (_digests(connection, found.id, start) for start in ("", seal))
        last = list(before)[-1]
        if reading.head_in(head) == (last, before[last]):
            head = json.dumps([last, digest_of(seal, after[last])])
        with suppress(*reading.FAULTS):
            *facts, digest = json.loads(summary)
            if digest == before[facts[0]]:
                summary = json.dumps([*facts, after[facts[0]]])
        _write(connection, found.id, head=head, summary=summary, seal=seal)


def _to_5(connection: Any) -> None:
    """Lines that return a reservation, and how many of them there may be."""
    connection.exec_driver_sql("ALTER TABLE skdpnoise_datasets ADD COLUMN most_returned INTEGER")
    connection.exec_driver_sql("ALTER TABLE skdpnoise_charges ADD COLUMN returned INTEGER")


def _digests(connection: Any, key: int, start: str) -> dict[Any, str]:
    """Return the digest after each charge before version 5, by number; 0 is the start."""
    import sqlalchemy as sa

    charges = tables()[1].c
    query = sa.select(*(charges[name] for name in Row._fields[:-1])).where(charges.dataset == key)
    digests: dict[Any, str] = {0: start}
    digest = start
    for found in connection.execute(query.order_by(charges.number)):
        row = Row(*found)
        digest = digests[row.number] = reading.digest_after(digest, row)
    return digests


def _write(connection: Any, key: int, **values: Any) -> None:
    import sqlalchemy as sa

    columns = ", ".join(f"{name} = :{name}" for name in values)
    query = sa.text(f"UPDATE skdpnoise_datasets SET {columns} WHERE id = :key")
    connection.execute(query, {"key": key, **values})


# From the version that the first release wrote: each leads to the next one.
MIGRATIONS: tuple[Callable[[Any], None], ...] = (_to_4, _to_5)


def version_of(connection: Any, shown: str) -> int:
    """Return the version of the tables, 0 if there are none; raise if a newer one wrote them."""
    import sqlalchemy as sa

    if not sa.inspect(connection).has_table("skdpnoise_schema"):
        return 0
    found = connection.exec_driver_sql("SELECT version FROM skdpnoise_schema").scalars().all()
    with reading.readable("The schema version", f"the ledger in {shown}"):
        (version,) = found
        if type(version) is not int or version < FIRST:
            raise ValueError(f"it is not a whole number from {FIRST} on")
    if version > VERSION:
        raise LedgerSchemaError(
            f"The ledger in {shown} has schema version {version}, and this version of skdpnoise "
            f"knows versions up to {VERSION}: a newer one wrote it. Nothing was changed. Upgrade "
            "skdpnoise to use it."
        )
    return int(version)


def bring_up_to_date(connection: Any, version: int) -> None:
    import sqlalchemy as sa

    metadata = tables()[0].metadata
    schema = metadata.tables["skdpnoise_schema"]
    if version == 0:
        metadata.create_all(connection)
        connection.execute(sa.insert(schema).values(version=VERSION))
        return
    for migration in MIGRATIONS[version - FIRST :]:
        migration(connection)
    connection.execute(sa.update(schema).values(version=VERSION))
