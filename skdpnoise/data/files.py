"""Files and iterators as sources of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from skdpnoise.data.kinds import OBJECTS, Kind, kind_of
from skdpnoise.data.local import LocalRunner
from skdpnoise.data.partitions import (
    RowReader,
    Runner,
    SpreadError,
    held,
    quietly,
    rows_at_once,
    rows_of,
)
from skdpnoise.data.selection import RowSelection
from skdpnoise.data.sizes import BUFFER, KEPT
from skdpnoise.data.sources import RowSource

# Seconds for which memory is kept for the next part: to take it anew costs about a millisecond.
_KEPT_SECONDS = 0.25

_WRITTEN = (
    "How it is written is said by options of pyarrow.csv: read_options=ReadOptions(encoding=...), "
    "convert_options=ConvertOptions(decimal_point=..., timestamp_parsers=...)."
)

Factory = Callable[[], Iterable[Any]]


def scan_parquet(
    path: str | Path | Sequence[str | Path], *, batch_rows: int | None = None
) -> RowSource:
    """Return the rows of Parquet files, of which each row group is a part.

    Parameters
    ----------
    path : str, Path or sequence of them
        A file, or files with the same columns in the order of their rows.
    batch_rows : int, default=None
        Rows that are held at a time; it changes memory and speed only. By default, half a million
        numbers.

    Returns
    -------
    RowSource

    Raises
    ------
    ImportError
        Without pyarrow.
    FileNotFoundError, ValueError
        If there is no such file, or it is no Parquet file, or columns differ.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
    ...     pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_parquet(file.name)
    ...     scan_parquet(file.name).shape
    (2, 2)
    """
    _check_batch_rows("scan_parquet", batch_rows)
    parts: list[tuple[str, int]] = []
    n_rows, schema = 0, None
    for one in _paths(path):
        with _parquet_file(one) as file:
            _check_names(one, file.schema_arrow.names)
            schema = _same_schema(one, schema, file.schema_arrow)
            parts += [(one, group) for group in range(file.metadata.num_row_groups)]
            n_rows += file.metadata.num_rows
    assert schema is not None
    schema = schema.remove_metadata()
    return RowSource(_Parquet(tuple(parts), schema, n_rows, batch_rows, **_facts(schema)))


def _parquet_file(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid:
        pass
    raise ValueError(f"{path} is no Parquet file, or was not written to its end.")


def scan_csv(
    path: str | Path | Sequence[str | Path],
    *,
    header: bool = False,
    names: Sequence[str] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    **options: Any,
) -> RowSource:
    """Return the rows of CSV files, of which each is a part.

    Names of columns become public, and the first line of a file without a header is a person: so
    say that there is a header, or what the columns are called. Types that `dtypes` leaves out are
    found in the first rows of the first file in which a column has a value; the reports of fits say
    so, and :class:`~skdpnoise.DPTableVectorizer` refuses what it would have to guess.

    Parameters
    ----------
    path : str, Path or sequence of them
        A file, or files with the same columns in the order of their rows.
    header : bool, default=False
        Whether the first line of each file has the names of the columns, which are public.
    names : sequence of str, default=None
        **Public** names of the columns of files without a header. Where neither is given, `dtypes`
        must name all columns of a header.
    dtypes : dict, default=None
        **Public** types by the names of columns: "number", "text", "boolean", "date", or a type of
        pyarrow.
    **options : dict
        ``read_options``, ``parse_options`` and ``convert_options`` of pyarrow.csv.open_csv; they
        are not changed.

    Returns
    -------
    RowSource

    Raises
    ------
    ImportError
        Without pyarrow.
    FileNotFoundError, ValueError
        If there is no such file, or its first rows are no table, or columns differ, or nobody says
        that their names are public.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("a,y\\n1.5,0\\n2.5,1\\n")
    ...     file.flush()
    ...     scan_csv(file.name, header=True, dtypes={"a": "number", "y": "number"}).shape
    (2, 2)
    """
    paths, types = _paths(path), _csv_types(dtypes)
    options = _csv_options(options, names, types, header=header)
    known = {**options["convert_options"].column_types}
    named = header or bool(options["read_options"].column_names)
    named = named or options["read_options"].autogenerate_column_names
    schema: Any = None
    for one in paths:
        found = _schema_of_text(one, options)
        if not named and set(found.names) != set(known):
            raise ValueError(
                f"scan_csv publishes the names of columns, and nobody says that the first line of "
                f"{one} has them. Say header=True if it has; else give names=[...]. Names in "
                "'dtypes' are enough where they are those of all columns."
            )
        _check_names(one, found.names, remedy=": give names=[...]")
        if unknown := [name for name in types if name not in found.names]:
            raise ValueError(
                f"The 'dtypes' parameter of scan_csv names {unknown[0]!r}, which is no column."
            )
        if schema is not None and schema.names != found.names:
            raise ValueError(f"The columns of {one} are not those of the files before it.")
        schema = found if schema is None else _typed(schema, found)
    assert schema is not None
    guessed = frozenset(schema.names) - {*known}
    return RowSource(_Csv(tuple(paths), schema, options, guessed=guessed, **_facts(schema)))


def _csv_types(dtypes: Mapping[str, Any] | None) -> dict[str, Any]:
    import pyarrow as pa

    words = {
        "number": pa.float64(),
        "text": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.timestamp("us"),
    }
    found = {}
    for name, given in (dtypes or {}).items():
        found[name] = words.get(given, given) if isinstance(given, str) else given
        if not isinstance(found[name], pa.DataType):
            raise ValueError(
                f"The 'dtypes' parameter of scan_csv must give for {name!r} one of {list(words)} "
                f"or a type of pyarrow. Got {given!r}."
            )
    return found


def _csv_options(
    options: Mapping[str, Any],
    names: Sequence[str] | None,
    types: Mapping[str, Any],
    *,
    header: bool,
) -> dict[str, Any]:
    import pyarrow.csv

    given = options.get("convert_options"), options.get("read_options")
    convert = pyarrow.csv.ConvertOptions() if given[0] is None else copy(given[0])
    read = pyarrow.csv.ReadOptions() if given[1] is None else copy(given[1])
    convert.column_types = {**convert.column_types, **types}
    if names is not None:
        if header:
            raise ValueError(
                "The 'names' parameter of scan_csv is for files without a header. Got header=True."
            )
        read.column_names = [*map(str, names)]
    return {**options, "convert_options": convert, "read_options": read}


def _typed(schema: Any, other: Any) -> Any:
    """Return columns with types; those without a value so far have the type of another file."""
    import pyarrow as pa

    pairs = zip(schema, other, strict=True)
    return pa.schema([new if pa.types.is_null(own.type) else own for own, new in pairs])


def _schema_of_text(path: str, options: dict[str, Any]) -> Any:
    """Return the columns of a file of text, and their types, by its first rows."""
    import pyarrow as pa
    import pyarrow.csv

    try:
        with pyarrow.csv.open_csv(path, **options) as file:
            return file.schema
    except pa.ArrowInvalid as error:  # its message quotes what it could not read
        place = re.match(r"In CSV column #(\d+)", str(error))
    if place is not None:
        with pyarrow.csv.open_csv(path, **{**options, "convert_options": None}) as file:
            name = file.schema.names[int(place[1])]
        raise ValueError(
            f"A value in the first rows of {path} has not the type that is named for its column "
            f"{name!r}: name another one in 'dtypes', such as 'text'. {_WRITTEN}"
        )
    raise ValueError(
        f"The first rows of {path} are no table: the file is empty, or a line has another number "
        "of values than the header or 'names', or another encoding than UTF-8. See parse_options "
        "and read_options of pyarrow.csv.open_csv."
    )


def scan_dataset(dataset: Any, *, batch_rows: int | None = None) -> RowSource:
    """Return the rows of a dataset of pyarrow, of which each fragment is a part.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        Files of any format, partitioned in any way, on any file system that pyarrow knows.
    batch_rows : int, default=None
        Rows that are held at a time; it changes memory and speed only. By default, half a million
        numbers.

    Returns
    -------
    RowSource

    Raises
    ------
    TypeError, ValueError
        If it is no dataset, or has no files, or one with a filter, which has no fragments.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.dataset
    >>> scan_dataset(pa.dataset.dataset(pa.table({"a": [1.0, 2.0]}))).shape
    (2, 1)
    """
    import pyarrow.dataset

    _check_batch_rows("scan_dataset", batch_rows)
    if not isinstance(dataset, pyarrow.dataset.Dataset):
        raise TypeError(
            "The 'dataset' parameter of scan_dataset must be a pyarrow.dataset.Dataset. Got "
            f"{type(dataset).__name__}."
        )
    _check_names("the dataset", dataset.schema.names)
    fragments = tuple(dataset.get_fragments())
    if not fragments:
        raise ValueError("The 'dataset' parameter of scan_dataset has no files.")
    schema = dataset.schema
    return RowSource(_Dataset(fragments, schema, batch_rows, **_facts(schema)))


def scan_batches(factory: Factory | Sequence[Factory]) -> RowSource:
    """Return the rows that a function gives, some at a time, whenever it is called.

    Parameters
    ----------
    factory : callable or sequence of callable
        Without arguments, it returns an iterable of frames, or of arrays, all with the same
        columns; it is called once for each pass, and must give the same rows every time, which is
        checked. The next batch may use the memory of the last one. Each of several is a part.

    Returns
    -------
    RowSource

    Raises
    ------
    TypeError
        If it is not callable, gives other things, or the same iterator in each call.
    ValueError
        If it gives no rows.

    Examples
    --------
    >>> rows = scan_batches(lambda: (np.full((2, 3), float(i)) for i in range(5)))
    >>> rows.shape
    (10, 3)
    """
    factories = tuple(factory) if isinstance(factory, Sequence) else (factory,)
    if not factories or not all(callable(one) for one in factories):
        raise TypeError(
            "The 'factory' parameter of scan_batches must be a function, or several, that return "
            "the batches anew in each call: an iterator can be read only once."
        )
    if any(map(_gives_one_iterator, factories)):
        raise TypeError(
            "The 'factory' parameter of scan_batches must return the batches anew in each call. "
            "Got one that returns the same iterator, which can be read only once."
        )
    first = next(chain.from_iterable(map(_given, factories)), None)
    if first is None:
        raise ValueError("The 'factory' parameter of scan_batches gave no rows.")
    if not _is_batch(first):
        raise TypeError(
            "The 'factory' parameter of scan_batches must give arrays of numpy or frames of "
            f"pandas. Got {type(first).__name__}."
        )
    labels, width = _form(first)
    named = bool(labels) and all(isinstance(label, str) for label in labels)
    columns = labels if named else None
    # Connections to databases belong to one thread.
    facts: dict[str, Any] = {"columns": columns, "n_columns": width, "may_prefetch": False}
    return RowSource(_Batches(factories, labels, **facts))


def _gives_one_iterator(factory: Factory) -> bool:
    """Return whether a function returns the same iterator in each call."""
    one, other = factory(), iter(factory())
    if one is other:
        return True
    for left in (iter(one), other):
        _close(left)
    return False


def _given(factory: Factory) -> Generator[Any]:
    """Yield what a function gives; close what it is read from, whether all is read or not."""
    batches = iter(factory())
    try:
        yield from batches
    finally:
        _close(batches)


def _close(batches: Any) -> None:
    """Close an iterator that can be closed, as one that reads a file: nobody else has it."""
    if hasattr(batches, "close"):
        batches.close()


def _is_batch(batch: Any) -> bool:
    return isinstance(batch, np.ndarray) or hasattr(batch, "iloc")


def _form(batch: Any) -> tuple[tuple[Any, ...], int]:
    """Return what columns of a frame are called, and their number: 0 of a vector."""
    labels = tuple(getattr(batch, "columns", ()))
    return labels, int(batch.shape[1]) if batch.ndim > 1 else 0


def _check_batch_rows(owner: str, batch_rows: Any) -> None:
    whole = isinstance(batch_rows, int | np.integer) and not isinstance(batch_rows, bool)
    if batch_rows is not None and not (whole and batch_rows > 0):
        raise ValueError(
            f"The 'batch_rows' parameter of {owner} must be a whole number above 0, or None. Got "
            f"{batch_rows!r}."
        )


def _same_schema(path: str, schema: Any, found: Any) -> Any:
    """Return the columns of a file, without pandas' index; refuse those that others have not."""
    import pyarrow as pa

    columns = pa.schema([field for field in found if field.name in _columns(found)])
    if schema is None:
        return columns
    if columns.names != schema.names:
        raise ValueError(f"The columns of {path} are not those of the files before it.")
    pairs = [
        (kind_of(one.type), kind_of(two.type)) for one, two in zip(schema, columns, strict=True)
    ]
    with suppress(pa.ArrowTypeError):
        if all(one == other or OBJECTS in (one, other) for one, other in pairs):
            return pa.unify_schemas([schema, columns], promote_options="permissive")
    raise ValueError(f"The types of columns of {path} are not those of the files before it.")


