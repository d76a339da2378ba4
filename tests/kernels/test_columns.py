"""Columns are those of the table, whatever its layout and type, and however many threads copy."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.kernels import clipped_row_sums, columns, second_moments, threads
from skdpnoise.kernels.columns import Columns, columnwise
from tests._cases import each_value


def table(n_rows, dtype=np.float64):
    return np.arange(1, 3 * n_rows + 1, dtype=dtype).reshape(n_rows, 3)


@pytest.fixture(params=[1, 3])
def n_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "PER_THREAD", 1)
    return request.param


@pytest.mark.parametrize("n_rows", [1, 2, 511, 512, 513, 1025, 1537])
def test_every_row_is_copied(n_rows, n_threads, monkeypatch):
    # What is not written would be what was in memory before: here, not a number.
    monkeypatch.setattr(np, "empty", lambda shape, **kinds: np.full(shape, np.nan, **kinds))
    X = table(n_rows)
    copied = columnwise(X, n_threads)
    assert (copied == X).all()
    assert n_rows == 1 or copied.flags.f_contiguous
    assert columnwise(copied, n_threads) is copied


@each_value(1)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.longdouble, ">f8", bool])
def test_other_types_become_double_precision(dtype, order):
    X = table(40).astype(dtype, order=order)
    found = columnwise(X)
    assert found.dtype == np.dtype("=f8")
    assert (found == X.astype(float)).all()
    assert columnwise(X.astype(np.float32)).dtype == np.float32


def test_without_memory_for_a_copy_columns_are_copied_as_they_are_read(monkeypatch, n_threads):
    X, empty = table(1025), np.empty

    def empty_up_to_a_column(shape, **kinds):
        if np.ndim(shape) and len(shape) > 1:
            raise MemoryError
        return empty(shape, **kinds)

    monkeypatch.setattr(np, "empty", empty_up_to_a_column)
    assert columnwise(X, n_threads) is X
    with pytest.raises(MemoryError):
        columnwise(X.astype(int), n_threads)
    with threads.threads(1025, n_threads) as run:
        one, other = Columns(X, -np.ones(1025), run).take(1, 2)
    assert (np.stack([one, other]) == X[:, 1:].T).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("views", [0, 2])
def test_of_a_large_file_in_row_order_two_columns_are_held(
    tmp_path, monkeypatch, order, views, n_threads
):
    monkeypatch.setattr(columns, "LARGE_FILE", 0)
    X, last = table(1025), -np.ones(1025)
    mapped = np.memmap(tmp_path / "X", dtype=X.dtype, mode="w+", shape=X.shape, order=order)
    mapped[:] = X
    for _ in range(views):
        mapped = mapped.view(np.ndarray)[:]
    found = columnwise(mapped, n_threads)
    assert np.shares_memory(found, mapped)
    with threads.threads(1025, n_threads) as run:
        held = Columns(found, last, run)
        for one, other in [(0, 1), (1, 2), (2, 2), (3, 0), (0, 3), (2, 1)]:
            for k, column in zip((one, other), held.take(one, other), strict=True):
                assert (column == (X[:, k] if k < 3 else last)).all()
                assert column.flags.c_contiguous
                assert not column.flags.writeable
            if order == "C":
                assert len(held._held) <= 2
    assert mapped.flags.writeable


@pytest.mark.parametrize("add", [second_moments, clipped_row_sums])
@pytest.mark.parametrize("n_rows", [1, 999, 1001])
def test_tables_side_by_side_have_as_many_rows(add, n_rows):
    # A shorter one would count each of its rows several times, a longer one lose some.
    for tables in ([table(1000), np.ones(n_rows)], [np.ones(n_rows), table(1000)], []):
        with pytest.raises(ValueError, match=r"tables in the 'X' parameter.*as many rows"):
            add(tables, row_grid_size=2.0**-10, norm=1.0)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_error_of_a_thread_is_raised_where_it_was_asked(failing):
    def kernel(rows):
        if rows[0] == 10 * failing:
            raise ZeroDivisionError("of this range")
        return rows

    with pytest.raises(ZeroDivisionError, match="of this range"), threads.threads(30, 3) as run:
        run(kernel)
