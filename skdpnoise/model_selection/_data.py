"""The data of a search, read as compositions read X and estimators read y."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skdpnoise._utils.redaction import silence
from skdpnoise.base.parts import private_parts
from skdpnoise.data.arguments import check_data
from skdpnoise.data.columns import read_features
from skdpnoise.data.groups import Groups, check_labels, group_codes
from skdpnoise.data.lists import read_once
from skdpnoise.data.partitions import Keep
from skdpnoise.data.rows import RowSource, as_sources, is_spread
from skdpnoise.data.selection import selected_rows
from skdpnoise.data.sizes import HELD
from skdpnoise.data.table import InMemory, Partitioned, scan_tables
from skdpnoise.data.targets import check_present, labels_of_parts, read_labels, read_numbers
from skdpnoise.model_selection._splits import Coins
from skdpnoise.sampling import RandomWords

_FEWEST = 4  # rows: two to fit, one to score, one to learn the units of the target

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class WholeRecords:
    """Records in memory, of which parts are told by the numbers of their rows."""

    X: Any
    y: NDArray[Any]
    labels: NDArray[Any] | None  # all labels of a classifier, sorted: public
    groups: Any  # a label for each row; None where each row is its own
    known: Groups[Any]
    kept: Rows  # rows that are used of their groups

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None where each row is its own."""
        return self.known.n_groups

    def __len__(self) -> int:
        return len(self.y)

    def scattered(self, coins: Coins) -> list[Rows]:
        """Return the rows of each part."""
        codes = self.known.codes
        places = (
            coins.of_numbers(0, len(self)) if codes is None else coins.of_labels(self.groups, codes)
        )[self.kept]
        return [self.kept[places == place] for place in range(coins.n_places)]

    def used(self, rng: RandomWords) -> WholeRecords:
        """Return the records with the rows that are used of groups with too many."""
        kept: Any = self.known.keep(rng)
        return replace(self, kept=kept.leaf)

    def all(self) -> Rows:
        """Return all rows that are used."""
        return self.kept

    def none(self) -> Rows:
        """Return no rows."""
        return self.kept[:0]

    def union(self, *parts: Rows) -> Rows:
        """Return the rows of several parts."""
        return np.unique(np.concatenate(parts))

    def of(self, rows: Rows) -> tuple[Any, NDArray[Any]]:
        """Return rows in memory of their own: a step may write into what it is given."""
        X = _safe_indexing(self.X, rows)
        return X if isinstance(X, np.ndarray) else deepcopy(X), self.y[rows]

    def handed(self, model: Any) -> Any:
        """Return a fitted model as it is asked for predictions."""
        return model

    def target(self, rows: Rows) -> NDArray[Any]:
        """Return the target of rows."""
        return self.y[rows]

    def total(
        self, rows: Rows, step: Callable[[tuple[Any, NDArray[Any]]], NDArray[Any]], label: str
    ) -> NDArray[Any]:
        """Return the integers that a function makes of rows."""
        return step(self.of(rows))

    def joined(
        self,
        rows: Rows,
        take: Callable[[tuple[Any, NDArray[Any]], int], NDArray[Any]],
        finish: Callable[[list[NDArray[Any]]], Any],
        label: str,
    ) -> Any:
        """Return what a second function makes of what a first one makes of rows."""
        return finish([take(self.of(rows), 0)])

    def check_unchanged(self) -> None:
        """Do nothing: records in memory stay as they are while a search runs."""