def _columns(schema: Any) -> tuple[str, ...]:
    """Return the names of the columns, of which pandas' index is none."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return tuple(name for name in schema.names if name not in index)


def _check_names(where: str, names: Sequence[str], remedy: str = "") -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of {where} must have different names{remedy}.")


def _paths(path: Any) -> list[str]:
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths:
        raise ValueError("The 'path' parameter must name a file at least.")
    return [str(one) for one in paths]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class _Local(RowReader):
    """A reader on this machine."""

    columns: tuple[str, ...] | None
    n_columns: int
    kinds: dict[str, Kind] | None = None
    guessed: frozenset[str] = frozenset()
    may_prefetch: bool = True

    def runner(self, tables: dict[str, RowSource], n_jobs: int | None) -> Runner:
        if any(source.reader != self for source in tables.values()):
            raise ValueError(
                f"{' and '.join(tables)} must be columns of one source, whose rows are read once. "
                "Got several sources: bring their columns into the same files or batches, and "
                "select, such as rows.drop('y') and rows['y']."
            )
        return LocalRunner(self, tables, n_jobs)

    def first(self, function: Callable[[Any], Any], columns: Sequence[str] | None) -> Any:
        rows = chain.from_iterable(self.read(part, columns) for part in range(self.n_parts))
        found = quietly(lambda: [function(one) for one in islice(rows, 1)])
        if not found:
            raise ValueError("There are no rows to read.")
        return found[0]

    def sifted(self, selection: RowSelection) -> RowReader:
        facts: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(_Local)}
        return _Sifted(self, selection, **facts)


def _facts(schema: Any) -> dict[str, Any]:
    """Return the names, the number and the kinds of columns of pyarrow."""
    columns = _columns(schema)
    pairs = zip(schema.names, map(kind_of, schema), strict=True)
    kinds = {name: kind for name, kind in pairs if name in columns}
    return {"columns": columns, "n_columns": len(columns), "kinds": kinds}


@dataclass(frozen=True, slots=True, repr=False)
class _Parquet(_Local):
    """Reads row groups of files."""

    parts: tuple[tuple[str, int], ...]
    schema: Any
    n_rows: int
    batch_rows: int | None

    @property
    def n_parts(self) -> int:
        return len(self.parts)

    def count(self) -> int:
        return self.n_rows

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        import pyarrow.parquet as pq

        path, group = self.parts[part]
        wanted = list(self.columns or ()) if columns is None else list(columns)
        # Some pages at a time, so that large row groups take no more memory than small ones.
        options: dict[str, Any] = {"buffer_size": BUFFER, "pre_buffer": False}
        with pq.ParquetFile(path, metadata=_footer(path, *_stamp(path)), **options) as file:
            batches = file.iter_batches(
                self.batch_rows or rows_at_once(len(wanted)),
                row_groups=[group],
                columns=wanted,
                use_threads=False,
            )
            yield from _frames(batches, self.schema, wanted)


@dataclass(frozen=True, slots=True, repr=False)
class _Csv(_Local):
    """Reads files of text."""

    paths: tuple[str, ...]
    schema: Any
    options: dict[str, Any]

    @property
    def n_parts(self) -> int:
        return len(self.paths)

    def count(self) -> int:
        some = self.schema.names[:1]
        return sum(len(rows) for part in range(self.n_parts) for rows in self.read(part, some))

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        import pyarrow as pa
        import pyarrow.csv

        convert = copy(self.options["convert_options"])
        convert.column_types = {one.name: one.type for one in self.schema}
        if columns is not None:
            convert.include_columns = list(columns)
        options = {**self.options, "convert_options": convert}
        try:
            with pyarrow.csv.open_csv(self.paths[part], **options) as file:
                yield from _frames(file, self.schema, columns)
            return
        except pa.ArrowInvalid as error:  # its message quotes what it could not read
            place = re.match(r"In CSV column #(\d+)", str(error))
        if place is None:
            raise SpreadError(
                f"{self.paths[part]} cannot be read: a line has another number of values."
            )
        name = self.schema.names[int(place[1])]
        raise SpreadError(
            f"{self.paths[part]} cannot be read: a value of column {name!r} has not its type. "
            "Types are those of the first rows, unless they are named, as in scan_csv(..., "
            f"dtypes={{{name!r}: 'text'}}). {_WRITTEN}"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Dataset(_Local):
    """Reads fragments of a dataset."""

    fragments: tuple[Any, ...]
    schema: Any
    batch_rows: int | None

    @property
    def n_parts(self) -> int:
        return len(self.fragments)

    def count(self) -> int:
        return sum(one.count_rows() for one in self.fragments)

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        import pyarrow.dataset

        wanted = list(self.columns or ()) if columns is None else list(columns)
        fragment, options = self.fragments[part], None
        if isinstance(fragment, pyarrow.dataset.ParquetFileFragment):
            options = pyarrow.dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False
            )
        batches = fragment.to_batches(
            schema=self.schema,
            columns=wanted,
            batch_size=self.batch_rows or rows_at_once(len(wanted)),
            use_threads=False,
            batch_readahead=0,
            fragment_scan_options=options,
        )
        try:
            yield from _frames(batches, self.schema, wanted)
        except pyarrow.ArrowNotImplementedError:  # of dictionaries of numbers
            complaint = _not_read(self.schema, wanted)
        else:
            return
        raise SpreadError(complaint)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Batches(_Local):
    """Calls functions."""

    factories: tuple[Factory, ...]
    labels: tuple[Any, ...]  # of the columns of frames

    @property
    def n_parts(self) -> int:
        return len(self.factories)

    def count(self) -> int:
        return sum(len(batch) for part in range(self.n_parts) for batch in self.read(part, None))

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        for batch in _given(self.factories[part]):
            if not _is_batch(batch) or _form(batch) != (self.labels, self.n_columns):
                raise SpreadError(
                    "All batches of scan_batches must have the same columns: the first had "
                    f"{_described(self.labels, self.n_columns)}. In part {part} there is one of "
                    f"{_described(*_form(batch)) if _is_batch(batch) else type(batch).__name__}."
                )
            if len(batch):
                yield batch


def _described(labels: tuple[Any, ...], width: int) -> str:
    if labels:
        return f"the columns {list(labels)}"
    return f"{width} columns" if width else "one dimension"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Sifted(_Local):
    """Reads some of the rows of another reader, some at a time as that does."""

    reader: RowReader
    selection: RowSelection

    @property
    def n_parts(self) -> int:
        return self.reader.n_parts

    def count(self) -> int:
        return sum(self.selection.counts)

    def read(self, part: int, columns: Sequence[str] | None) -> Generator[Any]:
        mask = self.selection.mask(part, [*self._labels(part)])
        for rows in self.reader.read(part, columns):
            chosen = mask(len(rows))
            left = rows if chosen is None else rows_of(rows, chosen)
            if len(left):
                yield left

    def _labels(self, part: int) -> Generator[Any]:
        if self.selection.keep is not None and self.selection.labels is not None:
            taking = self.selection.labels.taking
            yield from (held(taking(rows)) for rows in self.reader.read(part, taking.needed))


def _stamp(path: str) -> tuple[int, int]:
    """Return when a file was written, and its size."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=KEPT)
