"""Numbers and a target in partitions by the names that linear models still use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from skdpnoise.data.computed import is_computed
from skdpnoise.data.reading import Numbers, array_of, limits_of, scan_partitions
from skdpnoise.data.rows import as_sources, is_spread
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Partitioned
from skdpnoise.data.targets import check_present, missing_target

__all__ = ["Survey", "is_spread", "read_spread"]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Rows that were scanned."""

    rows: Partitioned[dict[str, Any]]  # tables by name
    columns: Schema
    found: list[Any]  # what a check of the target returned, of all batches
    survives: bool
    limits: dict[str, Any]

    @property
    def table(self) -> Callable[[dict[str, Any]], NDArray[Any]]:
        """What makes an array of X."""
        return partial(array_of, self.columns.dtype, self.limits if self.survives else None)


@dataclass(frozen=True, slots=True, eq=False)
class _Checked(Numbers):
    """Numbers beside which a function checks a target."""

    target: Callable[[Any, int], Any] | None = None

    def scan(self, estimator: Any, tables: dict[str, Any]) -> Any:
        owner, columns = type(estimator).__name__, Numbers.scan(self, estimator, tables)
        if self.target is None:
            return columns, None
        if not is_computed("y"):
            check_present(owner, tables["y"])
        return columns, self.target(tables["y"], len(tables["X"]))


def read_spread(
    estimator: Any,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    target: Callable[[Any, int], Any] | None = None,
    n_jobs: int | None = None,
    ensure_min_samples: int = 1,
    **options: Any,
) -> Survey:
    """Scan all rows, and set what an estimator knows of its columns."""
    if target is not None and y is None:
        raise missing_target(type(estimator).__name__)
    sources = as_sources(X=X, y=None if target is None else y, groups=groups)
    form = _Checked(options, ensure_min_samples, target=target)
    rows, found, computed = scan_partitions(estimator, form, sources, n_jobs)
    columns = form.agreed(estimator, [one for one, _ in found], None)
    checked = [one for _, one in found]
    return Survey(rows, columns, checked, "X" in computed, limits_of(options))
