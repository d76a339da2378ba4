"""Where data files are looked for, how they are verified, and what a loader returns."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skdpnoise.privacy.checks import pandas_for

DATA_VARIABLE = "SKDPNOISE_DATA"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A public data file: its name and the sha256 sum of its bytes, both before compression."""

    name: str
    sha256: str


def local_bytes(file: DataFile, data_home: str | os.PathLike[str] | None) -> bytes | None:
    """Return the verified content of the first local copy of ``file``, or None without one."""
    for folder in _folders(data_home):
        for path in (folder / f"{file.name}.gz", folder / file.name):
            if path.is_file():
                return _verified_bytes(path, file.sha256)
    return None


def download(title: str, file: DataFile, route: str, fetch: Callable[[], Any] | None) -> Any:
    """Return ``fetch()``, or raise one error that names both ways to get the data."""
    reason: Exception | None = None
    if fetch is not None:
        try:
            return fetch()
        except (OSError, ValueError) as error:  # no network; a broken or refused answer
            reason = error
    other = f"{route} failed ({type(reason).__name__}: {reason})" if reason else "no download asked"
    raise OSError(
        f"{title} is not available: no local file was found, {other}. Either put "
        f"{file.name}.gz or {file.name} into a folder and name that folder in data_home= or in "
        f"the environment variable {DATA_VARIABLE}, or make the network reachable, with "
        f"download_if_missing=True, so that {route} can download it."
    ) from reason


@dataclass(frozen=True, slots=True)
class Description:
    """What the columns and the target are, in the order of the file; the target is the last."""

    title: str
    columns: dict[str, str]
    notes: str

    @property
    def feature_names(self) -> list[str]:
        return list(self.columns)[:-1]

    @property
    def text(self) -> str:
        width = max(map(len, self.columns)) + 2
        lines = [f"{name:<{width}}{text}" for name, text in self.columns.items()]
        table = "\n".join(line.replace("\n", "\n" + " " * width) for line in lines)
        return f"{self.title}\n\n{table}\n\n{self.notes}"


def as_bunch(
    X: NDArray[Any],
    y: NDArray[Any],
    description: Description,
    *,
    as_frame: bool,
    return_X_y: bool,
    **more: Any,
) -> Bunch | tuple[Any, Any]:
    """Dress arrays as scikit-learn's loaders do; columns of objects that are numbers too."""
    data, target, frame = X, y, None
    feature_names, target_name = description.feature_names, list(description.columns)[-1]
    if as_frame:
        frame = pandas_for("as_frame=True").DataFrame(X, columns=feature_names)
        numeric = [j for j, value in enumerate(X[0]) if isinstance(value, float)]
        frame = frame.astype({feature_names[j]: np.float64 for j in numeric})
        frame = frame.assign(**{target_name: y})
        data, target = frame[feature_names], frame[target_name]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        **more,
        DESCR=description.text,
    )


def _folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    named = [data_home, os.environ.get(DATA_VARIABLE)]
    return [Path(folder).expanduser() for folder in named if folder]


def _verified_bytes(path: Path, sha256: str) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise OSError(f"{path} is not a readable gzip file; fetch it again.") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise OSError(
            f"{path} is not the published file: the sha256 sum of its decompressed content is "
            f"{found}, expected {sha256}. Fetch it again, or remove it to use a download."
        )
    return content
