"""The profile checks itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skdpnoise.sensitivity import SensitivityProfile


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"shape \(n,\) with n > 0"),
        ([[1.0]], r"shape \(n,\)"),
        (1.0, r"shape \(n,\)"),
        ([1.0, np.nan], "non-negative finite"),
        ([1.0, np.inf], "non-negative finite"),
        ([1.0, -1.0], "non-negative finite"),
        ([0.0, 0.0], "positive entry"),
        ([1e-200, 1.0], "within a factor of"),
    ],
)
def test_a_vector_that_bounds_nothing_is_refused(values, message):
    with pytest.raises(ValueError, match=rf"'per_coordinate'.*{message}"):
        SensitivityProfile(values)


@pytest.mark.parametrize("values", [["1"], [True], [1j], [None]])
def test_what_is_not_a_number_is_refused(values):
    with pytest.raises(TypeError, match="'per_coordinate'"):
        SensitivityProfile(values)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_a_joint_bound_below_the_largest_coordinate_is_refused(name):
    with pytest.raises(ValueError, match=f"'{name}'.*at least the largest.*lower"):
        SensitivityProfile([1.0, 2.0], **{name: 1.9})
    assert getattr(SensitivityProfile([1.0, 2.0], **{name: 2}), name) == 2.0
    with pytest.raises(TypeError, match=name):
        SensitivityProfile([1.0, 2.0], **{name: "2"})


def test_a_profile_is_a_frozen_copy():
    values = np.array([1.0, 0.0, 3.0])
    profile = SensitivityProfile(values, l2=3.0)
    values[:] = 7.0
    assert profile.per_coordinate.tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        profile.per_coordinate[0] = 2.0
    with pytest.raises(AttributeError):
        profile.l1 = 1.0
    copied = pickle.loads(pickle.dumps(profile))
    assert (copied.per_coordinate == profile.per_coordinate).all()
    assert (copied.l1, copied.l2, copied.n_coordinates) == (None, 3.0, 3)


def test_a_profile_prints_its_bounds():
    assert repr(SensitivityProfile([1, 2], l2=2)) == (
        "SensitivityProfile(n_coordinates=2, largest=2, l2=2)"
    )
