"""Tables in parts after a first look, and steps that can go to other processes."""

from __future__ import annotations

import logging
import traceback

import numpy as np
import pytest

from skdpnoise.data.kinds import are_numbers, as_numbers
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.sources import as_sources
from skdpnoise.data.table import scan_partitions

SECRET = "Eve-31415"  # a value that no message may show


def seen(n_jobs=None, check=len, **tables):
    """Return tables in parts, after a look at them."""
    return scan_partitions(as_sources(**tables), check, n_jobs)


def values(tables):
    """Return X as an array of numbers, or as it is."""
    X = tables["X"]
    return as_numbers(X) if hasattr(X, "iloc") and are_numbers(X) else np.asarray(X)


def targets(tables):
    """Return y as an array."""
    return np.asarray(tables["y"])


def tenths(rows):
    """Return the sum of all rows, each rounded to tenths: a function of single rows."""
    return np.rint(np.asarray(rows) * 10.0).astype(np.int64).sum(axis=0)


def first_rows(rows, first):
    """Return the number of a first row, and how many there are."""
    return np.array([first, len(rows)])


def refused(function, *arguments, kind=SpreadError):
    """Return the message of an error that shows no value: in itself, behind it, or in a log."""
    shown = []
    handler = logging.Handler()
    handler.emit = lambda record: shown.append(record.getMessage())
    # Loggers of dask hand nothing on to that of all.
    loggers = [logging.getLogger(name) for name in ("", "distributed", "joblib")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with pytest.raises(kind) as caught:
            function(*arguments)
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    error = caught.value
    assert type(error) is kind
    assert error.__cause__ is None
    assert error.__context__ is None
    shown += traceback.format_exception(error)
    # Frames of the library hold no rows either, for whoever looks at variables.
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [frame for frame in frames if "skdpnoise/data" in frame.f_code.co_filename]
    assert ours
    shown += [repr(value) for frame in ours for value in frame.f_locals.values()]
    assert [text for text in shown if SECRET in text] == []
    return str(error)
