"""Integers of any size come to the noise as they are, in whatever way they are given."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest

from skdpnoise.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    calibrate,
    correlated_sum,
    k_norm,
    l1_staircase,
)
from skdpnoise.mechanisms.grid_sizes import exact_numbers, exact_steps
from skdpnoise.mechanisms.vectors import add_steps
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import noisy_histogram, private_count, private_histogram
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, quick

ONE = SensitivityProfile([1.0])
WIDE = SensitivityProfile([2.0**30, 2.0**30])  # grid steps of about 2**5: 2**60 is not clipped
TWO = SensitivityProfile([1.0, 1.0])
GUARANTEE = PrivacyGuarantee(1.0, 1e-6)
BEGINNINGS = [2**53 - 1, 2**54 + 1, 2**60 + 128, 2**61 + 3, -(2**60) - 129]
WAYS = {
    "list": list,
    "int64": lambda row: np.array(row, dtype=np.int64),
    "objects": lambda row: np.array(row, dtype=object),
    "beside a float": lambda row: [row[0], float(row[1])],
    "series": pd.Series,
}


@cache
def calibrated(noise):
    return calibrate(noise, TWO, GUARANTEE)


def as_uint64(row):
    return np.array(row, dtype=np.uint64)


@quick("beside a float")
@each_value(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", BEGINNINGS)
@pytest.mark.parametrize("noise", ["iid_discrete_laplace", "iid_discrete_gaussian"])
def test_neighbouring_integers_are_one_apart_before_the_noise(noise, n, way, monkeypatch):
    mechanism = calibrated(noise)
    seen = []

    def note(value, draws, grid_size, mechanism):
        seen.append(exact_steps(value, np.broadcast_to(grid_size, value.shape)))
        return add_steps(value, draws, grid_size, mechanism)

    monkeypatch.setattr("skdpnoise.mechanisms.vectors.add_steps", note)
    for value in (n, n + 1):
        mechanism.release(WAYS[way]([value, 0]), 0)
    assert [int(quanta[0, 0]) for quanta in seen] == [n, n + 1]


@pytest.mark.parametrize("q", [0.1, 1.0, 2.0**-20, 3.7e5, 1e12])
def test_steps_of_large_integers_are_nearest_integers(q):
    rng = np.random.default_rng(0)
    values = [*BEGINNINGS, *(int(v) for v in rng.integers(-(2**62), 2**62, size=200)), 2**80]
    found = exact_steps(exact_numbers([*values, 0.5])[:-1], np.full(len(values), q))
    limit = 2**62
    exact = [min(max(round(Fraction(v) / Fraction(q)), -limit), limit) for v in values]
    assert (np.abs(found - np.array(exact)) <= (np.abs(values) <= 2**53)).all()


@each_value(2)
@pytest.mark.parametrize(
    "make",
    [
        lambda: calibrate("inid_laplace", WIDE, PureLoss(1.0)),
        lambda: calibrate("inid_gaussian", WIDE, GaussianLoss(1.0)),
        lambda: k_norm(2, 2.0**30, 2, PureLoss(1.0)),
        lambda: l1_staircase(2, 2.0**30, PureLoss(3.0)),
        lambda: correlated_sum([2.0**30], GaussianLoss(1.0)),
    ],
    ids=["laplace", "gaussian", "k_norm", "l1_staircase", "correlated_sum"],
)
@pytest.mark.parametrize("way", [*WAYS, "uint64"])
def test_every_mechanism_takes_integers_as_they_are(make, way, monkeypatch):
    mechanism = make()
    read = as_uint64 if way == "uint64" else WAYS[way]
    low, high = (mechanism.release(read([n, 5]), SeededWords(3)) for n in (2**60, 2**60 + 2**30))
    assert high[0] - low[0] == pytest.approx(2.0**30, rel=1e-5)
    # One record moves what is released by its rounding to a double at most.
    near = mechanism.release(read([2**60 + 1, 5]), SeededWords(3))
    assert abs(near[0] - low[0]) <= np.spacing(2.0**60)


def test_integers_beyond_64_bits_are_clipped_alike():
    mechanism = calibrate("iid_laplace", ONE, PureLoss(1.0))
    huge = [mechanism.release([n], SeededWords(0))[0] for n in (2**80, 2**80 + 1, 10**300)]
    assert len(set(huge)) == 1
    assert np.isfinite(huge).all()


@pytest.mark.parametrize(
    "value", [np.array([1.0], dtype=np.longdouble), np.ma.array([1.0], mask=[True])]
)
def test_what_cannot_be_read_exactly_is_refused(value):
    if getattr(value, "dtype", None) == np.float64 and not np.ma.isMaskedArray(value):
        return  # no longer doubles on this machine
    with pytest.raises(TypeError, match=r"'value'.*real numbers"):
        calibrate("iid_laplace", ONE, PureLoss(1.0)).release(value)


@pytest.mark.parametrize("entry", ["a", None, 1j, Fraction(1, 3), [1], np.longdouble(1.0)])
def test_objects_that_are_no_plain_numbers_are_refused(entry):
    value = np.empty(1, dtype=object)
    value[0] = entry
    with pytest.raises(TypeError, match=r"'value'.*real numbers"):
        calibrate("iid_laplace", ONE, PureLoss(1.0)).release(value)


def test_infinity_beside_large_integers_is_refused():
    with pytest.raises(ValueError, match="finite"):
        calibrate("iid_laplace", TWO, PureLoss(1.0)).release([2**60 + 1, np.inf])
    with pytest.raises(ValueError, match="integer in every entry"):
        calibrate("iid_discrete_laplace", TWO, PureLoss(1.0)).release([2**60 + 1, 0.5])


@each_value(3)
@pytest.mark.parametrize("make", [ExponentialMechanism, PermuteAndFlip, ReportNoisyMax])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", BEGINNINGS)
def test_utilities_that_differ_by_one_stay_within_the_sensitivity(make, n, way):
    mechanism = make(1.0, 1.0)
    low, high = (mechanism._integers(WAYS[way]([value, 0])) for value in (n, n + 1))
    assert 0 <= int(high[0]) - int(low[0]) <= mechanism._steps
    assert low[1] == high[1] == 0


@pytest.mark.usefixtures("the_same_words")
def test_histograms_and_counts_take_integers_of_any_size():
    counts = [2**60 + 129, 5]
    noisy, _ = noisy_histogram(counts, PrivacyGuarantee(1.0), random_state=0)
    again, _ = noisy_histogram([2**60 + 129, 5.0], PrivacyGuarantee(1.0), random_state=0)
    assert (noisy == again).all()
    found = private_count(2**70, PrivacyGuarantee(1.0), noise="iid_laplace").value
    assert found == pytest.approx(2**70, rel=1e-9)
    with pytest.raises(ValueError, match="negative"):
        private_count(-1, PrivacyGuarantee(1.0))


@pytest.mark.parametrize("other", ["x", 0.5, None, 2**70, (1, 2), True, np.str_("x")])
def test_how_one_record_is_written_does_not_change_how_others_are_counted(other):
    values = [1, 2, 2**60 + 129, 2**60 + 129, 7]
    known = [1, 2, 2**60 + 129]
    guarantee = PrivacyGuarantee(1.0)
    of = [
        private_histogram(data, guarantee, categories=known, random_state=0).value
        for data in (values, [*values[:-1], other])
    ]
    changed = np.abs(of[0] - of[1]) > 0.5
    assert changed.sum() <= 1  # True equals the category 1: one count at most


def test_in_which_bin_a_value_falls_does_not_depend_on_the_others():
    edges = [0, 2**60 + 129, 2**61]
    guarantee = PrivacyGuarantee(1.0)
    for record in (2**60 + 128, 2**60 + 129, 2**60 + 130):
        of = [
            private_histogram([record] * 100 + [other], guarantee, bins=edges, random_state=0).value
            for other in (1, 0.5)
        ]
        assert np.abs(of[0] - of[1]).max() < 1.5


def test_labels_that_cannot_be_hashed_are_refused_without_showing_them():
    with pytest.raises(ValueError, match=r"'values'.*hashed") as refusal:
        private_histogram([[123], [456]], PrivacyGuarantee(1.0), categories=[1])
    assert "123" not in str(refusal.value)


@pytest.mark.parametrize("name", ["iid_laplace", "iid_discrete_laplace"])
def test_no_integer_is_too_large_to_be_released(name):
    """Whether one fails would tell neighbours apart: both are clipped to the same grid step."""
    mechanism = calibrate(name, SensitivityProfile([1.0]), PureLoss(1.0))
    last = 2**1024 - 2**970 - 1  # the largest integer that rounds to a double
    released = [mechanism.release([value], 0) for value in (last, last + 1, 10**400, -(10**400))]
    assert np.isfinite(released).all()
    assert released[0] == released[1] == released[2] > 0.0 > released[3]
