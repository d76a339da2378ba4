"""Storages to keep ledgers in: a file of SQLite, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ABSENT = "PostgreSQL is not installed: no initdb on the path or in /usr/lib/postgresql"


def programs() -> Path | None:
    """Return the folder with initdb and pg_ctl, the newest version there is."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda p: int(p.parent.name.partition(".")[0]), default=None)


def _user() -> str | None:
    """Return whom to run the server as: it refuses the superuser."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    import pwd  # here, since Windows has neither

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


class Server:
    """A cluster in a folder of its own, on loopback, at a free port."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self.binaries, self.user = folder, binaries, _user()
        if self.user is not None:
            shutil.chown(folder, self.user)
        self.password = secrets.token_hex(8)

    def run(self, program: str, *arguments: object) -> None:
        """Run a program of PostgreSQL."""
        command = [str(self.binaries / program), *map(str, arguments)]
        log = self.folder.with_suffix(".log")
        with log.open("ab") as output:  # not a pipe: the server would hold it open
            done = subprocess.run(
                command,
                cwd=self.folder,
                user=self.user,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=60,
            )
        assert done.returncode == 0, f"{program} failed:\n{log.read_text()[-2000:]}"

    def start(self) -> None:
        """Make the cluster and start it."""
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self.user is not None:
            shutil.chown(secret, self.user)
        # C needs no installed language; a password, since others may be on this machine.
        options = ("--username=tester", "--auth=scram-sha-256", f"--pwfile={secret}")
        self.run(
            "initdb", f"--pgdata={self.folder / 'data'}", "--locale=C", "--encoding=UTF8", *options
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = f"-c listen_addresses=127.0.0.1 -c port={port} -k {self.folder}"
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-o", settings, "start")
        self.url = f"postgresql+psycopg://tester:{self.password}@127.0.0.1:{port}/postgres"

    def stop(self) -> None:
        """End the server at once; its folder is thrown away."""
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of an empty PostgreSQL database; skips the test where it is not installed."""
    binaries = programs()
    if binaries is None:
        pytest.skip(ABSENT)
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    # Not below pytest's folders: the server's user could not enter them.
    folder = Path(tempfile.mkdtemp(prefix="skdpnoise-postgresql-"))
    server = Server(folder, binaries)
    try:
        server.start()
        yield server.url
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".log").unlink(missing_ok=True)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """URL of a file that does not exist yet."""
    pytest.importorskip("sqlalchemy")
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest) -> str | None:
    """Each kind of storage in turn; None is memory."""
    return None if request.param == "memory" else request.getfixturevalue(request.param)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Each kind of database in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def dataset(request: pytest.FixtureRequest) -> str:
    """Name of a data set that no other test uses: they share the server."""
    return request.node.name
