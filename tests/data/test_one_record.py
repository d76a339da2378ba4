"""One record put in or changed: names, types, shapes, categories and other rows stay as they are.

Every reader, every kind of column, every missing, odd or wide value, and every estimator that reads
columns. The second fit is a replay of the first: what was released is the same, so whatever else is
not the same to the last bit was decided by one record; and of the private integers no more may have
moved than what one record is declared to move. Or the table is refused, by its column, unpaid.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from skdpnoise import (
    DPLogisticCD,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
)
from skdpnoise.data import RowSource
from skdpnoise.data.fitted_kinds import kind_of_labels
from skdpnoise.data.partitions import SpreadError
from skdpnoise.inspection import Transcript
from skdpnoise.inspection.auditing._fingerprint import differences
from tests._cases import each_value
from tests._replay import Replayed, two_runs
from tests.data._readers import IN_PARTS, KINDS, READERS, NotHeld, Opened

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("the_same_words")]

N = 60
TARGET = [k % 3 for k in range(N)]
# Both are found at once: of counts of categories it is normal noise that needs no search.
TERMS = {"epsilon": 50.0, "delta": 1e-3, "noise": "iid_laplace"}
OF_TABLES = {**TERMS, "noise": "iid_gaussian"}


def _table(entry: Any, name: str, **facts: Any) -> Any:
    columns = None if entry is None else {name: entry}
    return DPTableVectorizer(columns, n_bins=0, **OF_TABLES, **facts)


def _encoder(make: Any, categories: Any, name: str, **facts: Any) -> Any:
    return make(categories=categories, **OF_TABLES, **facts)


def _numbers(make: Any, name: str, **facts: Any) -> Any:
    return make(feature_bounds=(0.0, 4.0), **TERMS, **facts)


def _regression(name: str, **facts: Any) -> Any:
    return _numbers(DPRidge, name, target_bounds=(0.0, 2.0), solver="gram", **facts)


def _of_labels(labels: Any, name: str, **facts: Any) -> Any:
    return _numbers(DPLogisticCD, name, classes=labels, n_passes=1, **facts)


def estimators(kind: str) -> dict[str, Callable[..., Any]]:
    """Return how estimators that read columns of a kind are made, by what they are told of it."""
    labels = list(KINDS[kind].usual)
    made = {
        "table": partial(_table, None),
        "table of bounds": partial(_table, (0, 3)),
        "table of categories": partial(_table, "category"),
        "table of buckets": partial(_table, {"buckets": 5}),
        "table of dates": partial(_table, "date"),
        "one-hot": partial(_encoder, DPOneHotEncoder, "auto"),
        "ordinal": partial(_encoder, DPOrdinalEncoder, "auto"),
        "scaler": partial(_numbers, DPStandardScaler),
        "imputer": partial(_numbers, DPSimpleImputer),
        "regression": _regression,
    }
    if kind_of_labels(labels) is not None and kind != "decimal":
        made |= {
            "table of a list": partial(_table, labels),
            "table of an order": partial(_table, {"kind": "ordinal", "categories": labels}),
            "one-hot of a list": partial(_encoder, DPOneHotEncoder, [labels]),
            "target": partial(_of_labels, labels),
        }
    return made


def changes(kind: str) -> list[tuple[str, Any]]:
    """Return each value that one record may have, and how it comes into the table."""
    ways = itertools.cycle(["changed first", "put in", "changed last"])
    return [*zip(ways, [None, *KINDS[kind].odd], strict=False)]


def _rows(kind: str, how: str, value: Any) -> tuple[list[Any], list[int]]:
    """Return the rows of a column, and their targets, with one record put in or changed."""
    column = [KINDS[kind].usual[k % 2] for k in range(N)]
    if how == "put in":
        return [*column, value], [*TARGET, 1]
    if how != "usual":
        column[0 if how == "changed first" else -1] = value
    return column, TARGET


def _fit(make: Callable[..., Any], name: str, opened: Opened, **facts: Any) -> tuple[Any, ...]:
    """Return all that is public of a fit, and what the rows become."""
    X, y = opened(target=name == "target")
    column = "x0" if isinstance(X, np.ndarray) else "a"
    fitted = make(column, **facts).fit(X, y)
    encoded = (fitted.transform if hasattr(fitted, "transform") else fitted.predict)(X)
    if isinstance(encoded, RowSource):
        encoded = np.concatenate([*map(np.asarray, encoded.batches())])
    names = fitted.get_feature_names_out().tolist() if hasattr(fitted, "transform") else None
    learnt = {key: value for key, value in vars(fitted).items() if key[-1] == "_"}
    if facts["adjacency"] == "add_remove":
        learnt.pop("n_samples_seen_", None)  # how many rows there were
    return learnt, names, np.asarray(encoded)


class Charged(Exception):
    """A fit went on to a charge."""


class Charges:
    """A ledger that takes no charge."""

    dataset = "rows"

    def charge(self, label, cost, **facts):
        raise Charged

    def __deepcopy__(self, memo):
        return self


def refusal(make: Callable[..., Any], name: str, opened: Opened) -> str | None:
    """Return why a fit is refused before anything is charged for; None if it is not."""
    try:
        _fit(make, name, opened, adjacency="replace_one", ledger=Charges())
    except REFUSALS as error:
        return str(error)
    except Charged:
        return None
    return None  # what learns nothing, as of public categories


# What is said of a column. An array has one type, and is called X; models say of missing, infinite
# and huge numbers what scikit-learn says.
PARAMETER = r"|'\w+' parameter of"
NAMED = {
    "frame": re.compile(r"'a'|Input X .*contains" + PARAMETER),
    "array": re.compile(r"'x0'|\bX\b" + PARAMETER),
    "target": re.compile(r"'a'|\by\b|label" + PARAMETER),
}


def decided(found: Replayed, rows: slice) -> str:
    """Return what one record decided, in words: nothing if that is nothing."""
    if found.there.diverged is not None:
        return found.there.diverged
    first, second = ((*one[:2], one[2][rows].copy()) for one in (found.first, found.second))
    if different := differences(first, second):
        return f"other values: {different}"
    return " and ".join(
        f"{one.name} moved by {one.share}" for one in found.moved if not one.is_covered
    )


REFUSALS = ValueError, TypeError, SpreadError
ROWS = {"put in": slice(N), "changed first": slice(1, N), "changed last": slice(N - 1)}


class Usual:
    """An estimator that is fitted to the usual rows, and to those with one other record."""

    def __init__(self, make: Callable[..., Any], name: str, opened: Opened, named: Any) -> None:
        self.make, self.name, self.opened, self.named = make, name, opened, named
        self.transcript, self.refused = Transcript(), None
        try:
            self.public = self.transcript.watch(self.run("replace_one"), opened)
        except REFUSALS:
            self.refused = refusal(make, name, opened)
            assert self.refused is not None

    def run(self, adjacency: str) -> Callable[[Opened], Any]:
        return partial(_fit, self.make, self.name, adjacency=adjacency)

    def beside(self, other: Opened, how: str) -> str:
        """Return what one record decided, in words; nothing if that is nothing."""
        try:
            if self.refused is not None:
                raise ValueError
            if how == "put in":
                found = two_runs(self.run("add_remove"), (other,), (self.opened,), 0)
            else:
                again = Transcript(earlier=self.transcript)
                public = again.watch(self.run("replace_one"), other)
                found = Replayed(self.public, public, self.transcript, again)
            return decided(found, ROWS[how])
        except REFUSALS:
            why = refusal(self.make, self.name, other)
        told = {one for one in (why, self.refused) if one is not None}
        if why == self.refused or (told and all(map(self.named.search, told))):
            return ""
        return f"refused after a charge, or not by the column: {told}"


@each_value(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_one_record_decides_no_name_no_type_no_category_and_nothing_of_other_rows(
    reader, kind, tmp_path
):
    def read(how: str, value: Any) -> Opened | None:
        with suppress(NotHeld):
            return READERS[reader](*_rows(kind, how, value), kind, tmp_path)
        return None

    opened = read("usual", None)
    others = [(how, value, other) for how, value in changes(kind) if (other := read(how, value))]
    if opened is None:
        assert not others
        pytest.skip("no such column can be there")
    wrong = []
    # Readers in parts share what follows them: every second pair of an estimator and a change.
    step = 2 if reader in IN_PARTS else 1
    for place, (name, make) in enumerate(estimators(kind).items()):
        named = NAMED["target" if name == "target" else "array" if "numpy" in reader else "frame"]
        usual = Usual(make, name, opened, named)
        for how, value, other in others[place % step :: step]:
            if text := usual.beside(other, how):
                wrong.append((name, how, value, text))
    assert not wrong, "\n".join(map(str, wrong))
