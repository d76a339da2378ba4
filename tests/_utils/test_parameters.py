"""Numbers are doubles, bounds are ordered, and what the machine cannot bear is refused."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

from skdpnoise import BoundsClipper, DPStandardScaler
from skdpnoise._utils import parameters
from skdpnoise._utils.checks import check_option
from skdpnoise._utils.parameters import as_bounds, check_memory, check_parameters, check_size


@pytest.mark.parametrize(
    "epsilon", [1, 1.0, np.float64(1.0), np.float32(1.0), np.float16(1.0), np.int64(1), np.uint8(1)]
)
def test_numbers_that_are_doubles_are_accepted(epsilon):
    check_parameters(DPStandardScaler(epsilon))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), True, np.True_, np.longdouble(1.0)])
def test_numbers_that_would_be_changed_are_refused_with_the_remedy(epsilon):
    with pytest.raises(TypeError, match="'epsilon' parameter of DPStandardScaler must be"):
        check_parameters(DPStandardScaler(epsilon))


class Agreeable(str):
    """Equal to whatever it is compared with."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("name", ["adjacency", "noise"])
def test_texts_that_may_equal_others_are_refused(name):
    with pytest.raises(TypeError, match=rf"'{name}' .* of type Agreeable .*str\(\.\.\.\)"):
        check_parameters(DPStandardScaler().set_params(**{name: Agreeable("add_remove")}))
    with pytest.raises(TypeError, match="of type Agreeable"):
        check_option("Owner", name, Agreeable("add_remove"), ["replace_one"])


def test_truth_values_are_for_what_is_true_or_false():
    check_parameters(DPStandardScaler(with_mean=np.True_))
    with pytest.raises(TypeError, match=r"'rows_per_group' .* not a truth value"):
        check_parameters(DPStandardScaler(rows_per_group=True))


@pytest.mark.parametrize(
    "bounds", [(0, 1), (0.0, [1.0, 2.0]), [[0, 0], [1, 2]], np.array([[0, 0], [1, 2]])]
)
def test_bounds_have_one_pair_for_each_column(bounds):
    low, high = as_bounds(bounds, 2, "feature_bounds", BoundsClipper())
    assert low.tolist() == [0.0, 0.0]
    assert high[0] == 1.0


def test_no_bounds_are_infinite():
    low, high = as_bounds(None, 3, "feature_bounds", BoundsClipper())
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_more_memory_than_there_is_is_refused_where_the_machine_says_how_much(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 1000)
    check_memory("Model", 1e6, "rows", "Use fewer.")
    with pytest.raises(MemoryError, match=r"about 0\.00186 GiB of memory for rows.*Use fewer\."):
        check_memory("Model", 2e6, "rows", "Use fewer.")

    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr("os.sysconf", unknown)
    check_memory("Model", 1e30, "rows", "Use fewer.")


def test_sizes_bound_epsilon_from_both_sides():
    check_size(DPStandardScaler(1e-4), 10**9, 10_000)
    check_size(DPStandardScaler(10.0), 2**30, 10)
    with pytest.raises(ValueError, match=r"too small for 1000000 columns.*use at least 0\.001"):
        check_size(DPStandardScaler(1e-4), 100, 10**6)
    with pytest.raises(ValueError, match="too small for 10 columns and rows_per_group=1000000000"):
        check_size(DPStandardScaler(1.0, rows_per_group=10**9), 100, 10)
    with pytest.raises(ValueError, match="too large for 1000000 rows"):
        check_size(DPStandardScaler(1e8), 10**6, 1)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_missed_before_the_charge(library, monkeypatch):
    charged = []

    class Notebook:
        def charge(self, *args, **facts):
            charged.append(args)

    scaler = DPStandardScaler(feature_bounds=(-1, 1), ledger=Notebook())
    scaler.set_output(transform=library)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(parameters, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"needs {library}"):
        scaler.fit(np.zeros((50, 2)))
    assert charged == []
