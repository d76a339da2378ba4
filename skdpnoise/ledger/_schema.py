"""The tables of a ledger, by version, and the way from each version to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdpnoise.ledger.errors import LedgerSchemaError

VERSION = 2


def tables() -> Any:
    """Return the tables of the current version."""
    import sqlalchemy as sa

    metadata = sa.MetaData()
    sa.Table("skdpnoise_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
    sa.Table(
        "skdpnoise_datasets",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("adjacency", sa.String(32), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        # Since version 2:
        sa.Column("unit", sa.String(32), nullable=False, server_default="record"),
        sa.Column("adaptive", sa.Integer, nullable=False, server_default="0"),
        sa.Column("summary", sa.Text),
    )
    sa.Table(
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
    )
    return metadata


def _to_2(connection: Any) -> None:
    """Groups as the unit, adaptively chosen losses, and a summary of many charges."""
    for column in (
        "unit VARCHAR(32) NOT NULL DEFAULT 'record'",
        "adaptive INTEGER NOT NULL DEFAULT 0",
        "summary TEXT",
    ):
        connection.exec_driver_sql(f"ALTER TABLE skdpnoise_datasets ADD COLUMN {column}")


# The k-th one leads from version k + 1 to version k + 2.
MIGRATIONS: tuple[Callable[[Any], None], ...] = (_to_2,)


def version_of(connection: Any) -> int:
    """Return the version of the tables that are there, 0 if there are none."""
    import sqlalchemy as sa

    if not sa.inspect(connection).has_table("skdpnoise_schema"):
        return 0
    version = connection.exec_driver_sql("SELECT version FROM skdpnoise_schema").scalar()
    return int(version or 0)


def check_version(version: int, shown: str) -> bool:
    """Return whether the tables are current; raise if they are from the future."""
    if version > VERSION:
        raise LedgerSchemaError(
            f"The ledger in {shown} has schema version {version}, and this version of skdpnoise "
            f"knows versions up to {VERSION}: a newer one wrote it. Nothing was changed. Upgrade "
            "skdpnoise to use it."
        )
    return version == VERSION


def bring_up_to_date(connection: Any) -> None:
    """Make the tables, or change them to the current version, within a transaction."""
    import sqlalchemy as sa

    version = version_of(connection)
    metadata = tables()
    schema = metadata.tables["skdpnoise_schema"]
    if version == 0:
        metadata.create_all(connection)
        connection.execute(sa.insert(schema).values(version=VERSION))
        return
    for migration in MIGRATIONS[version - 1 :]:
        migration(connection)
    connection.execute(sa.update(schema).values(version=VERSION))
