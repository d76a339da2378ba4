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
    """A public data set: its files, download, columns and description."""

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
        """Return the content of local files, else of a download; the error names both ways."""
        found = {name: _local_bytes(name, sha, data_home) for name, sha in self.files.items()}
        missing = [name for name, content in found.items() if content is None]
        if not missing:
            return parse(*found.values())
        reason: Exception | None = None
        if fetch is not None:
            try:
                return fetch(data_home=data_home)
            except (OSError, ValueError) as error:  # no network; a broken or refused answer
                reason = error
        failed = f"{self.route} failed ({type(reason).__name__}: {reason})"
        raise OSError(
            f"The {self.name} data set is not available: no local file was found, "
            f"{failed if reason else 'no download asked'}. Either put {missing[0]}.gz or "
            f"{missing[0]} into a folder and name that folder in data_home= or in the environment "
            f"variable {DATA_VARIABLE}, or make the network reachable, with "
            f"download_if_missing=True, so that {self.route} can download it."
        ) from reason

    def bunch(
        self, X: NDArray[Any], y: NDArray[Any], *, as_frame: bool, return_X_y: bool, **more: Any
    ) -> Bunch | tuple[Any, Any]:
        """Return arrays or frames as scikit-learn's loaders do."""
        data, target, frame = X, y, None
        *names, target_name = self.columns
        if as_frame:
            frame = pandas_for("as_frame=True").DataFrame(X, columns=names)
            numeric = [j for j, value in enumerate(X[0]) if isinstance(value, float)]
            frame = frame.astype({names[j]: np.float64 for j in numeric})
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
    """Return the verified content of the first local copy of a file, or None without one."""
    named = [data_home, os.environ.get(DATA_VARIABLE)]
    for folder in [Path(folder).expanduser() for folder in named if folder]:
        for ending in (".gz", ""):
            path = folder / f"{name}{ending}"
            if path.is_file():
                return _verified_bytes(path, sha256)
    return None


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
