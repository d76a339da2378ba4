"""Profiles of groups: what they say, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from skdpnoise.sensitivity import GroupedProfile

GROUPS = [1, 0, 1, 2]


@pytest.mark.parametrize("order", [1, 2])
def test_read_as_a_plain_profile_it_stays_true(order):
    profile = GroupedProfile([1.0, 2.0, 0.5], GROUPS, order=order, joint=2.2)
    np.testing.assert_array_equal(profile.per_coordinate, [2.0, 1.0, 2.0, 0.5])
    assert (profile.l1, profile.l2) == ((2.2, None) if order == 1 else (None, 2.2))
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = rng.normal(size=4) ** 3
        for g, bound in enumerate(profile.bounds):
            d[profile.members == g] *= bound / np.linalg.norm(d[profile.members == g], order)
        d *= min(1.0, 2.2 / np.linalg.norm(d, order))
        assert (np.abs(d) <= profile.per_coordinate * (1.0 + 1e-12)).all()
        assert np.linalg.norm(d, order) <= 2.2 * (1.0 + 1e-12)


def test_facts():
    profile = GroupedProfile([1.0, 2.0, 0.5], GROUPS)
    assert (profile.n_coordinates, profile.n_groups, profile.order) == (4, 3, 2.0)
    np.testing.assert_array_equal(profile.sizes, [1, 2, 1])
    np.testing.assert_array_equal(profile.quotient.per_coordinate, profile.bounds)
    assert repr(GroupedProfile([1.0], [0, 0], 1, 3.0)) == (
        "GroupedProfile(n_coordinates=2, n_groups=1, order=1, largest=1, joint=3)"
    )


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_say_the_same_and_stay_sealed(copied):
    profile = GroupedProfile([1.0, 2.0, 0.5], GROUPS, order=1, joint=2.5)
    other = copied(profile)
    assert type(other) is GroupedProfile
    for name in ("bounds", "groups", "per_coordinate"):
        array = getattr(other, name)
        np.testing.assert_array_equal(array, getattr(profile, name))
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            array.flags.writeable = True
            array[0] = 0.0
    assert (other.order, other.l1, other.l2) == (1.0, 2.5, None)


@pytest.mark.parametrize(
    ("arguments", "kwargs", "message"),
    [
        (([1.0, 2.0], [0, 0]), {}, "'groups'.*GroupedProfile.*number the groups.*missing, 1"),
        (([1.0, 2.0], [0, 2]), {}, "number the groups.*missing, 2"),
        (([1.0, 2.0], [0, 0.5, 1]), {}, "number the groups.*missing, 0.5"),
        (([1.0, 2.0, 3.0], [0, 2, 2]), {}, "from 0 to 2.*missing, 1"),
        (([1.0, 2.0], [-1, 0, 1]), {}, "'groups'.*GroupedProfile"),
        (([1.0, 2.0], [0, 1]), {"order": 3}, "'order'.*GroupedProfile.*1 or 2"),
        (([1.0, 2.0], [0, 1]), {"order": True}, "'order'.*GroupedProfile"),
        (([1.0, 2.0], [0, 1]), {"order": np.True_}, "'order'.*GroupedProfile"),
        (([1.0, 2.0], [0, 1]), {"order": 1 + 0j}, "'order'.*GroupedProfile"),
        (([1.0, 2.0], [0, 1]), {"order": np.array([1, 2])}, "'order'.*GroupedProfile"),
        (([1.0, 2.0], [0, 1]), {"joint": 1.9}, "'joint'.*GroupedProfile.*at least the largest"),
        (([1.0, 2.0], [0, 1]), {"joint": np.nan}, "'joint'.*GroupedProfile"),
        (([1.0, np.nan], [0, 1]), {}, "'bounds'.*GroupedProfile"),
        (([0.0], [0]), {}, "'bounds'.*GroupedProfile.*positive entry"),
    ],
)
def test_what_is_no_profile_of_groups_is_refused(arguments, kwargs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        GroupedProfile(*arguments, **kwargs)


def test_the_effective_scale_is_rounded_to_the_safe_side():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), rng.integers(1, 200, 50))
    profile = GroupedProfile(np.ones(50), groups)
    scale = rng.lognormal(0.0, 3.0, groups.size)
    found = profile.effective(scale, 1.0)
    exact = [
        1.0 / np.sqrt(np.sum(1.0 / scale[groups == g].astype(np.longdouble) ** 2))
        for g in range(50)
    ]
    assert (found <= np.array(exact)).all()
    np.testing.assert_allclose(found, np.array(exact, dtype=float), rtol=1e-12)
    spread = profile.spread(1.0)
    assert (spread >= np.sqrt(profile.sizes.astype(np.longdouble))).all()


def test_a_coordinate_without_noise_is_a_group_without_noise():
    profile = GroupedProfile([1.0, 1.0], [0, 0, 1])
    for order in (1.0, 2.0):
        np.testing.assert_array_equal(profile.effective(np.array([0.0, 1.0, 2.0]), order), [0, 2])
