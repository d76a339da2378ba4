"""Paths of the command line, and the only place where it writes a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["new_file", "path_of"]

_BESIDE = ("", "-journal", "-wal", "-shm")  # what SQLite keeps beside a file, and the file itself
_DATABASE = b"SQLite format 3\0"


def path_of(text: str) -> Path:
    if "\0" in text:
        raise ArgumentTypeError("no path can have a NUL")
    return Path(text)


@contextmanager
def new_file(path: Path, storage: Path | None, *, force: bool) -> Iterator[TextIO]:
    """Yield a text file that takes the place of a path when the block ends without an error."""
    # A link stays: what it points to is written.
    target = Path(os.path.realpath(path))
    _check(path, target, storage, force=force)
    descriptor, temporary = tempfile.mkstemp(prefix="skdpnoise-", dir=target.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        target.touch(exist_ok=force)  # of two that write at once the second is refused
        shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _check(path: Path, target: Path, storage: Path | None, *, force: bool) -> None:
    if path.exists() and not path.is_file():
        problem = f"{path} is no file. Leave --out out to write to the standard output."
    elif not target.parent.is_dir():
        problem = f"there is no folder {target.parent}. Make it first."
    elif _belongs_to_a_database(target, storage):
        of = "a database, such as that of a ledger, which would be lost"
        problem = f"{path} belongs to {of}. Name another file."
    elif path.exists() and not force:
        problem = f"{path} exists. Name another file, or add --force to replace it."
    else:
        return
    raise ValueError(f"argument --out: {problem}")


def _belongs_to_a_database(target: Path, storage: Path | None) -> bool:
    if storage is not None:
        whole = os.path.realpath(storage)
        if any(_is_same(target, Path(whole + ending)) for ending in _BESIDE):
            return True
    for ending in _BESIDE:
        name = target.name
        if name.lower().endswith(ending) and len(name) > len(ending):
            database = target.with_name(name[: len(name) - len(ending)])
            if _is_database(database) or (storage is not None and _is_same(database, storage)):
                return True
    return False


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return os.path.realpath(one) == os.path.realpath(other)


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE
