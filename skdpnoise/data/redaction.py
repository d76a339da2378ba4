"""Errors of data that cannot be read show no value of them."""

from __future__ import annotations

import re
from types import TracebackType

__all__ = ["check_collected", "unless_it_fails", "without_values"]

Traceback = TracebackType | None


class without_values:
    """A block of which what is raised shows shapes, types and names at most."""

    def __init__(self, otherwise: str, *, of_columns: bool = False) -> None:
        # With `of_columns` the text names the columns that are no numbers, as numpy cannot.
        self._otherwise, self._of_columns = otherwise, of_columns

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Traceback) -> None:
        if not isinstance(error, Exception):
            return
        problem = _explained(error, self._otherwise, self._of_columns)
        del error, trace
        try:
            raise problem
        finally:
            problem.__context__ = None  # the quoting error, which is not attached to it


class unless_it_fails:
    """A block that ends where it fails, but for a lack of memory."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Traceback) -> bool:
        # Of an object that says so itself the error may quote it.
        return isinstance(error, Exception) and not isinstance(error, MemoryError)


def check_collected(owner: str, name: str, kind: type) -> None:
    """Refuse a query of polars that has not run, by its type: it has no rows yet."""
    if kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars":
        raise TypeError(
            f"{owner} needs the rows of {name}, and a polars.LazyFrame has none before it is "
            f"computed. Pass {name}.collect()."
        )


# Texts of scikit-learn and numpy that hold shapes, names of columns and types, and no values.
_HARMLESS = re.compile(
    r"""
    np\.matrix\ is\ not\ supported\..*
    | Found\ array\ with\ \d+\ (?:sample|feature)\(s\)\ \(shape=\([\d,\ ]*\)\)\ while\ a\ minimum
        \ of\ \d+\ is\ required\ by\ \w+\.
    | Found\ array\ with\ dim\ \d+,\ while\ dim\ <=\ 2\ is\ required\ by\ \w+\.
    | Found\ input\ variables\ with\ inconsistent\ numbers\ of\ samples:\ \[[\d,\ ]*\]
    | Expected\ a\ 2-dimensional\ container\ but\ got\ <class\ '[\w.]+'>\ instead\..*
    | X\ has\ \d+\ features,\ but\ \w+\ is\ expecting\ \d+\ features\ as\ input\.
    | The\ feature\ names\ should\ match\ those\ that\ were\ passed\ during\ fit\..*
    | Feature\ names\ are\ only\ supported\ if\ all\ input\ features\ have\ string\ names.*
    | Expected\ unique\ column\ names,\ got:.*
    | Sparse\ data\ was\ passed.*
    | Sparse\ input\ is\ not\ supported.*
    | y\ should\ be\ a\ 1d\ array,\ got\ an\ array\ of\ shape\ \([\d,\ ]*\)\ instead\.
    | float\(\)\ argument\ must\ be\ a\ string\ or\ a\ (?:real\ )?number,\ not\ '[\w.]+'
    | setting\ an\ array\ element\ with\ a\ sequence\.\ The\ requested\ array\ has\ an
        \ inhomogeneous\ shape\ after\ \d+\ dimensions\.\ The\ detected\ shape\ was\ \([\d,\ ]*\)
        \ \+\ inhomogeneous\ part\.
    | A\ column-vector\ y\ was\ passed\ when\ a\ 1d\ array\ was\ expected\..*
    | Input\ [\w]*\ ?contains\ NaN\..*
    | Input\ [\w]*\ ?contains\ infinity\ or\ a\ value\ too\ large\ for\ dtype\('\w+'\)\.
    | The\ 'groups'\ parameter\ of\ .*
    | This\ \w+\ instance\ is\ not\ fitted\ yet\..*
    """,
    re.VERBOSE | re.DOTALL,
)


def _explained(error: Exception, otherwise: str, of_columns: bool) -> Exception:
    """Return an error of the same kind that shows no value of the data."""
    kind: type[Exception] = next(
        (kind for kind in (TypeError, MemoryError) if isinstance(error, kind)), ValueError
    )
    text = str(error)
    if not _HARMLESS.fullmatch(text) or (of_columns and text.startswith("float() ")):
        return kind(otherwise)
    own = type(error)
    return own(text) if own.__module__.startswith("sklearn.") else kind(text)
