"""The guarantee checks itself."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from skdpnoise.privacy import PrivacyGuarantee


@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf])
def test_an_epsilon_that_is_not_positive_and_finite_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"'epsilon' parameter of PrivacyGuarantee must be"):
        PrivacyGuarantee(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, np.nan])
def test_a_delta_outside_the_half_open_unit_interval_is_refused(delta):
    with pytest.raises(ValueError, match=r"'delta' .* range \[0.0, 1.0\)"):
        PrivacyGuarantee(1.0, delta)


@pytest.mark.parametrize("value", [True, "1", None, 1j, [1.0]])
def test_what_is_not_a_real_number_is_refused(value):
    with pytest.raises(TypeError, match="'epsilon'"):
        PrivacyGuarantee(value)
    with pytest.raises(TypeError, match="'delta'"):
        PrivacyGuarantee(1.0, value)


def test_an_unknown_adjacency_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(ValueError, match=r"\['replace_one', 'add_remove'\]. Got 'swap'"):
        PrivacyGuarantee(1.0, adjacency="swap")
    with pytest.raises(TypeError, match="'adjacency'"):
        PrivacyGuarantee(1.0, adjacency=1)


def test_a_guarantee_is_a_frozen_value():
    guarantee = PrivacyGuarantee(np.float32(1), np.float64(1e-6), "add_remove")
    assert type(guarantee.epsilon) is float
    assert guarantee == PrivacyGuarantee(1.0, 1e-6, "add_remove")
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 2.0


def test_a_guarantee_prints_its_promise():
    assert str(PrivacyGuarantee(0.5)) == "(ε=0.5)-DP, replace_one"
    assert str(PrivacyGuarantee(0.5, 1e-6, "add_remove")) == "(ε=0.5, δ=1e-06)-DP, add_remove"