@dataclass(frozen=True, slots=True, eq=False)
class SpreadPart:
    """Records in parts of a source that fall to some of the places."""

    rows: Partitioned[dict[str, Any]]
    coins: Coins | None = None  # by which they fall; None where no coin was tossed
    places: frozenset[int] = frozenset()
    counts: Any = None  # of rows that fall to each place, shape (n_parts, n_places)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadRecords:
    """Records in parts of a source."""

    sources: dict[str, RowSource]
    rows: Partitioned[dict[str, Any]]  # those that are used of their groups
    labels: NDArray[Any] | None  # all labels of a classifier, sorted: public
    known: Groups[Any]
    look: _Look

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None where each row is its own."""
        return self.known.n_groups

    def __len__(self) -> int:
        return self.known.n_rows

    def scattered(self, coins: Coins) -> list[SpreadPart]:
        """Return the records of each place."""
        counts = self._counts(coins)
        places = (frozenset({place}) for place in range(coins.n_places))
        return [self._falling(coins, one, counts) for one in places]

    def used(self, rng: RandomWords) -> SpreadRecords:
        """Return the records with the rows that are used of groups with too many."""
        kept: Any = self.known.keep(rng)
        return replace(self, rows=kept)

    def all(self) -> SpreadPart:
        """Return all records that are used."""
        return SpreadPart(self.rows)

    def none(self) -> SpreadPart:
        """Return no records."""
        return SpreadPart(self.rows.chosen(_none))

    def union(self, *parts: SpreadPart) -> SpreadPart:
        """Return the records of several parts, by the same coins."""
        coins, counts = parts[0].coins, parts[0].counts
        assert coins is not None
        return self._falling(coins, frozenset().union(*(part.places for part in parts)), counts)

    def of(self, part: SpreadPart) -> tuple[RowSource, RowSource]:
        """Return sources of some records."""
        rows = part.rows.rows
        everything = rows.keep is None and rows.choose is None
        found = self.sources if everything else selected_rows(self.sources, rows)
        return found["X"], found["y"]

    def handed(self, model: Any) -> Any:
        """Return a copy of a fitted model that goes where the rows are: no seed goes with it."""
        return without_seeds(model)

    def target(self, part: SpreadPart) -> Any:
        """Return the target of some records: of none an array."""
        return part.rows.map(self.look.target) if part.size else self._no_target

    def total(
        self,
        part: SpreadPart,
        step: Callable[[tuple[Any, NDArray[Any]]], NDArray[Any]],
        label: str,
    ) -> NDArray[Any]:
        """Return the sum of the integers that a function makes of some records."""
        if not part.size:
            return step((None, self._no_target))
        return part.rows.map(self.look.pair).total(step, label)

    def joined(
        self,
        part: SpreadPart,
        take: Callable[[tuple[Any, NDArray[Any]], int], NDArray[Any]],
        finish: Callable[[list[NDArray[Any]]], Any],
        label: str,
    ) -> Any:
        """Return what a second function makes of what a first one makes of some records."""
        return part.rows.map(self.look.pair).joined(take, finish, label)

    def check_unchanged(self) -> None:
        """Read all records once more: they must be those of the first look."""
        # Fits look at rows anew; every score compares all of them with the first look of all.
        self.rows.total(_counted, "last look")

    @property
    def _no_target(self) -> NDArray[Any]:
        return np.zeros(0) if self.labels is None else self.labels[:0]

    def _counts(self, coins: Coins) -> NDArray[np.int64]:
        """Return how many rows of each part fall to each place."""
        n_kept = self.rows.rows.n_kept
        found = np.zeros((len(n_kept), coins.n_places), dtype=np.int64)
        if self.n_groups is None:  # by numbers alone, of some rows at a time
            ends = accumulate(n_kept, initial=0)
            for counts, (begin, end) in zip(found, pairwise(ends), strict=True):
                for first in range(begin, end, HELD):
                    places = coins.of_numbers(first, min(first + HELD, end))
                    counts += np.bincount(places, minlength=coins.n_places)
        else:
            labels = self.rows.only("groups")
            take = partial(_counts_by_label, coins)
            found[np.array(n_kept) > 0] = labels.joined(take, np.stack, "coins", by_part=True)
        return found

    def _falling(
        self, coins: Coins, places: frozenset[int], counts: NDArray[np.int64]
    ) -> SpreadPart:
        """Return the records that fall to some places."""
        sizes = counts[:, sorted(places)].sum(axis=1)
        if self.n_groups is None:
            rows = self.rows.chosen(partial(_falls_by_number, coins, places), sizes.tolist())
        else:
            keep = partial(_falls_by_label, coins, places, self.rows.rows.keep)
            rows = self.rows.sampled(keep, sizes.tolist())
        return SpreadPart(rows, coins, places, counts)


@dataclass(frozen=True, slots=True)
class _Look:
    """Reads some records as whole ones are read: by a search that has no parameters."""

    kind: type
    classifier: bool

    def __call__(self, tables: dict[str, Any]) -> NDArray[Any] | None:
        """Return the labels of some records; refuse them as whole ones would be."""
        owner = self.kind.__name__
        check_data(owner, read_features(owner, tables["X"]), tables["y"])
        if "groups" in tables:
            check_labels(f"{owner}.fit", tables["groups"])
        check_present(owner, tables["y"])
        y = self.target(tables)
        return np.unique(y) if self.classifier else None

    def target(self, tables: dict[str, Any]) -> NDArray[Any]:
        """Return the target of some records."""
        y = tables["y"]
        if self.classifier:
            return read_labels(self.kind.__name__, y, len(y))
        return read_numbers(object.__new__(self.kind), y, len(y))

    def pair(self, tables: dict[str, Any]) -> tuple[Any, NDArray[Any]]:
        """Return some records."""
        return read_features(self.kind.__name__, tables["X"]), self.target(tables)


def _counted(tables: dict[str, Any]) -> NDArray[np.int64]:
    return np.array([len(tables["y"])])


def without_seeds(model: Any) -> Any:
    """Return a copy of a fitted model that knows neither seeds nor ledgers."""
    # From a seed everybody could draw the same noise.
    bare = deepcopy(model)
    _forget(bare)
    return bare


def _forget(model: Any) -> None:
    for fitted in (False, True):
        for part in private_parts(model, fitted=fitted):
            for name in {"ledger", "random_state"} & set(vars(part.estimator)):
                setattr(part.estimator, name, None)
            for _, step in getattr(part.estimator, "steps_", ()):  # a DPPipeline's own
                _forget(step)


def _none(begin: int, end: int) -> NDArray[np.bool_]:
    return np.zeros(end - begin, dtype=bool)


def _counts_by_label(coins: Coins, tables: dict[str, Any], first: int) -> NDArray[np.int64]:
    return np.bincount(_places(coins, tables["groups"]), minlength=coins.n_places)


def _falls_by_number(
    coins: Coins, places: frozenset[int], begin: int, end: int
) -> NDArray[np.bool_]:
    return np.isin(coins.of_numbers(begin, end), sorted(places))


def _falls_by_label(
    coins: Coins, places: frozenset[int], keep: Keep | None, labels: Any, first: int
) -> NDArray[np.bool_]:
    falls = np.isin(_places(coins, labels), sorted(places))
    return falls if keep is None else falls & keep(labels, first)


def _places(coins: Coins, labels: Any) -> NDArray[np.intp]:
    return coins.of_labels(labels, group_codes("fit", labels, len(labels)))


def read_records(
    search: Any, X: Any, y: Any, groups: Any, *, classifier: bool
) -> WholeRecords | SpreadRecords:
    """Check the data of a search."""
    owner = type(search).__name__
    if is_spread(X) or is_spread(y):
        return _read_parts(search, as_sources(X=X, y=y, groups=groups), classifier)
    X, y = read_features(owner, X), read_once(owner, y, name="y")
    n_rows = check_data(owner, X, y)
    _check_many(owner, n_rows)
    y = read_labels(owner, y, n_rows) if classifier else read_numbers(search, y, n_rows)
    numbers, most = InMemory.of(np.arange(n_rows)), int(search.rows_per_group)
    with silence():
        known = Groups.in_memory(f"{owner}.fit", numbers, most, groups)
    labels = np.unique(y) if classifier else None
    return WholeRecords(X, y, labels, groups, known, numbers.leaf)


def _read_parts(search: Any, sources: dict[str, RowSource], classifier: bool) -> SpreadRecords:
    """Look at records in parts."""
    owner = type(search).__name__
    if "y" not in sources:
        raise ValueError(f"{owner} needs a target y beside rows in parts. Got None.")
    look = _Look(type(search), classifier)
    rows = scan_tables(look, **sources)
    _check_many(owner, len(rows))
    found = [labels for facts in rows.rows.facts for labels in facts.found]
    labels = labels_of_parts(owner, found) if classifier else None
    known: Any = Groups.in_partitions(f"{owner}.fit", rows, int(search.rows_per_group))
    return SpreadRecords(sources, rows, labels, known, look)


def _check_many(owner: str, n_rows: int) -> None:
    if n_rows < _FEWEST:
        raise ValueError(
            f"Found array with {n_rows} sample(s) while a minimum of {_FEWEST} is required by "
            f"{owner}."
        )
