"""Local files with checksums, downloads, and the results of loaders."""

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

from skdpnoise._utils.checks import pandas_for

DATA_VARIABLE = "SKDPNOISE_DATA"


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    files: dict[str, str]  # names, and sha256 sums of the bytes, both before compression
    route: str  # what downloads it
    title: str
    columns: dict[str, str]  # in the order of the file; the target is the last
    notes: str

    @property
    def feature_names(self) -> list[str]:
        return list(self.columns)[:-1]

    def read(
        self,
        data_home: str | os.PathLike[str] | None,
        parse: Callable[..., Any],
        fetch: Callable[..., Any] | None,
    ) -> Any:
        found = {name: _local_bytes(name, sha, data_home) for name, sha in self.files.items()}
        missing = [name for name, content in found.items() if content is None]
        if not missing:
            return parse(*found.values())
        reason, failed = None, "no download asked"
        if fetch is not None:
            try:
                return fetch(data_home=data_home)
            except (OSError, ValueError) as error:  # no network; a broken or refused answer
                reason, failed = error, f"{self.route} failed ({type(error).__name__}: {error})"
        raise OSError(
            f"The {self.name} data set is not available: no local file was found, {failed}. Either "
            f"put {missing[0]}.gz or {missing[0]} into a folder and name that folder in data_home= "
            f"or in the environment variable {DATA_VARIABLE}, or make the network reachable, with "
            f"download_if_missing=True, so that {self.route} can download it."
        ) from reason

    def bunch(
        self, X: NDArray[Any], y: NDArray[Any], *, as_frame: bool, return_X_y: bool, **more: Any
    ) -> Bunch | tuple[Any, Any]:
        data, target, frame = X, y, None
        *names, target_name = self.columns
        if as_frame:
            frame = pandas_for("as_frame=True").DataFrame(X, columns=names)
            numbers = [
                name for name, one in zip(names, X[0], strict=True) if isinstance(one, float)
            ]
            frame = frame.astype(dict.fromkeys(numbers, np.float64))
            frame = frame.assign(**{target_name: y})
            data, target = frame[names], frame[target_name]
        if return_X_y:
            return data, target
        arrays = {"data": data, "target": target, "frame": frame}
        known = {"feature_names": names, "target_names": [target_name], **more}
        return Bunch(**arrays, **known, DESCR=self._text())

    def _text(self) -> str:
        width = max(map(len, self.columns)) + 2
        lines = [f"{name:<{width}}{text}" for name, text in self.columns.items()]
        table = "\n".join(line.replace("\n", "\n" + " " * width) for line in lines)
        return f"{self.title}\n\n{table}\n\n{self.notes}"


def _local_bytes(name: str, sha256: str, data_home: str | os.PathLike[str] | None) -> bytes | None:
    folders = [Path(one) for one in (data_home, os.environ.get(DATA_VARIABLE)) if one]
    paths = (one.expanduser() / f"{name}{ending}" for one in folders for ending in (".gz", ""))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None
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
