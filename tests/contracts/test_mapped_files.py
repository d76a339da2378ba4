"""Fits of a large file that is mapped into memory: the same bits, and little memory for a row."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from skdpnoise.kernels import columns
from skdpnoise.kernels.joint import descent
from tests.contracts._register import CLASSES, each, ways

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::skdpnoise.linear_model.PrivacyWarning"),
]

BLOCKS = 2**18  # bytes: more of them, or larger ones, where there are more rows
# Bytes of each value: what may be missing is read in double precision, and so is what is compared,
# one column after the other.
COPIES = {"numbers": 0.0, "gaps": 16.0, "labels": 2.0, "tables": 20.0}
N_ROWS, N_COLUMNS = 480_000, 50  # so many that some fits look at a part of half of them


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "X.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float32, (N_ROWS, N_COLUMNS))
    X[:] = np.random.default_rng(0).normal(1.0, 2.0, X.shape)
    del X
    return np.load(path, mmap_mode="r")


@pytest.fixture(autouse=True)
def files_are_large(monkeypatch):
    monkeypatch.setattr(columns, "LARGE_FILE", 0)
    monkeypatch.setattr(descent, "LARGE_FILE", 0)


def learned(estimator, X):
    """Return the arrays of a fitted estimator, of its network, and what it makes of rows."""
    network = getattr(estimator, "module_", None)
    tensors = {} if network is None else network.state_dict()
    arrays = {name: v for name, v in vars(estimator).items() if isinstance(v, np.ndarray)}
    arrays = {name: array for name, array in arrays.items() if array.dtype != object}
    if hasattr(estimator, "transform"):
        arrays["transformed"] = estimator.transform(np.array(X))
    return arrays | {name: tensor.numpy() for name, tensor in tensors.items()}


@each(ways(CLASSES))
def test_a_mapped_file_gives_the_same_bits_as_arrays_in_memory(entry, mapped):
    X = mapped[:2000]
    y = entry.y(X)
    first, *others = (
        learned(entry.estimator(random_state=0).fit(table, y), X)
        for table in (X, np.array(X), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2])
    )
    assert first
    for other in others:
        assert other.keys() == first.keys()
        for name, array in first.items():
            np.testing.assert_array_equal(array, other[name])


def peak(entry, X, y):
    """Return the most bytes that a fit holds at once."""
    tracemalloc.start()
    entry.estimator(random_state=0).fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@each(ways(CLASSES))
def test_extra_memory_is_a_few_numbers_for_each_row(entry, mapped):
    y = entry.y(mapped)
    y = y if y is None else y.astype(np.float64)
    entry.estimator(random_state=0).fit(mapped, y)  # compiles, and fills caches
    few, many = (peak(entry, mapped[:n], y if y is None else y[:n]) for n in (N_ROWS // 2, N_ROWS))
    most = 24.0 if y is not None else 0.05 * 4.0 * N_COLUMNS
    if entry.by_torch:  # they hold the table in the units of the network
        most += 4.0 * N_COLUMNS
    most += COPIES[entry.reads] * N_COLUMNS
    assert many - few <= N_ROWS / 2 * most + BLOCKS