def _footer(path: str, written: int, size: int) -> Any:
    """Return what a file says of its row groups: each part of a long file would read all of it."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path)


def _not_read(schema: Any, names: Iterable[str]) -> str:
    """Return that pyarrow cannot read the columns of a dataset that are dictionaries."""
    import pyarrow

    listed = ", ".join(
        repr(name) for name in names if pyarrow.types.is_dictionary(schema.field(name).type)
    )
    return (
        f"pyarrow cannot read these columns of the dataset as dictionaries: {listed}. Give the "
        "dataset a schema with the type of their values, or scan its files by scan_parquet."
    )


def _frames(batches: Iterable[Any], schema: Any, names: Sequence[str] | None) -> Generator[Any]:
    """Yield batches of pyarrow as frames of the types that their columns are declared to have."""
    import pandas as pd

    types = [schema.field(name).type for name in (schema.names if names is None else names)]
    kind = {"double": np.float64, "float": np.float32}.get(str(types[0])) if types else None
    kind = kind if len(set(types)) == 1 else None
    columns = None
    for batch in batches:
        columns = pd.Index(batch.schema.names) if columns is None else columns
        if len(batch):
            yield _frame(batch, columns, types, kind)
        del batch  # one that is used no more takes no memory while the next is read
    _give_back(int(monotonic() / _KEPT_SECONDS))


def _frame(batch: Any, columns: Any, types: Sequence[Any], kind: Any) -> Any:
    """Return a batch as a frame; numbers of one floating type share one array."""
    import pandas as pd
    import pyarrow as pa

    if kind is None:
        columns_of_types = map(_as_declared, batch.columns, types)
        whole = pa.RecordBatch.from_arrays([*columns_of_types], names=batch.schema.names)
        return whole.to_pandas(types_mapper=_dtype_of, date_as_object=False)
    values = np.empty((batch.num_rows, batch.num_columns), dtype=kind, order="F")
    for place, column in enumerate(batch.columns):
        values[:, place] = column.to_numpy(zero_copy_only=False)
    return pd.DataFrame(values, columns=columns, copy=False)


def _as_declared(column: Any, dtype: Any) -> Any:
    """Return a column of a batch with its type in all files; decimal numbers as doubles."""
    import pyarrow as pa

    wanted = pa.float64() if pa.types.is_decimal(dtype) else dtype
    return column if column.type == wanted else column.cast(wanted)


@cache
def _dtype_of(dtype: Any) -> Any:
    """Return a type of pandas in which no missing value changes the others; None if it has one."""
    # By default, whole numbers become floats and truth values objects where one is missing.
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_boolean(dtype):
        return pd.BooleanDtype()
    if pa.types.is_integer(dtype):
        return pd.api.types.pandas_dtype(str(dtype).title().replace("Ui", "UI"))
    if kind_of(dtype) == Kind("text"):
        return pd.StringDtype("pyarrow")
    return pd.ArrowDtype(dtype) if pa.types.is_date(dtype) else None


@lru_cache(maxsize=1)
def _give_back(now: int) -> None:
    """Give memory that pyarrow keeps without need back to the system, once at a time."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
